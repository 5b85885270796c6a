"""What is scored instead of the words of an utterance: its characters, phones of a smaller set, a filtered text."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import read_table

TokenMap = Callable[[Sequence[str]], list[str]]


def token_map(units: str) -> TokenMap:
    """The map that `units` names: some of NAMED, with commas between them, or a file of lines `token replacement`.

    A token with nothing behind it is deleted, one that the file does not list stays as it is.
    """
    if _is_named(units):
        return partial(_in_turn, [NAMED[name] for name in units.split(",")])
    table = {token: text.split() for token, text in _table(units).items()}
    for token, tokens in table.items():
        if len(tokens) > 1:
            raise KernelamError(
                f"{units}: {token} has {len(tokens)} columns behind it; a map has one, or none to delete it"
            )
    return partial(_replaced, table)


def _table(units: str) -> dict[str, str]:
    return read_table(units, empty_values=True, sort=False)


def unlisted(units: str, transcripts: Iterable[Sequence[str]]) -> str | None:
    """A sentence about the tokens that stay as they are, since the map does not list them."""
    if _is_named(units):
        return None
    tokens = {token for words in transcripts for token in words}
    if not (left := sorted(tokens - _table(units).keys())):
        return None
    some = " ".join(left[:10]) + (" …" if len(left) > 10 else "")
    return f"{units} does not list {len(left)} of {len(tokens)} different tokens, which stay as they are: {some}"


def units_name(units: str) -> str:
    """A name by which units can be compared: a map's is of its contents, wherever the file lies."""
    if _is_named(units):
        names = units.split(",")
        noun = "characters" if names[-1] in ("characters", "noascii") else "words"
        return noun if units == noun else f"{noun} ({', '.join(names)})"
    return f"tokens of a map (sha256 {hashlib.sha256(Path(units).read_bytes()).hexdigest()[:12]})"


def _is_named(units: str) -> bool:
    return all(name in NAMED for name in units.split(","))


def _in_turn(maps: Sequence[TokenMap], words: Sequence[str]) -> list[str]:
    for change in maps:
        words = change(words)
    return list(words)


def _replaced(table: dict[str, list[str]], words: Sequence[str]) -> list[str]:
    return [token for word in words for token in table.get(word, [word])]


def to_characters(words: Sequence[str]) -> list[str]:
    """The characters of the words, without spaces; as in Kaldi's character scoring <unk>, [noise], !SIL stay whole.

    Characters are code points of Unicode's composed form (NFC), as `sclite -c` counts them: the vowel signs of Bengali
    are characters of their own, é is one however it is written.
    """
    tokens: list[str] = []
    for word in words:
        tokens.extend([word] if _is_mark(word) else unicodedata.normalize("NFC", word))
    return tokens


def to_ideographs(words: Sequence[str]) -> list[str]:
    """Characters, but what is written in ASCII stays whole, as with `sclite -c NOASCII`: OK is one, and so is <hes>."""
    return [token for word in words for token in re.findall(r"[!-~]+|.", unicodedata.normalize("NFC", word))]


def unmarked(words: Sequence[str]) -> list[str]:
    """The words without <unk>, [noise], !SIL and the like."""
    return [word for word in words if not _is_mark(word)]


def joined(pieces: Sequence[str]) -> list[str]:
    """The words of sentencepiece units, of which the first of a word begins with ▁; marks are words of their own."""
    words: list[str] = []
    open_word = False
    for piece in pieces:
        if open_word and not piece.startswith("▁") and not _is_mark(piece):
            words[-1] += piece
        else:
            words.append(piece)
        open_word = not _is_mark(piece)
    return [word for word in (word.removeprefix("▁") for word in words) if word]


def _is_mark(word: str) -> bool:
    return word == "!SIL" or (word[:1], word[-1:]) in (("<", ">"), ("[", "]"))


NAMED: dict[str, TokenMap] = {
    "words": list,
    "joined": joined,
    "unmarked": unmarked,
    "characters": to_characters,
    "noascii": to_ideographs,
}
