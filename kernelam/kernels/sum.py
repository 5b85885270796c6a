"""Additive combination of kernels (lu2014, section 4.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import Draw, FeatureMap, Kernel, part_of
from kernelam.ranks import Shard


@dataclass(frozen=True)
class Sum(Kernel):
    """Σ α_i k_i with α_i ≥ 0. Its map is the concatenation of √α_i z_i, the features shared out evenly."""

    weights: tuple[float, ...]
    kernels: tuple[Kernel, ...]
    name = "sum"

    def __post_init__(self) -> None:
        if not self.kernels or len(self.weights) != len(self.kernels):
            raise KernelamError(f"a sum of {len(self.kernels)} kernels with {len(self.weights)} weights")
        if min(self.weights) < 0.0 or not 0.0 < sum(self.weights) < math.inf:
            raise KernelamError(f"the weights of a sum of kernels are not negative nor all zero, unlike {self.weights}")

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return self._sum([kernel(x, y) for kernel in self.kernels])

    def diagonal(self, x: Tensor) -> Tensor:
        return self._sum([kernel.diagonal(x) for kernel in self.kernels])

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return self._sum([kernel.from_products(xx, yy, xy) for kernel in self.kernels])

    def _sum(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.stack([weight * part for weight, part in zip(self.weights, parts, strict=True)]).sum(dim=0)

    def draw(self, dim: int, count: int, draw: Draw) -> "SumFeatures":
        counts = shared_out(count, len(self.kernels))
        maps = [
            kernel.draw(dim, n, draw.part(i)) for i, (kernel, n) in enumerate(zip(self.kernels, counts, strict=True))
        ]
        return SumFeatures(self.weights, maps)

    def map_of(self, arrays: dict[str, Tensor]) -> "SumFeatures":
        return SumFeatures(
            self.weights, [kernel.map_of(part_of(arrays, str(i))) for i, kernel in enumerate(self.kernels)]
        )


def shared_out(count: int, parts: int) -> list[int]:
    """`count` features as evenly as pairs allow."""
    pairs = [count // 2 // parts + (i < count // 2 % parts) for i in range(parts)]
    return [2 * n + (i == 0 and count % 2) for i, n in enumerate(pairs)]


class SumFeatures(FeatureMap):
    """z(x) = [√α₁ z₁(x), √α₂ z₂(x), …]."""

    def __init__(self, weights: Sequence[float], maps: Sequence[FeatureMap]) -> None:
        super().__init__({}, {str(i): part for i, part in enumerate(maps)})
        self.weights = weights

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts.values())

    @property
    def total(self) -> int:
        return sum(part.total for part in self.parts.values())

    @property
    def places(self) -> Tensor:
        before = accumulate((part.total for part in self.parts.values()), initial=0)
        return torch.cat([start + part.places for start, part in zip(before, self.parts.values(), strict=False)])

    def slice(self, shard: Shard) -> Self:
        return type(self)(self.weights, [part.slice(shard) for part in self.parts.values()])

    def write(self, x: Tensor, out: Tensor, factor: float = 1.0) -> None:
        blocks = out.split([part.count for part in self.parts.values()])
        for weight, part, block in zip(self.weights, self.parts.values(), blocks, strict=True):
            part.write(x, block, factor * weight**0.5)
