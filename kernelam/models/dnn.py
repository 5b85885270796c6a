"""Feed-forward networks: the baseline of the papers."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from kernelam.models.posterior import GradientModel
from kernelam.models.weights import glorot


class Dnn(GradientModel):
    """h_l = tanh(h_{l−1} W_l + b_l), p(y | x) ∝ exp(h_L W + b): `layers` hidden layers of `width` units."""

    kind = "dnn"

    def __init__(self, layers: int, width: int, *common: Any) -> None:
        super().__init__(*common)
        self.layers, self.width = layers, width

    def initialise(self, seed: int) -> None:
        """Glorot-uniform weights, biases zero; the output layer starts at zero."""
        sizes = [self.inputs.dim, *[self.width] * self.layers, self.num_classes]
        arrays: dict[str, Tensor] = {}
        for number, (rows, columns) in enumerate(pairwise(sizes)):
            hidden = number < self.layers
            arrays[f"W{number}"] = glorot(rows, columns, seed, number) if hidden else torch.zeros(rows, columns)
            arrays[f"b{number}"] = torch.zeros(columns)
        self._set(arrays)

    def _set(self, arrays: dict[str, Tensor]) -> None:
        self.parameters = {name: array.to(self.device).clone().requires_grad_() for name, array in arrays.items()}

    def logits(self, x: Tensor) -> Tensor:
        for layer in range(self.layers):
            x = torch.addmm(self.parameters[f"b{layer}"], x, self.parameters[f"W{layer}"]).tanh()
        return torch.addmm(self.parameters[f"b{self.layers}"], x, self.parameters[f"W{self.layers}"])

    def step(self, x: Tensor, labels: Tensor, rate: float, l2: float = 0.0) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            loss = torch.nn.functional.cross_entropy(self.logits(x), labels)
        gradients = torch.autograd.grad(loss, list(self.parameters.values()))
        with torch.no_grad():
            for (name, parameter), gradient in zip(self.parameters.items(), gradients, strict=True):
                if l2 and name.startswith("W"):
                    parameter.mul_(1.0 - rate * l2)
                parameter.add_(gradient, alpha=-rate)
        return loss.detach() * len(labels)

    def config(self) -> dict[str, Any]:
        return {"layers": self.layers, "width": self.width, "activation": "tanh"}

    def arrays(self) -> dict[str, Tensor]:
        return {name: array.detach().cpu() for name, array in self.parameters.items()}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "Dnn":
        model = cls(config["layers"], config["width"], *common)
        model._set(arrays)
        return model
