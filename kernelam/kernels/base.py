"""What a kernel is: an exact function, and for most of them a random feature map that approximates it."""

import math
from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.randomness import stream

BLOCK = 500
"""Frequencies drawn from one state of the generator: block i of a seed is the same whoever draws it."""


class Kernel(ABC):
    """A positive definite function k(x, y) of real vectors."""

    @abstractmethod
    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """The exact kernel matrix, k(x_i, y_j)."""

    @abstractmethod
    def feature_map(self, dim: int, count: int, seed: int) -> "FeatureMap":
        """`count` random features z with E[z(x)·z(y)] = k(x, y) for inputs of `dim` numbers."""

    @abstractmethod
    def settings(self) -> dict[str, float | str]:
        """The kernel's "name" in KERNELS and the arguments that make it again."""


class FeatureMap(ABC):
    """x ↦ z(x) with z(x)·z(y) ≈ k(x, y). Its arrays are plain tensors, saved with the model under their names."""

    arrays: dict[str, Tensor]

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of features D."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """z of each row of x, without a graph for automatic differentiation."""

    def to(self, device: torch.device) -> "FeatureMap":
        self.arrays = {name: array.to(device) for name, array in self.arrays.items()}
        return self


class FourierFeatures(FeatureMap):
    """Random Fourier features of a shift-invariant kernel (Rahimi and Recht; may2017, section 3.1).

    With a phase b, z(x) = √(2/D) cos(ωᵀx + b). Without, z(x) = √(2/D) [cos(ωᵀx), sin(ωᵀx)] from D/2 frequencies: the
    products of pairs are cos(ωᵀ(x − y)), free of the phase's noise, at half the projections; so this is the default.
    """

    def __init__(self, arrays: dict[str, Tensor]) -> None:
        self.arrays = arrays

    @property
    def count(self) -> int:
        return self.arrays["omega"].shape[1] * (1 if "b" in self.arrays else 2)

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        omega, b = self.arrays["omega"], self.arrays.get("b")
        scale = math.sqrt(2.0 / self.count)
        if b is not None:
            return torch.addmm(b, x, omega).cos_().mul_(scale)
        half = omega.shape[1]
        z = torch.empty(len(x), 2 * half, device=x.device, dtype=x.dtype)
        projected = x @ omega
        torch.cos(projected, out=z[:, :half])
        torch.sin(projected, out=z[:, half:])
        return z.mul_(scale)


class ShiftInvariant(Kernel):
    """k(x, y) = κ(x − y): the Fourier transform of κ is the density its frequencies are drawn from (Bochner)."""

    @abstractmethod
    def frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` columns ω drawn from the spectral density."""

    def feature_map(self, dim: int, count: int, seed: int, paired: bool = True) -> FourierFeatures:
        if count < 2 or (paired and count % 2):
            raise KernelamError(f"{count} random features: cosine-and-sine pairs need an even number of at least 2")
        num = count // 2 if paired else count
        blocks = [self._block(dim, seed, start // BLOCK, min(BLOCK, num - start)) for start in range(0, num, BLOCK)]
        arrays = {"omega": torch.from_numpy(np.concatenate([omega for omega, _ in blocks], axis=1))}
        if not paired:
            arrays["b"] = torch.from_numpy(np.concatenate([b for _, b in blocks]))
        return FourierFeatures(arrays)

    def _block(self, dim: int, seed: int, block: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        rng = stream(seed, "frequencies", block)
        omega = self.frequencies(dim, BLOCK, rng)[:, :count].astype(np.float32)
        b = rng.uniform(0.0, 2.0 * np.pi, BLOCK)[:count].astype(np.float32)
        return np.ascontiguousarray(omega), b
