"""A last look at a trained model on heldout frames: what reports show of it beside the metrics of its epochs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelam.frames.batches import Batches
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.tables import read_symbols
from kernelam.models.arrays import write_arrays
from kernelam.models.description import CLASS_MEANS
from kernelam.models.posterior import PosteriorModel
from kernelam.training.metrics import Metric, posteriors

SWEEPS = {
    "capped": tuple(round(10.0 ** (step / 4), 8) for step in range(-20, 1)),
    "top-k": tuple(round(1.0 - step / 20, 2) for step in range(20)),
}
"""Values of λ and κ (may2017, figure 2). ERLL of any β is CE + β · entropy, which every model tells."""
CONFUSIONS = 50
COMPONENTS = 50


@dataclass(frozen=True)
class Examination:
    """Values of each sweep; the phones most often taken for others, with frames; and, of the classes that have heldout
    frames, their phones, how many frames, and the mean of the logits, each frame's shifted to mean 0, in their leading
    principal components (lu2014, figure 3)."""

    metrics: dict[str, dict[str, list[float]]]
    confusions: list[tuple[str, str, int]]
    classes: Tensor
    phones: list[str]
    frames: Tensor
    means: Tensor

    @property
    def record(self) -> dict[str, Any]:
        return {"heldout_metrics": self.metrics, "confusions": self.confusions}

    def save(self, folder: Path) -> None:
        arrays = {"classes": self.classes, "frames": self.frames, "means": self.means}
        write_arrays(folder / CLASS_MEANS, arrays, {"phones": self.phones})


def class_phones(transitions: TransitionModel, phones: Path) -> list[str]:
    """The phone of each class, without its position in a word; of a class that several share, all of them: a/b."""
    names = {number: re.sub(r"_[BEIS]$", "", name) for name, number in read_symbols(phones).items()}
    found: list[dict[str, None]] = [{} for _ in range(transitions.num_pdfs)]
    for state in transitions.tuples:
        for pdf in (state.forward_pdf, state.self_loop_pdf):
            found[pdf][names[state.phone]] = None
    return ["/".join(some) for some in found]


@torch.no_grad()
def examine(model: PosteriorModel, heldout: Batches, phones: Sequence[str], size: int | None = None) -> Examination:
    """`phones` are those of the classes."""
    names = list(dict.fromkeys(phones))
    phone_of = torch.tensor([names.index(name) for name in phones], device=heldout.device)
    log_p, confused = [], torch.zeros(len(names), len(names), dtype=torch.int64, device=heldout.device)
    sums = torch.zeros(len(phones), len(phones), device=heldout.device)
    frames = torch.zeros(len(phones), device=heldout.device)
    for log_q, labels in posteriors(model, heldout, size):
        log_p.append(log_q.gather(1, labels[:, None])[:, 0].double())
        places = phone_of[labels], phone_of[log_q.argmax(dim=1)]
        confused.index_put_(places, torch.ones_like(labels), accumulate=True)
        sums.index_add_(0, labels, log_q - log_q.mean(dim=1, keepdim=True))
        frames.index_add_(0, labels, torch.ones_like(labels, dtype=frames.dtype))
    seen = frames.nonzero()[:, 0]
    means = (sums[seen] / frames[seen, None]).cpu()
    return Examination(
        _sweeps(torch.cat(log_p)),
        _most_confused(confused.cpu(), names),
        seen,
        [phones[number] for number in seen.tolist()],
        frames[seen],
        _principal_components(means),
    )


def _sweeps(log_p: Tensor) -> dict[str, dict[str, list[float]]]:
    return {
        name: {"parameters": list(values), "values": [Metric(name, value).of(log_p, 0.0) for value in values]}
        for name, values in SWEEPS.items()
    }


def _most_confused(counts: Tensor, names: Sequence[str]) -> list[tuple[str, str, int]]:
    wrong = counts.fill_diagonal_(0).flatten()
    order = wrong.sort(descending=True, stable=True).indices[:CONFUSIONS].tolist()
    pairs = [(*divmod(place, len(names)), int(wrong[place])) for place in order]
    return [(names[ref], names[hyp], count) for ref, hyp, count in pairs if count]


def _principal_components(means: Tensor) -> Tensor:
    """By random projections and power iterations, for which classes need not be few."""
    centred = means - means.mean(dim=0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        _, _, directions = torch.svd_lowrank(centred, q=min(COMPONENTS, *centred.shape), niter=8)
    return centred @ directions
