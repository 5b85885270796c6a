"""Vectors y whose φ(y) point along the gradient of an objective in feature space (kubo2012, equations 3 and 8)."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from kernelam.kernels import Kernel
from kernelam.training.subspace import Subspace

CANDIDATES = 256  # samples of which the best is where a search starts
STEPS = 20  # of L-BFGS


@dataclass(frozen=True)
class Target:
    """g_l = Σ_n a_nl φ(x_n), a gradient in feature space with respect to θ_l: a_nl is d_nl for samples and −c β_ml for
    basis vectors, which may be rows of x too."""

    kernel: Kernel
    x: Tensor
    coefficients: Tensor

    @cached_property
    def norms(self) -> Tensor:
        """|x_n|², which every step of a search asks for."""
        return self.x.square().sum(1)

    def along(self, y: Tensor) -> Tensor:
        """⟨g_l, φ(y_i)⟩, rows of y × classes."""
        k = self.kernel.from_products(y.square().sum(1)[:, None], self.norms[None], y @ self.x.T)
        return k @ self.coefficients

    def without(self, subspace: Subspace, along: Tensor | None = None) -> "Target":
        """What of it is orthogonal to the subspace (eq. 8): ĝ_l = g_l − Σ_i ⟨g_l, b_i⟩ b_i, where it may be known how
        much of it is `along` vectors of the subspace."""
        along = self.along(subspace.y.to(self.x.dtype)) if along is None else along
        inside = torch.linalg.solve_triangular(subspace.factor, along.double(), upper=False)
        return self.and_of(subspace.y, -subspace.coefficients(inside))

    def and_of(self, y: Tensor, beta: Tensor) -> "Target":
        """With Σ_m β_ml φ(y_m) added to it."""
        return Target(self.kernel, torch.cat([self.x, y.to(self.x)]), torch.cat([self.coefficients, beta.to(self.x)]))

    def explained(self, y: Tensor) -> Tensor:
        """How much of Σ_l |g_l|² the best multiple of φ(y_i) takes away: Σ_l ⟨g_l, φ(y_i)⟩² / k(y_i, y_i). That is
        nothing where φ(y_i) is zero, as that of a blank image is for a linear kernel."""
        norms = self.kernel.norm_from(y.square().sum(1)).clamp_min(torch.finfo(y.dtype).tiny)
        return self.along(y).square().sum(1) / norms

    def explained_together(self, y: Tensor) -> Tensor:
        """The same of the best combination of all φ(y_i): Σ_l h_lᵀ G⁻¹ h_l (eq. 3)."""
        gram, h = self.kernel.by_products(y, y), self.along(y)
        shift = 1e-6 * gram.diagonal().mean().detach()
        factor = torch.linalg.cholesky(gram + shift * torch.eye(len(y), dtype=gram.dtype, device=gram.device))
        return torch.linalg.solve_triangular(factor, h, upper=False).square().sum()


def best_preimage(target: Target, candidates: Tensor, steps: int = STEPS) -> Tensor:
    """One vector, from the best of the candidates uphill."""
    with torch.no_grad():
        start = candidates[target.explained(candidates).argmax()][None]
    return _uphill(lambda y: target.explained(y)[0], start, steps)[0]


def joint_preimages(target: Target, start: Tensor, steps: int = STEPS) -> Tensor:
    """As many vectors as rows of `start`, all at once."""
    return _uphill(target.explained_together, start, steps)


def _uphill(value_of, start: Tensor, steps: int) -> Tensor:  # type: ignore[no-untyped-def]
    """L-BFGS with a line search; a result that is no better than the start, or not finite, is the start."""
    y = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([y], max_iter=steps, max_eval=5 * steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = -value_of(y) / unit
        loss.backward()
        return loss

    try:
        with torch.no_grad():
            first = float(value_of(start))
        unit = first if first > 0.0 else 1.0
        optimiser.step(closure)
        with torch.no_grad():
            last = float(value_of(y))
    except torch.linalg.LinAlgError:
        return start
    found = y.detach()
    return found if last >= first and bool(torch.isfinite(found).all()) else start
