"""The matched-pairs sentence-segment word error test (MAPSSWE; Gillick and Cox, ICASSP 1989), as in SCTK's sc_stats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import copysign, erfc, inf, sqrt

import numpy as np

from kernelam.errors import KernelamError
from kernelam.scoring.alignment import align
from kernelam.scoring.wer import Transcripts

BUFFER = 2  # words right in both systems that end a segment


@dataclass(frozen=True)
class MatchedPairs:
    """z = μ √n / σ of the differences (baseline - system) in errors of n segments; positive is better."""

    segments: int
    mean: float
    deviation: float

    @property
    def z(self) -> float:
        if self.mean == 0 or self.segments < 2:
            return 0.0
        return self.mean * sqrt(self.segments) / self.deviation if self.deviation else copysign(inf, self.mean)

    @property
    def p(self) -> float:
        """Two-sided, by the normal distribution: meant for fifty segments and more."""
        return erfc(abs(self.z) / sqrt(2))


def mapsswe(refs: Transcripts, baseline: Transcripts, system: Transcripts) -> MatchedPairs:
    """Compare two systems on the segments in which either errs; a missing hypothesis is an empty one."""
    if not refs:
        raise KernelamError("the reference is empty: there is nothing to compare")
    differences = [
        difference
        for utt, ref in sorted(refs.items())
        for difference in _segments(_slots(ref, baseline.get(utt, ())), _slots(ref, system.get(utt, ())))
    ]
    if len(differences) < 2:
        return MatchedPairs(len(differences), float(sum(differences)), 0.0)
    return MatchedPairs(len(differences), float(np.mean(differences)), float(np.std(differences, ddof=1)))


def _slots(ref: Sequence[str], hyp: Sequence[str]) -> list[int]:
    """Errors at 2i: insertions before reference word i; at 2i + 1: whether word i is wrong or deleted."""
    slots = [0] * (2 * len(ref) + 1)
    word = 0
    for r, h in align(ref, hyp):
        if r is None:
            slots[2 * word] += 1
        else:
            slots[2 * word + 1] = int(r != h)
            word += 1
    return slots


def _segments(baseline: list[int], system: list[int]) -> Iterator[int]:
    """Difference in errors of each segment of one utterance."""
    difference, good, inside = 0, 0, False
    for slot, (a, b) in enumerate(zip(baseline, system, strict=True)):
        if a or b:
            if inside and good >= BUFFER:
                yield difference
                difference = 0
            difference, good, inside = difference + a - b, 0, True
        elif slot % 2:
            good += 1
    if inside:
        yield difference
