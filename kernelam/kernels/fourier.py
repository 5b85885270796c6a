"""Random Fourier features of shift-invariant kernels (Rahimi and Recht, NIPS 2007; may2017, section 3.1)."""

from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import BLOCK, ColumnFeatures, Draw, Kernel
from kernelam.kernels.loops import cosine, cosine_and_sine, sparse_projection


class FourierFeatures(ColumnFeatures):
    """With a phase b, z(x) = √(2/D) cos(ωᵀx + b). Without, z(x) = √(2/D) [cos(ωᵀx), sin(ωᵀx)] from D/2 frequencies.

    The products of pairs are cos(ωᵀ(x − y)), free of the phase's noise, at half the projections.
    """

    @property
    def features_per_column(self) -> int:  # type: ignore[override]
        return 1 if "b" in self.own else 2

    def check(self, dim: int) -> None:
        self._check_shapes(omega=(dim, self.columns), **self._phases())

    def _phases(self) -> dict[str, tuple[int, ...]]:
        return {"b": (self.columns,)} if "b" in self.own else {}

    def project(self, x: Tensor, out: Tensor) -> Tensor:
        """ωᵀx of each frequency (a row) and frame; in `out` if that is of use."""
        return torch.mm(self.own["omega"].T, x.T, out=out)

    def write(self, x: Tensor, out: Tensor, factor: float = 1.0) -> None:
        p = self.project(x, out.narrow(0, 0, self.columns))
        if "b" in self.own:
            cosine(p, self.own["b"], factor * self.scale, out)
        else:
            cosine_and_sine(p, factor * self.scale, out)


class SparseFourierFeatures(FourierFeatures):
    """The same with frequencies of few coordinates: `index` and `value`, each k × frequencies."""

    def check(self, dim: int) -> None:
        index = self.own["index"]
        self._check_shapes(index=tuple(index.shape), value=(len(index), self.columns), **self._phases())
        if index.is_floating_point() or index.numel() == 0 or index.min() < 0 or index.max() >= dim:
            raise ValueError(f"its frequencies are not of some of {dim} inputs")

    def project(self, x: Tensor, out: Tensor) -> Tensor:
        return sparse_projection(x, self.own["index"], self.own["value"], out)


class ShiftInvariant(Kernel):
    """k(x, y) = κ(x − y): the Fourier transform of κ is the density its frequencies are drawn from (Bochner)."""

    @abstractmethod
    def frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` columns ω drawn from the spectral density."""

    def orthogonal_frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        raise KernelamError(
            f"orthogonal features are defined for the gaussian and arccos kernels, not for {self.name}:"
            " use the plan paired"
        )

    def diagonal(self, x: Tensor) -> Tensor:
        return x.new_ones(len(x))

    def block(self, dim: int, rng: np.random.Generator, plan: str) -> dict[str, np.ndarray]:
        """The arrays of BLOCK frequencies."""
        drawn = self.orthogonal_frequencies if plan == "orthogonal" else self.frequencies
        return {"omega": drawn(dim, BLOCK, rng).astype(np.float32, copy=False)}

    def check_count(self, count: int, plan: str) -> None:
        paired = plan != "independent"
        if count < 1 + paired or (paired and count % 2):
            raise KernelamError(f"{count} random features: cosine-and-sine pairs need an even number of at least 2")

    def draw(self, dim: int, count: int, draw: Draw) -> FourierFeatures:
        self.check_count(count, draw.plan)
        paired = draw.plan != "independent"
        blocks, columns = [], count // 2 if paired else count
        for rng, taken in draw.blocks(columns):
            arrays = self.block(dim, rng, draw.plan)
            if not paired:
                arrays["b"] = rng.uniform(0.0, 2.0 * np.pi, BLOCK).astype(np.float32)
            blocks.append({name: array[..., taken] for name, array in arrays.items()})
        drawn = self.map_of(
            {name: torch.from_numpy(np.concatenate([arrays[name] for arrays in blocks], axis=-1)) for name in blocks[0]}
        )
        return drawn.placed(draw.shard, columns)

    def map_of(self, arrays: dict[str, Tensor]) -> FourierFeatures:
        return FourierFeatures(arrays)
