"""The plan of a feed-forward network."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from kernelam.models.dnn import Dnn
from kernelam.models.posterior import GradientModel
from kernelam.training.acoustic import Setup


@dataclass(frozen=True)
class DnnPlan:
    layers: int
    width: int
    bandwidths: ClassVar[tuple[float, ...]] = (1.0,)  # it has none

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    def build(self, setup: Setup, bandwidth: float) -> GradientModel:
        return Dnn(self.layers, self.width, setup.pipeline, setup.inputs, setup.counts, setup.device)

    def refine(self, setup: Setup, model: GradientModel, rate: float) -> GradientModel:
        return model
