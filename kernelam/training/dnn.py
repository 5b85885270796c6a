"""The plan of a feed-forward network."""

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from kernelam.errors import KernelamError
from kernelam.memory import available, check_memory
from kernelam.models.dnn import Dnn, Network, check_bottleneck
from kernelam.models.posterior import SCORED, GradientModel
from kernelam.ranks import current
from kernelam.training.acoustic import Setup
from kernelam.training.pretraining import pretrain, pretrained
from kernelam.training.search import Variants
from kernelam.training.trainer import TrainingOptions

RBM_EPOCHS = 5


@dataclass(frozen=True)
class DnnPlan:
    kind: ClassVar[str] = Dnn.kind
    network: Network
    pretraining: str = ""  # discriminative or rbm
    rbm_epochs: int = RBM_EPOCHS
    dropouts: tuple[float, ...] = (0.0,)  # to choose from

    def check(self, options: TrainingOptions, num_classes: int) -> None:
        if self.pretraining == "rbm" and (self.network.activation != "sigmoid" or self.network.normalise):
            raise KernelamError("--pretraining rbm is for sigmoid units without normalisation")
        if self.pretraining != "rbm" and self.rbm_epochs != RBM_EPOCHS:
            raise KernelamError(f"--rbm-epochs is that of --pretraining rbm, not of {self.pretraining or 'none'}")
        check_bottleneck(self.network, num_classes)

    def _check_memory(self, setup: Setup) -> None:
        """Weights with their gradient (twice where processes sum it), their copy at the start of an epoch, what
        pre-training made, the optimiser's memory and the average; and the inputs and units of a batch, or of the frames
        that are scored at once."""
        network, options, C = self.network, setup.options, len(setup.counts)
        width, r = network.width, network.bottleneck
        weights = width * (setup.inputs.dim + (network.layers - 1) * width + (r or C)) + r * C
        copies = 3 + bool(self.pretraining) + 2 * (options.optimiser == "adamw") + any(options.momenta)
        copies += current().frames.count > 1
        units = 2 * width * max(network.layers * options.batch, SCORED) + 2 * SCORED * setup.inputs.dim
        needed = 4 * (weights * (copies + (options.schedule == "average")) + units)
        what = f"training {network.layers} layers of {width} units"
        check_memory(needed, available(setup.device), what, "fewer --layers, a smaller --width or --splice take less")

    @property
    def variants(self) -> Variants:
        return Variants("dropout", self.dropouts)

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    def build(self, setup: Setup, variant: float) -> GradientModel:
        self._check_memory(setup)
        model = Dnn(replace(self.network, dropout=variant), setup.pipeline, setup.inputs, setup.counts, setup.device)
        if self.pretraining:
            model.start = pretrained(setup)
        return model

    def prepare(self, setup: Setup) -> list[dict[str, Any]]:
        """Pre-training, where it is asked for: what comes of a rate shows only in a network that can learn."""
        self._check_memory(setup)
        if self.pretraining:
            network = replace(self.network, dropout=self.dropouts[0])
            return pretrain(self.pretraining, network, setup, self.rbm_epochs)
        return []

    def refine(self, setup: Setup, model: GradientModel, rate: float) -> GradientModel:
        return model
