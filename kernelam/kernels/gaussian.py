import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import ShiftInvariant


class Gaussian(ShiftInvariant):
    """exp(−|x − y|² / 2σ²). Its spectral density is N(0, σ⁻² I) (may2017, table 1)."""

    def __init__(self, sigma: float) -> None:
        if not sigma > 0.0:
            raise KernelamError(f"the Gaussian kernel needs a bandwidth above zero, not σ = {sigma}")
        self.sigma = sigma

    @classmethod
    def from_pairs(cls, x: Tensor, y: Tensor, factor: float) -> "Gaussian":
        """2σ² = factor × the median of |x_i − y_i|² over random pairs (may2017, footnote 8)."""
        median = float((x - y).square().sum(dim=1).median())
        if median == 0.0:
            raise KernelamError("the features are constant: half of all random pairs of frames are equal")
        return cls((factor * median / 2.0) ** 0.5)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.exp(torch.cdist(x, y).square() / (-2.0 * self.sigma**2))

    def frequencies(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((dim, count), dtype=np.float32) / np.float32(self.sigma)

    def settings(self) -> dict[str, float | str]:
        return {"name": "gaussian", "sigma": self.sigma}
