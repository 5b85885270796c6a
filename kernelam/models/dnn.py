"""Feed-forward networks: the baselines of the papers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels.posteriors import FUNCTIONS
from kernelam.models.posterior import GradientModel
from kernelam.models.weights import glorot
from kernelam.ranks import current

ACTIVATIONS = tuple(name for name in FUNCTIONS if name != "linear")


@dataclass(frozen=True)
class Network:
    """`layers` hidden layers of `width` units; with a bottleneck the output matrix has that rank."""

    layers: int
    width: int
    activation: str = "tanh"  # of ACTIVATIONS
    bottleneck: int = 0
    normalise: bool = False  # each layer, to mean 0 and variance 1 over its units, before the activation
    dropout: float = 0.0  # the share of hidden units left out in training


def check_bottleneck(network: Network, num_classes: int) -> None:
    if network.bottleneck >= min(num_classes, network.width):
        raise KernelamError(
            f"a bottleneck of {network.bottleneck} is no narrower than {num_classes} classes and {network.width} units"
        )


class Dnn(GradientModel):
    """h_l = f(h_{l−1} W_l + b_l), p(y | x) ∝ exp(h_L W_L + b_L); with a bottleneck h_L U instead of h_L.

    With normalisation h_l = f(g_l ⊙ norm(h_{l−1} W_l) + b_l).
    """

    kind = "dnn"

    def __init__(self, network: Network, *common: Any) -> None:
        super().__init__(*common)
        if network.activation not in ACTIVATIONS:
            raise KernelamError(f"no activation is called {network.activation}; there are {', '.join(ACTIVATIONS)}")
        check_bottleneck(network, self.num_classes)
        self.network = network
        self.ranks = current()
        self.start: dict[str, Tensor] = {}  # layers that pre-training has made

    def initialise(self, seed: int) -> None:
        """Glorot-uniform weights (of √2 the size for rectified units), biases zero, the output too, where there is no
        `start`. Sigmoid units, σ(2a) = (1 + tanh a) / 2, begin as the tanh units of such a network."""
        net, top = self.network, self.network.bottleneck or self.network.width
        sizes = [self.inputs.dim, *[net.width] * net.layers]
        arrays: dict[str, Tensor] = {}
        for number, (rows, columns) in enumerate(pairwise(sizes)):
            gain = {"relu": 2.0**0.5, "sigmoid": 4.0 if number else 2.0, "tanh": 1.0}[net.activation]
            weights = arrays[f"W{number}"] = glorot(rows, columns, seed, number) * gain
            arrays[f"b{number}"] = torch.zeros(columns)
            if net.activation == "sigmoid" and number and not net.normalise:  # the mean of the units below is ½
                arrays[f"b{number}"] -= 0.5 * weights.sum(dim=0)
            if net.normalise:
                arrays[f"g{number}"] = torch.ones(columns)
        if net.bottleneck:
            arrays["U"] = glorot(net.width, net.bottleneck, seed, net.layers)
        arrays[f"W{net.layers}"], arrays[f"b{net.layers}"] = (
            torch.zeros(top, self.num_classes),
            torch.zeros(self.num_classes),
        )
        self.set(arrays | self.start)

    def set(self, arrays: dict[str, Tensor]) -> None:
        """Take these as parameters."""
        self.parameters = {name: array.to(self.device).clone().requires_grad_() for name, array in arrays.items()}

    def hidden(self, x: Tensor, layers: int, dropout: float = 0.0) -> Tensor:
        """The units of hidden layer number `layers`."""
        p, net = self.parameters, self.network
        for layer in range(layers):
            if net.normalise:
                width = (net.width,)
                x = torch.nn.functional.layer_norm(x @ p[f"W{layer}"], width, p[f"g{layer}"], p[f"b{layer}"])
            else:
                x = torch.addmm(p[f"b{layer}"], x, p[f"W{layer}"])
            x = FUNCTIONS[net.activation](x)
            if dropout:
                x = torch.nn.functional.dropout(x, dropout)
        return x

    def logits(self, x: Tensor, dropout: float = 0.0) -> Tensor:
        p, net = self.parameters, self.network
        h = self.hidden(x, net.layers, dropout)
        return torch.addmm(p[f"b{net.layers}"], h @ p["U"] if net.bottleneck else h, p[f"W{net.layers}"])

    def gradients(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """The mean log loss of a batch, and its gradient with respect to each parameter. Processes that train together
        have a slice of the batch each, and sum both."""
        if self.ranks.frames.count > 1:
            return self._summed_gradients(x, labels)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            loss = torch.nn.functional.cross_entropy(self.logits(x, self.network.dropout), labels)
        return loss.detach(), torch.autograd.grad(loss, list(self.parameters.values()))

    def _summed_gradients(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        batch, arrays = len(labels), list(self.parameters.values())
        x, labels = self.ranks.own_frames(x, labels)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            logits = self.logits(x, self.network.dropout)
            loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum") / batch
        gradients = torch.autograd.grad(loss, arrays)
        flat = self.ranks.sum_frames(torch.cat([loss.detach().view(1), *(each.flatten() for each in gradients)]))
        total, *parts = flat.split([1, *(array.numel() for array in arrays)])
        return total[0], [part.view_as(array) for part, array in zip(parts, arrays, strict=True)]

    def agree(self) -> None:
        for array in self.parameters.values():
            self.ranks.same(array.detach())

    @staticmethod
    def decays(name: str) -> bool:
        """Whether a penalty on the weights is for this parameter: for matrices, not for biases and gains."""
        return name[0] in "WU"

    def step(self, x: Tensor, labels: Tensor, rate: float, l2: float = 0.0) -> Tensor:
        loss, gradients = self.gradients(x, labels)
        with torch.no_grad():
            for (name, parameter), gradient in zip(self.parameters.items(), gradients, strict=True):
                if l2 and self.decays(name):
                    parameter.mul_(1.0 - rate * l2)
                parameter.add_(gradient, alpha=-rate)
        return loss * len(labels)

    def config(self) -> dict[str, Any]:
        return asdict(self.network)

    def arrays(self) -> dict[str, Tensor]:
        return {name: array.detach().cpu() for name, array in self.parameters.items()}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "Dnn":
        model = cls(Network(**config), *common)
        model.set(arrays)
        return model
