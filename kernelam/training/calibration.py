"""From outputs of least squares to probabilities (chen2016, eq. 6): μ = σ(αf + β), by maximum likelihood on validation
frames, for many two-class problems at once.

A problem that f separates has no maximum: its targets are then those of Platt, (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2), as in
Lin, Lin and Weng (Machine Learning 68, 2007), whose damping by step halving serves for all. The maximum is that with
α ≥ 0: few frames may put the classes in the wrong order, which is no reason to believe the opposite of f; then α = 0,
and μ is the share of the first class.

A problem without frames of both sides takes the median of the others' α, where there are none 2 (a least-squares f
estimates 2μ − 1, and σ(2f) ≈ (1 + f)/2), and the β with which an f of its mean, 2s − 1 where s is the share of the
first class in training, has the probability s. With the median of β, a class of a few frames would be more likely than
its prior wherever it is, and decoding stay in it.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

SLOPE = 2.0
MAX_STEPS = 100
MAX_HALVINGS = 20
ENOUGH = 1e-10
"""Newton's decrement, a frame, at which a problem is solved."""
ELEMENTS = 1 << 20
"""Of f, worked on at once in double precision."""


class Scores(NamedTuple):
    """f of some frames, frames × m, in the m different problems that the columns belong to; and which are of the first
    class of their problem, in a shape that spreads to that of f."""

    f: Tensor
    problems: Tensor
    first: Tensor


Source = Callable[[], Iterator[Scores]]
"""All scores, as often as they are asked for; a column of a problem may come in many parts."""


def _parts(source: Source) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """f in double precision, with its problems and which of it is of the first class, as much of it as ELEMENTS."""
    for f, problems, first in source():
        first = first.expand(f.shape)
        for part, own in zip(*(torch.split(one, max(1, ELEMENTS // f.shape[1])) for one in (f, first)), strict=True):
            if len(part):
                yield part.double(), problems, own


class _Fit:
    """Sums over frames of each problem."""

    def __init__(self, source: Source, problems: int, device: torch.device) -> None:
        self.source, self.problems, self.device = source, problems, device
        count = self._zeros(2)
        low, high = self._zeros(2) + math.inf, self._zeros(2) - math.inf
        for f, where, first in _parts(source):
            for side, own in enumerate((~first, first)):
                count[side].index_add_(0, where, own.sum(dim=0).double())
                low[side, where] = torch.minimum(low[side, where], torch.where(own, f, math.inf).amin(dim=0))
                high[side, where] = torch.maximum(high[side, where], torch.where(own, f, -math.inf).amax(dim=0))
        self.frames = count.sum(dim=0)
        self.known = (count > 0).all(dim=0)
        apart = (high[0] <= low[1]) | (high[1] <= low[0])
        self.targets = torch.where(apart, torch.stack([1 / (count[0] + 2), (count[1] + 1) / (count[1] + 2)]), 0.0)
        self.targets[1] = torch.where(apart, self.targets[1], 1.0)
        self.prior = torch.log((count[1] + 1) / (count[0] + 1))

    def _zeros(self, rows: int) -> Tensor:
        return torch.zeros(rows, self.problems, dtype=torch.float64, device=self.device)

    def loss(self, alpha: Tensor, beta: Tensor) -> Tensor:
        total = self._zeros(1)[0]
        for f, where, first in _parts(self.source):
            s = alpha[where] * f + beta[where]
            total.index_add_(0, where, (softplus(s) - self._target(where, first) * s).sum(dim=0))
        return total

    def derivatives(self, alpha: Tensor, beta: Tensor) -> Tensor:
        """By α, by β; by α twice, by α and β, by β twice."""
        total = self._zeros(5)
        for f, where, first in _parts(self.source):
            mu = torch.sigmoid(alpha[where] * f + beta[where])
            error, weight = mu - self._target(where, first), mu * (1.0 - mu)
            for row, term in enumerate((error * f, error, weight * f * f, weight * f, weight)):
                total[row].index_add_(0, where, term.sum(dim=0))
        return total

    def _target(self, where: Tensor, first: Tensor) -> Tensor:
        return torch.where(first, self.targets[1, where], self.targets[0, where])


def calibrate(source: Source, shares: Tensor) -> Tensor:
    """α and β of each problem, problems × 2, from the share of the first class in its training frames."""
    fit = _Fit(source, len(shares), shares.device)
    alpha, beta = _maximum(fit)
    beta = torch.where(alpha < 0.0, fit.prior, beta)
    alpha = alpha.clamp_min(0.0)
    alpha[~fit.known] = alpha[fit.known].median() if fit.known.any() else SLOPE
    share = shares.double()
    beta = torch.where(fit.known, beta, torch.logit(share) - alpha * (2.0 * share - 1.0))
    return torch.stack([alpha, beta], dim=1).float()


def _maximum(fit: _Fit) -> tuple[Tensor, Tensor]:
    """α and β of the problems that have frames of both sides."""
    alpha, beta = torch.zeros_like(fit.prior), fit.prior.clone()
    loss, going = fit.loss(alpha, beta), fit.known.clone()
    for _ in range(MAX_STEPS):
        by_alpha, by_beta, aa, ab, bb = fit.derivatives(alpha, beta)
        aa, bb = aa * (1.0 + 1e-12) + 1e-200, bb + 1e-12  # f may be of any size: that of a ridge of 10¹⁰ is small
        determinant = (aa * bb - ab * ab).clamp_min(torch.finfo(torch.float64).tiny)
        step_a = -(bb * by_alpha - ab * by_beta) / determinant
        step_b = -(aa * by_beta - ab * by_alpha) / determinant
        decrement = -(step_a * by_alpha + step_b * by_beta)
        going &= decrement > ENOUGH * fit.frames
        if not going.any():
            break
        size = going.double()
        for _ in range(MAX_HALVINGS):
            new_alpha, new_beta = alpha + size * step_a, beta + size * step_b
            new_loss = fit.loss(new_alpha, new_beta)
            rose = going & ~(new_loss <= loss - 1e-4 * size * decrement)
            if not rose.any():
                break
            size = torch.where(rose, 0.5 * size, size)
        going &= ~rose  # as good as it gets in this precision
        alpha, beta, loss = (
            torch.where(going, new, old) for new, old in ((new_alpha, alpha), (new_beta, beta), (new_loss, loss))
        )
    return alpha, beta
