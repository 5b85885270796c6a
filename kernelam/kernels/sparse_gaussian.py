from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import BLOCK, BandwidthKernel
from kernelam.kernels.fourier import ShiftInvariant, SparseFourierFeatures


@dataclass(frozen=True)
class SparseGaussian(ShiftInvariant, BandwidthKernel):
    """The mean over all subsets S of k coordinates of exp(−|x_S − y_S|² / 2σ²) (may2017, section 4.2).

    A frequency has k coordinates, chosen uniformly without replacement, each N(0, σ⁻²); the others are zero.
    """

    sigma: float = 1.0
    k: int = 5
    name = "sparse-gaussian"

    def __post_init__(self) -> None:
        if not self.sigma > 0.0:
            raise KernelamError(f"the sparse Gaussian kernel needs a bandwidth above zero, not σ = {self.sigma}")
        if self.k < 1:
            raise KernelamError(f"the sparse Gaussian kernel needs at least one coordinate, not k = {self.k}")

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """The elementary symmetric polynomial e_k(g₁ … g_d) / C(d, k) of g_i = exp(−(x_i − y_i)² / 2σ²).

        With M_ij the mean of products over the subsets of j of the first i coordinates, by whether i is in a subset,
        M_ij = (1 − j/i) M_{i−1,j} + (j/i) g_i M_{i−1,j−1}.
        """
        self._check(x.shape[1])
        shape = (len(x), len(y))
        means = [x.new_full(shape, float(j == 0), dtype=torch.float64) for j in range(self.k + 1)]
        for i, (a, b) in enumerate(zip(x.double().T, y.double().T, strict=True), 1):
            g = torch.exp((a[:, None] - b[None]).square() / (-2.0 * self.sigma**2))
            for j in range(min(i, self.k), 0, -1):
                means[j] = means[j] * (1.0 - j / i) + g * means[j - 1] * (j / i)
        return means[self.k].to(x.dtype)

    def _check(self, dim: int) -> None:
        if dim < self.k:
            raise KernelamError(f"the sparse Gaussian kernel chooses {self.k} coordinates, its inputs have {dim}")

    def _subsets(self, count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """`count` sorted rows of k different coordinates."""
        self._check(dim)
        keys = rng.random((count, dim), dtype=np.float32)
        return np.sort(np.argpartition(keys, self.k - 1, axis=1)[:, : self.k], axis=1).astype(np.int32)

    def block(self, dim: int, rng: np.random.Generator, plan: str) -> dict[str, np.ndarray]:
        if plan == "orthogonal":
            self.orthogonal_frequencies(dim, BLOCK, rng)
        index = self._subsets(BLOCK, dim, rng).T
        return {"index": index, "value": rng.standard_normal(index.shape, dtype=np.float32) / np.float32(self.sigma)}

    def frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        index = self._subsets(count, dim, rng).T
        omega = np.zeros((dim, count), np.float32)
        np.put_along_axis(omega, index, rng.standard_normal(index.shape, dtype=np.float32) / self.sigma, axis=0)
        return omega

    def map_of(self, arrays: dict[str, Tensor]) -> SparseFourierFeatures:
        return SparseFourierFeatures(arrays)

    def distances(self, x: Tensor, y: Tensor, rng: np.random.Generator) -> Tensor:
        """Squared distances of random sub-vectors of k coordinates."""
        subsets = torch.from_numpy(self._subsets(len(x), x.shape[1], rng)).long().to(x.device)
        return (x - y).gather(1, subsets).square().sum(dim=1)

    def with_width(self, width: float) -> Self:
        """2σ² = width."""
        return replace(self, sigma=(width / 2.0) ** 0.5)
