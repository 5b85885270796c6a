"""What takes steps."""

from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.models.dnn import Dnn
from kernelam.models.posterior import GradientModel
from kernelam.training.sag import Sag

OPTIMISERS = ("sgd", "sag", "adamw")
STRIDE = 8  # steps from one of the weights that are averaged to the next


class Optimiser(Protocol):
    """What takes steps. `state` is all that it remembers, and part of a checkpoint."""

    state: dict[str, Tensor]

    def begin(self, epoch: int) -> None: ...

    def step(self, frames: Tensor, x: Tensor, labels: Tensor, rate: float) -> Tensor: ...

    def end(self, epoch: int) -> None: ...


def make_optimiser(
    name: str, model: GradientModel, l2: float, momentum: float, num_frames: int, folder: Path, half: bool
) -> Optimiser:
    """The optimiser of that name; the table of SAG, of half precision if so asked, is in `folder`."""
    if name == "sag":
        return Sag(model, num_frames, folder, l2, half)
    if name == "sgd" and not momentum:
        return Sgd(model, l2)
    if not isinstance(model, Dnn):
        raise KernelamError("momentum and AdamW are for networks: kernel models take the steps of sgd or sag")
    return AdamW(model, l2) if name == "adamw" else Momentum(model, l2, momentum)


class Sgd:
    """Stochastic gradient descent: the model's own step."""

    def __init__(self, model: GradientModel, l2: float) -> None:
        self.model, self.l2 = model, l2
        self.state: dict[str, Tensor] = {}

    def begin(self, epoch: int) -> None:
        self.model.agree()

    def step(self, frames: Tensor, x: Tensor, labels: Tensor, rate: float) -> Tensor:
        return self.model.step(x, labels, rate, self.l2)

    def end(self, epoch: int) -> None:
        pass


class Momentum(Sgd):
    """v ← μ v + gradient, θ ← θ − rate · v."""

    def __init__(self, model: Dnn, l2: float, momentum: float) -> None:
        super().__init__(model, l2)
        self.network, self.momentum = model, momentum
        self.state = {name: torch.zeros_like(array) for name, array in model.parameters.items()}

    def step(self, frames: Tensor, x: Tensor, labels: Tensor, rate: float) -> Tensor:
        loss, gradients = self.network.gradients(x, labels)
        with torch.no_grad():
            for (name, array), gradient in zip(self.network.parameters.items(), gradients, strict=True):
                velocity = self.state[name].mul_(self.momentum).add_(gradient)
                if self.l2 and self.network.decays(name):
                    velocity.add_(array, alpha=self.l2)
                array.add_(velocity, alpha=-rate)
        return loss * len(labels)


class AdamW(Sgd):
    """PyTorch's, which goes over the weights once in a step (Loshchilov and Hutter, ICLR 2019)."""

    def __init__(self, model: Dnn, l2: float) -> None:
        super().__init__(model, l2)
        self.network, arrays = model, model.parameters
        groups = [
            {"params": [array for name, array in arrays.items() if model.decays(name) == shrunk], "weight_decay": decay}
            for shrunk, decay in ((True, l2), (False, 0.0))
        ]
        self.adam = torch.optim.AdamW(groups, fused=True)
        for name, array in arrays.items():
            own = {kind: torch.zeros_like(array, requires_grad=False) for kind in ("exp_avg", "exp_avg_sq")}
            own["step"] = torch.zeros((), device=array.device)
            self.adam.state[array] = own
            self.state |= {f"{kind}.{name}": tensor for kind, tensor in own.items()}

    def step(self, frames: Tensor, x: Tensor, labels: Tensor, rate: float) -> Tensor:
        loss, gradients = self.network.gradients(x, labels)
        for array, gradient in zip(self.network.parameters.values(), gradients, strict=True):
            array.grad = gradient
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        return loss * len(labels)


class Averaging:
    """The steps of an optimiser, and the mean of the weights after every STRIDE-th of them."""

    def __init__(self, optimiser: Optimiser, model: GradientModel) -> None:
        self.optimiser, self.model, self.steps = optimiser, model, 0
        self.state, self.begin, self.end = optimiser.state, optimiser.begin, optimiser.end
        self.mean = {name: tensor.detach().clone() for name, tensor in model.parameters.items()}

    def step(self, frames: Tensor, x: Tensor, labels: Tensor, rate: float) -> Tensor:
        loss = self.optimiser.step(frames, x, labels, rate)
        self.steps += 1
        if self.steps % STRIDE == 0:
            self._add(self.steps // STRIDE)
        return loss

    @torch.no_grad()
    def _add(self, number: int) -> None:
        for name, mean in self.mean.items():
            if number == 1:
                mean.copy_(self.model.parameters[name])
            else:  # not lerp_, which makes NaN of the infinite biases of padded classes
                mean.mul_(1.0 - 1.0 / number).add_(self.model.parameters[name], alpha=1.0 / number)

    def settle(self) -> None:
        """Give the model the mean of its weights."""
        if self.steps >= STRIDE:
            assign(self.model.parameters, self.mean)


@torch.no_grad()
def assign(state: dict[str, Tensor], tensors: dict[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        state[name].copy_(tensor)
