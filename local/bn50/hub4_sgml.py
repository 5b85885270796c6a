"""Transcripts of the Hub-4 training shows: SGML of 1996 (Segment, S_time, Sync) and of 1997 (turn, startTime, time)."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.progress import warn
from kernelam.scoring.stm import Reference

_PIECE = re.compile(
    r'<(?P<close>/?)(?P<tag>\w+)(?P<attributes>(?:"[^"\n<]*"|[^>"])*|[^>\n]*)>|(?P<text>[^<]+)|(?P<other><[!?][^>]*>)|<'
)
_COMMENT = re.compile(r"<!--.*?-->|<comment\b[^>]*>(?:[^<]*</comment>|[^\n<]*)", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*("[^"]*"|[^\s,]+)""")
_TURNS, _TIMES = ("turn", "segment"), ("sync", "time")
_UNHEARD = ("commercial", "nontrans")  # types of sections that nobody is to train on
_UNUSED = ("overlap", "foreign")  # two voices at once, or another language: what stands beside them is left out


def text_of(path: Path) -> str:
    """What is not UTF-8 is read as ISO 8859-1, and said so."""
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        warn(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); it is read as ISO 8859-1")
        return content.decode("iso-8859-1")


def is_episode(path: Path) -> bool:
    with path.open("rb") as stream:
        return b"<episode" in stream.read(20_000).lower()


def show_of(name: str | Path) -> str:
    """The show that a file is of. Of 1996, some have an _ behind it; what is within may name another by mistake."""
    return Path(name).stem.lower().rstrip("_")


def read_episode(path: Path) -> list[Reference]:
    """The stretches of a show between time marks, as they would stand in an STM file."""
    reader = _Reader(path)
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text_of(path))
    segments = list(reader.segments(text))
    if reader.odd:
        warn(f"{reader.odd[0]}: {len(reader.odd)} stretches, this the first, are left out, since they take no time")
    return segments


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path, self._show = path, show_of(path)
        self._speaker, self._begin, self._end = "", 0.0, 0.0
        self._words: list[str] = []
        self._turn = self._unheard = self._unused = self._within = False
        self.odd: list[str] = []

    def segments(self, text: str) -> Iterator[Reference]:
        line = 1
        for piece in _PIECE.finditer(text):
            where, tag = f"{self._path}, line {line}", (piece["tag"] or "").lower()
            line += piece[0].count("\n")
            if piece["text"]:
                if self._turn:
                    self._words.append(piece["text"])
                continue
            if piece["other"]:
                continue
            if not tag:
                raise KernelamError(f"{where}: a < that begins no tag, or one that does not end")
            attributes = {
                name.lower(): value.strip('"') for name, value in _ATTRIBUTE.findall(piece["attributes"] or "")
            }
            if tag == "section":
                self._unheard = not piece["close"] and attributes.get("type", "").lower() in _UNHEARD
            elif tag in _TURNS and not piece["close"]:
                if self._turn:
                    raise KernelamError(f"{where}: a {tag} begins in another")
                self._turn, self._speaker = True, attributes.get("speaker", "unknown")
                self._begin, self._end = (
                    _seconds(attributes, names, where) for names in ("starttime s_time", "endtime e_time")
                )
            elif tag in _TURNS:
                self._within = False
                yield from self._flush(self._end, where)
                self._turn = False
            elif tag in _TIMES and self._turn:
                yield from self._flush(_seconds(attributes, "time sec", where), where)
            elif tag in _UNUSED:
                self._unused, self._within = True, not piece["close"]
        if self._turn:
            raise KernelamError(f"{self._path} ends within a turn of {self._speaker}")

    def _flush(self, end: float, where: str) -> Iterator[Reference]:
        """What was said since the last time mark."""
        text, used = spoken(" ".join(self._words)), not (self._unheard or self._unused or "#" in "".join(self._words))
        if text and used and end > self._begin:
            yield Reference(self._show, "1", self._speaker, self._begin, end, "", text)
        elif text and used:
            self.odd.append(where)
        self._begin, self._words, self._unused = end, [], self._within


def _seconds(attributes: dict[str, str], names: str, where: str) -> float:
    for name in names.split():
        if name in attributes:
            try:
                return float(attributes[name])
            except ValueError:
                raise KernelamError(f"{where}: {name} is a time in seconds, not '{attributes[name]}'") from None
    raise KernelamError(f"{where}: expected a time, {' or '.join(names.split())}")


def spoken(text: str) -> str:
    """Words in lower case, without marks: of names ^ and @, of unclear ((…)), invented **…** and odd +…+ words, and of
    hesitations %; noises {…} and […] are gone; _f_b_i, or ~fbi, is f. b. i.
    """
    text = re.sub(r"\[\[.*?\]\]|\[[^]]*\]|\{[^}]*\}", " ", html.unescape(text))
    words = []
    for token in re.sub(r"\(\(|\)\)|[*+#\"]", " ", text).lower().split():
        token = token.lstrip("^@%")
        word = re.sub(r"[?.,!;:]+$", "", token)
        if spelt_out := re.fullmatch(r"~([a-z]+)('s)?", word):
            word = "".join(f"_{letter}" for letter in spelt_out[1]) + (spelt_out[2] or "")
        if letters := re.fullmatch(r"((?:_[a-z])+)('?s)?", word):
            spelt = [f"{letter}." for letter in letters[1].split("_")[1:]]
            words += [*spelt[:-1], spelt[-1] + (letters[2] or "")]
        elif re.search(r"\w", word):
            words.append(f"{word}." if re.fullmatch(r"[a-z]\.", token) else word)
    return " ".join(words)
