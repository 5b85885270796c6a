from dataclasses import dataclass

import torch
from torch import Tensor

from kernelam.kernels.base import Draw, FeatureMap, InnerProductKernel


@dataclass(frozen=True)
class Linear(InnerProductKernel):
    """x·y. Its features are x itself, as many as there are inputs, whatever number is asked for."""

    name = "linear"

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return xy

    def draw(self, dim: int, count: int, draw: Draw) -> "LinearFeatures":
        return LinearFeatures(dim).slice(draw.shard)

    def map_of(self, arrays: dict[str, Tensor]) -> "LinearFeatures":
        return LinearFeatures(int(arrays["inputs"]))


class LinearFeatures(FeatureMap):
    """z(x) = x."""

    def __init__(self, dim: int) -> None:
        super().__init__({"inputs": torch.tensor(dim)})
        self.dim = dim

    def check(self, dim: int) -> None:
        if dim != self.dim:
            raise ValueError(f"it is of {self.dim} inputs, not of {dim}")

    @property
    def count(self) -> int:
        return self.dim

    def write(self, x: Tensor, out: Tensor, factor: float = 1.0) -> None:
        torch.mul(x.T, factor, out=out)
