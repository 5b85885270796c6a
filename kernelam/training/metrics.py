"""What is measured on heldout frames after every epoch (may2017, sections 5 and 6.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.models.posterior import PosteriorModel
from kernelam.ranks import current

PARAMETERS = {"ce": None, "erll": 1.0, "capped": 0.01, "top-k": 0.9}
"""The metrics that training can watch, with the default of what may follow a colon: β, λ, or the share k/N."""
RECORDED = ("ce", "perplexity", "entropy", "erll", "accuracy", "frame_error")


def recorded(measured: dict[str, Any]) -> dict[str, Any]:
    """Of what was measured, what the record of a model has."""
    return {name: value for name, value in measured.items() if name in RECORDED}


@dataclass(frozen=True)
class Metric:
    """Of frames with the probability p_i of their label, the least is best:

    - ce: the cross-entropy −mean log p_i
    - erll:β, CE + β · entropy of the posteriors
    - capped:λ, −mean log(p_i + λ)
    - top-k:κ, −mean log p_i over the share κ of frames for which it is largest
    """

    name: str
    parameter: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Metric":
        """`ce`, `erll`, `erll:0.5`, `capped:0.01`, `top-k:0.9`."""
        name, _, value = text.partition(":")
        try:
            parameter = float(value) if value else PARAMETERS[name]
        except (KeyError, ValueError):
            parameter = math.nan
        allowed = {"ce": not value, "erll": True, "capped": (parameter or 0.0) >= 0, "top-k": 0 < (parameter or 0) <= 1}
        if not allowed.get(name) or (parameter is not None and not math.isfinite(parameter)):
            raise KernelamError(
                f"no metric is called {text}; there are ce, erll:β, capped:λ with λ ≥ 0, and top-k:κ with 0 < κ ≤ 1"
            )
        return cls(name, parameter)

    def __str__(self) -> str:
        """What `parse` reads, without the number where it is the default."""
        if self.parameter is None or self.parameter == PARAMETERS[self.name]:
            return self.name
        short = f"{self.parameter:g}"
        return f"{self.name}:{short if float(short) == self.parameter else self.parameter}"

    def of(self, log_p: Tensor, entropy: float) -> float:
        """Its value, given log p_i of every frame and the mean entropy."""
        if self.parameter is None:
            return float(-log_p.mean())
        if self.name == "erll":
            return float(-log_p.mean()) + self.parameter * entropy
        if self.name == "capped":
            return float(-torch.log(log_p.exp() + self.parameter).mean())
        return float(-log_p.topk(math.ceil(self.parameter * len(log_p))).values.mean())


def posteriors(model: PosteriorModel, heldout: Batches, size: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """log p(y | x) of all classes, frames × classes, and the labels, in order."""
    for x, labels in heldout.in_order(size or model.chunk):
        yield torch.log_softmax(model.logits(x), dim=1), labels


@torch.no_grad()
def evaluate(model: PosteriorModel, heldout: Batches, watched: str = "ce", size: int | None = None) -> dict[str, float]:
    """CE, perplexity, entropy, ERLL with β = 1, accuracy, frame error, and the metric `watched` under its name."""
    log_p = torch.empty(len(heldout), dtype=torch.float64)
    seen, entropy, errors = 0, 0.0, 0
    for log_q, labels in posteriors(model, heldout, size):
        log_p[seen : seen + len(labels)] = log_q.gather(1, labels[:, None])[:, 0]
        seen += len(labels)
        entropy -= float((log_q.exp() * log_q).sum(dtype=torch.float64))
        errors += int((log_q.argmax(dim=1) != labels).sum())
    entropy, error = entropy / len(heldout), errors / len(heldout)
    measured = {str(metric): metric.of(log_p, entropy) for metric in map(Metric.parse, ("ce", "erll", watched))}
    told = torch.tensor([*measured.values(), entropy, error], dtype=torch.float64, device=heldout.device)
    *values, entropy, error = current().same(told).tolist()  # all who train together shall judge alike
    measured = dict(zip(measured, values, strict=True))
    return {
        **measured,
        "entropy": entropy,
        "perplexity": math.exp(min(measured["ce"], 700.0)),
        "accuracy": 1.0 - error,
        "frame_error": error,
    }
