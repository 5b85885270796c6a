"""Archives of matrices: `key matrix key matrix …` in an ark file, and scp files that say where each one is.

A line of an scp is `key place`. A place is `file`, `file:offset` or `command |`; the first two may end in a range of
rows, `[first:last]` with both inclusive, or of rows and columns, `[first:last,first:last]`; `:` alone is all of them.
"""

import io
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.matrix import Matrix, encode, read_header, read_numbers, take
from kernelam.kaldi.pipes import is_pipe, output_of
from kernelam.kaldi.tables import read_table

_OPEN_FILES = 8
_LONGEST_KEY = 4096
_LONGEST_OFFSET = 18  # digits
_RANGE = re.compile(r"^(.*)\[(?:(\d{1,9}):(\d{1,9})|:)?(?:,(?:(\d{1,9}):(\d{1,9})|:))?\]$", re.ASCII)
_RANGE_SLACK = 3  # Kaldi cuts a range that ends up to this many rows behind the matrix


class MatrixScp(Mapping[str, Matrix]):
    """An scp file as a mapping from key to matrix, each read when asked for; safe under fork and threads.

    Matrices are float32; `double` leaves double ones as they are. A matrix that is not finite, has no rows, or has
    another number of columns than the first one is an error.
    """

    def __init__(self, path: str | Path, *, double: bool = False) -> None:
        self.path = Path(path)
        self._places = read_table(path, sort=False)
        self._double = double
        self._files: OrderedDict[str, io.FileIO] = OrderedDict()
        self._dim: int | None = None

    def __getitem__(self, key: str) -> Matrix:
        where, place, rows, cols = self._parse(key)
        with self._stream(place, where) as stream:
            matrix = read_numbers(stream, read_header(stream, where), where)
        if rows:
            matrix = matrix[_slice(rows, matrix.shape[0], "row", where)]
        if cols:
            matrix = matrix[:, _slice(cols, matrix.shape[1], "column", where)]
        return self._checked(matrix, where)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_files": OrderedDict()}

    @property
    def dim(self) -> int:
        """Columns of the first matrix, hence of all."""
        if self._dim is None:
            if not self._places:
                raise KernelamError(f"{self.path} is empty")
            self._dim = self._shape(next(iter(self._places)))[1]
        return self._dim

    def num_frames(self, key: str) -> int:
        """Rows of a matrix, from its header alone."""
        return self._shape(key)[0]

    def record(self, key: str) -> bytes:
        """The bytes of a binary matrix as they stand in its archive, checked as `[key]` checks them."""
        where, place, rows, cols = self._parse(key)
        with self._stream(place, where) as stream:
            header = read_header(stream, where)
            if header is None or rows or cols:
                raise KernelamError(f"{where} is not a whole binary matrix")
            data = take(stream, header.num_bytes, where)
        self._checked(read_numbers(io.BytesIO(data), header, where), where)
        return header.raw + data

    def _parse(self, key: str) -> tuple[str, str, list[int], list[int]]:
        """Where it is, for error messages; the place without its range; rows and columns of the range."""
        try:
            place = self._places[key]
        except KeyError:
            raise KernelamError(f"{self.path} has no {key}") from None
        where = f"{self.path}, {key}: {place}"
        if is_pipe(place) or not place.endswith("]"):
            return where, place, [], []
        match = _RANGE.match(place)
        if match is None:
            raise KernelamError(f"{where} has a range that is not [first:last] or [first:last,first:last]")
        numbers = [int(group) for group in match.groups()[1:] if group]
        rows = numbers[:2] if match[2] else []
        return where, match[1], rows, numbers[len(rows) :]

    def _stream(self, place: str, where: str) -> BinaryIO:
        if is_pipe(place):
            output = output_of(place, where)
            if not output:
                raise KernelamError(f"{where}: the command prints nothing")
            return io.BytesIO(output)
        name, colon, offset = place.rpartition(":")
        if not colon or not (offset.isdecimal() and offset.isascii()):
            name, offset = place, "0"
        if len(offset) > _LONGEST_OFFSET:
            raise KernelamError(f"{where} has an offset that no file reaches")
        if name not in self._files:
            self._files[name] = _open(name, where, waits=False)
            if len(self._files) > _OPEN_FILES:
                self._files.popitem(last=False)
        self._files.move_to_end(name)
        size = os.fstat(self._files[name].fileno()).st_size
        if 0 < size <= int(offset):
            raise KernelamError(f"{where}: the offset is behind the end of the file, which has {size} bytes")
        return io.BufferedReader(_At(self._files[name], int(offset)), 1 << 16)  # type: ignore[type-var]

    def _shape(self, key: str) -> tuple[int, int]:
        where, place, rows, cols = self._parse(key)
        with self._stream(place, where) as stream:
            header = read_header(stream, where)
            shape = (header.rows, header.cols) if header else read_numbers(stream, None, where).shape
        num_rows = len(range(shape[0])[_slice(rows, shape[0], "row", where)]) if rows else shape[0]
        num_cols = len(range(shape[1])[_slice(cols, shape[1], "column", where)]) if cols else shape[1]
        if num_rows == 0:
            raise KernelamError(f"{where} has no rows")
        return num_rows, num_cols

    def _checked(self, matrix: Matrix, where: str) -> Matrix:
        if matrix.shape[1] != self.dim:
            first = next(iter(self._places))
            raise KernelamError(f"{where} has {matrix.shape[1]} columns, but {first} has {self.dim}")
        return _checked(matrix, where, self._double)


