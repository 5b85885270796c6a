"""References with times (STM), and the words of hypotheses with times (CTM) that belong to each of their segments.

STM lines are `recording channel speaker begin end [<labels>] words`, comments begin with ;;. A word belongs to the
segment that its middle lies in, or to the next one where it lies between two, as sclite has it; what lies in a segment
of the text IGNORE_TIME_SEGMENT_IN_SCORING is not scored.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines
from kernelam.scoring.glm import Rules
from kernelam.scoring.networks import network

IGNORED = "ignore_time_segment_in_scoring"
Channel = tuple[str, str]  # recording, channel


@dataclass(frozen=True)
class Reference:
    """A segment of an STM file."""

    recording: str
    channel: str
    speaker: str
    begin: float
    end: float
    labels: str
    text: str

    @property
    def ignored(self) -> bool:
        return IGNORED in self.text.lower()

    @property
    def who(self) -> str:
        """The speaker in this recording: others may have the same name."""
        return re.sub(r"[^\w.]", "_", f"{self.recording}_{self.speaker}")

    @property
    def name(self) -> str:
        return f"{self.who}-{round(100 * self.begin):07d}-{round(100 * self.end):07d}"

    @property
    def line(self) -> str:
        fields = [self.recording, self.channel, self.speaker, f"{self.begin:.3f}", f"{self.end:.3f}"]
        return " ".join([*fields, *filter(None, [self.labels, self.text])])


class Timed(NamedTuple):
    """A word of a hypothesis, in seconds."""

    begin: float
    duration: float
    word: str


def read_stm(path: str | Path) -> list[Reference]:
    """The segments of a file, by recording and time; a sentence for the first line that is none."""
    found = []
    for number, line in enumerate(lines(path), 1):
        if line.strip() and not line.startswith(";;"):
            try:
                found.append(_reference(line))
            except (ValueError, KernelamError) as error:
                raise KernelamError(
                    f"{path}, line {number}: expected 'recording channel speaker begin end <labels> words',"
                    f" found '{line}'" + (f": {error}" if isinstance(error, KernelamError) else "")
                ) from None
    if not found:
        raise KernelamError(f"{path} has no segments")
    return sorted(found, key=lambda one: (one.recording, one.channel, one.begin))


def _reference(line: str) -> Reference:
    recording, channel, speaker, begin, end, *words = line.split()
    labels = words.pop(0) if words and words[0].startswith("<") and words[0].endswith(">") else ""
    network(words)
    one = Reference(recording, channel, speaker, float(begin), float(end), labels, " ".join(words))
    if not 0 <= one.begin <= one.end < math.inf:
        raise KernelamError(f"{begin} to {end} is no time")
    return one


def read_ctm(path: str | Path) -> dict[Channel, list[Timed]]:
    """The words of a file of lines `recording channel begin duration word [confidence]`."""
    found: dict[Channel, list[Timed]] = defaultdict(list)
    for number, line in enumerate(lines(path), 1):
        if line.strip() and not line.startswith(";;"):
            try:
                recording, channel, begin, duration, word, *_ = line.split()
                timed = Timed(float(begin), float(duration), word)
                if not (math.isfinite(timed.begin) and 0 <= timed.duration < math.inf):
                    raise ValueError
                found[recording, channel].append(timed)
            except ValueError:
                raise KernelamError(
                    f"{path}, line {number}: expected 'recording channel begin duration word', found '{line}'"
                ) from None
    return found


class Stm:
    """What is scored: references of each segment that is not ignored, and hypotheses cut alike, both after the GLM."""

    def __init__(self, path: str | Path, glm: str | Path | None = None) -> None:
        self._path = path
        self._where = f"{path} after the rules of {glm}" if glm else str(path)
        self._ref, self._hyp = (Rules(glm, side) if glm else None for side in ("ref", "hyp"))
        self._channels: dict[Channel, list[Reference]] = defaultdict(list)
        for one in read_stm(path):
            self._channels[one.recording, one.channel].append(one)
        scored = [one for some in self._channels.values() for one in some if not one.ignored]
        self.refs = {one.name: (self._ref(one.text) if self._ref else one.text).split() for one in scored}
        self.utt2spk = {one.name: one.who for one in scored}
        self._check(self.refs)
        if len(self.refs) < len(scored):
            raise KernelamError(f"{path} has two segments of the same speaker and the same times")

    def cut(self, words: Mapping[Channel, Sequence[Timed]]) -> dict[str, list[str]]:
        """The words of each scored segment."""
        if unknown := sorted(words.keys() - self._channels.keys()):
            raise KernelamError(f"{self._path} has no segment of {unknown[0][0]}, channel {unknown[0][1]}")
        hyps: dict[str, list[str]] = {name: [] for name in self.refs}
        for channel, segments in self._channels.items():
            place, ends = 0, np.array([one.end for one in segments], np.float32).tolist()  # which decides on a border
            for middle, tokens in self._mapped(sorted(words.get(channel, ()))):
                while place + 1 < len(segments) and middle >= ends[place]:
                    place += 1
                if not segments[place].ignored:
                    hyps[segments[place].name] += tokens
        self._check(hyps)
        return hyps

    def _check(self, texts: Mapping[str, Sequence[str]]) -> None:
        """Rules may leave braces that do not match."""
        for name, words in texts.items():
            try:
                network(words)
            except KernelamError as error:
                raise KernelamError(f"{self._where}, segment {name}: {error}") from None

    def _mapped(self, words: Iterable[Timed]) -> Iterator[tuple[float, list[str]]]:
        """Middle and tokens; the parts of a word that a rule divides are as long as each other."""
        for begin, duration, word in words:
            text = self._hyp(word) if self._hyp else word
            if "{" in text:
                most = max(len(way.split()) for way in text.strip("{}").split("/"))
                yield begin + duration * (1 - 0.5 / most), text.split()
                continue
            parts = text.split()
            for number, part in enumerate(parts):
                yield begin + duration * (number + 0.5) / len(parts), [part]
