"""Multilayer kernel machines: kernel PCA layer upon layer, nearest neighbours at the top (cho2009, section 3.1)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kernelam.kernels import kernel_from
from kernelam.models.energies import Energies
from kernelam.models.kernel_pca import KernelPca
from kernelam.models.posterior import PosteriorModel

TOP = ("metric", "points", "sizes", "reach")


class Multilayer(PosteriorModel):
    """p(c | x) ∝ exp(b_c) (1 + E_c(h(x)))^−τ with E_c the energy of class c, and h(x) what the layers make of those
    inputs that were `kept`.

    Energies are sums over impostors, and of some frames a hundred times those of others: no τ of exp(−τ E) suits both.

    `classes` are those that had examples enough; any other one has a fixed probability, its share of the training
    frames (see `with_others`).
    """

    kind = "multilayer"

    def __init__(
        self, kept: Tensor, layers: Sequence[KernelPca], energies: Energies, classes: Tensor, *common: Any
    ) -> None:
        super().__init__(*common)
        self.kernels, self.impostors = [layer.kernel for layer in layers], energies.impostors
        self.numbers = {name: array.to(self.device) for name, array in (("kept", kept), ("classes", classes))}
        self.numbers["sizes"] = energies.sizes.to(self.device)
        own = {name: getattr(energies, name) for name in TOP if name != "sizes"}
        for place, layer in enumerate(layers):
            own |= {f"{place}.{name}": getattr(layer, name) for name in ("vectors", "matrix", "offset")}
        self.parameters = {name: array.to(self.device) for name, array in own.items()}
        self.calibrate(1.0, torch.zeros(len(classes)))

    def calibrate(self, temperature: float, biases: Tensor) -> None:
        """Take τ and b."""
        self.parameters["temperature"] = torch.full((1,), temperature, device=self.device)
        self.parameters["biases"] = biases.float().to(self.device)

    @property
    def layers(self) -> list[KernelPca]:
        names = ("vectors", "matrix", "offset")
        return [
            KernelPca(kernel, *(self.parameters[f"{place}.{name}"] for name in names))
            for place, kernel in enumerate(self.kernels)
        ]

    @property
    def energies(self) -> Energies:
        metric, points, sizes, reach = ((self.parameters | self.numbers)[name] for name in TOP)
        return Energies(metric, points, sizes, reach, self.impostors)

    @torch.no_grad()
    def scores(self, x: Tensor) -> Tensor:
        """−log(1 + E) of each of `classes`; one for all of them where a frame is so far off that E overflows."""
        hidden = x[:, self.numbers["kept"]]
        for layer in self.layers:
            hidden = layer(hidden)
        largest = torch.finfo(hidden.dtype).max
        return -torch.log1p(self.energies(hidden).nan_to_num_(largest, largest))

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """log p."""
        own = self.parameters["temperature"] * self.scores(x) + self.parameters["biases"]
        return self.with_others(torch.log_softmax(own, dim=1), self.numbers["classes"])

    @property
    def widths(self) -> list[int]:
        """Features of each layer, the inputs that are kept among them."""
        return [len(self.numbers["kept"]), *(layer.matrix.shape[1] for layer in self.layers)]

    def config(self) -> dict[str, Any]:
        kernels = [kernel.settings() for kernel in self.kernels]
        return {"kernels": kernels, "widths": self.widths, "impostors": self.impostors}

    def arrays(self) -> dict[str, Tensor]:
        return {name: array.cpu() for name, array in (self.parameters | self.numbers).items()}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "Multilayer":
        layers = [
            KernelPca(kernel_from(kernel), *(arrays[f"{place}.{name}"] for name in ("vectors", "matrix", "offset")))
            for place, kernel in enumerate(config["kernels"])
        ]
        metric, points, sizes, reach = (arrays[name] for name in TOP)
        energies = Energies(metric, points, sizes, reach, config["impostors"])
        model = cls(arrays["kept"], layers, energies, arrays["classes"], *common)
        model.calibrate(float(arrays["temperature"]), arrays["biases"])
        return model
