"""One matrix in Kaldi's formats: a header, which is cheap to read, and its numbers.

Binary, after the two bytes `\\0B`, integers and floats little-endian:

    FM, DM     token, \\4, rows (int32), \\4, columns (int32); float32 or float64, row by row
    CM         token, minimum and range (float32), rows, columns (int32); for each column the uint16 quantised minimum,
               quartiles 1 and 3 and maximum; then one byte a number, column by column: 0–64 is linear between minimum
               and first quartile, 64–192 between the quartiles, 192–255 up to the maximum
    CM2, CM3   as CM without column headers; uint16 or uint8, row by row, linear between minimum and minimum + range

Text: `[`, a line a row, `]`.
"""

import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError

Matrix = NDArray[np.floating]

_CHUNK = 1 << 20  # a damaged header may ask for terabytes: never allocate much more ahead of the data than is there
_COLUMNS = 1024  # of a CM matrix decoded at once, by tables that need a kilobyte each
_MOST_ROWS_OF_CM2 = 8  # Kaldi compresses shorter matrices by two bytes: their quartiles say too little
_LARGEST_TO_COMPRESS = 1e38  # beyond it the range may not be a float32
_UINT16 = np.float32(1.52590218966964e-05)  # Kaldi's 1/65535


@dataclass(frozen=True)
class Header:
    """What stands before the numbers of a binary matrix; `raw` is its bytes from `\\0B` on."""

    raw: bytes
    kind: str
    rows: int
    cols: int
    minimum: float = 0.0
    range: float = 0.0

    @property
    def num_bytes(self) -> int:
        """Bytes that follow the header."""
        if self.kind == "CM":
            return self.cols * (8 + self.rows)
        return self.rows * self.cols * {"FM": 4, "DM": 8, "CM2": 2, "CM3": 1}[self.kind]


def take(stream: BinaryIO, count: int, where: str) -> bytes:
    """Exactly `count` bytes of `stream`."""
    data = stream.read(min(count, _CHUNK))
    if len(data) < count:
        parts, got = [data], len(data)
        while got < count and parts[-1]:
            parts.append(stream.read(min(count - got, max(got, _CHUNK))))
            got += len(parts[-1])
        if got < count:
            raise KernelamError(f"{where} is cut short: {count - got} bytes are missing; make the archive again")
        data = b"".join(parts)
    return data


def read_header(stream: BinaryIO, where: str) -> Header | None:
    """The header of a binary matrix, or None, with the stream after the `[`, of one in text."""
    first = take(stream, 1, where)
    if first != b"\0":
        while first.isspace():
            first = take(stream, 1, where)
        if first != b"[":
            raise KernelamError(f"{where} is not a matrix: it begins neither with Kaldi's binary mark nor with [")
        return None
    raw = first + take(stream, 4, where)
    if raw[:2] != b"\0B":
        raise KernelamError(f"{where} is not a matrix: Kaldi's binary mark is damaged")
    if raw[4:] != b" ":
        raw += take(stream, 1, where)
    kind = raw[2:].rstrip(b" ").decode("latin-1")
    if kind in ("FM", "DM"):
        raw += take(stream, 10, where)
        four, rows, four_too, cols = struct.unpack("<bibi", raw[-10:])
        header = Header(raw, kind, rows, cols)
        valid = four == four_too == 4
    elif kind in ("CM", "CM2", "CM3"):
        raw += take(stream, 16, where)
        minimum, span, rows, cols = struct.unpack("<ffii", raw[-16:])
        header = Header(raw, kind, rows, cols, minimum, span)
        valid = True
    else:
        what = {"FV": "a vector", "DV": "a vector"}.get(kind, "an integer vector" if raw[2] == 4 else repr(kind))
        raise KernelamError(f"{where} holds {what}, not a matrix")
    if not valid or rows < 0 or cols < 0 or (rows == 0) != (cols == 0):
        raise KernelamError(f"{where} has a damaged header ({rows} rows, {cols} columns)")
    return header


def read_numbers(stream: BinaryIO, header: Header | None, where: str) -> Matrix:
    """What follows `header`: float64 for DM, float32 for all others."""
    if header is None:
        return _read_text(stream, where)
    data = take(stream, header.num_bytes, where)
    shape = header.rows, header.cols
    if header.kind == "FM":
        return np.frombuffer(data, "<f4").reshape(shape).astype(np.float32)
    if header.kind == "DM":
        return np.frombuffer(data, "<f8").reshape(shape).astype(np.float64)
    minimum, span = np.float32(header.minimum), np.float32(header.range)
    with np.errstate(all="ignore"):  # a damaged header may give infinities: whoever reads checks for them
        if header.kind == "CM":
            return _decode_columns(data, shape, minimum, span)
        codes = np.frombuffer(data, "<u2" if header.kind == "CM2" else "u1").reshape(shape).astype(np.float32)
        return minimum + codes * (span * np.float32(1 / (65535 if header.kind == "CM2" else 255)))


