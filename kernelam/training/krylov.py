"""Conjugate gradients and full GMRES for many symmetric systems that advance together.

Vectors are rows. A product of all matrices with all vectors that are still needed is one call, so that whoever makes it
can read each matrix once. Systems that have converged take no further part. `targets` are norms of residuals, falling,
systems × levels: after how many steps each was reached is told, and at the last one a system has converged.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Product = Callable[[Tensor, Tensor], Tensor]
"""product(rows, v): the matrix of system rows[n] times v[n], for each n."""

STEPS = 8
"""Of GMRES whose basis vectors share a tensor: what is copied at once when systems leave."""
ROWS = 64
"""Systems whose solutions are put together at once, for the same reason."""


class Progress(NamedTuple):
    """What a method found for each right-hand side: an approximate solution, after how many steps each target was
    reached (0: never; the last: how many there were), and whether it was worked on at all: where memory is short, some
    are left for another call."""

    x: Tensor
    steps: Tensor
    begun: Tensor


def _note(steps: Tensor, which: Tensor, residual: Tensor, targets: Tensor, step: int) -> Tensor:
    """Set the steps of the targets that these systems have just reached; which of them have converged."""
    reached = residual[:, None] <= targets[which]
    steps[which] = torch.where(reached & (steps[which] == 0), step, steps[which])
    return reached[:, -1]


def conjugate_gradients(
    product: Product, rows: Tensor, b: Tensor, targets: Tensor, limit: int, memory: int
) -> Progress:
    """Until the residual of each system, as the recursion has it, is small enough."""
    x, steps = torch.zeros_like(b), torch.zeros(targets.shape, dtype=torch.int64)
    alive = torch.arange(len(b))
    residual, direction, done = b.clone(), b.clone(), torch.zeros_like(b)
    square = residual.square().sum(dim=1)
    for step in range(1, limit + 1):
        image = product(rows[alive], direction)
        length = square / (direction * image).sum(dim=1)
        residual -= image.mul_(length[:, None])
        done += torch.mul(direction, length[:, None], out=image)
        before, square = square, residual.square().sum(dim=1)
        direction.mul_((square / before)[:, None]).add_(residual)
        going = ~_note(steps, alive, square.sqrt().cpu(), targets, step) & (step < limit)
        if not going.all():
            ended = alive[~going]
            x[ended], steps[ended, -1] = done[~going], step
            alive, square = alive[going], square[going]
            residual, direction, done = residual[going], direction[going], done[going]
        if not len(alive):
            break
    return Progress(x, steps, torch.ones(len(b), dtype=torch.bool))


class _Basis:
    """Orthonormal vectors of each system, and products with them."""

    def __init__(self, first: Tensor) -> None:
        self.parts: list[Tensor] = []
        self.length = 0
        self.append(first)

    def append(self, v: Tensor) -> None:
        if self.length % STEPS == 0:
            self.parts.append(v.new_zeros(len(v), STEPS, v.shape[1]))
        self.parts[-1][:, self.length % STEPS] = v
        self.length += 1

    @property
    def last(self) -> Tensor:
        return self.parts[-1][:, (self.length - 1) % STEPS]

    def bytes_after(self, systems: int) -> int:
        """With one more vector, of so many systems."""
        return 4 * systems * self.parts[0].shape[2] * STEPS * (len(self.parts) + (self.length % STEPS == 0))

    def keep(self, rows: Tensor) -> None:
        for number, part in enumerate(self.parts):
            self.parts[number] = part[rows]

    def dots(self, w: Tensor) -> Tensor:
        """⟨v_k, w⟩ of every k, systems × length."""
        found = [torch.bmm(part, w[:, :, None])[:, :, 0] for part in self.parts]
        return torch.cat(found, dim=1)[:, : self.length]

    def orthogonalise(self, w: Tensor) -> Tensor:
        """Take from w its part in the basis, in place; its coefficients. For a symmetric matrix only the last two are
        not rounding errors: once they are gone, one pass over all of them leaves w orthogonal."""
        last = range(max(0, self.length - 2), self.length)
        h = torch.zeros(len(w), self.length, dtype=w.dtype, device=w.device)
        for k in last:
            v = self.parts[k // STEPS][:, k % STEPS]
            h[:, k] = (v * w).sum(dim=1)
            w -= h[:, k, None] * v
        rest = self.dots(w)
        w -= self.combine(rest)
        return h + rest

    def combine(self, y: Tensor, rows: Tensor | None = None) -> Tensor:
        """Σ_k y_k v_k of each system, or of these rows alone."""
        total: Tensor | float = 0.0
        for part, weights in zip(self.parts, torch.split(y, STEPS, dim=1), strict=False):
            vectors = part if rows is None else part[rows]
            total = total + torch.bmm(weights[:, None], vectors[:, : weights.shape[1]])[:, 0]
        assert isinstance(total, Tensor)
        return total


class _LeastSquares:
    """min |β e_1 − H y| of each system, by Givens rotations as columns of H arrive; in double precision, on the CPU."""

    def __init__(self, beta: Tensor) -> None:
        self.rhs = beta.double()[:, None]
        self.columns: list[Tensor] = []
        self.rotations: list[tuple[Tensor, Tensor]] = []

    def add(self, column: Tensor, below: Tensor) -> Tensor:
        """The next column, and what is below the diagonal; the norm of the residual now."""
        entries = list(column.double().unbind(dim=1))
        for k, (c, s) in enumerate(self.rotations):
            entries[k], entries[k + 1] = c * entries[k] + s * entries[k + 1], c * entries[k + 1] - s * entries[k]
        radius = torch.hypot(entries[-1], below.double()).clamp_min(torch.finfo(torch.float64).tiny)
        c, s = entries[-1] / radius, below.double() / radius
        entries[-1] = radius
        self.columns.append(torch.stack(entries, dim=1))
        self.rotations.append((c, s))
        last = self.rhs[:, -1]
        self.rhs = torch.cat([self.rhs[:, :-1], (c * last)[:, None], (-s * last)[:, None]], dim=1)
        return self.rhs[:, -1].abs()

    def solution(self, rows: Tensor) -> Tensor:
        size = len(self.columns)
        triangle = torch.zeros(len(rows), size, size, dtype=torch.float64)
        for k, column in enumerate(self.columns):
            triangle[:, : k + 1, k] = column[rows]
        return torch.linalg.solve_triangular(triangle, self.rhs[rows, :-1, None], upper=True)[:, :, 0]

    def keep(self, rows: Tensor) -> None:
        self.rhs = self.rhs[rows]
        self.columns = [column[rows] for column in self.columns]
        self.rotations = [(c[rows], s[rows]) for c, s in self.rotations]


def fitting(memory: int, size: int, steps: int) -> int:
    """Systems of vectors of that size whose bases of so many steps take at most `memory` bytes; one at least."""
    return max(1, memory // (4 * size * STEPS * -(-steps // STEPS)))


def gmres(product: Product, rows: Tensor, b: Tensor, targets: Tensor, limit: int, memory: int) -> Progress:
    """Full GMRES, whose bases take at most `memory` bytes (but one system is always worked on): when they would take
    more, half of the systems that have not converged are left for another call."""
    x, steps = torch.zeros_like(b), torch.zeros(targets.shape, dtype=torch.int64)
    begun = torch.ones(len(b), dtype=torch.bool)
    stored, alive = torch.arange(len(b)), torch.ones(len(b), dtype=torch.bool)  # which of b, and who still goes on
    beta = b.norm(dim=1)
    basis, problem = _Basis(b / beta[:, None]), _LeastSquares(beta.cpu())
    for step in range(1, limit + 1):
        w = torch.zeros_like(basis.last)
        w[alive.to(b.device)] = product(rows[stored[alive]], basis.last[alive.to(b.device)])
        h = basis.orthogonalise(w)
        below = w.norm(dim=1)
        residual = problem.add(h.cpu(), below.cpu())
        ended = alive & (_note(steps, stored, residual, targets, step) | (step == limit))
        if ended.any():
            for places in torch.split(ended.nonzero()[:, 0], ROWS):
                y = problem.solution(places).to(b)
                x[stored[places]], steps[stored[places], -1] = basis.combine(y, places.to(b.device)), step
            alive &= ~ended
        if not alive.any():
            break
        places = alive.nonzero()[:, 0]
        if len(places) > 1 and basis.bytes_after(len(places)) > memory:
            begun[stored[places[len(places) // 2 :]]] = False
            places = places[: len(places) // 2]
        if 4 * len(places) <= 3 * len(stored):
            device_places = places.to(b.device)
            basis.keep(device_places)
            problem.keep(places)
            stored, w, below = stored[places], w[device_places], below[device_places]
            alive = torch.ones(len(places), dtype=torch.bool)
        basis.append(w / below.clamp_min(torch.finfo(w.dtype).tiny)[:, None])
    return Progress(x, steps, begun)
