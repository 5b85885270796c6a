"""What a kernel is: an exact function, and for most of them a random feature map that approximates it."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.randomness import stream
from kernelam.ranks import WHOLE, Shard

BLOCK = 500
"""Columns drawn from one state of the generator: block i of a seed is the same whoever draws it."""

PLANS = ("paired", "independent", "orthogonal")
"""paired: cosine and sine of each frequency, at half the projections and with less error than `independent`, the
papers' cos(ωᵀx + b). orthogonal: pairs of frequencies whose directions are orthogonal within a block. A map without
frequencies (arc-cosine) has no pairs, and takes the first two for the same."""


@dataclass(frozen=True)
class Draw:
    """Which random numbers: those of a seed, by a plan, from a block on. A part of a nested kernel has its own. Of all
    columns, those of a shard."""

    seed: int
    plan: str = "paired"
    first_block: int = 0
    purpose: str = "frequencies"
    shard: Shard = WHOLE

    def part(self, name: str | int) -> "Draw":
        return replace(self, purpose=f"{self.purpose}.{name}")

    def inner(self) -> "Draw":
        """For an inner map, which is the same and whole for all who draw parts of the outer one."""
        return replace(self.part("inner"), first_block=0, shard=WHOLE)

    def blocks(self, columns: int) -> Iterator[tuple[np.random.Generator, slice]]:
        """The generator of each block that the shard of `columns` columns is in, and which of its BLOCK columns."""
        own = self.shard.of(columns)
        for block in range(own.start // BLOCK, -(-own.stop // BLOCK)):
            start = block * BLOCK
            taken = slice(max(own.start - start, 0), min(own.stop - start, BLOCK))
            yield stream(self.seed, self.purpose, self.first_block + block), taken


class Kernel(ABC):
    """A positive definite function k(x, y) of real vectors. Its fields are its settings."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """The exact kernel matrix, k(x_i, y_j)."""

    @abstractmethod
    def diagonal(self, x: Tensor) -> Tensor:
        """k(x_i, x_i)."""

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        """k as a function of |x|², |y|² and x·y, element by element; only some kernels are one."""
        raise KernelamError(
            f"the {self.name} kernel is no function of inner products, as it would have to be for a composition with"
            " another kernel in closed form, or for basis vectors"
        )

    def norm_from(self, xx: Tensor) -> Tensor:
        """k(x, x) as a function of |x|²."""
        return self.from_products(xx, xx, xx)

    def by_products(self, x: Tensor, y: Tensor) -> Tensor:
        """k(x_i, y_j) by one matrix product, in the precision of x; gradients go back through it."""
        return self.from_products(x.square().sum(1).unsqueeze(1), y.square().sum(1).unsqueeze(0), x @ y.T)

    def matrix(self, x: Tensor, y: Tensor) -> Tensor:
        """k(x_i, y_j) by products where it is a function of them, and by the exact function otherwise."""
        try:
            return self.by_products(x, y)
        except KernelamError:
            return self(x, y)

    def feature_map(self, dim: int, count: int, seed: int, plan: str = "paired", first_block: int = 0) -> "FeatureMap":
        """`count` random features z with E[z(x)·z(y)] = k(x, y) for inputs of `dim` numbers.

        Maps of one seed whose blocks of columns do not overlap are independent parts of one larger map.
        """
        if plan not in PLANS:
            raise KernelamError(f"no sampling plan is called {plan}; there are {', '.join(PLANS)}")
        return self.draw(dim, count, Draw(seed, plan, first_block))

    def check_count(self, count: int, plan: str) -> None:
        """Refuse to draw a number of features that there cannot be."""
        if count < 1:
            raise KernelamError(f"{count} random features: at least 1 is needed")

    def draw(self, dim: int, count: int, draw: Draw) -> "FeatureMap":
        raise KernelamError(f"the {self.name} kernel has no random features: use its exact function")

    def map_of(self, arrays: dict[str, Tensor]) -> "FeatureMap":
        """The feature map that had these `arrays`."""
        raise KernelamError(f"the {self.name} kernel has no random features")

    def settings(self) -> dict[str, Any]:
        """The kernel's "name" and the arguments that make it again (see `kernel_from`), as JSON has them."""
        given = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"name": self.name, **given}


