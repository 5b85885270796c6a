"""Kaldi's basic types as its programs store them, in text or, after the mark \\0B, in binary.

Binary: a token ends in a space; an integer is a byte with its size (negative if unsigned) and its little-endian bytes;
a float likewise; a float vector is `FV ` or `DV `, its length, its data; a matrix `FM ` or `DM `, rows, columns, data.
"""

import gzip
import re
import zlib
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError

_WORD = re.compile(rb"\S+")
_INTEGER = re.compile(rb"[+-]?\d{1,10}")
_INTEGERS = {1: "<i1", 2: "<i2", 4: "<i4", 8: "<i8", -1: "<u1", -2: "<u2", -4: "<u4", -8: "<u8"}
_REALS = {4: "<f4", 8: "<f8"}


def read_bytes(path: str | Path) -> bytes:
    """The contents of a file, unzipped if they are in gzip's format; a sentence when that cannot be done."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}") from None
    except OSError as error:
        raise KernelamError(f"cannot read {path}: {error.strerror}") from None
    if not data.startswith(b"\x1f\x8b"):
        if not data and Path(path).suffix == ".gz":
            raise KernelamError(f"{path} is empty, which no gzip file is; make it again")
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise KernelamError(f"{path} is not a whole gzip file ({error}); make it again") from None


class KaldiReader:
    """Reads basic types one after another from `data`; `name` is the file that errors are about."""

    def __init__(self, data: bytes, name: str | Path, position: int = 0) -> None:
        self.data, self.name, self.position = data, name, position
        self.binary = False
        self.start()

    @classmethod
    def open(cls, path: str | Path) -> "KaldiReader":
        """A reader of the whole file at `path`, plain or gzipped."""
        return cls(read_bytes(path), path)

    def start(self) -> None:
        """Take the mark \\0B if it stands here: what follows is binary; otherwise it is text."""
        self.binary = self.data[self.position : self.position + 2] == b"\0B"
        self.position += 2 * self.binary

    def fail(self, what: str) -> NoReturn:
        raise KernelamError(f"{self.name} is damaged or not of the expected kind: {what} at byte {self.position}")

    def at_end(self) -> bool:
        """Whether nothing is left but, in text, white space."""
        if self.binary:
            return self.position >= len(self.data)
        return _WORD.search(self.data, self.position) is None

    def take(self, count: int, what: str) -> bytes:
        """The next `count` bytes."""
        if count < 0 or self.position + count > len(self.data):
            self.fail(f"no whole {what}")
        piece = self.data[self.position : self.position + count]
        self.position += count
        return piece

    def _word(self, what: str) -> bytes:
        found = _WORD.search(self.data, self.position)
        if not found:
            self.fail(f"no {what}")
        self.position = found.end()
        return found.group()

    def token(self) -> str:
        """The next token, such as <TransitionModel>."""
        before = self.position
        word = self._word("token")
        if self.binary:
            if self.data[before : before + 1] != word[:1] or self.take(1, "token") != b" ":
                self.position = before
                self.fail("no token")
        elif self.data[self.position : self.position + 1].isspace():
            self.position += 1
        try:
            return word.decode()
        except UnicodeDecodeError:
            self.position = before
            self.fail("no token")

    def peek(self) -> str:
        """The next token, not taken; empty at the end."""
        before = self.position
        try:
            return "" if self.at_end() else self.token()
        finally:
            self.position = before

    def expect(self, *tokens: str) -> str:
        """Take the next token, which must be one of `tokens`."""
        before = self.position
        token = self.token()
        if token not in tokens:
            self.position = before
            self.fail(f"{token[:40]!r} where {' or '.join(tokens)} should stand")
        return token

    def integer(self, what: str = "integer") -> int:
        """An integer of any size whose value fits 32 bits: Kaldi has no others."""
        if self.binary:
            value = int(self._sized(_INTEGERS, what))
        else:
            word = self._word(what)
            if not _INTEGER.fullmatch(word):
                self.fail(f"{word[:20]!r} instead of an integer")
            value = int(word)
        if not -(2**31) <= value < 2**31:
            self.fail(f"impossible {what} {value}")
        return value

    def real(self, what: str = "number") -> float:
        """A float or double."""
        if self.binary:
            return float(self._sized(_REALS, what))
        return float(self._numbers([self._word(what)], np.float64)[0])

    def _sized(self, kinds: dict[int, str], what: str) -> np.number:
        size = int.from_bytes(self.take(1, what), "little", signed=True)
        if size not in kinds:
            self.fail(f"no {what}")
        return np.frombuffer(self.take(abs(size), what), kinds[size])[0]

    def count(self, item_bytes: int, what: str) -> int:
        """An int32 with its size byte: the number of items that follow, each at least `item_bytes` long in binary."""
        count = self.integer(what)
        if count < 0 or (self.binary and count * item_bytes > len(self.data) - self.position):
            self.fail(f"impossible {what} {count}")
        return count

    def integers(self) -> NDArray[np.int32]:
        """An integer vector: in binary the item size, the length and the data; in text [ 1 2 3 ]."""
        if not self.binary:
            return self._numbers(self._brackets(), np.int32)
        if self.take(1, "integer vector") != b"\x04":
            self.fail("no vector of 32-bit integers")
        length = int.from_bytes(self.take(4, "length"), "little", signed=True)
        return np.frombuffer(self.take(4 * length, "integer vector"), "<i4").astype(np.int32)

    def vector(self) -> NDArray[np.floating]:
        """A vector of floats or doubles (text: float32)."""
        if not self.binary:
            return self._numbers(self._brackets(), np.float32)
        kind = {"FV": "<f4", "DV": "<f8"}[self.expect("FV", "DV")]
        return self._items(kind, (self.integer("length"),))

    def matrix(self) -> NDArray[np.floating]:
        """A matrix of floats or doubles (text: float32)."""
        if self.binary:
            kind = {"FM": "<f4", "DM": "<f8"}[self.expect("FM", "DM")]
            return self._items(kind, (self.integer("row count"), self.integer("column count")))
        start = self.position
        words = self._brackets()
        rows = [
            row.split() for row in self.data[start : self.position].strip().strip(b"[]").split(b"\n") if row.strip()
        ]
        if len({len(row) for row in rows}) > 1:
            self.fail("a matrix with rows of different lengths")
        return self._numbers(words, np.float32).reshape(len(rows), len(rows[0]) if rows else 0)

    def _items(self, kind: str, shape: tuple[int, ...]) -> NDArray[np.floating]:
        if min(shape) < 0:
            self.fail(f"impossible size {shape}")
        count = int(np.prod(shape, dtype=object))
        data = self.take(count * np.dtype(kind).itemsize, "array")
        return np.frombuffer(data, kind).reshape(shape).copy()

    def _brackets(self) -> list[bytes]:
        if self._word("vector") != b"[":
            self.fail("no [ that begins a vector")
        end = self.data.find(b"]", self.position)
        if end < 0:
            self.fail("no ] that ends a vector")
        words = self.data[self.position : end].split()
        self.position = end + 1
        return words

    def _numbers(self, words: list[bytes], kind: type) -> NDArray:
        try:
            with np.errstate(over="ignore"):  # infinite then: whoever reads checks for that
                return np.array([int(word) if kind is np.int32 else float(word) for word in words], dtype=kind)
        except (ValueError, OverflowError):
            self.fail("a number that is none")


class KaldiWriter:
    """Writes what KaldiReader reads, byte for byte as Kaldi does. Text has seven significant digits, as Kaldi's."""

    def __init__(self, stream: IO[bytes], binary: bool = True) -> None:
        self.stream, self.binary = stream, binary
        if binary:
            stream.write(b"\0B")

    def token(self, token: str) -> None:
        self.stream.write(token.encode() + b" ")

    def line(self) -> None:
        """End the line in text; nothing in binary."""
        if not self.binary:
            self.stream.write(b"\n")

    def integer(self, value: int) -> None:
        self.stream.write(b"\x04" + int(value).to_bytes(4, "little", signed=True) if self.binary else b"%d " % value)

    def unsigned(self, value: int) -> None:
        self.stream.write(b"\xfc" + int(value).to_bytes(4, "little") if self.binary else b"%d " % value)

    def real(self, value: float) -> None:
        """A 32-bit float."""
        self.stream.write(b"\x04" + np.float32(value).tobytes() if self.binary else self._digits(value) + b" ")

    def integers(self, values: NDArray | list[int]) -> None:
        array = np.asarray(values, "<i4")
        if self.binary:
            self.stream.write(b"\x04" + len(array).to_bytes(4, "little") + array.tobytes())
        else:
            self.stream.write(b"[ " + b"".join(b"%d " % value for value in array) + b"]\n")

    def vector(self, values: NDArray[np.floating]) -> None:
        if self.binary:
            self.token("DV" if values.dtype == np.float64 else "FV")
            self.integer(len(values))
            self.stream.write(np.ascontiguousarray(values).tobytes())
        else:
            self.stream.write(b" [ " + b"".join(self._digits(value) + b" " for value in values) + b"]\n")

    def matrix(self, values: NDArray[np.floating]) -> None:
        if self.binary:
            self.token("DM" if values.dtype == np.float64 else "FM")
            self.integer(values.shape[0])
            self.integer(values.shape[1])
            self.stream.write(np.ascontiguousarray(values).tobytes())
        elif not values.size:
            self.stream.write(b" [ ]\n")
        else:
            rows = (b"\n  " + b"".join(self._digits(value) + b" " for value in row) for row in values)
            self.stream.write(b" [" + b"".join(rows) + b"]\n")

    @staticmethod
    def _digits(value: float) -> bytes:
        return b"%.7g" % float(value)
