"""A subspace of the feature space of a kernel, spanned by pre-images (kubo2012, section 3)."""

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import Kernel

LEAST = 1e-6
"""The share of the squared norm of φ(y) that must lie outside a subspace for y to be added to it."""


class Subspace:
    """The span of φ(y_1) … φ(y_M), and the orthonormal basis b_i = Σ_j Q_ij φ(y_j) that Gram and Schmidt make of it.

    QGQᵀ = I for the Gram matrix G and triangular Q (eq. 7), so that Q = L⁻¹ for G = LLᵀ. A row of L, which is kept in
    double precision, is found from those above it and corrected once by what of it was not orthogonal.
    """

    def __init__(self, kernel: Kernel, dim: int, device: torch.device) -> None:
        self.kernel = kernel
        self.y = torch.empty(0, dim, device=device)
        self.factor = torch.empty(0, 0, dtype=torch.float64, device=device)

    def __len__(self) -> int:
        return len(self.y)

    def coordinates(self, x: Tensor) -> Tensor:
        """⟨b_i, φ(x)⟩ of each row of x, in double precision; batch × M."""
        k = self.kernel.by_products(self.y.double(), x.double())
        return torch.linalg.solve_triangular(self.factor, k, upper=False).T

    def residual(self, x: Tensor) -> Tensor:
        """The share of |φ(x)|² that is outside of the subspace."""
        norm = self.kernel.diagonal(x.double())
        return 1.0 - self.coordinates(x).square().sum(1) / norm if len(self) else torch.ones_like(norm)

    def add(self, y: Tensor) -> bool:
        """Widen the subspace by φ(y), unless hardly anything of it is new."""
        y = y[None]
        norm = float(self.kernel.diagonal(y.double()))
        if not norm > 0.0:
            return False
        row = self.coordinates(y)[0] if len(self) else torch.empty(0, dtype=torch.float64, device=y.device)
        if len(self):  # what the solution leaves of k is orthogonal but for rounding, which is taken off too
            k = self.kernel.by_products(self.y.double(), y.double())[:, 0]
            left = (k - self.factor @ row)[:, None]
            row = row + torch.linalg.solve_triangular(self.factor, left, upper=False)[:, 0]
        new = norm - float(row @ row)
        if not new > LEAST * norm:
            return False
        size = len(self)
        factor = torch.zeros(size + 1, size + 1, dtype=torch.float64, device=y.device)
        factor[:size, :size], factor[size, :size], factor[size, size] = self.factor, row, new**0.5
        self.y, self.factor = torch.cat([self.y, y.to(self.y.dtype)]), factor
        return True

    def coefficients(self, weights: Tensor) -> Tensor:
        """β with Σ_m β_m φ(y_m) = Σ_i w_i b_i for each column of weights: Qᵀw."""
        return torch.linalg.solve_triangular(self.factor.T, weights.double(), upper=True)

    def condition(self) -> float:
        """Of the Gram matrix, its diagonal scaled to 1."""
        values = torch.linalg.svdvals(self.factor / self.factor.norm(dim=1, keepdim=True))
        return float((values[0] / values[-1]).square())


def check_differentiable(kernel: Kernel) -> None:
    """Refuse kernels whose pre-images cannot be searched for."""
    y = torch.full((1, 2), 0.5, dtype=torch.float64, requires_grad=True)
    try:
        x = torch.tensor([[1.0, -1.0]], dtype=torch.float64)  # x·y = 0: of no power is it too large a number
        value = kernel.by_products(x, y).sum()
        (gradient,) = torch.autograd.grad(value, y)
    except KernelamError:
        gradient = torch.tensor(torch.nan)
    if "arccos" in str(kernel.settings()) or not torch.isfinite(gradient).all():
        raise KernelamError(
            f"there is no search for pre-images with the {kernel.name} kernel, which is not a differentiable function"
            " of inner products: take a linear, polynomial or Gaussian one"
        )
