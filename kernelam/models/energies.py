"""Large-margin nearest neighbours: the energy of each class (Weinberger and Saul, JMLR 10, 2009; cho2009, 3.1)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

ELEMENTS = 1 << 22
"""Of distances, computed at once."""


@dataclass(frozen=True)
class Energies:
    """What the loss of the metric would be of an example x, were it of class c:

    (1 − μ) Σ_j D(x, x_j) + μ Σ_j Σ_l [1 + D(x, x_j) − D(x, x_l)]₊ + μ Σ_i Σ_j [1 + D(x_i, x_j) − D(x_i, x)]₊

    with D(x, y) = |L(x − y)|²: in the first two sums x_j are the nearest examples of class c, as many as target
    neighbours, and x_l those of other classes; in the third, x_i are those of other classes and x_j their targets.
    """

    metric: Tensor  # L
    points: Tensor  # L x_i, grouped by class
    sizes: Tensor  # how many of each class, at least as many as targets
    reach: Tensor  # D(x_i, x_j) of each of these and its target neighbours
    impostors: float  # μ

    @property
    def chunk(self) -> int:
        """Examples at once."""
        return max(1, ELEMENTS // len(self.points))

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Batch × classes."""
        return torch.cat([self._energies(part) for part in torch.split(x, self.chunk)])

    def _energies(self, x: Tensor) -> Tensor:
        distance = squared_distances(x @ self.metric.T, self.points)
        sizes, count = self.sizes.tolist(), self.reach.shape[1]
        parts = distance.split(sizes, dim=1)
        nearest = torch.stack([part.topk(count, dim=1, largest=False).values for part in parts], dim=1)
        margins = 1.0 + nearest
        invading = torch.zeros_like(distance)
        for reach in self.reach.T:
            invading += (1.0 + reach - distance).relu_()
        invaded = [_hinges(margin, part) for margin, part in zip(margins.unbind(1), parts, strict=True)]
        own = torch.stack([part.sum(dim=1) for part in invading.split(sizes, dim=1)], dim=1) + torch.stack(invaded, 1)
        every = _sorted_hinges(margins, distance) + invading.sum(dim=1, keepdim=True)
        return (1.0 - self.impostors) * nearest.sum(dim=2) + self.impostors * (every - own)


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """|x_i − y_j|²."""
    found = torch.addmm(y.square().sum(1)[None], x, y.T, alpha=-2.0)
    return found.add_(x.square().sum(1)[:, None]).clamp_min_(0.0)


def _hinges(margins: Tensor, distance: Tensor) -> Tensor:
    """Σ_j Σ_l [m_j − D_l]₊ of each row."""
    return sum((margin[:, None] - distance).relu_().sum(dim=1) for margin in margins.unbind(1))  # type: ignore[return-value]


def _sorted_hinges(margins: Tensor, distance: Tensor) -> Tensor:
    """Σ_j Σ_l [m_cj − D_l]₊ of each row and class: of sorted D, those below m_cj are the first, and their sum is known.

    The sums are in double precision, where differences of them are small."""
    ordered = _sorted(distance)
    sums = torch.nn.functional.pad(ordered.double().cumsum(dim=1), (1, 0))
    flat = margins.flatten(1)
    below = torch.searchsorted(ordered, flat.contiguous())
    total = flat.double() * below - sums.gather(1, below)
    return total.view_as(margins).sum(dim=2).to(distance.dtype)


def _sorted(rows: Tensor) -> Tensor:
    """On a CPU by NumPy, which is ten times as fast."""
    return torch.from_numpy(np.sort(rows.numpy(), axis=1)) if rows.device.type == "cpu" else rows.sort(dim=1).values
