"""Archives of Kaldi's Lattices and CompactLattices, in binary or text.

An archive is `key lattice key lattice …`. In binary a lattice is an OpenFst vector FST: the number 2125659606, the
names `vector` and `lattice4` or `compactlattice44`, version, flags, properties, start state, number of states, and 0;
then by state its final weight, its number of arcs and the arcs, each two labels, weight, next state. A weight is graph
and acoustic cost, in a CompactLattice followed by the length and the items of a string of transition-ids. In text it
begins on a new line and ends at an empty one; lines are `from to ilabel olabel weight` (a CompactLattice has one label)
or `state weight`, the weight `graph,acoustic` or `graph,acoustic,1_2_3`, left out where it is one.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

import numba
import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.kaldi.lattice import Lattice

_MAGIC = struct.pack("<i", 2125659606)
_TYPES = {b"lattice4": False, b"compactlattice44": True}
_FIELDS = struct.Struct("<iiQqqq")  # version, flags, properties, start, states, arcs
_LONGEST_KEY = 4096
_CHUNK = 1 << 22


def write_lattice(stream: IO[bytes], utt: str, lattice: Lattice, binary: bool = True) -> None:
    """An entry of an archive. Costs in text have the digits that make them read back the same."""
    stream.write(utt.encode() + b" ")
    if binary:
        _binary(lattice, stream)
    else:
        _text(lattice, stream)


def read_lattices(path: str | Path, sort: bool = True) -> Iterator[tuple[str, Lattice]]:
    """Utterance and lattice of each entry of an archive, gzipped or not.

    Without `sort` the states stay as they are in the file, and only writing is safe.
    """
    try:
        with open(path, "rb") as plain:
            zipped = plain.peek(2)[:2] == b"\x1f\x8b"
            yield from _entries(cast(IO[bytes], gzip.GzipFile(fileobj=plain)) if zipped else plain, path, sort)
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise KernelamError(f"{path} cannot be read to its end ({error}); decode again") from None


def _entries(stream: IO[bytes], path: str | Path, sort: bool) -> Iterator[tuple[str, Lattice]]:
    """Reads on whenever the data in memory end inside a lattice."""
    data, position, seen = b"", 0, set()
    while True:
        entry = _entry(data, position, path)
        if entry is not None:
            key, start, lattice, position = entry
            if key in seen:
                raise KernelamError(f"{path}: utterance {key} occurs twice")
            seen.add(key)
            ordered = lattice.checked(start, f"the lattice of {key} in {path}")
            yield key, ordered if sort or start else lattice
            continue
        more = stream.read(max(_CHUNK, len(data) - position))
        if not more:
            break
        data, position = data[position:] + more, 0
    if rest := data[position : position + _LONGEST_KEY].strip():
        key = rest.split()[0].decode(errors="replace")
        raise KernelamError(f"{path} ends inside the lattice of {key[:80]}; decode again")


def _entry(data: bytes, position: int, path: str | Path) -> tuple[str, int, Lattice, int] | None:
    """Key, start state and lattice of the entry at `position`, and where the next one is; None if it is not whole."""
    end = data.find(b" ", position, position + _LONGEST_KEY)
    if end < 0 and len(data) - position < _LONGEST_KEY:
        return None
    try:
        key = data[position:end].decode()
    except UnicodeDecodeError:
        key = ""
    if not key.isprintable() or not key or end < 0:
        raise KernelamError(f"{path} is damaged or no archive of lattices: no utterance id where one should stand")
    where = f"the lattice of {key} in {path}"
    if _MAGIC.startswith(data[end + 1 : end + 1 + len(_MAGIC)]) and len(data) < end + 1 + len(_MAGIC):
        return None
    if data.startswith(_MAGIC, end + 1):
        parsed = _parse_binary(data, end + 1 + len(_MAGIC), where)
        return parsed and (key, *parsed)
    stop = data.find(b"\n\n", end + 1)
    return None if stop < 0 else (key, *_parse_text(data[end + 1 : stop], where), stop + 2)


def _parse_binary(data: bytes, position: int, where: str) -> tuple[int, Lattice, int] | None:
    names = []
    for _ in range(2):
        size = int.from_bytes(data[position : position + 4], "little")
        if size > 64:
            raise KernelamError(f"{where} is damaged: the name of its type is missing")
        names.append(data[position + 4 : position + 4 + size])
        position += 4 + size
    if position + _FIELDS.size > len(data):
        return None
    if names[0] != b"vector" or names[1] not in _TYPES:
        kind = " ".join(name.decode(errors="replace") for name in names)
        raise KernelamError(f"{where} is of the type {kind!r}; vector lattice4 and compactlattice44 can be read")
    _, flags, properties, start, num_states, _ = _FIELDS.unpack_from(data, position)
    if flags or num_states < 0:
        raise KernelamError(f"{where} is damaged, or has symbols in the file")
    position += _FIELDS.size
    numbers = np.frombuffer(data, "<i4", (len(data) - position) // 4, position)
    if num_states > len(numbers):
        return None
    used, ends, arcs = _places(numbers, num_states, _TYPES[names[1]])
    if used == _DAMAGED:
        raise KernelamError(f"{where} is damaged: a number of arcs or of transition-ids makes no sense")
    if used == _CUT_SHORT:
        return None
    return start, _from_places(numbers, ends, arcs, _TYPES[names[1]], properties), position + 4 * used


_CUT_SHORT, _DAMAGED = -1, -2


@numba.njit(cache=True)
def _places(numbers, num_states, compact):  # type: ignore[no-untyped-def]
    """How many 32-bit numbers a lattice takes, and where in it each state and each arc begins."""
    states, arcs = np.empty(num_states, np.int64), np.empty(len(numbers) // 5, np.int64)
    none = arcs[:0]
    at = num_arcs = 0
    for state in range(num_states):
        states[state] = at
        at += 2
        if compact and at < len(numbers):
            at += 1 + numbers[at] if numbers[at] >= 0 else len(numbers)
        if at + 2 > len(numbers):
            return _CUT_SHORT, none, none
        count = numbers[at]
        if count < 0 or numbers[at + 1] != 0:
            return _DAMAGED, none, none
        at += 2
        for _ in range(count):
            if at + 5 + compact > len(numbers):
                return _CUT_SHORT, none, none
            arcs[num_arcs] = at
            num_arcs += 1
            size = numbers[at + 4] if compact else 0
            if size < 0:
                return _DAMAGED, none, none
            at += 5 + compact + size
    return (at if at <= len(numbers) else _CUT_SHORT), states, arcs[:num_arcs].copy()


def _from_places(
    numbers: NDArray[np.int32], ends: NDArray[np.int64], arcs: NDArray[np.int64], compact: bool, properties: int
) -> Lattice:
    def costs(places: NDArray[np.int64]) -> NDArray[np.float32]:
        return numbers[places].view(np.float32)

    if compact:
        strings, sizes = np.concatenate([arcs + 5, ends + 3]), numbers[np.concatenate([arcs + 4, ends + 2])]
    else:
        strings, sizes = np.concatenate([arcs, ends]), np.concatenate([numbers[arcs] != 0, np.zeros(len(ends), bool)])
    begin = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    after = arcs + 4 + (1 + sizes[: len(arcs)] if compact else 0)
    return Lattice(
        np.searchsorted(arcs, np.append(ends, len(numbers))),
        *(numbers[arcs + 1], costs(arcs + 2), costs(arcs + 3), numbers[after], costs(ends), costs(ends + 1)),
        *(begin, numbers[np.repeat(strings - begin[:-1], sizes) + np.arange(begin[-1])]),
        compact=compact,
        properties=properties,
    )


def _parse_text(text: bytes, where: str) -> tuple[int, Lattice]:
    """Start state and lattice; arcs may stand in any order, the first line is of the start state."""
    lines = [line.split() for line in text.decode(errors="replace").split("\n") if line.strip()]
    try:
        rows = [_parse_row(line) for line in lines]
    except ValueError as error:
        raise KernelamError(f"{where} is damaged: {error}") from None
    number = {state: index for index, state in enumerate(sorted({s for row in rows for s in row.states}))}
    arcs = sorted((row for row in rows if len(row.states) == 2), key=lambda row: number[row.states[0]])
    final = {row.states[0]: row for row in rows if len(row.states) == 1}
    ends = [final.get(state, _Row((state,), 0, np.inf, np.inf, [], False)) for state in number]
    strings = [row.ids for row in (*arcs, *ends)]
    with np.errstate(over="ignore"):  # costs that are infinite are found later
        lattice = Lattice(
            np.searchsorted([number[row.states[0]] for row in arcs], np.arange(len(number) + 1)),
            np.array([row.word for row in arcs], np.int32),
            np.array([row.graph for row in arcs], np.float32),
            np.array([row.acoustic for row in arcs], np.float32),
            np.array([number[row.states[1]] for row in arcs], np.int32),
            np.array([row.graph for row in ends], np.float32),
            np.array([row.acoustic for row in ends], np.float32),
            np.cumsum([0, *map(len, strings)]),
            np.array([label for ids in strings for label in ids], np.int32),
            compact=any(row.compact for row in rows),
        )
    return number[rows[0].states[0]] if rows else 0, lattice


class _Row(NamedTuple):
    """A line of a lattice in text: of an arc between two states, or of the end in one."""

    states: tuple[int, ...]
    word: int
    graph: float
    acoustic: float
    ids: list[int]
    compact: bool


def _parse_row(row: list[str]) -> _Row:
    weight = row.pop().split(",") if "," in row[-1] else ["0", "0"]
    if len(row) not in (1, 3, 4) or len(weight) not in (2, 3):
        raise ValueError(f"{' '.join(row)[:40]!r} is no line of a lattice")
    labels = row[2:-1] if len(row) == 4 else "".join(weight[2:]).split("_")
    ids = [_label(label) for label in labels if label not in ("", "0")]
    states = (int(row[0]),) if len(row) == 1 else (int(row[0]), int(row[1]))
    compact = len(weight) == 3 or len(row) == 3
    return _Row(states, _label(row[-1]) if len(row) > 1 else 0, float(weight[0]), float(weight[1]), ids, compact)


def _label(text: str) -> int:
    label = int(text)
    if not 0 <= label < 1 << 31:
        raise ValueError(f"{text[:20]} is no label")
    return label


def _binary(lattice: Lattice, stream: IO[bytes]) -> None:
    """In binary, as Kaldi's lattice programs read it."""
    kind = next(name for name, compact in _TYPES.items() if compact == lattice.compact)
    stream.write(_MAGIC + b"".join(struct.pack("<i", len(name)) + name for name in (b"vector", kind)))
    stream.write(_FIELDS.pack(2, 0, lattice.properties, 0, lattice.num_states, 0))
    sizes = np.diff(lattice.begin) * lattice.compact
    arc_sizes, end_sizes = (
        sizes[: lattice.num_arcs] + 5 + lattice.compact,
        sizes[lattice.num_arcs :] + 4 + lattice.compact,
    )
    before = np.concatenate([[0], np.cumsum(arc_sizes)])
    ends = np.concatenate([[0], np.cumsum(end_sizes)])[:-1] + before[lattice.first[:-1]]
    source = lattice.source
    arcs = before[:-1] + np.cumsum(end_sizes)[source]
    numbers = np.zeros(before[-1] + end_sizes.sum(), "<i4")
    if lattice.compact:
        numbers[arcs], numbers[ends + 2], numbers[arcs + 4] = (
            lattice.word,
            sizes[lattice.num_arcs :],
            sizes[: lattice.num_arcs],
        )
        strings = np.concatenate([arcs + 5, ends + 3])
        numbers[np.repeat(strings - lattice.begin[:-1], sizes) + np.arange(lattice.begin[-1])] = lattice.ids
    else:
        numbers[arcs[lattice.lengths > 0]] = lattice.ids
    numbers[arcs + 1], numbers[arcs + arc_sizes - 1] = lattice.word, lattice.next
    numbers[ends + end_sizes - 2] = np.diff(lattice.first)
    for place, costs in (
        (arcs + 2, (lattice.graph, lattice.acoustic)),
        (ends, (lattice.final_graph, lattice.final_acoustic)),
    ):
        for number, array in enumerate(costs):
            numbers[place + number] = np.ascontiguousarray(array, "<f4").view("<i4")
    stream.write(numbers.tobytes())


