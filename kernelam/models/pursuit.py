"""Kernel log-linear models with a basis of their own (kubo2012)."""

from typing import Any

import torch
from torch import Tensor

from kernelam.kernels import Kernel, kernel_from
from kernelam.models.posterior import PosteriorModel

CHUNK_ELEMENTS = 1 << 23
"""Of k(x, y), computed at once."""
LOST = 1e-2
"""What rounding in single precision may change logits by; if it may be more, they are computed in double."""


class KernelExpansion(PosteriorModel):
    """p(l | x) ∝ exp(Σ_m β_lm k(y_m, x)): rows of `y` are basis vectors, rows of `beta` theirs too (eq. 4).

    Where basis vectors are nearly dependent, as random images are for a linear kernel, β is large and most of the sum
    cancels: then it is in double precision.
    """

    kind = "pursuit"

    def __init__(self, kernel: Kernel, method: str, y: Tensor, beta: Tensor, *common: Any) -> None:
        super().__init__(*common)
        self.kernel, self.method = kernel, method
        dtype = _precision(kernel, y, beta)
        self.parameters = {"y": y.float().to(self.device), "beta": beta.to(self.device, dtype)}

    @property
    def chunk(self) -> int:
        return max(1, min(super().chunk, CHUNK_ELEMENTS // len(self.parameters["y"])))

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        y, beta = self.parameters["y"], self.parameters["beta"]
        return (self.kernel.by_products(x.to(beta.dtype), y.to(beta.dtype)) @ beta).to(x.dtype)

    def config(self) -> dict[str, Any]:
        return {"kernel": self.kernel.settings(), "basis": len(self.parameters["y"]), "method": self.method}

    def arrays(self) -> dict[str, Tensor]:
        return {name: array.cpu() for name, array in self.parameters.items()}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "KernelExpansion":
        return cls(kernel_from(config["kernel"]), config["method"], arrays["y"], arrays["beta"], *common)


def _precision(kernel: Kernel, y: Tensor, beta: Tensor) -> torch.dtype:
    """By a bound for Σ_m |β_lm| |k(y_m, x)| with x as large as any of the basis vectors."""
    norms = kernel.diagonal(y.double()).sqrt()
    most = norms.max() * (norms @ beta.double().abs()).max()
    return torch.float64 if float(most) * torch.finfo(torch.float32).eps > LOST else torch.float32
