"""The one face of every system: utterance features in, log-likelihoods of the classes (pdfs) out."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Features, Pipeline

PRIOR_FLOOR = 0.01
"""No class gains more than log 100 over a uniform prior. (Kaldi adds half a frame to every count, which hands a class
that was never seen a bonus of about the log of the number of frames.)"""


class AcousticModel(ABC):
    """What scores frames. `pipeline` says how its features are made from a data directory."""

    kind: ClassVar[str]
    pipeline: Pipeline
    num_classes: int
    feature_dim: int
    transform_dir: Path | None = None  # the fMLLR transforms of the speakers to be scored

    def open(self, data: str | Path) -> Features:
        """The features of a data directory as this model takes them; a dimension that does not fit is an error."""
        features = self.pipeline.open(data, self.transform_dir)
        if features.dim != self.feature_dim:
            how = f"transformed by {self.pipeline.lda}" if self.pipeline.lda else "deltas included"
            raise KernelamError(
                f"{data}/feats.scp gives {features.dim} features a frame, {how},"
                f" the {self.kind} model takes {self.feature_dim}"
            )
        return features

    @abstractmethod
    def log_likelihoods(self, features: np.ndarray, classes: np.ndarray | None = None) -> np.ndarray:
        """log p(x_t | class) up to a constant of each frame: float32, frames × classes, or only `classes` of them."""


def log_priors(counts: np.ndarray) -> np.ndarray:
    """log of the share of each class in `counts`, never below log(PRIOR_FLOOR / C)."""
    shares = counts / counts.sum()
    return np.log(np.maximum(shares, PRIOR_FLOOR / len(counts))).astype(np.float32)
