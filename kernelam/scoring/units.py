"""What is scored instead of the words of an utterance: its characters, phones of a smaller set, a filtered text."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import read_table

TokenMap = Callable[[Sequence[str]], list[str]]


def token_map(units: str) -> TokenMap:
    """The map that `units` names: words, characters, or a file of lines `token replacement`.

    A token with nothing behind it is deleted, one that the file does not list stays as it is.
    """
    if units == "words":
        return list
    if units == "characters":
        return to_characters
    table = {token: text.split() for token, text in read_table(units, empty_values=True, sort=False).items()}
    for token, tokens in table.items():
        if len(tokens) > 1:
            raise KernelamError(
                f"{units}: {token} has {len(tokens)} columns behind it; a map has one, or none to delete it"
            )
    return partial(_replaced, table)


def units_name(units: str) -> str:
    """A name by which units can be compared: a map's is of its contents, wherever the file lies."""
    if units in ("words", "characters"):
        return units
    return f"tokens of a map (sha256 {hashlib.sha256(Path(units).read_bytes()).hexdigest()[:12]})"


def _replaced(table: dict[str, list[str]], words: Sequence[str]) -> list[str]:
    return [token for word in words for token in table.get(word, [word])]


def to_characters(words: Sequence[str]) -> list[str]:
    """The characters of the words, without spaces; as in Kaldi's character scoring <unk>, [noise], !SIL stay whole."""
    tokens: list[str] = []
    for word in words:
        whole = word == "!SIL" or (word[:1], word[-1:]) in (("<", ">"), ("[", "]"))
        tokens.extend([word] if whole else word)
    return tokens
