from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import BandwidthKernel, InnerProductKernel


@dataclass(frozen=True)
class Polynomial(InnerProductKernel, BandwidthKernel):
    """(1 + x·y / s)ⁿ."""

    degree: int
    scale: float = 1.0
    name = "polynomial"

    def __post_init__(self) -> None:
        if self.degree < 1:
            raise KernelamError(f"a polynomial kernel has a degree of at least 1, not {self.degree}")
        if not self.scale > 0.0:
            raise KernelamError(f"a polynomial kernel has a scale above zero, not {self.scale}")

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return (1.0 + xy / self.scale) ** self.degree

    def distances(self, x: Tensor, y: Tensor, rng: np.random.Generator) -> Tensor:
        """|x| |y|, which inner products are a part of."""
        return x.norm(dim=1) * y.norm(dim=1)

    def with_width(self, width: float) -> Self:
        return replace(self, scale=width)
