from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import BandwidthKernel
from kernelam.kernels.fourier import ShiftInvariant


@dataclass(frozen=True)
class Laplacian(ShiftInvariant, BandwidthKernel):
    """exp(−|x − y|₁ / scale). Its spectral density is Cauchy in each coordinate (may2017, table 1, λ = 1/scale)."""

    scale: float = 1.0
    name = "laplacian"

    def __post_init__(self) -> None:
        if not self.scale > 0.0:
            raise KernelamError(f"the Laplacian kernel needs a bandwidth above zero, not a scale of {self.scale}")

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.exp(torch.cdist(x, y, p=1.0) / -self.scale)

    def frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_cauchy((dim, count)) / self.scale

    def distances(self, x: Tensor, y: Tensor, rng: np.random.Generator) -> Tensor:
        return (x - y).abs().sum(dim=1)

    def with_width(self, width: float) -> Self:
        return replace(self, scale=width)
