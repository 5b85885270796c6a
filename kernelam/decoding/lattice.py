"""Lattices: acyclic graphs of the paths a search kept, graph and acoustic costs apart, in Kaldi's archives."""

import gzip
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numba
import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError

_MAGIC = 2125659606
_HEADER = b"\x06\0\0\0vector\x08\0\0\0lattice4"
_ARC = np.dtype([("ilabel", "<i4"), ("olabel", "<i4"), ("graph", "<f4"), ("acoustic", "<f4"), ("next", "<i4")])
_FIELDS = struct.Struct("<iiQqqq")  # version, flags, properties, start, states, arcs
_STATE = struct.Struct("<ffq")  # graph and acoustic cost of ending here, number of arcs


@dataclass
class Lattice:
    """State s has the arcs first[s] … first[s+1] − 1. Input labels are transition-ids, output labels words.

    States are in topological order and the first is the start. Costs are negated log-probabilities, acoustic ones
    without a scale; a state that is not final ends at infinite cost.
    """

    first: NDArray[np.int64]
    ilabel: NDArray[np.int32]
    olabel: NDArray[np.int32]
    graph: NDArray[np.float32]
    acoustic: NDArray[np.float32]
    next: NDArray[np.int32]
    final_graph: NDArray[np.float32]
    final_acoustic: NDArray[np.float32]

    @classmethod
    def read(cls, stream: IO[bytes], where: str) -> "Lattice":
        """One lattice in OpenFst's binary format from an archive; `where` names it in errors."""
        mark = stream.read(4 + len(_HEADER))
        if mark != struct.pack("<i", _MAGIC) + _HEADER:
            raise KernelamError(f"{where} is not a state-level lattice in binary form")
        _, flags, _, start, num_states, _ = _FIELDS.unpack(_exactly(stream, _FIELDS.size, where))
        if flags or not 0 <= start < num_states:
            raise KernelamError(f"{where} has no states, or symbols in the file")
        finals, arcs, first = [], [], [0]
        for _ in range(num_states):
            *final, count = _STATE.unpack(_exactly(stream, _STATE.size, where))
            finals.append(final)
            arcs.append(_exactly(stream, count * _ARC.itemsize, where))
            first.append(first[-1] + count)
        rows = np.frombuffer(b"".join(arcs), _ARC)
        ends = np.array(finals, np.float32).reshape(-1, 2)
        fields = {name: rows[name].copy() for name in _ARC.names or ()}
        lattice = cls(first=np.array(first), final_graph=ends[:, 0].copy(), final_acoustic=ends[:, 1].copy(), **fields)
        if (lattice.next < 0).any() or (lattice.next >= num_states).any():
            raise KernelamError(f"{where} has an arc to a state that is not there")
        return lattice.topologically_sorted(start, where)

    def topologically_sorted(self, start: int, where: str) -> "Lattice":
        """The states that the start reaches, in topological order; a cycle, or no final state, is an error."""
        order = _topological(self.first, self.next, start)
        if not len(order) or not np.isfinite(self.final_graph[order]).any():
            raise KernelamError(f"{where} has a cycle, or no path to a final state")
        number = np.full(self.num_states, -1, np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        counts = np.diff(self.first)[order]
        first = np.concatenate([[0], np.cumsum(counts)])
        arcs = np.repeat(self.first[order] - first[:-1], counts) + np.arange(first[-1])
        kept = (self.ilabel[arcs], self.olabel[arcs], self.graph[arcs], self.acoustic[arcs], number[self.next[arcs]])
        return Lattice(first, *kept, self.final_graph[order], self.final_acoustic[order])

    def write(self, stream: IO[bytes]) -> None:
        """As Kaldi's lattice programs read it. No property is claimed but what every such file has."""
        stream.write(struct.pack("<i", _MAGIC) + _HEADER)
        stream.write(_FIELDS.pack(2, 0, 3, 0, self.num_states, 0))
        rows = np.empty(len(self.next), _ARC)
        for name in _ARC.names or ():
            rows[name] = getattr(self, name)
        data = rows.tobytes()
        for state in range(self.num_states):
            start, end = int(self.first[state]), int(self.first[state + 1])
            stream.write(_STATE.pack(self.final_graph[state], self.final_acoustic[state], end - start))
            stream.write(data[start * _ARC.itemsize : end * _ARC.itemsize])

    @property
    def num_states(self) -> int:
        return len(self.final_graph)

    def best_path(self, lm_weight: float, penalty: float = 0.0) -> NDArray[np.int64]:
        """The arcs of the path of least graph cost + acoustic cost / lm_weight + penalty · words."""
        weight = self.graph + self.acoustic / np.float32(lm_weight) + np.float32(penalty) * (self.olabel != 0)
        final = self.final_graph + self.final_acoustic / np.float32(lm_weight)
        return _shortest(self.first, self.next, weight.astype(np.float64), final.astype(np.float64))

    def words(self, path: NDArray[np.int64]) -> list[int]:
        return [int(word) for word in self.olabel[path] if word]

    def alignment(self, path: NDArray[np.int64]) -> NDArray[np.int32]:
        labels = self.ilabel[path]
        return labels[labels != 0]


def _exactly(stream: IO[bytes], count: int, where: str) -> bytes:
    data = stream.read(count) if count >= 0 else b""
    if len(data) != count or count < 0:
        raise KernelamError(f"{where}: the file ends inside it")
    return data


@numba.njit(cache=True)
def _topological(first, next_state, start):  # type: ignore[no-untyped-def]
    """States in depth-first topological order; empty if there is a cycle."""
    num_states = len(first) - 1
    colour = np.zeros(num_states, np.int8)  # 0 new, 1 on the stack, 2 done
    position = first[:-1].copy()
    stack = np.empty(num_states, np.int64)
    order = np.empty(num_states, np.int64)
    depth, left = 1, num_states
    stack[0] = start
    colour[start] = 1
    while depth:
        state = stack[depth - 1]
        if position[state] < first[state + 1]:
            child = next_state[position[state]]
            position[state] += 1
            if colour[child] == 1:
                return order[:0].copy()
            if colour[child] == 0:
                colour[child] = 1
                stack[depth] = child
                depth += 1
        else:
            colour[state] = 2
            depth -= 1
            left -= 1
            order[left] = state
    return order[left:].copy()


@numba.njit(cache=True)
def _shortest(first, next_state, weight, final):  # type: ignore[no-untyped-def]
    num_states = len(final)
    cost = final.copy()
    choice = np.full(num_states, -1, np.int64)
    for state in range(num_states - 1, -1, -1):
        for arc in range(first[state], first[state + 1]):
            total = weight[arc] + cost[next_state[arc]]
            if total < cost[state]:
                cost[state] = total
                choice[state] = arc
    path = np.empty(num_states, np.int64)
    length, state = 0, 0
    while choice[state] >= 0:
        path[length] = choice[state]
        state = next_state[choice[state]]
        length += 1
    return path[:length].copy()


def write_entry(stream: IO[bytes], utt: str, lattice: Lattice) -> None:
    stream.write(utt.encode() + b" ")
    lattice.write(stream)


def read_lattices(path: str | Path) -> Iterator[tuple[str, Lattice]]:
    """Utterance and lattice of each entry of a `lat.JOB.gz`."""
    try:
        with gzip.open(path, "rb") as opened:
            stream = cast(IO[bytes], opened)
            while key := _key(stream, path):
                yield key, Lattice.read(stream, f"the lattice of {key} in {path}")
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise KernelamError(f"{path} is not a whole gzip file ({error})") from None


def _key(stream: IO[bytes], path: str | Path) -> str:
    key = b""
    while (byte := stream.read(1)) != b" ":
        if not byte and not key:
            return ""
        if not byte or len(key) > 4096:
            raise KernelamError(f"{path} ends or is damaged where an utterance id should stand")
        key += byte
    return key.decode(errors="replace")
