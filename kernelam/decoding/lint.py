"""What a decoder would not notice about an archive of log-likelihoods, and the user only by a bad error rate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

TOLERANCE = 0.05
"""How far log Σ exp of a row may be from 0 for it to be a distribution: a compressed archive is coarse."""


@dataclass
class Lint:
    """Collects what is wrong with the matrices that pass through `look`; `problems` tells it, a sentence a kind."""

    name: str
    num_pdfs: int | None = None  # of the graph
    frames: Mapping[str, int] | None = None  # of the features
    log_priors: np.ndarray | None = None
    utterances: int = 0
    rows: int = 0
    columns: int | None = None
    kinds: dict[str, list[str]] = field(default_factory=dict)  # what rows are → utterances
    wrong: dict[str, list[str]] = field(default_factory=dict)  # what is wrong → a sentence an utterance
    seen: set[str] = field(default_factory=set)

    def look(self, entries: Iterable[tuple[str, np.ndarray]]) -> None:
        for utt, matrix in entries:
            self.utterances += 1
            self.rows += len(matrix)
            self._shape(utt, matrix)
            if self.columns == matrix.shape[1]:
                self.kinds.setdefault(self._kind(matrix), []).append(utt)
            if utt in self.seen:
                self._add("twice", f"utterance {utt} is in the archive twice")
            self.seen.add(utt)

    def _add(self, what: str, sentence: str) -> None:
        self.wrong.setdefault(what, []).append(sentence)

    def _shape(self, utt: str, matrix: np.ndarray) -> None:
        self.columns = self.columns or self.num_pdfs or matrix.shape[1]
        if matrix.shape[1] != self.columns:
            against = "the graph has {} pdfs" if self.num_pdfs else "the first utterance has {}"
            self._add("columns", f"utterance {utt} has {matrix.shape[1]} columns, {against.format(self.columns)}")
        if self.frames is None:
            return
        expected = self.frames.get(utt)
        if expected is None:
            self._add("unknown", f"utterance {utt} has no features")
        elif expected != len(matrix):
            self._add("rows", f"utterance {utt} has {len(matrix)} rows, its features have {expected} frames")

    def _kind(self, matrix: np.ndarray) -> str:
        """What the rows of a matrix are a distribution of, if of anything."""
        rows = matrix.astype(np.float64)
        if (matrix == matrix[:, :1]).all() and matrix.shape[1] > 1:
            return "constant"
        if rows.min() >= 0 and _near_zero(rows.sum(axis=1) - 1.0):
            return "posteriors"
        if _near_zero(np.logaddexp.reduce(rows, axis=1)):
            return "log posteriors"
        if _near_zero(np.logaddexp.reduce(-rows, axis=1)):
            return "costs"
        if self.log_priors is not None and len(self.log_priors) == matrix.shape[1]:
            for kind, sign, times in (("once", 1, 1.0), ("twice", 1, 2.0), ("added", 1, -1.0), ("costs", -1, 1.0)):
                if _near_zero(np.logaddexp.reduce(sign * rows + times * self.log_priors, axis=1)):
                    return kind
        return "other"

    @property
    def problems(self) -> list[str]:
        sentences = []
        if not self.utterances:
            sentences.append("it is empty")
        for first, *others in self.wrong.values():
            sentences.append(first + (f" (and {len(others)} more like it)" if others else ""))
        if self.frames is not None and (absent := sorted(self.frames.keys() - self.seen)):
            sentences.append(f"{len(absent)} of {len(self.frames)} utterances are missing, first {absent[0]}")
        if self.log_priors is not None and self.columns not in (None, len(self.log_priors)):
            sentences.append(f"it has {self.columns} columns, the counts are of {len(self.log_priors)} classes")
        for kind, sentence in _WRONG_KINDS.items():
            if such := self.kinds.get(kind):
                sentences.append(f"{sentence} in {len(such)} of {self.utterances} utterances, first {such[0]}")
        return [f"{self.name}: {sentence}" for sentence in sentences]

    @property
    def summary(self) -> str:
        prior = ""
        if self.log_priors is not None:
            once = len(self.kinds.get("once", ())) == self.utterances
            prior = (
                ", the prior subtracted once"
                if once
                else (", which are not a softmax's over these counts (a GMM's, or of another prior or prior scale)")
            )
        return f"{self.name}: {self.utterances} utterances, {self.rows} frames of {self.columns} log-likelihoods{prior}"


_WRONG_KINDS = {
    "constant": "all log-likelihoods of a frame are the same",
    "costs": "negative logarithms, where a decoder wants logarithms,",
    "posteriors": "posteriors, not their logarithms, where a decoder wants log-likelihoods",
    "log posteriors": "log posteriors: no prior was subtracted",
    "twice": "the prior was subtracted twice",
    "added": "the prior was added, not subtracted",
}


def _near_zero(values: np.ndarray) -> bool:
    return bool(np.median(np.abs(values)) < TOLERANCE)