class _At(io.RawIOBase):
    """A file from an offset on, read without moving the file's own position, so that processes may share it."""

    def __init__(self, file: io.FileIO, offset: int) -> None:
        self._file, self._offset = file, offset

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        count = os.preadv(self._file.fileno(), [buffer], self._offset)
        self._offset += count
        return count


def _open(name: str, where: str, waits: bool = True) -> io.FileIO:
    """The file; a named pipe, until somebody writes to it, only if this `waits`."""
    try:
        if not waits and Path(name).is_fifo():
            raise KernelamError(f"{where}: {name} is a named pipe, not a file")
        return Path(name).open("rb", buffering=0)
    except OSError as error:
        what = f"cannot open {name}: {error.strerror}"
        raise KernelamError(what if where == name else f"{where}: {what}") from None


def _slice(limits: list[int], size: int, what: str, where: str) -> slice:
    first, last = limits
    if not first <= last < size + (_RANGE_SLACK if what == "row" else 0) or first >= size:
        raise KernelamError(f"{where}: the {what} range does not fit, there are {size} {what}s")
    return slice(first, min(last + 1, size))


def _check(matrix: Matrix, where: str) -> None:
    if matrix.shape[0] == 0:
        raise KernelamError(f"{where} has no rows")
    if np.isfinite(matrix).all():
        return
    row, col = np.argwhere(~np.isfinite(matrix))[0]
    raise KernelamError(f"{where} has {matrix[row, col]} in row {row}, column {col}")


def _checked(matrix: Matrix, where: str, double: bool) -> Matrix:
    """`matrix`, or it in float32 unless `double`: not empty, and finite also then."""
    with np.errstate(all="ignore"):
        matrix = matrix if double else matrix.astype(np.float32, copy=False)
    _check(matrix, where)
    return matrix


def read_matrix(path: str | Path, *, double: bool = False) -> Matrix:
    """The matrix of a file that holds nothing else, such as final.mat; `double` leaves a double one as it is."""
    where = str(path)
    with io.BufferedReader(_open(where, where)) as stream:
        matrix = read_numbers(stream, read_header(stream, where), where)
    return _checked(matrix, where, double)


def save_matrix(path: str | Path, matrix: Matrix) -> None:
    """A file that holds nothing but `matrix`, for `read_matrix` and Kaldi."""
    with replacing(path) as stream:
        stream.write(_encoded(matrix, False, str(path)))


def read_ark(source: str | Path | BinaryIO, *, double: bool = False) -> Iterator[tuple[str, Matrix]]:
    """The keys and matrices of an archive: a file, a stream, or "-" for standard input; `ark:` before it is skipped."""
    if isinstance(source, str | Path):
        name = str(source).removeprefix("ark:")
        with ExitStack() as stack:
            stream: BinaryIO = sys.stdin.buffer
            if name != "-":
                stream = stack.enter_context(io.BufferedReader(_open(name, name)))
            yield from _read_stream(stream, "standard input" if name == "-" else name, double)
    else:
        yield from _read_stream(source, str(getattr(source, "name", "archive")), double)


