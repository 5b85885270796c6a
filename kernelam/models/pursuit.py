"""Kernel log-linear models with a basis of their own (kubo2012)."""

from typing import Any

import torch
from torch import Tensor

from kernelam.kernels import Kernel, kernel_from
from kernelam.models.posterior import PosteriorModel

CHUNK_ELEMENTS = 1 << 23
"""Of k(x, y), computed at once."""


class KernelExpansion(PosteriorModel):
    """p(l | x) ∝ exp(Σ_m β_lm k(y_m, x)): rows of `y` are basis vectors, rows of `beta` theirs too (eq. 4)."""

    kind = "pursuit"

    def __init__(self, kernel: Kernel, method: str, y: Tensor, beta: Tensor, *common: Any) -> None:
        super().__init__(*common)
        self.kernel, self.method = kernel, method
        self.parameters = {"y": y.float().to(self.device), "beta": beta.float().to(self.device)}

    @property
    def chunk(self) -> int:
        return max(1, min(super().chunk, CHUNK_ELEMENTS // len(self.parameters["y"])))

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        return self.kernel.by_products(x, self.parameters["y"]) @ self.parameters["beta"]

    def config(self) -> dict[str, Any]:
        return {"kernel": self.kernel.settings(), "basis": len(self.parameters["y"]), "method": self.method}

    def arrays(self) -> dict[str, Tensor]:
        return {name: array.cpu() for name, array in self.parameters.items()}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "KernelExpansion":
        return cls(kernel_from(config["kernel"]), config["method"], arrays["y"], arrays["beta"], *common)
