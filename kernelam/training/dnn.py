"""The plan of a feed-forward network."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import GradientModel
from kernelam.training.acoustic import Setup
from kernelam.training.pretraining import pretrain


@dataclass(frozen=True)
class DnnPlan:
    network: Network
    pretraining: str = ""  # discriminative or rbm
    rbm_epochs: int = 5
    bandwidths: ClassVar[tuple[float, ...]] = (1.0,)  # it has none

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    def build(self, setup: Setup, bandwidth: float) -> GradientModel:
        return Dnn(self.network, setup.pipeline, setup.inputs, setup.counts, setup.device)

    def refine(self, setup: Setup, model: GradientModel, rate: float) -> GradientModel:
        assert isinstance(model, Dnn)
        if self.pretraining:
            pretrain(self.pretraining, model, setup, rate, self.rbm_epochs)
        return model
