from dataclasses import dataclass

from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import InnerProductKernel


@dataclass(frozen=True)
class Polynomial(InnerProductKernel):
    """(1 + x·y)ⁿ."""

    degree: int
    name = "polynomial"

    def __post_init__(self) -> None:
        if self.degree < 1:
            raise KernelamError(f"a polynomial kernel has a degree of at least 1, not {self.degree}")

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return (1.0 + xy) ** self.degree
