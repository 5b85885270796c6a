"""Coordinates in the feature space of a kernel along principal components (Schölkopf, Smola and Müller 1998)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelam.kernels import Kernel

ELEMENTS = 1 << 23
"""Of k(x, y), computed at once."""


@dataclass(frozen=True)
class KernelPca:
    """y(x) = Aᵀ k(x) + b with k_m(x) = k(x_m, x) for the rows x_m of `vectors`; b takes the mean of y to 0."""

    kernel: Kernel
    vectors: Tensor
    matrix: Tensor  # A, vectors × components
    offset: Tensor  # b

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        parts = torch.split(x, max(1, ELEMENTS // len(self.vectors)))
        rows = [torch.addmm(self.offset, self.kernel.matrix(part, self.vectors), self.matrix) for part in parts]
        return torch.cat(rows)

    def some(self, components: Tensor) -> "KernelPca":
        """Of these components alone, in this order."""
        matrix = self.matrix[:, components.to(self.matrix.device)].contiguous()
        return KernelPca(self.kernel, self.vectors, matrix, self.offset[components.to(self.offset.device)])
