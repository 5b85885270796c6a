"""Composition of kernels, with a projection between the layers (lu2014, section 4.2; cho2009, section 2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.arccos import ArcCosine
from kernelam.kernels.base import Draw, FeatureMap, Kernel, part_of
from kernelam.ranks import Shard


@dataclass(frozen=True)
class Composition(Kernel):
    """k₂ ∘ P ∘ k₁: the outer kernel of φ₁(x), or of a projection of it; random features are φ₂(P φ₁(x)).

    Without a projection, k₂(φ₁(x), φ₁(y)) is a function of k₁(x, x), k₁(y, y) and k₁(x, y) if k₂ is one of inner
    products: the recursion over the layers of arc-cosine kernels is of this kind.
    """

    outer: Kernel
    inner: Kernel
    features: int = 0  # of the inner map; 0: only the exact function is wanted
    projection: str | None = None
    name = "composition"

    def _check(self) -> None:
        if self.projection or self.inner.name == "posteriors":
            raise KernelamError("a composition with a projection that was fitted to data has no closed form")

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        self._check()
        a, b = x.double(), y.double()
        xx, yy = self.inner.diagonal(a)[:, None], self.inner.diagonal(b)[None]
        return self.outer.from_products(xx, yy, self.inner(a, b)).to(x.dtype)

    def diagonal(self, x: Tensor) -> Tensor:
        self._check()
        return self.outer.norm_from(self.inner.diagonal(x.double())).to(x.dtype)

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        self._check()
        norms = self.inner.norm_from(xx), self.inner.norm_from(yy)
        return self.outer.from_products(*norms, self.inner.from_products(xx, yy, xy))

    def norm_from(self, xx: Tensor) -> Tensor:
        """Layer by layer: by `from_products`, a layer would take three times as long as the one below."""
        self._check()
        return self.outer.norm_from(self.inner.norm_from(xx))

    def draw(self, dim: int, count: int, draw: Draw) -> "CompositeFeatures":
        if self.projection:
            raise KernelamError("a composition with a projection must be fitted to data before it has features")
        if not self.features:
            raise KernelamError("a composition has random features only if its inner map has a number of them")
        inner = self.inner.draw(dim, self.features, draw.inner())
        return CompositeFeatures(self.outer.draw(inner.count, count, draw.part("outer")), inner)

    def map_of(self, arrays: dict[str, Tensor]) -> "CompositeFeatures":
        outer, inner = self.outer.map_of(part_of(arrays, "outer")), self.inner.map_of(part_of(arrays, "inner"))
        return CompositeFeatures(outer, inner, {name: arrays[name] for name in ("matrix", "offset") if name in arrays})


def arc_cosine_layers(degrees: Sequence[int]) -> Kernel:
    """k⁽ˡ⁾ of l layers, their degrees from the inputs up (cho2009, equation 12)."""
    if not degrees:
        raise KernelamError("an arc-cosine kernel has a depth of at least 1, not 0")
    kernel: Kernel = ArcCosine(degrees[0])
    for degree in degrees[1:]:
        kernel = Composition(ArcCosine(degree), kernel)
    return kernel


class CompositeFeatures(FeatureMap):
    """z(x) = φ₂(P φ₁(x)), where P v = vᵀ matrix + offset; without a matrix it is the identity."""

    def __init__(self, outer: FeatureMap, inner: FeatureMap, projection: dict[str, Tensor] | None = None) -> None:
        super().__init__(projection or {}, {"inner": inner, "outer": outer})

    def check(self, dim: int) -> None:
        self.parts["inner"].check(dim)
        between = self.parts["inner"].count
        if self.own:
            rank = len(self.own["offset"])
            self._check_shapes(matrix=(between, rank), offset=(rank,))
            between = rank
        self.parts["outer"].check(between)

    @property
    def count(self) -> int:
        return self.parts["outer"].count

    @property
    def total(self) -> int:
        return self.parts["outer"].total

    @property
    def places(self) -> Tensor:
        return self.parts["outer"].places

    def slice(self, shard: Shard) -> Self:
        """The inner map is whole in all slices."""
        return type(self)(self.parts["outer"].slice(shard), self.parts["inner"], self.own)

    @torch.no_grad()
    def hidden(self, x: Tensor) -> Tensor:
        """P φ₁(x), which the outer map is of."""
        z = self.parts["inner"](x)
        return torch.addmm(self.own["offset"], z, self.own["matrix"]) if self.own else z

    def write(self, x: Tensor, out: Tensor, factor: float = 1.0) -> None:
        self.parts["outer"].write(self.hidden(x), out, factor)
