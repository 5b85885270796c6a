"""Minimal edit distance between a reference and a hypothesis, with Kaldi's choices among equally cheap alignments.

Kaldi has two rules, and they give different insertions, deletions and substitutions of the same total. compute-wer goes
diagonally only where that is strictly cheapest; align-text, from which the details are made, does so wherever it is not
dearer. `count_errors` follows the first, `align` the second.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import kaldialign
import numpy as np


@dataclass(frozen=True, slots=True)
class ErrorCounts:
    """Edits that turn the reference into the hypothesis, and the reference's length."""

    insertions: int = 0
    deletions: int = 0
    substitutions: int = 0
    ref_words: int = 0

    def __add__(self, other: "ErrorCounts") -> "ErrorCounts":
        return ErrorCounts(
            self.insertions + other.insertions,
            self.deletions + other.deletions,
            self.substitutions + other.substitutions,
            self.ref_words + other.ref_words,
        )

    @property
    def errors(self) -> int:
        return self.insertions + self.deletions + self.substitutions

    @property
    def rate(self) -> float:
        """errors / ref_words; of an empty reference 0, or infinity where anything was inserted."""
        if self.ref_words == 0:
            return float("inf") if self.errors else 0.0
        return self.errors / self.ref_words


def count_errors(ref: Sequence[str], hyp: Sequence[str]) -> ErrorCounts:
    """The counts of compute-wer: among equal costs an insertion before a deletion before the diagonal."""
    counts = kaldialign.edit_distance(ref, hyp)
    return ErrorCounts(counts["ins"], counts["del"], counts["sub"], len(ref))


def align(ref: Sequence[str], hyp: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """The pairs of align-text: traced from the end, the diagonal before a deletion before an insertion.

    None in the first place is an insertion, in the second a deletion.
    """
    cost = _costs(ref, hyp).tolist()
    pairs: list[tuple[str | None, str | None]] = []
    m, n = len(ref), len(hyp)
    while m or n:
        here = cost[m][n]
        if m and n and cost[m - 1][n - 1] + (ref[m - 1] != hyp[n - 1]) == here:
            m, n = m - 1, n - 1
            pairs.append((ref[m], hyp[n]))
        elif m and cost[m - 1][n] + 1 == here:
            m -= 1
            pairs.append((ref[m], None))
        else:
            n -= 1
            pairs.append((None, hyp[n]))
    return pairs[::-1]


def _costs(ref: Sequence[str], hyp: Sequence[str]) -> np.ndarray:
    """E[m, n] = min(E[m-1, n-1] + [ref_m ≠ hyp_n], E[m-1, n] + 1, E[m, n-1] + 1), a row at a time.

    The last term, a recursion along the row, is a running minimum of E[m, n] - n.
    """
    ids = {token: i for i, token in enumerate({*ref, *hyp})}
    hyp_ids = np.array([ids[token] for token in hyp], dtype=np.int32)
    column = np.arange(len(hyp) + 1, dtype=np.int32)
    cost = np.empty((len(ref) + 1, len(hyp) + 1), dtype=np.int32)
    cost[0] = column
    for m, token in enumerate(ref):
        row = cost[m] + 1
        np.minimum(row[1:], cost[m, :-1] + (hyp_ids != ids[token]), out=row[1:])
        cost[m + 1] = np.minimum.accumulate(row - column) + column
    return cost