def _plain(value: Any) -> Any:
    if isinstance(value, Kernel):
        return value.settings()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


class InnerProductKernel(Kernel):
    """A kernel that is a function of |x|², |y|² and x·y. The exact function is computed in double precision."""

    @abstractmethod
    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor: ...

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        a, b = x.double(), y.double()
        return self.from_products(a.square().sum(1)[:, None], b.square().sum(1)[None], a @ b.T).to(x.dtype)

    def diagonal(self, x: Tensor) -> Tensor:
        xx = x.double().square().sum(1)
        return self.from_products(xx, xx, xx).to(x.dtype)


class BandwidthKernel(Kernel):
    """A kernel whose width is fitted to distances of random pairs (may2017, footnote 8)."""

    @abstractmethod
    def distances(self, x: Tensor, y: Tensor, rng: np.random.Generator) -> Tensor:
        """The distance of x_i and y_i that the width is a multiple of."""

    @abstractmethod
    def with_width(self, width: float) -> Self:
        """This kernel with that width, in the unit of `distances`."""


class FeatureMap(ABC):
    """x ↦ z(x) with z(x)·z(y) ≈ k(x, y).

    `arrays` are plain tensors, saved with the model under their names; a map that has parts prefixes theirs, as in
    "0.omega". A feature is contiguous in memory, not a frame: z is the transpose of what was computed, so that the
    maps of a sum are blocks of memory, and cosines need not know where a row ends.
    """

    def __init__(self, own: dict[str, Tensor], parts: "dict[str, FeatureMap] | None" = None) -> None:
        self.own, self.parts = own, parts or {}

    @property
    def arrays(self) -> dict[str, Tensor]:
        nested = {f"{name}.{key}": array for name, part in self.parts.items() for key, array in part.arrays.items()}
        return self.own | nested

    def to(self, device: torch.device) -> Self:
        self.own = {name: array.to(device) for name, array in self.own.items()}
        for part in self.parts.values():
            part.to(device)
        return self

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of features D."""

    def check(self, dim: int) -> None:
        """ValueError where the arrays, which may be those of a file, do not fit each other, or inputs of `dim` numbers:
        compiled loops would read beyond them."""
        for part in self.parts.values():
            part.check(dim)

    def _check_shapes(self, **expected: tuple[int, ...]) -> None:
        """These arrays there are, and no others."""
        shapes = {name: tuple(array.shape) for name, array in self.own.items()}
        if shapes != expected:
            raise ValueError(f"its features are arrays of the sizes {shapes}, not {expected}")

    @property
    def total(self) -> int:
        """The number of features of the map that this is a slice of."""
        return self.count

    @property
    def places(self) -> Tensor:
        """Where the features of this slice are among all."""
        return torch.arange(self.count)

    @property
    def sliced(self) -> set[str]:
        """The arrays of which this has some columns only."""
        return {f"{name}.{key}" for name, part in self.parts.items() for key in part.sliced}

    def slice(self, shard: Shard) -> Self:
        """The map of a part of the features, about as many for each shard."""
        if shard.count > 1:
            raise KernelamError(
                "several processes share random features: linear and posteriors are for one, or inside a composition"
            )
        return self

    @abstractmethod
    def write(self, x: Tensor, out: Tensor, factor: float = 1.0) -> None:
        """factor · zᵀ into the contiguous `out`, count × batch."""

    @torch.no_grad()
    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """z of each row of x, batch × count, without a graph for automatic differentiation.

        The memory of `out`, the result of an earlier call, is used again if it has the right shape.
        """
        if out is None or out.shape != (len(x), self.count):
            out = torch.empty(self.count, len(x), device=x.device, dtype=x.dtype).T
        self.write(x, out.T)
        return out

    @property
    def columns(self) -> int:
        """The number of units that selection chooses among."""
        raise self._no_columns()

    def column_norms(self, squared_norms: Tensor) -> Tensor:
        """Squared norms of what belongs to each feature, summed over the features of each unit."""
        raise self._no_columns()

    def select(self, indices: Tensor) -> Self:
        """The map of these units alone."""
        raise self._no_columns()

    def joined(self, other: "FeatureMap") -> Self:
        """The map of the units of both."""
        raise self._no_columns()

    def _no_columns(self) -> KernelamError:
        return KernelamError(
            "features are selected one by one only for a single kernel (Gaussian, Laplacian, sparse Gaussian, a product"
            " of these, or arc-cosine), not for sums and compositions"
        )


class ColumnFeatures(FeatureMap):
    """A map whose units are columns drawn independently of each other: the last axis of each of its arrays.

    Unit j of n has the features j, n + j, …; z is scaled by √(2/D) for the D features that the map has now.
    """

    features_per_column = 1
    whole: tuple[int, int] | None = None
    """Of a slice: its first column, and the number of columns of the map that it is a slice of."""

    @property
    def columns(self) -> int:
        return next(iter(self.own.values())).shape[-1]

    @property
    def count(self) -> int:
        return self.columns * self.features_per_column

    @property
    def total(self) -> int:
        return self.whole[1] * self.features_per_column if self.whole else self.count

    @property
    def places(self) -> Tensor:
        first, total = self.whole or (0, self.columns)
        starts = first + total * torch.arange(self.features_per_column)
        return (starts[:, None] + torch.arange(self.columns)).flatten()

    @property
    def sliced(self) -> set[str]:
        return set(self.own) if self.whole else set()

    def slice(self, shard: Shard) -> Self:
        own = shard.of(self.columns)
        part = self.select(torch.arange(own.start, own.stop))
        return part.placed(shard, self.columns)

    def placed(self, shard: Shard, columns: int) -> Self:
        """These columns, known as the slice of so many that `shard` is."""
        if shard.count > 1:
            self.whole = (shard.of(columns).start, columns)
        return self

    @property
    def scale(self) -> float:
        return (2.0 / self.total) ** 0.5

    def column_norms(self, squared_norms: Tensor) -> Tensor:
        return squared_norms.view(self.features_per_column, -1).sum(dim=0)

    def select(self, indices: Tensor) -> Self:
        return self._with({name: array[..., indices.to(array.device)] for name, array in self.own.items()})

    def joined(self, other: FeatureMap) -> Self:
        if self._kind() != (other._kind() if isinstance(other, ColumnFeatures) else None):
            raise KernelamError("only maps of one kernel and one sampling plan can be joined")
        return self._with({name: torch.cat([array, other.own[name]], dim=-1) for name, array in self.own.items()})

    def _kind(self) -> tuple[Any, ...]:
        """All but the columns themselves: what maps must share to be joined."""
        others = {name: value for name, value in vars(self).items() if name != "own"}
        return type(self), others, {name: array.shape[:-1] for name, array in self.own.items()}

    def _with(self, own: dict[str, Tensor]) -> Self:
        made = copy.copy(self)
        made.own = own
        return made


def part_of(arrays: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The arrays of the part `name`, without the prefix."""
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}


def gaussian_columns(dim: int, count: int, rng: np.random.Generator, orthogonal: bool) -> np.ndarray:
    """Columns from N(0, I); if orthogonal, each is one of those still, in groups of `dim` (Yu et al., NIPS 2016)."""
    if not orthogonal:
        return rng.standard_normal((dim, count), dtype=np.float32)
    width = min(dim, count)
    q, r = np.linalg.qr(rng.standard_normal((-(-count // width), dim, width)))
    signs = np.where(np.diagonal(r, axis1=1, axis2=2) < 0.0, -1.0, 1.0)  # without, directions would not be uniform
    directions = (q * signs[:, None]).transpose(1, 0, 2).reshape(dim, -1)[:, :count]
    return (directions * np.sqrt(rng.chisquare(dim, count))).astype(np.float32)