def _text(lattice: Lattice, stream: IO[bytes]) -> None:
    """In text; costs have the digits that make them read back the same."""
    lines = [b""]
    for state in range(lattice.num_states):
        for arc in range(lattice.first[state], lattice.first[state + 1]):
            weight = _weight(lattice, lattice.graph[arc], lattice.acoustic[arc], arc)
            ids = lattice.ids[lattice.begin[arc] : lattice.begin[arc + 1]]
            labels = [lattice.word[arc]] if lattice.compact else [*(ids if len(ids) else [0]), lattice.word[arc]]
            lines.append("\t".join(map(str, [state, lattice.next[arc], *labels, weight])).rstrip().encode())
        if np.isfinite(lattice.final_graph[state]):
            ending = _weight(
                lattice, lattice.final_graph[state], lattice.final_acoustic[state], lattice.num_arcs + state
            )
            lines.append(f"{state}\t{ending}".rstrip().encode())
    stream.write(b"\n".join(lines) + b"\n\n")


def _weight(lattice: Lattice, graph: np.float32, acoustic: np.float32, string: int) -> str:
    ids = lattice.ids[lattice.begin[string] : lattice.begin[string + 1]] if lattice.compact else ()
    if graph == 0 and acoustic == 0 and not len(ids):
        return ""
    return ",".join([str(graph), str(acoustic), *(["_".join(map(str, ids))] if lattice.compact else [])])
