"""What the cells of a study came to."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from kernelam.claims.study import Key, Scale
from kernelam.errors import KernelamError
from kernelam.models.description import describe
from kernelam.report.evidence import read_epochs, read_selection
from kernelam.report.experiments import Run
from kernelam.scoring.wer import WerResult


@dataclass(frozen=True)
class Outcome:
    heldout: Mapping[str, float]  # ce, perplexity, erll, frame_error, … of the trained model
    losses: Sequence[float] = ()  # heldout CE after each epoch, of the weights that were kept
    survival: float | None = None  # of selected features, beyond chance
    tuned: float | None = None  # error rate of the set where the weights of decoding were tuned
    words: WerResult | None = None  # errors in the tested set


class NotThere(Exception):
    """A cell without an outcome, by its name."""


@dataclass(frozen=True)
class Evidence:
    scale: Scale
    outcomes: Mapping[Key, Outcome]

    def of(self, system: str, setting: str, seed: int) -> Outcome:
        key = Key(system, setting, seed)
        if key not in self.outcomes:
            raise NotThere(key.name)
        return self.outcomes[key]

    def heldout(self, name: str) -> Callable[[str, str, int], float]:
        return lambda *key: self.of(*key).heldout[name]

    def words(self, system: str, setting: str, seed: int) -> WerResult:
        words = self.of(system, setting, seed).words
        assert words is not None
        return words

    def rate(self, system: str, setting: str, seed: int) -> float:
        return self.words(system, setting, seed).total.rate


def read_outcome(folder: Path, run: Run | None) -> Outcome:
    """Of a model directory, and of its decodings where it has them."""
    about = run.about if run else describe(folder)
    heldout = about.get("heldout")
    if not isinstance(heldout, dict) or not {"ce", "erll", "perplexity", "frame_error"} <= heldout.keys():
        raise KernelamError(f"{folder}/model.json has no metrics of heldout frames: train it again")
    losses = _kept([(epoch.ce, epoch.kept) for epoch in read_epochs(folder)])
    selection, survival = read_selection(folder), None
    if selection is not None and len(selection.survival) > 1:  # in the last round it is 1 by definition
        beyond = [there - chance for there, chance in zip(selection.survival, selection.chance, strict=True)]
        survival = fmean(beyond[:-1])
    if run is None:
        return Outcome(heldout, losses, survival)
    return Outcome(heldout, losses, survival, float(run.dev["rate"]), run.words)


def _kept(epochs: Sequence[tuple[float | None, bool]]) -> list[float]:
    """After every epoch but the 0th, which is before training."""
    losses: list[float] = []
    for loss, kept in epochs:
        before = losses[-1] if losses else math.inf
        losses.append(loss if kept and loss is not None else before)
    return losses[1:]
