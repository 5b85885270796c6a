"""Error rates of a set of utterances, and Kaldi's compute-wer text of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import read_table
from kernelam.scoring.alignment import ErrorCounts, count_errors

Transcripts = Mapping[str, Sequence[str]]
"""Utterance → words."""


def read_transcripts(path: str | Path) -> dict[str, list[str]]:
    """A file in the format of a data directory's text: utterance, words; there may be none."""
    return {utt: text.split() for utt, text in read_table(path, empty_values=True, sort=False).items()}


@dataclass(frozen=True)
class WerResult:
    """Counts of every scored utterance, in C order of their names; utterances without hypothesis, or reference.

    `alternatives`: references have some, and hypotheses choose; the same reference may then differ in length.
    """

    utterances: dict[str, ErrorCounts]
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    alternatives: bool = False

    @cached_property
    def total(self) -> ErrorCounts:
        return sum(self.utterances.values(), ErrorCounts())

    @cached_property
    def sentence_errors(self) -> int:
        return sum(counts.errors > 0 for counts in self.utterances.values())

    @property
    def wer_line(self) -> str:
        """%WER 13.45 [ 2708 / 20138, 358 ins, 330 del, 2020 sub ], and [PARTIAL] where a hypothesis was missing."""
        t = self.total
        counts = f"{t.errors} / {t.ref_words}, {t.insertions} ins, {t.deletions} del, {t.substitutions} sub"
        return f"%WER {_percent(t.errors, t.ref_words)} [ {counts} ]{' [PARTIAL]' if self.missing else ''}"

    @property
    def remarks(self) -> list[str]:
        """Whose counts are not what they seem."""
        sentences = []
        if self.missing:
            share = f"{len(self.missing)} of {len(self.utterances.keys() | set(self.missing))} utterances"
            fate = "count as deleted" if self.missing[0] in self.utterances else "are left out"
            sentences.append(f"{share} have no hypothesis and {fate}, first {self.missing[0]}")
        if self.unknown:
            sentences.append(
                f"{len(self.unknown)} hypotheses have no reference and are not scored, first {self.unknown[0]}"
            )
        return sentences

    @property
    def text(self) -> str:
        """What compute-wer prints."""
        wrong, scored = self.sentence_errors, len(self.utterances)
        return (
            f"{self.wer_line}\n"
            f"%SER {_percent(wrong, scored)} [ {wrong} / {scored} ]\n"
            f"Scored {scored} sentences, {len(self.missing)} not present in hyp.\n"
        )


def _percent(part: int, whole: int) -> str:
    """Two decimals of the quotient rounded to single precision first, as Kaldi has it."""
    return f"{np.float32(100.0 * part / whole):.2f}"


def compute_wer(
    refs: Transcripts,
    hyps: Transcripts,
    mode: Literal["all", "present", "strict"] = "all",
    count: Callable[[Sequence[str], Sequence[str]], ErrorCounts] = count_errors,
) -> WerResult:
    """Score `hyps` against `refs`.

    A missing hypothesis counts as all deletions (all), is left out of the rate (present), or is an error (strict).
    """
    if not refs:
        raise KernelamError("the reference is empty: there is nothing to score")
    missing = tuple(sorted(refs.keys() - hyps.keys()))
    if len(missing) == len(refs) and hyps:
        raise KernelamError(
            f"none of the {len(hyps)} hypotheses has a reference, {next(iter(hyps))} first:"
            " score against the text of the data that were decoded"
        )
    if missing and mode == "strict":
        raise KernelamError(f"{len(missing)} of {len(refs)} utterances have no hypothesis, first {missing[0]}")
    unknown = tuple(sorted(hyps.keys() - refs.keys()))
    scored = sorted(refs.keys() & hyps.keys() if mode == "present" else refs)
    counts = {utt: count(refs[utt], hyps.get(utt, ())) for utt in scored}
    result = WerResult(counts, missing, unknown, alternatives=count is not count_errors)
    if result.total.ref_words == 0:
        raise KernelamError(f"the reference of the {len(scored)} utterances to score has no words: there is no rate")
    return result
