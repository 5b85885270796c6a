"""OpenFst's binary files (vector and const, tropical weights) as arrays, checked before OpenFst itself sees them."""

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import kaldifst
import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.binary import read_bytes

_MAGIC, _SYMBOLS_MAGIC = 2125659606, 2125658996
_HAS_ISYMBOLS, _HAS_OSYMBOLS, _IS_ALIGNED = 1, 2, 4
_EXPANDED, _MUTABLE = 1, 2  # the only properties we claim; OpenFst works out the others
ARC = np.dtype([("ilabel", "<i4"), ("olabel", "<i4"), ("weight", "<f4"), ("nextstate", "<i4")])
_VECTOR_STATE = np.dtype([("final", "<f4"), ("narcs", "<i8")])
_CONST_STATE = np.dtype(
    [("final", "<f4"), ("pos", "<u4"), ("narcs", "<u4"), ("niepsilons", "<u4"), ("noepsilons", "<u4")]
)


@dataclass
class Fst:
    """State s has the arcs offsets[s] … offsets[s + 1]; `final` is infinite where a state is not final."""

    start: int
    final: NDArray[np.float32]
    offsets: NDArray[np.int64]
    arcs: NDArray[np.void]

    @property
    def source(self) -> NDArray[np.int64]:
        """By arc: the state it leaves."""
        return np.repeat(np.arange(len(self.final)), np.diff(self.offsets))

    @classmethod
    def of(cls, start: int, final: NDArray, source: NDArray, arcs: NDArray[np.void]) -> "Fst":
        """From arcs in any order; those of one state keep theirs."""
        order = np.argsort(source, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=len(final)))])
        return cls(start, np.asarray(final, np.float32), offsets, arcs[order])

    @classmethod
    def from_kaldifst(cls, fst: kaldifst.StdVectorFst) -> "Fst":
        with _scratch() as path:
            fst.write(path)
            return parse(Path(path).read_bytes(), path)

    def to_kaldifst(self) -> kaldifst.StdVectorFst:
        with _scratch() as path:
            Path(path).write_bytes(self.vector_bytes())
            return kaldifst.StdVectorFst.read(path)

    def vector_bytes(self) -> bytes:
        """A vector FST: each state's final weight and number of arcs, then its arcs."""
        states = np.empty(len(self.final), _VECTOR_STATE)
        states["final"], states["narcs"] = self.final, np.diff(self.offsets)
        of_arcs = _words_of_arcs(self.offsets)
        words = np.empty(len(of_arcs), "<u4")
        words[of_arcs], words[~of_arcs] = self.arcs.view("<u4"), states.view("<u4")
        return b"".join([self._header("vector", _EXPANDED | _MUTABLE, 0), words.data])

    def const_bytes(self) -> bytes:
        """A const FST, the form in which Kaldi keeps decoding graphs: all states, then all arcs."""
        states = np.empty(len(self.final), _CONST_STATE)
        states["final"], states["pos"], states["narcs"] = self.final, self.offsets[:-1], np.diff(self.offsets)
        for field, label in (("niepsilons", "ilabel"), ("noepsilons", "olabel")):
            states[field] = np.diff(np.concatenate([[0], np.cumsum(self.arcs[label] == 0)])[self.offsets])
        return self._header("const", _EXPANDED, len(self.arcs)) + states.tobytes() + self.arcs.tobytes()

    def _header(self, kind: str, properties: int, num_arcs: int) -> bytes:
        names = b"".join(struct.pack("<i", len(name)) + name for name in (kind.encode(), b"standard"))
        rest = struct.pack("<iiQqqq", 2, 0, properties, self.start, len(self.final), num_arcs)
        return struct.pack("<i", _MAGIC) + names + rest

    def save(self, path: str | Path, kind: str = "vector") -> None:
        """Write a vector or const FST."""
        with replacing(path) as stream:
            stream.write(self.const_bytes() if kind == "const" else self.vector_bytes())