def _read_text(stream: BinaryIO, where: str) -> Matrix:
    rows: list[list[float]] = []
    bracket = b""
    while not bracket:
        line = stream.readline()
        if not line:
            raise KernelamError(f"{where} is cut short: there is no closing ]; make the archive again")
        text, bracket, rest = line.partition(b"]")
        try:
            row = [float(word) for word in text.split()]
        except ValueError:
            raise KernelamError(f"{where}: row {len(rows) + 1} has something that is not a number") from None
        if rest.strip():
            raise KernelamError(f"{where} has {rest.strip()[:20].decode('latin-1')!r} behind its closing ]")
        if row and rows and len(row) != len(rows[0]):
            raise KernelamError(f"{where}: row {len(rows) + 1} has {len(row)} numbers, row 1 has {len(rows[0])}")
        if row:
            rows.append(row)
    with np.errstate(over="ignore"):  # infinite then: whoever reads checks for that
        return np.array(rows, np.float32) if rows else np.zeros((0, 0), np.float32)


def _decode_columns(data: bytes, shape: tuple[int, int], minimum: np.float32, span: np.float32) -> Matrix:
    """CM: each column has a table of 256 values; Kaldi's order of float32 operations."""
    rows, cols = shape
    quantiles = minimum + span * _UINT16 * np.frombuffer(data, "<u2", 4 * cols).reshape(cols, 4).astype(np.float32)
    codes = np.frombuffer(data, "u1", rows * cols, 8 * cols).reshape(cols, rows)
    out = np.empty(shape, np.float32)
    for first in range(0, cols, _COLUMNS):
        part = slice(first, first + _COLUMNS)
        out[:, part] = np.take_along_axis(_tables(quantiles[part]), codes[part].astype(np.intp), axis=1).T
    return out


def _tables(quantiles: Matrix) -> Matrix:
    """By column, the value of each of the 256 codes."""
    p0, p25, p75, p100 = (quantiles[:, i : i + 1] for i in range(4))
    code = np.arange(256, dtype=np.float32)
    table = np.empty((len(quantiles), 256), np.float32)
    table[:, :65] = p0 + (p25 - p0) * code[:65] * np.float32(1 / 64)
    table[:, 65:193] = p25 + (p75 - p25) * (code[65:193] - 64) * np.float32(1 / 128)
    table[:, 193:] = p75 + (p100 - p75) * (code[193:] - 192) * np.float32(1 / 63)
    return table


def encode(matrix: Matrix, compress: bool = False) -> bytes:
    """`matrix` from `\\0B` on: CM (CM2 up to 8 rows) when `compress`, else DM for float64 and FM for anything else."""
    if compress and matrix.size and max(matrix.max(), -matrix.min()) < _LARGEST_TO_COMPRESS:
        return _compressed(np.ascontiguousarray(matrix, np.float32))
    kind, dtype = (b"DM", "<f8") if matrix.dtype == np.float64 else (b"FM", "<f4")
    sizes = struct.pack("<bibi", 4, matrix.shape[0], 4, matrix.shape[1])
    return b"\0B" + kind + b" " + sizes + np.ascontiguousarray(matrix, dtype).tobytes()


def _compressed(matrix: Matrix) -> bytes:
    rows, cols = matrix.shape
    minimum, maximum = matrix.min(), matrix.max()
    if minimum == maximum:
        maximum = minimum + (1 + abs(minimum))
    span = maximum - minimum

    def quantise(values: Matrix) -> NDArray[np.uint16]:
        return (np.clip((values - minimum) / span, 0, 1) * np.float32(65535) + 0.499).astype("<u2")

    kind = b"CM" if rows > _MOST_ROWS_OF_CM2 else b"CM2"
    header = b"\0B" + kind + b" " + struct.pack("<ffii", minimum, span, rows, cols)
    if kind == b"CM2":
        return header + quantise(matrix).tobytes()
    ranks = [0, rows // 4, 3 * (rows // 4), rows - 1]
    q = quantise(np.partition(matrix, ranks, axis=0)[ranks]).astype(np.int64)
    q[0] = np.minimum(q[0], 65532)
    q[1] = np.clip(q[1], q[0] + 1, 65533)
    q[2] = np.clip(q[2], q[1] + 1, 65534)
    q[3] = np.maximum(q[3], q[2] + 1)
    p0, p25, p75, p100 = minimum + span * _UINT16 * q.astype(np.float32)
    codes = np.where(
        matrix < p25,
        _steps(matrix, p0, p25, 0, 64),
        np.where(matrix < p75, _steps(matrix, p25, p75, 64, 192), _steps(matrix, p75, p100, 192, 255)),
    )
    return header + q.T.astype("<u2").tobytes() + codes.T.astype("u1").tobytes()


def _steps(values: Matrix, low: Matrix, high: Matrix, first: int, last: int) -> Matrix:
    """The integer between `first` (at `low`) and `last` (at `high`) nearest to each value."""
    with np.errstate(
        all="ignore"
    ):  # a range so small that two quartiles coincide gives 0/0: clipped below, as in Kaldi
        share = (values - low) / (high - low) * np.float32(last - first)
    return np.clip(first + np.floor(np.nan_to_num(share).astype(np.float64) + 0.5), first, last)
