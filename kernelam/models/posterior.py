"""Models of p(class | x), which decoding divides by priors."""

import re
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.frontend.transforms import splice
from kernelam.models.base import PRIOR_FLOOR, AcousticModel, log_priors

LARGEST = 1e20  # of what inputs are scaled by
WIDEST = 999  # frames of context on a side
SCORED = 2048  # frames at once, where nothing asks for fewer


def find_device(name: str) -> torch.device:
    """The device of that name, if this machine has it."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise KernelamError(f"there is no device {name}; say cpu or cuda")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise KernelamError(f"there is no device {name} here: PyTorch finds {torch.cuda.device_count()} GPUs")
    return device


def has_bfloat16() -> bool:
    """Whether this CPU multiplies matrices of bfloat16 by instructions of its own."""
    return any(there for name, there in torch.cpu.get_capabilities().items() if name.endswith("bf16"))


@dataclass
class Inputs:
    """From features to the inputs of a model: (x − mean) · scale per coordinate, then frames t−left … t+right."""

    context: tuple[int, int]
    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def restore(cls, context: Any, arrays: dict[str, Tensor]) -> "Inputs":
        """Of a file; takes its arrays out of the others."""
        mean, scale = (arrays.pop(f"input.{name}").numpy() for name in ("mean", "scale"))
        left, right = context
        if not all(type(frames) is int and 0 <= frames <= WIDEST for frames in (left, right)):
            raise ValueError(f"{context} is no context of frames")
        if not len(mean) or mean.shape != scale.shape or mean.ndim != 1:
            raise ValueError("the mean and the scale of its inputs are not as many numbers")
        found = cls((left, right), mean, scale)
        if len(found.beyond):
            raise ValueError("the mean or the scale of its inputs is beyond all bounds")
        return found

    @property
    def beyond(self) -> np.ndarray:
        """The coordinates whose mean or scale no model is loaded with."""
        return np.flatnonzero(~(np.abs(np.stack([self.mean, self.scale])) <= LARGEST).all(axis=0))

    @property
    def dim(self) -> int:
        return len(self.mean) * (self.context[0] + 1 + self.context[1])

    def normalise(self, features: np.ndarray) -> np.ndarray:
        return (features - self.mean) * self.scale

    def tensor(self, features: np.ndarray) -> Tensor:
        return torch.from_numpy(splice(self.normalise(features), *self.context))


class PosteriorModel(AcousticModel):
    """A model of p(class | x). Its likelihoods are posteriors over priors: log p(x | y) = log p(y | x) − log p(y)."""

    def __init__(self, pipeline: Pipeline, inputs: Inputs, counts: np.ndarray, device: torch.device) -> None:
        self.pipeline = pipeline
        self.inputs = inputs
        self.counts = counts
        self.num_classes = len(counts)
        self.feature_dim = len(inputs.mean)
        self.device = device
        self.parameters: dict[str, Tensor] = {}

    @property
    def chunk(self) -> int:
        """Frames scored at once: an utterance of an hour needs no more memory than one of a minute."""
        return SCORED

    @abstractmethod
    def logits(self, x: Tensor) -> Tensor:
        """Unnormalised log posteriors, batch × classes."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What, with the arrays, makes this model again."""

    @abstractmethod
    def arrays(self) -> dict[str, Tensor]:
        """Everything to be saved, on the CPU and without padding; perhaps views of what the model has."""

    @classmethod
    @abstractmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "PosteriorModel":
        """The model that `config` and `arrays` describe; `common` are the arguments of PosteriorModel."""

    def num_parameters(self) -> int:
        """Trained numbers, without padding."""
        trained = set(self.parameters)
        return sum(array.numel() for name, array in self.arrays().items() if name in trained)

    def log_posteriors(self, features: np.ndarray) -> np.ndarray:
        return self.log_posteriors_of(self.inputs.tensor(features))

    @torch.no_grad()
    def log_posteriors_of(self, x: Tensor) -> np.ndarray:
        """Of inputs, on the CPU."""
        parts = [
            torch.log_softmax(self.logits(part.to(self.device)), dim=1).cpu() for part in torch.split(x, self.chunk)
        ]
        return torch.cat(parts).numpy()

    def with_others(self, log_p: Tensor, classes: Tensor) -> Tensor:
        """log p of all classes from that of `classes` alone, batch × these; any other has a fixed probability, its
        share of the training frames, or one that no prior is below: so its likelihood is never above that of all."""
        least = min(0.5, PRIOR_FLOOR * self.counts.sum() / self.num_classes)
        frames = np.maximum(self.counts, least)
        fixed = torch.from_numpy(np.log(frames / frames.sum()).astype(np.float32)).to(log_p.device)
        known = fixed.index_select(0, classes).exp().sum().log()
        return fixed.repeat(len(log_p), 1).index_copy_(1, classes, log_p + known)

    def log_likelihoods(self, features: np.ndarray, classes: np.ndarray | None = None) -> np.ndarray:
        every = self.log_posteriors(features) - log_priors(self.counts)
        return every if classes is None else every[:, classes]


class GradientModel(PosteriorModel):
    """A model that is fitted by its gradient."""

    mixed = False
    """Whether matrices are multiplied in bfloat16 (see `training.acoustic.set_precision`)."""

    @abstractmethod
    def step(self, x: Tensor, labels: Tensor, rate: float, l2: float = 0.0) -> Tensor:
        """One step of stochastic gradient descent on the mean log loss of a batch, plus l2/2 times the squares of all
        weights but biases; returns its summed loss."""

    @abstractmethod
    def initialise(self, seed: int) -> None:
        """Set the parameters to where training starts."""

    def agree(self) -> None:
        """Let the processes that train a model together have the same numbers where they should."""

    def gathered(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """A state of the parameters as one process alone would have it, for the first process."""
        return state

    def own(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """This process's part of such a state."""
        return state

    def whole(self) -> "GradientModel":
        """The model as one process alone would have it, for the first process."""
        return self
