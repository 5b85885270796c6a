"""Sentences of a text file, plain or Kaldi's `text`, and lists of words."""

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from kernelam.errors import KernelamError

BOS, EOS = "<s>", "</s>"
# Symbols of the grammar transducer, which no text may use as words.
RESERVED = frozenset({BOS, EOS, "<eps>", "#0"})


def byte_lines(path: str | Path) -> Iterator[tuple[int, list[bytes]]]:
    """Number and fields of every line that is not blank; .gz is unpacked.

    Fields are split in bytes, at ASCII white space only, as Kaldi does: a no-break space belongs to its word.
    """
    try:
        with gzip.open(path) if str(path).endswith(".gz") else open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                if fields := line.split():
                    yield number, fields
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise KernelamError(f"{path} is not a whole gzip file ({error})") from None


def decode(word: bytes, path: str | Path, number: int) -> str:
    """The word as text; a sentence when it is not UTF-8."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise KernelamError(f"{path}, line {number}: {word!r} is not UTF-8 text") from None


def sentences(path: str | Path, skip_first_field: bool) -> Iterator[tuple[int, list[bytes]]]:
    """Line number and words of every sentence; lines without words are passed over.

    With `skip_first_field` the first field is an utterance id. Ids are unique, so one that returns betrays a plain
    text, which would silently lose the first word of each line.
    """
    seen: set[bytes] = set()
    for number, fields in byte_lines(path):
        if skip_first_field:
            key = fields.pop(0)
            if key in seen:
                raise KernelamError(
                    f"{path}, line {number}: utterance id {decode(key, path, number)} occurs twice;"
                    " a text without utterance ids is read with --skip-first-field false"
                )
            seen.add(key)
        if fields:
            yield number, fields


def read_vocabulary(path: str | Path) -> list[str]:
    """The first field of every line of a word list, a words.txt or a lexicon, without <eps>, <s>, </s>, #0, #1, …"""
    words = {decode(fields[0], path, number) for number, fields in byte_lines(path)}
    words = {word for word in words if word not in RESERVED and not re.fullmatch(r"#\d+", word)}
    if not words:
        raise KernelamError(f"{path} lists no words")
    return sorted(words)
