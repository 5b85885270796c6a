"""Transcripts of Babel: times in brackets on lines of their own, and what was said between two of them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines

HESITATION, VOCAL_NOISE, NOISE, UNKNOWN = "<hes>", "<v-noise>", "<noise>", "<unk>"
NOT_WORDS = (HESITATION, VOCAL_NOISE, NOISE, UNKNOWN)
_MARKS = {
    **dict.fromkeys(["<lipsmack>", "<breath>", "<cough>", "<laugh>"], VOCAL_NOISE),
    **dict.fromkeys(["<click>", "<ring>", "<dtmf>", "<int>", "<noise>"], NOISE),
    **dict.fromkeys(["<foreign>", "<overlap>", "<prompt>"], UNKNOWN),
    **dict.fromkeys(["<no-speech>", "<sta>", "<male-to-female>", "<female-to-male>", "~"], ""),
    HESITATION: HESITATION,
}
_TIME = re.compile(r"\[(\d+(?:\.\d*)?)\]")


class Turn(NamedTuple):
    """What was said from `start` to `end` seconds, in which line of the transcript."""

    start: float
    end: float
    text: str
    line: int


def turns(path: Path) -> Iterator[Turn]:
    """The stretches between two times, those with nothing between them left out."""
    start, text, line = None, "", 0
    for number, raw in enumerate(lines(path), 1):
        content = raw.removeprefix("\ufeff").strip()
        if not (time := _TIME.fullmatch(content)):
            if start is None and content:
                raise KernelamError(f"{path}, line {number}: expected a time such as [0.000], found '{content}'")
            text, line = f"{text} {content}".strip(), number
            continue
        end = float(time[1])
        if start is not None and end < start:
            raise KernelamError(f"{path}, line {number}: the time {end:g} follows {start:g}, which is later")
        if start is not None and text:
            yield Turn(start, end, text, line)
        start, text = end, ""
    if start is None or text:
        raise KernelamError(f"{path} does not end with a time such as [600.000]")


class Markup:
    """Words and marks of transcripts as words of the recogniser; marks that nobody knows are noise, and counted."""

    def __init__(self) -> None:
        self.strange: Counter[str] = Counter()

    def words(self, text: str) -> list[str]:
        found = (self._word(token) for token in unicodedata.normalize("NFC", text).split())
        return [word for word in found if word]

    def _word(self, token: str) -> str:
        """Of a mispronounced word the word; a part of a word, and what was not understood, is unknown."""
        if token in _MARKS:
            return _MARKS[token]
        if token.startswith("<") and token.endswith(">"):
            self.strange[token] += 1
            return NOISE
        if token.startswith(("((", "-")) or token.endswith(("))", "-")):
            return UNKNOWN
        return token.strip("*~")