@contextmanager
def _scratch() -> Iterator[str]:
    """A file through which FSTs pass to OpenFst and back: in memory where the system has that."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kernelam-fst")
        try:
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile(prefix="kernelam-", suffix=".fst") as file:
            yield file.name


def load_fst(path: str | Path) -> Fst:
    """Read a vector or const FST of tropical weights, plain or gzipped."""
    return parse(read_bytes(path), path)


def parse(data: bytes, name: str | Path) -> Fst:
    """The FST in `data`; a sentence about the file `name` if it is cut short, of another kind, or inconsistent."""
    try:
        fst = _parse(data)
    except struct.error:
        raise KernelamError(f"{name} is not a whole OpenFst file of tropical weights: it is cut short") from None
    except (ValueError, IndexError) as error:
        raise KernelamError(f"{name} is not a whole OpenFst file of tropical weights: {error}") from None
    labels = fst.arcs["nextstate"]
    if len(fst.final) and not 0 <= fst.start < len(fst.final):
        raise KernelamError(f"{name} is damaged: its start state {fst.start} is not among its {len(fst.final)} states")
    if len(labels) and not (labels.min() >= 0 and labels.max() < len(fst.final)):
        raise KernelamError(f"{name} is damaged: an arc leads to a state that is not there")
    if len(labels) and min(fst.arcs["ilabel"].min(), fst.arcs["olabel"].min()) < 0:
        raise KernelamError(f"{name} is damaged: an arc has a negative label")
    if np.isnan(fst.final).any() or np.isnan(fst.arcs["weight"]).any():
        raise KernelamError(f"{name} is damaged: a weight is not a number")
    return fst


def _string(data: bytes, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<i", data, position)
    if not 0 <= length <= len(data) - position - 4:
        raise ValueError("a name in its header is cut short")
    return data[position + 4 : position + 4 + length].decode("utf-8", "replace"), position + 4 + length


def _parse(data: bytes) -> Fst:
    if struct.unpack_from("<i", data)[0] != _MAGIC:
        raise ValueError("it does not begin as one")
    kind, position = _string(data, 4)
    arc_type, position = _string(data, position)
    version, flags, _, start, num_states, num_arcs = struct.unpack_from("<iiQqqq", data, position)
    position += 40
    if arc_type != "standard" or kind not in ("vector", "const"):
        raise ValueError(f"its type is {kind[:20]!r} with {arc_type[:20]!r} arcs")
    for flag in (_HAS_ISYMBOLS, _HAS_OSYMBOLS):
        if flags & flag:
            position = _skip_symbols(data, position)
    if not 0 <= num_states <= len(data) // 12 or not 0 <= num_arcs <= len(data) // 16:
        raise ValueError("it is shorter than its header says")
    if kind == "vector":
        return _parse_vector(data, position, start, num_states)
    return _parse_const(data, position, start, num_states, num_arcs, version == 1 or bool(flags & _IS_ALIGNED))


def _skip_symbols(data: bytes, position: int) -> int:
    magic = struct.unpack_from("<i", data, position)[0]
    if magic != _SYMBOLS_MAGIC:
        raise ValueError("a symbol table is missing")
    _, position = _string(data, position + 4)
    _, count = struct.unpack_from("<qq", data, position)
    position += 16
    for _ in range(count):
        _, position = _string(data, position)
        position += 8
    return position


def _parse_vector(data: bytes, position: int, start: int, num_states: int) -> Fst:
    state = struct.Struct("<fq")
    final = np.empty(num_states, np.float32)
    offsets = np.zeros(num_states + 1, np.int64)
    begin = position
    for number in range(num_states):
        final[number], count = state.unpack_from(data, position)
        if not 0 <= count <= (len(data) - position - 12) // 16:
            raise ValueError(f"the arcs of state {number} are cut short")
        offsets[number + 1] = offsets[number] + count
        position += 12 + 16 * count
    words = np.frombuffer(data, "<u4", (position - begin) // 4, begin)
    return Fst(start, final, offsets, words[_words_of_arcs(offsets)].view(ARC))


def _words_of_arcs(offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """By 4-byte word of a vector FST's body: whether it is one of an arc's four or one of a state's three."""
    lengths = np.stack([np.full(len(offsets) - 1, 3), 4 * np.diff(offsets)], axis=1)
    return np.repeat(np.tile([False, True], len(lengths)), lengths.ravel())


def _parse_const(data: bytes, position: int, start: int, num_states: int, num_arcs: int, aligned: bool) -> Fst:
    position = _aligned(position) if aligned else position
    states = np.frombuffer(data, _CONST_STATE, num_states, position)
    position += states.nbytes
    position = _aligned(position) if aligned else position
    arcs = np.frombuffer(data, ARC, num_arcs, position).copy()
    offsets = np.concatenate([[0], np.cumsum(states["narcs"].astype(np.int64))])
    if offsets[-1] != num_arcs or (states["pos"] != offsets[:-1]).any():
        raise ValueError("its arcs do not belong to its states")
    return Fst(start, states["final"].copy(), offsets, arcs)


def _aligned(position: int) -> int:
    return (position + 15) // 16 * 16
