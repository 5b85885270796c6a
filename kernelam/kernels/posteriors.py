"""The log posteriors of a trained model as features: what a supervised projection is made of (lu2014, section 4.2)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.base import FeatureMap, Kernel, part_of

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda h: h,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
}
"""Of the layers of a network, by name."""


@dataclass(frozen=True)
class Posteriors(Kernel):
    """x ↦ log p(· | x) of a network whose weights are the arrays of its map: a fixed map, and no exact function.

    `kernel` makes the network's inputs out of x (none: they are x itself); `activation` is the name of what its layers
    but the last have in FUNCTIONS.
    """

    kernel: Kernel | None
    activation: str
    name = "posteriors"

    def __call__(self, x: Tensor, y: Tensor) -> NoReturn:
        raise KernelamError("log posteriors are features of a model, and have no kernel in closed form")

    def diagonal(self, x: Tensor) -> NoReturn:
        self(x, x)

    def map_of(self, arrays: dict[str, Tensor]) -> "PosteriorFeatures":
        features = self.kernel.map_of(part_of(arrays, "features")) if self.kernel else None
        own = {name: array for name, array in arrays.items() if "." not in name}
        return PosteriorFeatures(own, features, self.activation)


class PosteriorFeatures(FeatureMap):
    """log softmax(h_L), where h_l = f(h_{l−1} W_l + b_l) from h = z(x) or x on, and the last layer has no f."""

    def __init__(self, layers: dict[str, Tensor], features: FeatureMap | None, activation: str) -> None:
        super().__init__(layers, {"features": features} if features else {})
        self.activation = activation

    @property
    def count(self) -> int:
        return self.own[f"W{self._last}"].shape[1]

    @property
    def _last(self) -> int:
        return len(self.own) // 2 - 1

    def write(self, x: Tensor, out: Tensor, factor: float = 1.0) -> None:
        h = self.parts["features"](x) if self.parts else x
        for layer in range(self._last + 1):
            h = torch.addmm(self.own[f"b{layer}"], h, self.own[f"W{layer}"])
            if layer < self._last:
                h = FUNCTIONS[self.activation](h)
        torch.sub(h.T, torch.logsumexp(h, dim=1), out=out).mul_(factor)
