"""Multiplicative combination of kernels (lu2014, section 4.2)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import Kernel
from kernelam.kernels.fourier import ShiftInvariant


@dataclass(frozen=True)
class Product(ShiftInvariant):
    """Π k_i. If all are shift-invariant, ω = Σ ω_i with ω_i from the density of each (lu2014, theorem 2)."""

    kernels: tuple[Kernel, ...]
    name = "product"

    def __post_init__(self) -> None:
        if not self.kernels:
            raise KernelamError("a product of no kernels")

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack([kernel(x, y) for kernel in self.kernels]).prod(dim=0)

    def diagonal(self, x: Tensor) -> Tensor:
        return torch.stack([kernel.diagonal(x) for kernel in self.kernels]).prod(dim=0)

    def from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return torch.stack([kernel.from_products(xx, yy, xy) for kernel in self.kernels]).prod(dim=0)

    def frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.sum([_shift_invariant(kernel).frequencies(dim, count, rng) for kernel in self.kernels], axis=0)


def _shift_invariant(kernel: Kernel) -> ShiftInvariant:
    if not isinstance(kernel, ShiftInvariant):
        raise KernelamError(
            f"random features of a product are those of shift-invariant kernels, which {kernel.name} is not"
        )
    return kernel
