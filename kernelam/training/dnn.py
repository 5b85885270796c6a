"""The plan of a feed-forward network."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import GradientModel
from kernelam.training.acoustic import Setup
from kernelam.training.pretraining import pretrain, pretrained
from kernelam.training.search import Variants


@dataclass(frozen=True)
class DnnPlan:
    network: Network
    pretraining: str = ""  # discriminative or rbm
    rbm_epochs: int = 5
    dropouts: tuple[float, ...] = (0.0,)  # to choose from

    @property
    def variants(self) -> Variants:
        return Variants("dropout", self.dropouts)

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    def build(self, setup: Setup, variant: float) -> GradientModel:
        model = Dnn(replace(self.network, dropout=variant), setup.pipeline, setup.inputs, setup.counts, setup.device)
        if self.pretraining:
            model.start = pretrained(setup)
        return model

    def prepare(self, setup: Setup) -> list[dict[str, Any]]:
        """Pre-training, where it is asked for: what comes of a rate shows only in a network that can learn."""
        if self.pretraining:
            network = replace(self.network, dropout=self.dropouts[0])
            return pretrain(self.pretraining, network, setup, self.rbm_epochs)
        return []

    def refine(self, setup: Setup, model: GradientModel, rate: float) -> GradientModel:
        return model
