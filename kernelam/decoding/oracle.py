"""How good a lattice could be, and how large it is."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.search import compiled
from kernelam.kaldi.lattice import Lattice


def depth(lattice: Lattice) -> tuple[int, int]:
    """The frames of all arcs and ends together, and those of a path: their ratio is how many arcs cross a frame."""
    ends = np.diff(lattice.begin)[lattice.num_arcs :]
    last = np.flatnonzero(np.isfinite(lattice.final_graph))
    return len(lattice.ids), int((arrivals(lattice) + ends)[last].max())


def arrivals(lattice: Lattice) -> NDArray[np.int64]:
    """By state: the frame at which it is reached."""
    frames = np.zeros(lattice.num_states, np.int64)
    _arrive(lattice.first, lattice.next, lattice.lengths, frames)
    return frames


@compiled
def _arrive(first, next_state, lengths, frames):  # type: ignore[no-untyped-def]
    for state in range(len(frames)):
        for arc in range(first[state], first[state + 1]):
            frames[next_state[arc]] = frames[state] + lengths[arc]


def oracle(lattice: Lattice, reference: Sequence[int]) -> tuple[int, list[int]]:
    """The least edit distance of any path to the reference, and the words of such a path."""
    ends = np.isfinite(lattice.final_graph)
    errors, words = _closest(lattice.first, lattice.word, lattice.next, ends, np.array(reference, np.int32))
    return int(errors), words.tolist()


@compiled
def _closest(first, word, next_state, ends, reference):  # type: ignore[no-untyped-def]
    """Edit distance from the start to each pair of state and position in the reference, by arcs and back."""
    size, far = len(reference) + 1, len(reference) + len(word) + 1
    distance = np.full((len(ends), size), far)
    arc_to, from_position = np.full((len(ends), size), -1), np.zeros((len(ends), size), np.int64)
    source = np.empty(len(word), np.int64)
    distance[0, 0] = 0
    for state in range(len(ends)):
        for position in range(1, size):  # a word of the reference left out
            if distance[state, position - 1] + 1 < distance[state, position]:
                distance[state, position] = distance[state, position - 1] + 1
                arc_to[state, position], from_position[state, position] = -1, position - 1
        for arc in range(first[state], first[state + 1]):
            after = next_state[arc]
            source[arc] = state
            for position in range(size):
                step = 1 if word[arc] and position + 1 < size and word[arc] != reference[position] else 0
                for to, cost in ((position, 1 if word[arc] else 0), (position + 1, step)):
                    possible = to < size and (to == position or word[arc])
                    if possible and distance[state, position] + cost < distance[after, to]:
                        distance[after, to] = distance[state, position] + cost
                        arc_to[after, to], from_position[after, to] = arc, position
    return _back(distance, ends, arc_to, from_position, source, word)


@compiled
def _back(distance, ends, arc_to, from_position, source, word):  # type: ignore[no-untyped-def]
    """The least distance, and the words on the way."""
    position, best = distance.shape[1] - 1, -1
    for state in range(len(ends)):
        if ends[state] and (best < 0 or distance[state, position] < distance[best, position]):
            best = state
    errors, words, count, state = distance[best, position], np.empty(len(ends), np.int32), 0, best
    while state or position:
        arc, before = arc_to[state, position], from_position[state, position]
        if arc >= 0:
            if word[arc]:
                words[count] = word[arc]
                count += 1
            state = source[arc]
        position = before
    return errors, words[:count][::-1].copy()
