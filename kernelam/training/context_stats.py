"""Statistics of phones in context: what phonetic decision trees are grown from."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.frames.store import FrameStore
from kernelam.hmm.context import unique_rows, windows_of
from kernelam.hmm.transitions import TransitionModel

VARIANCE_FLOOR = 0.01
CHUNK = 1 << 16


@dataclass(frozen=True)
class GaussianStats:
    """Of each of some sets of frames: how many there are, their sum and that of their squares."""

    count: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]

    def __getitem__(self, sets: NDArray | slice) -> "GaussianStats":
        return GaussianStats(self.count[sets], self.sums[sets], self.squares[sets])

    def grouped(self, group: NDArray[np.int64], size: int) -> "GaussianStats":
        """The sums over the sets of each group, of `size` groups."""
        order = np.argsort(group, kind="stable")
        present, starts = np.unique(group[order], return_index=True)
        made = []
        for array in (self.count, self.sums, self.squares):
            total = np.zeros((size, *array.shape[1:]))
            if len(present):
                total[present] = np.add.reduceat(array[order], starts, axis=0)
            made.append(total)
        return GaussianStats(*made)

    def joined(self, questions: NDArray[np.bool_]) -> "GaussianStats":
        """The sums over the sets that each row of `questions` says yes to."""
        yes = questions.astype(np.float64)
        return GaussianStats(yes @ self.count, yes @ self.sums, yes @ self.squares)

    def __sub__(self, other: "GaussianStats") -> "GaussianStats":
        return GaussianStats(self.count - other.count, self.sums - other.sums, self.squares - other.squares)

    def __add__(self, other: "GaussianStats") -> "GaussianStats":
        return GaussianStats(self.count + other.count, self.sums + other.sums, self.squares + other.squares)

    @property
    def total(self) -> "GaussianStats":
        return GaussianStats(self.count.sum(keepdims=True), *(a.sum(axis=0)[None] for a in (self.sums, self.squares)))

    @property
    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of each set; those of an empty one are 0."""
        safe = np.maximum(self.count, 1e-10)[..., None]
        means = self.sums / safe
        return means, np.maximum(self.squares / safe - means**2, 0.0)

    @property
    def log_likelihood(self) -> NDArray[np.float64]:
        """Of each set under the Gaussian of its own mean and diagonal covariance, the variances floored."""
        _, variances = self.moments
        floored = np.maximum(variances, VARIANCE_FLOOR)
        terms = np.log(2.0 * np.pi * floored) + variances / floored
        return np.where(self.count > 0, -0.5 * self.count * terms.sum(axis=-1), 0.0)


@dataclass(frozen=True)
class ContextStats:
    """Of each event that occurs, a window of phones (0: none) and a pdf class, the statistics of its frames."""

    windows: NDArray[np.int64]  # events × width
    central: int
    pdf_class: NDArray[np.int64]
    gaussians: GaussianStats

    @property
    def phone(self) -> NDArray[np.int64]:
        return self.windows[:, self.central]

    def __getitem__(self, events: NDArray) -> "ContextStats":
        return ContextStats(self.windows[events], self.central, self.pdf_class[events], self.gaussians[events])


def accumulate_stats(
    frames: FrameStore,
    alignments: Mapping[str, NDArray[np.int32]],
    transitions: TransitionModel,
    width: int,
    central: int,
    context_free: Collection[int] = (),
) -> ContextStats:
    """The statistics of the aligned utterances of `frames`."""
    aligned = [number for number, utt in enumerate(frames.utts) if utt in alignments]
    if not aligned:
        raise KernelamError(f"no utterance of {frames.folder} is aligned")
    rows, events = [], []
    for number in aligned:
        alignment = alignments[frames.utts[number]]
        windows = windows_of(transitions, alignment, width, central, context_free)
        events.append(np.column_stack([windows, transitions.pdf_class[alignment]]))
        rows.append(np.arange(frames.offsets[number], frames.offsets[number + 1]))
    found, group = unique_rows(np.concatenate(events))
    gaussians = _sums(frames.features, np.concatenate(rows), group, len(found))
    return ContextStats(found[:, :-1], central, found[:, -1], gaussians)


def _sums(x: NDArray[np.float32], rows: NDArray[np.int64], group: NDArray[np.int64], size: int) -> GaussianStats:
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    sums, squares = np.zeros((size, x.shape[1])), np.zeros((size, x.shape[1]))
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        present, starts = np.unique(group[part], return_index=True)
        frames = x[rows[part]].astype(np.float64)
        sums[present] += np.add.reduceat(frames, starts, axis=0)
        squares[present] += np.add.reduceat(np.square(frames), starts, axis=0)
    return GaussianStats(np.bincount(group, minlength=size).astype(np.float64), sums, squares)
