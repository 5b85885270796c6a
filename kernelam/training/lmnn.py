"""Metrics for nearest neighbours by a large margin (Weinberger and Saul, JMLR 10, 2009), as cho2009 ends its machines.

ε(L) = (1 − μ) Σ_i Σ_j D(x_i, x_j) + μ Σ_i Σ_j Σ_l [1 + D(x_i, x_j) − D(x_i, x_l)]₊ with D(x, y) = |L(x − y)|², where
x_j are target neighbours of x_i, its nearest of the same class before there is a metric, and x_l of other classes. Of
these, only the impostors count: those within the margin of a target. They are looked for in rounds; in between, L-BFGS
goes downhill with those of all found so far that are not far off.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from kernelam.errors import KernelamError
from kernelam.models.energies import ELEMENTS, Energies, squared_distances
from kernelam.progress import say

NEAR = 1.1  # times the margin, so that who comes near in a round is there already
FAR = 2.0  # times the margin, beyond which an impostor takes no part in the steps of a round
CACHED = 1 << 18  # numbers
LEAST, MOST = 10, 200  # impostors of an example that a round finds: the nearest, some even if they are far


@dataclass(frozen=True)
class MetricOptions:
    targets: int = 3
    impostors: float = 0.5  # μ, their share of the loss
    rounds: int = 20  # in which impostors are looked for, at most
    steps: int = 10  # of L-BFGS in a round
    tolerance: float = 1e-3  # the share of the loss that a round gains, or it is the last

    def __post_init__(self) -> None:
        if self.targets < 1:
            raise KernelamError(f"an example has at least 1 target neighbour, not {self.targets}")


def target_neighbours(x: Tensor, labels: Tensor, count: int) -> Tensor:
    """The nearest others of the same class, examples × count."""
    found = torch.empty(len(x), count, dtype=torch.int64, device=x.device)
    for label in labels.unique():
        own = (labels == label).nonzero()[:, 0]
        if len(own) <= count:
            raise KernelamError(
                f"class {int(label)} has {len(own)} examples, and each needs {count} target neighbours among the others"
            )
        for part in own.split(max(1, ELEMENTS // len(own))):
            distance = squared_distances(x[part], x[own])
            distance[part[:, None] == own[None]] = torch.inf
            found[part] = own[distance.topk(count, dim=1, largest=False).indices]
    return found


@numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def _apart(y: np.ndarray, i: np.ndarray, j: np.ndarray, out: np.ndarray) -> None:
    """As Pairs.distances, in a fifth of PyTorch's time on a CPU: what it would gather is never written."""
    for pair in range(len(i)):
        a, b = y[i[pair]], y[j[pair]]
        total = y.dtype.type(0.0)
        for k in range(len(a)):
            gap = a[k] - b[k]
            total += gap * gap
        out[pair] = total


