"""Outputs of a ridge model on heldout frames: what its logistic maps and its temperature are fitted to, and how often
votes are wrong."""

from collections.abc import Iterator

import torch
from torch import Tensor

from kernelam.frames.batches import Batches
from kernelam.models.ridge import Ridge
from kernelam.progress import progress
from kernelam.training.calibration import Scores, Source, calibrate
from kernelam.training.temperature import fit_temperature

SCORES = 1 << 30
"""Bytes of heldout scores that are kept; where there are more, each step of the calibration computes them again."""

TEMPERATURE_FRAMES = 20_000
"""Of heldout ones of paired classes, at equal distances; a single number is fitted to them."""


def kept(frames: int, classes: int) -> int:
    """Room for what is kept of so many heldout frames, each in as many problems as there are classes; 0 if none is."""
    scores = frames * classes
    return scores if 4 * scores <= SCORES else 0


def heldout_scores(model: Ridge, heldout: Batches) -> Source:
    """f of heldout frames: of a class, in the pairs that it is in; or of all frames, against the rest."""
    parts = _of_pairs if model.scheme == "one-vs-one" else _of_classes
    if not (size := kept(len(heldout), len(model.classes))):
        return lambda: parts(model, heldout)
    # side by side: kept one by one, they lie between what was freed, which is then too small for the next
    room, known = torch.empty(size, device=model.device), []
    for f, problems, first in progress(parts(model, heldout), "heldout scores"):
        own, room = room[: f.numel()].view_as(f), room[f.numel() :]
        known.append(Scores(own.copy_(f), problems, first))
    return lambda: iter(known)


def _of_pairs(model: Ridge, heldout: Batches) -> Iterator[Scores]:
    labels, pairs = heldout.labels.cpu().long(), model.pairs
    for place, label in enumerate(model.classes.tolist()):
        problems = (pairs == place).any(dim=1).nonzero()[:, 0]
        first = pairs[problems, 0] == place
        for frames in torch.split((labels == label).nonzero()[:, 0], model.chunk):
            if len(frames):
                yield Scores(model.outputs(heldout.take(frames)[0], problems), problems, first)


def _of_classes(model: Ridge, heldout: Batches) -> Iterator[Scores]:
    problems = torch.arange(len(model.classes), device=model.device)
    for x, labels in heldout.in_order(model.chunk):
        yield Scores(model.outputs(x), problems, labels[:, None] == model.classes)


def calibrate_model(model: Ridge, heldout: Batches) -> float:
    """Fit α and γ of each problem, then τ, to heldout frames; τ."""
    slopes = calibrate(heldout_scores(model, heldout), _shares(model))
    model.calibrate(slopes)
    of_class = torch.full((model.num_classes,), -1, device=model.device)
    of_class[model.classes] = torch.arange(len(model.classes), device=model.device)
    told_apart = (of_class[heldout.labels.long()] >= 0).nonzero()[:, 0]
    x, labels = heldout.take(told_apart[:: -(-len(told_apart) // TEMPERATURE_FRAMES)])
    scores = model.scores(x)
    del x  # it is as large as what the fit takes
    temperature, _ = fit_temperature(scores, of_class[labels], biased=False)
    model.calibrate(slopes, temperature)
    return temperature


def _shares(model: Ridge) -> Tensor:
    """Of the first class in the training frames of each problem."""
    counts = torch.from_numpy(model.counts).to(model.device, torch.float64)
    if model.scheme == "one-vs-rest":
        return (counts / counts.sum())[model.classes]
    first, second = counts[model.classes][model.pairs].T
    return first / (first + second)


@torch.no_grad()
def vote_error(model: Ridge, heldout: Batches) -> float:
    """The share of frames whose class has not the most votes."""
    wrong = 0
    for x, labels in heldout.in_order(model.chunk):
        wrong += int((model.votes(x).argmax(dim=1) != labels).sum())
    return wrong / len(heldout)
