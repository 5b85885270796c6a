"""Alignments as phones in context, and from one tree of states to another."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel, TransitionState
from kernelam.hmm.tree import ContextTree


def windows_of(
    transitions: TransitionModel,
    alignment: NDArray[np.int32],
    width: int,
    central: int,
    context_free: Collection[int] = (),
) -> NDArray[np.int64]:
    """The window of phones around each frame; phones that are `context_free` have no neighbours."""
    segments = transitions.ali_to_phones(alignment)
    phones = np.array([phone for phone, _ in segments], np.int64)
    padded = np.concatenate([np.zeros(central, np.int64), phones, np.zeros(width - 1 - central, np.int64)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, width).copy()
    alone = np.isin(phones, list(context_free))
    windows[np.ix_(alone, np.arange(width) != central)] = 0
    return np.repeat(windows, [frames for _, frames in segments], axis=0)


def unique_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that differ, in order, and which of them each row is."""
    bits = [int(column.max()).bit_length() for column in rows.T]
    if sum(bits) > 63:
        found, group = np.unique(rows, axis=0, return_inverse=True)
        return found, group.ravel()
    keys = np.zeros(len(rows), np.int64)  # a row as one number: sorted much faster
    for column, width in zip(rows.T, bits, strict=True):
        keys = (keys << width) | column
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], group.ravel()


class Converter:
    """Alignments of one model as those of another with the same phones and topology but another tree."""

    def __init__(self, old: TransitionModel, new: TransitionModel, tree: ContextTree) -> None:
        if old.topology != new.topology:
            raise KernelamError("alignments can be converted only to a model of the same phones and topology")
        self.old, self.new, self.tree = old, new, tree
        self.first: dict[tuple[int, ...], int] = {}

    def __call__(self, alignment: NDArray[np.int32], where: str) -> NDArray[np.int32]:
        """The transition-ids of the same states and transitions; `where` names the utterance."""
        windows = windows_of(self.old, alignment, self.tree.width, self.tree.central)
        rows, group = unique_rows(np.column_stack([windows, self.old.hmm_state[alignment]]))
        first = np.array([self._first_id(tuple(row), where) for row in rows.tolist()], np.int64)
        return (first[group] + self.old.transition_index[alignment]).astype(np.int32)

    def _first_id(self, row: tuple[int, ...], where: str) -> int:
        if row not in self.first:
            *window, number = row
            phone = window[self.tree.central]
            state = self.new.topology.states(phone)[number]
            pdfs = [self.tree.pdf(window, one) for one in (state.pdf_class, state.self_loop_pdf_class)]
            if None in pdfs:
                raise KernelamError(f"{where}: the tree has no pdf for phone {phone} in the window {window}")
            self.first[row] = self.new.first_id[TransitionState(phone, number, *pdfs)]  # type: ignore[arg-type]
        return self.first[row]