def _read_stream(stream: BinaryIO, name: str, double: bool) -> Iterator[tuple[str, Matrix]]:
    after = "its beginning"
    while (key := _read_key(stream, f"{name}, after {after}")) is not None:
        where = f"{name}, {key}"
        matrix = read_numbers(stream, read_header(stream, where), where)
        yield key, _checked(matrix, where, double)
        after = key


def _read_key(stream: BinaryIO, where: str) -> str | None:
    key = bytearray()
    while (byte := stream.read(1)) not in (b"", b" ", b"\t") or (byte and not key):
        if not (byte.isspace() and not key):
            key += byte
        if len(key) > _LONGEST_KEY or byte == b"\0" or (byte == b"\n" and key):
            raise KernelamError(f"{where}: not a Kaldi archive, no key is found")
    if not byte and key:
        raise KernelamError(f"{where} is cut short in the middle of a key; make the archive again")
    try:
        return key.decode() if byte else None
    except UnicodeDecodeError:
        raise KernelamError(f"{where}: not a Kaldi archive, its key is not UTF-8 text") from None


def write_matrix(stream: BinaryIO, key: str, matrix: Matrix, *, compress: bool = False) -> None:
    """One `key matrix` of a binary archive, for instance on standard output for `ark:-`."""
    _check_key(key)
    stream.write(key.encode() + b" " + _encoded(matrix, compress, key))


def _check_key(key: str) -> None:
    if not key or any(c.isspace() for c in key) or "\0" in key:
        raise KernelamError(f"{key!r} cannot be a key of an archive: it is empty or has white space in it")


def _encoded(matrix: Matrix, compress: bool, where: str) -> bytes:
    if matrix.ndim != 2:
        raise KernelamError(f"{where} is an array of {matrix.ndim} dimensions, not a matrix")
    _check(matrix, where)
    return encode(matrix, compress)


class ArkWriter:
    """Writes an archive and its scp; both appear, whole, at the end of the `with` block, or neither.

    The scp names the archive as `ark_path` is given: a relative path stays relative.
    """

    def __init__(self, ark_path: str | Path, scp_path: str | Path, *, compress: bool = False) -> None:
        self._ark_path, self._scp_path, self._compress = str(ark_path), scp_path, compress
        self._stack = ExitStack()
        self._keys: set[str] = set()
        self._offset = 0

    def __enter__(self) -> "ArkWriter":
        with ExitStack() as stack:
            self._scp = stack.enter_context(replacing(self._scp_path, "w"))  # left last: moved after the archive
            self._ark = stack.enter_context(replacing(self._ark_path))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if error is None:
            try:
                self.flush()
            except Exception as failure:
                kind, error, trace = type(failure), failure, failure.__traceback__
                self._stack.__exit__(kind, error, trace)
                raise
        return self._stack.__exit__(kind, error, trace)

    def flush(self) -> None:
        """Bring everything to the disk: when it is full, this fails, and moving the files into place does not."""
        self._ark.flush()
        try:
            self._scp.flush()
        except OSError as error:
            raise KernelamError(f"cannot write {self._scp_path}: {error.strerror}") from error

    def write(self, key: str, matrix: Matrix) -> None:
        """Append a matrix."""
        self.write_record(key, _encoded(matrix, self._compress, f"{self._ark_path}, {key}"))

    def write_record(self, key: str, record: bytes) -> None:
        """Append a matrix that is already bytes, as `MatrixScp.record` gives them."""
        _check_key(key)
        if key in self._keys:
            raise KernelamError(f"{self._ark_path}: {key} would be written twice")
        self._keys.add(key)
        start = self._offset + len(key.encode()) + 1
        self._ark.write(key.encode() + b" " + record)
        self._scp.write(f"{key} {self._ark_path}:{start}\n")
        self._offset = start + len(record)
