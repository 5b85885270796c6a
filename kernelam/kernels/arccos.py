import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import BLOCK, ColumnFeatures, Draw, InnerProductKernel, gaussian_columns


@dataclass(frozen=True)
class ArcCosine(InnerProductKernel):
    """(1/π) |x|ⁿ |y|ⁿ J_n(θ), θ the angle between x and y (cho2009, equations 3 to 6), for n = 0, 1, 2.

    J₀ = π − θ, J₁ = sin θ + (π − θ) cos θ, J₂ = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ).
    """

    degree: int
    name = "arccos"

    def __post_init__(self) -> None:
        if self.degree not in (0, 1, 2):
            raise KernelamError(f"there are arc-cosine kernels of degree 0, 1 and 2, not {self.degree}")

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        """A zero vector is at right angles to all: as the random features have it, whose step is ½ at 0."""
        larger = torch.maximum(xx, yy).clamp_min(torch.finfo(xx.dtype).tiny)
        share = (xx / larger * (yy / larger)).sqrt()  # exactly 1 for y = x, and no product of norms that overflows
        norms = larger * share
        cos = torch.where(share == 0.0, 0.0, xy / larger / share).clamp(-1.0, 1.0)
        theta = cos.acos()
        sin = (1.0 - cos.square()).sqrt()
        if self.degree == 0:
            return 1.0 - theta / math.pi
        if self.degree == 1:
            return norms / math.pi * (sin + (math.pi - theta) * cos)
        return norms.square() / math.pi * (3.0 * sin * cos + (math.pi - theta) * (1.0 + 2.0 * cos.square()))

    def draw(self, dim: int, count: int, draw: Draw) -> "ArcCosineFeatures":
        if count < 1:
            raise KernelamError("an arc-cosine kernel needs at least one random feature")
        blocks = [
            gaussian_columns(dim, BLOCK, rng, draw.plan == "orthogonal")[:, taken] for rng, taken in draw.blocks(count)
        ]
        drawn = self.map_of({"omega": torch.from_numpy(np.concatenate(blocks, axis=1))})
        return drawn.placed(draw.shard, count)

    def map_of(self, arrays: dict[str, Tensor]) -> "ArcCosineFeatures":
        return ArcCosineFeatures(arrays, self.degree)


class ArcCosineFeatures(ColumnFeatures):
    """z(x) = √(2/D) Θ(ωᵀx) (ωᵀx)ⁿ with ω from N(0, I) and the step Θ, ½ at 0 (cho2009, section 2.3)."""

    def __init__(self, arrays: dict[str, Tensor], degree: int) -> None:
        super().__init__(arrays)
        self.degree = degree

    def check(self, dim: int) -> None:
        self._check_shapes(omega=(dim, self.columns))

    def write(self, x: Tensor, out: Tensor, factor: float = 1.0) -> None:
        torch.mm(self.own["omega"].T, x.T, out=out)
        scale = factor * self.scale
        if self.degree == 0:  # Θ = (1 + sign) / 2, which is faster than PyTorch's own step
            out.sign_().mul_(scale / 2.0).add_(scale / 2.0)
        elif self.degree == 1:
            out.relu_().mul_(scale)
        else:
            out.relu_().square_().mul_(scale)
