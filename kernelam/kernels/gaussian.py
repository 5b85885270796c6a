from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import BandwidthKernel, gaussian_columns
from kernelam.kernels.fourier import ShiftInvariant


@dataclass(frozen=True)
class Gaussian(ShiftInvariant, BandwidthKernel):
    """exp(−|x − y|² / 2σ²). Its spectral density is N(0, σ⁻² I) (may2017, table 1)."""

    sigma: float = 1.0
    name = "gaussian"

    def __post_init__(self) -> None:
        if not self.sigma > 0.0:
            raise KernelamError(f"the Gaussian kernel needs a bandwidth above zero, not σ = {self.sigma}")

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        distance = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
        return torch.exp(distance.square() / (-2.0 * self.sigma**2))

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return torch.exp((xx + yy - 2.0 * xy).clamp(min=0.0) / (-2.0 * self.sigma**2))

    def frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return gaussian_columns(dim, count, rng, orthogonal=False) / np.float32(self.sigma)

    def orthogonal_frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return gaussian_columns(dim, count, rng, orthogonal=True) / np.float32(self.sigma)

    def distances(self, x: Tensor, y: Tensor, rng: np.random.Generator) -> Tensor:
        return (x - y).square().sum(dim=1)

    def with_width(self, width: float) -> Self:
        """2σ² = width."""
        return replace(self, sigma=(width / 2.0) ** 0.5)