class Pairs:
    """Weighted pairs (i, j) of examples, sorted by i."""

    def __init__(self, i: Tensor, j: Tensor, examples: int) -> None:
        self.i, self.j = i, j
        self.bounds = torch.searchsorted(i.contiguous(), torch.arange(examples + 1, device=i.device))

    def __len__(self) -> int:
        return len(self.i)

    def distances(self, y: Tensor) -> Tensor:
        """|y_i − y_j|² of each, of as many at once as caches hold."""
        if y.device.type == "cpu":
            found = torch.empty(len(self), dtype=y.dtype)
            _apart(y.numpy(), self.i.numpy(), self.j.numpy(), found.numpy())
            return found
        size = max(1, CACHED // y.shape[1])
        parts = [
            y.index_select(0, i).sub_(y.index_select(0, j)).square_().sum(dim=1)
            for i, j in zip(self.i.split(size), self.j.split(size), strict=True)
        ]
        return torch.cat(parts)

    def pull(self, weights: Tensor, y: Tensor) -> Tensor:
        """Half the gradient of Σ w |y_i − y_j|² with respect to y."""
        order = self.j.argsort(stable=True)
        turned = Pairs(self.j[order], self.i[order], len(y))
        degrees = torch.zeros(len(y), dtype=y.dtype, device=y.device)
        degrees.index_add_(0, self.i, weights).index_add_(0, self.j, weights)
        out = degrees[:, None] * y
        for pairs, own in ((self, weights), (turned, weights[order])):
            out -= embedding_bag(pairs.j, y, pairs.bounds[:-1], mode="sum", per_sample_weights=own)
        return out

    def some(self, places: Tensor) -> "Pairs":
        """Those at these places, which are sorted."""
        return Pairs(self.i[places], self.j[places], len(self.bounds) - 1)


class Margins:
    """ε and its gradient, with the impostors that were found so far."""

    def __init__(self, x: Tensor, labels: Tensor, options: MetricOptions) -> None:
        self.x, self.labels, self.options = x, labels, options
        neighbours = target_neighbours(x, labels, options.targets)
        own = torch.arange(len(x), device=x.device).repeat_interleave(options.targets)
        self.targets = Pairs(own, neighbours.flatten(), len(x))
        nobody = torch.empty(0, dtype=torch.int64, device=x.device)
        self.impostors = Pairs(nobody, nobody, len(x))

    def start(self) -> Tensor:
        """A multiple of the identity, with which targets are at a mean squared distance of 1."""
        mean = float(self.targets.distances(self.x).double().mean())
        scale = mean**-0.5 if mean > 0.0 else 1.0
        return scale * torch.eye(self.x.shape[1], dtype=torch.float64, device=self.x.device)

    def reach(self, y: Tensor) -> Tensor:
        """D(x_i, x_j) of targets, examples × targets."""
        return self.targets.distances(y).view(len(y), -1)

    def look(self, metric: Tensor) -> int:
        """Add the impostors that there are with this metric; returns how many are new."""
        y = self.x @ metric.to(self.x.dtype).T
        bound = NEAR * (1.0 + self.reach(y).amax(dim=1))
        found = []
        for rows in torch.arange(len(y), device=y.device).split(max(1, ELEMENTS // len(y))):
            distance = squared_distances(y[rows], y)
            distance.masked_fill_(self.labels[rows, None] == self.labels[None], torch.inf)
            i, j = _impostors(distance, bound[rows]).nonzero().T
            found.append(rows[i] * len(y) + j)
        known = self.impostors.i * len(y) + self.impostors.j
        both = torch.cat([known, *found]).unique()
        self.impostors = Pairs(both // len(y), both % len(y), len(y))
        return len(both) - len(known)

    def without_far(self, metric: Tensor) -> "Margins":
        """ε for steps from this metric: soon, by far the most impostors that were ever found are out of reach."""
        y, near = self.x @ metric.to(self.x.dtype).T, copy(self)
        bound = FAR * (1.0 + self.reach(y).amax(dim=1))
        near.impostors = self.impostors.some((self.impostors.distances(y) < bound[self.impostors.i]).nonzero()[:, 0])
        return near

    @torch.no_grad()
    def value_and_gradient(self, metric: Tensor) -> tuple[float, Tensor]:
        """ε and dε/dL, a sum over examples."""
        mu, y = self.options.impostors, self.x @ metric.to(self.x.dtype).T
        reach, distance = self.reach(y), self.impostors.distances(y)
        value = (1.0 - mu) * float(reach.sum(dtype=torch.float64))
        live = (distance < 1.0 + reach.amax(dim=1)[self.impostors.i]).nonzero()[:, 0]  # few, but in the first round
        impostors, distance = self.impostors.some(live), distance[live]
        pulls, pushes = torch.full_like(reach, 1.0 - mu), torch.zeros_like(distance)
        for j in range(reach.shape[1]):
            hinge = 1.0 + reach[impostors.i, j] - distance
            active = (hinge > 0.0).to(y.dtype)
            value += mu * float((hinge * active).sum(dtype=torch.float64))
            pulls[:, j].index_add_(0, impostors.i, mu * active)
            pushes -= mu * active
        moved = self.targets.pull(pulls.flatten(), y) + impostors.pull(pushes, y)
        return value, 2.0 * (moved.T @ self.x).double()


def _impostors(distance: Tensor, bound: Tensor) -> Tensor:
    """Which are nearer than the bound of their row, LEAST to MOST in each; sorting that many is slow."""
    least = distance.topk(min(LEAST, distance.shape[1]), dim=1, largest=False).values[:, -1]
    limit = torch.maximum(bound, least).clamp_max_(torch.finfo(distance.dtype).max)
    near = distance <= limit[:, None]
    if len(crowded := (near.sum(dim=1) > MOST).nonzero()[:, 0]):
        rows = distance[crowded]
        near[crowded] = rows <= rows.topk(MOST, dim=1, largest=False).values[:, -1:]
    return near


Keep = Callable[[dict[str, Tensor], list[dict[str, Any]]], None]


def learn_metric(
    x: Tensor, labels: Tensor, options: MetricOptions, keep: Keep | None = None, kept: Any = None
) -> tuple[Tensor, list[dict[str, Any]]]:
    """L with the least ε that was found, and the story of the rounds. After each, `keep` is given what a later call
    takes as `kept`, and goes on with to the same end."""
    margins = Margins(x, labels, options)
    rounds: list[dict[str, Any]] = []
    metric = best = margins.start()
    if kept is not None:
        arrays, rounds = kept
        metric, best, i, j = (arrays[name].to(x.device) for name in ("metric", "best", "i", "j"))
        margins.impostors = Pairs(i, j, len(x))
    while not _ended(rounds, options):
        new = margins.look(metric)
        value, _ = margins.value_and_gradient(metric)
        if not rounds or value < min(row["loss"] for row in rounds):
            best = metric
        rounds.append({"loss": value, "impostors": len(margins.impostors), "new": new})
        say(f"metric, round {len(rounds) - 1}: loss {value:.6g}, {len(margins.impostors)} impostors, {new} new")
        if not _ended(rounds, options):
            metric = _downhill(margins.without_far(metric), metric, options.steps)
        if keep is not None:
            keep({"metric": metric, "best": best.clone(), "i": margins.impostors.i, "j": margins.impostors.j}, rounds)
    return best, rounds


def _ended(rounds: list[dict[str, Any]], options: MetricOptions) -> bool:
    """Whether the last round gained hardly anything; one that lost, as there were new impostors, did not end it."""
    losses = [row["loss"] for row in rounds]
    if len(losses) > options.rounds:
        return True
    return len(losses) > 1 and 0.0 <= losses[-2] - losses[-1] <= options.tolerance * losses[-2]


def _downhill(margins: Margins, start: Tensor, steps: int) -> Tensor:
    metric = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([metric], max_iter=steps, max_eval=2 * steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        value, metric.grad = margins.value_and_gradient(metric.detach())
        return torch.tensor(value, dtype=torch.float64)

    optimiser.step(closure)
    found = metric.detach()
    return found if bool(torch.isfinite(found).all()) else start


def energies(x: Tensor, labels: Tensor, metric: Tensor, options: MetricOptions) -> Energies:
    """The rule that classifies by examples in this metric; its classes are the labels, sorted."""
    order = labels.argsort(stable=True)
    x, labels = x[order], labels[order]
    single = metric.to(x.dtype)
    margins = Margins(x, labels, options)
    points = x @ single.T
    sizes = labels.unique(return_counts=True)[1]
    return Energies(single, points, sizes, margins.reach(points), options.impostors)
