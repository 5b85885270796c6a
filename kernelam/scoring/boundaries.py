"""How good alignments are: where phones begin and end, how long they are, and whether another source agrees."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.kaldi.tables import lines, read_symbols
from kernelam.scoring.alignment import align

POSITIONS = ("_B", "_E", "_I", "_S")  # of phones in words
FRAME_SHIFT = 0.01


class Phone(NamedTuple):
    name: str  # without its position in a word
    begin: float  # in frames
    end: float


Segments = Mapping[str, Sequence[Phone]]  # by utterance


def read_segments(place: Path) -> dict[str, list[Phone]]:
    """The phones of an alignment directory, or of a CTM file (utterance, channel, start, length in seconds, phone)."""
    if place.is_file():
        return _read_ctm(place)
    transitions = TransitionModel.load(place / "final.mdl")
    names = {number: plain_name(name) for name, number in read_symbols(place / "phones.txt").items()}
    found = {}
    for utt, ids in read_alignment_dir(place).items():
        transitions.check_range(ids, f"{place}, utterance {utt}")
        phones = transitions.ali_to_phones(ids)
        ends = np.cumsum([frames for _, frames in phones])
        found[utt] = [
            Phone(names[phone], float(end - frames), float(end))
            for (phone, frames), end in zip(phones, ends, strict=True)
        ]
    return found


def plain_name(phone: str) -> str:
    return phone[:-2] if phone.endswith(POSITIONS) else phone


def _read_ctm(path: Path) -> dict[str, list[Phone]]:
    found: dict[str, list[Phone]] = {}
    for number, line in enumerate(lines(path), 1):
        fields = line.split()
        try:
            utt, _, start, length, name = fields[:5]
            begin, duration = float(start) / FRAME_SHIFT, float(length) / FRAME_SHIFT
            if not (0 <= begin < inf and 0 <= duration < inf):
                raise ValueError
        except ValueError:
            raise KernelamError(
                f"{path}, line {number}: not an utterance, a channel, a start, a length and a phone: {line.strip()!r}"
            ) from None
        found.setdefault(utt, []).append(Phone(plain_name(name), begin, begin + duration))
    return found


def distances(ours: Segments, theirs: Segments) -> NDArray[np.float64]:
    """Frames between the boundaries of each two phones that follow one another in both, where utterances differ in
    some phones by the alignment of least cost."""
    found = []
    for utt in ours.keys() & theirs.keys():
        pairs = list(_matched(ours[utt], theirs[utt]))
        for one, two in pairwise(pairs):
            if one is not None and two is not None:
                found.append(abs(one[0].end - one[1].end))
    if not found:
        raise KernelamError("the two alignments have no phones of an utterance in common")
    return np.array(found)


def _matched(ours: Sequence[Phone], theirs: Sequence[Phone]) -> Iterable[tuple[Phone, Phone] | None]:
    """Both where they are the same phone, otherwise None."""
    left, right = iter(theirs), iter(ours)
    for reference, found in align([phone.name for phone in theirs], [phone.name for phone in ours]):
        one = next(right) if found is not None else None
        two = next(left) if reference is not None else None
        yield (one, two) if one is not None and two is not None and one.name == two.name else None


@dataclass(frozen=True)
class Durations:
    """Of the occurrences of a phone, in frames."""

    count: int
    mean: float
    low: float  # of 5 % of them
    high: float  # of 95 %
    shortest: float  # the share of those that are as short as the phone can be


def durations(segments: Segments) -> dict[str, Durations]:
    """By phone, the most frequent first."""
    lengths: dict[str, list[float]] = {}
    for phones in segments.values():
        for phone in phones:
            lengths.setdefault(phone.name, []).append(phone.end - phone.begin)
    made = {}
    for name, values in sorted(lengths.items(), key=lambda item: (-len(item[1]), item[0])):
        array = np.array(values)
        low, high = np.percentile(array, [5, 95])
        least = float((array <= array.min() + 1e-6).mean()) if len(array) > 1 else 0.0
        made[name] = Durations(len(array), float(array.mean()), float(low), float(high), least)
    return made


def silence_share(segments: Segments, silence: Iterable[str]) -> tuple[float, float]:
    """The share of all frames that is silence, and that of it inside utterances, between their first and last phone."""
    names = set(silence)
    total = silent = inner = 0.0
    for phones in segments.values():
        spoken = [number for number, phone in enumerate(phones) if phone.name not in names]
        for number, phone in enumerate(phones):
            length = phone.end - phone.begin
            total += length
            if phone.name in names:
                silent += length
                inner += length if spoken and spoken[0] < number < spoken[-1] else 0.0
    return silent / max(total, 1.0), inner / max(total, 1.0)
