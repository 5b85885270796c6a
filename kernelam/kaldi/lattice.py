"""A lattice as arrays: an acyclic graph of the paths a search kept, graph and acoustic costs apart."""

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError

EXPANDED_MUTABLE = 3  # the only properties of OpenFst's that we claim; it works out the others


@dataclass
class Lattice:
    """State s has the arcs first[s] … first[s+1] − 1; arc a has the transition-ids ids[begin[a] : begin[a+1]].

    The ids of the end in state s stand behind those of all A arcs, at begin[A + s]. States are in topological order and
    the first is the start. Costs are negated log-probabilities, acoustic ones without a scale; a state that is not
    final ends at infinite cost. In Kaldi's Lattice an arc has at most one transition-id.
    """

    first: NDArray[np.int64]
    word: NDArray[np.int32]
    graph: NDArray[np.float32]
    acoustic: NDArray[np.float32]
    next: NDArray[np.int32]
    final_graph: NDArray[np.float32]
    final_acoustic: NDArray[np.float32]
    begin: NDArray[np.int64]
    ids: NDArray[np.int32]
    compact: bool = True
    properties: int = EXPANDED_MUTABLE

    @property
    def num_states(self) -> int:
        return len(self.final_graph)

    @property
    def num_arcs(self) -> int:
        return len(self.next)

    @property
    def source(self) -> NDArray[np.int64]:
        """By arc: the state it leaves."""
        return np.repeat(np.arange(self.num_states), np.diff(self.first))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """By arc: how many frames it lasts."""
        return np.diff(self.begin)[: self.num_arcs]

    def checked(self, start: int, where: str) -> "Lattice":
        """Itself if it is sound and in topological order, else sorted; `where` names it in errors."""
        if not 0 <= start < self.num_states:
            raise KernelamError(f"{where} has no states; the utterance was not decoded")
        if self.num_arcs and (self.next.min() < 0 or self.next.max() >= self.num_states):
            raise KernelamError(f"{where} is damaged: an arc leads to a state that is not there")
        if min(self.word.min(initial=0), self.ids.min(initial=0)) < 0:
            raise KernelamError(f"{where} is damaged: a label is negative")
        ends = np.isfinite(self.final_graph) & np.isfinite(self.final_acoustic)
        not_final = (self.final_graph == np.inf) & (self.final_acoustic == np.inf)
        if not (np.isfinite(self.graph).all() and np.isfinite(self.acoustic).all() and (ends | not_final).all()):
            raise KernelamError(f"{where} is damaged: a cost is not a number")
        if start == 0 and (self.next > self.source).all():
            return self._with_end(ends, where)
        order = _topological(self.first, self.next, start)
        if not len(order):
            raise KernelamError(f"{where} has a cycle")
        return self.selected(order, np.ones(self.num_arcs, bool))._with_end(ends[order], where)

    def _with_end(self, ends: NDArray[np.bool_], where: str) -> "Lattice":
        if not _reaches(self.first, self.next, ends):
            raise KernelamError(f"{where} has no path to a final state")
        return self

    def selected(self, order: NDArray[np.int64], keep: NDArray[np.bool_]) -> "Lattice":
        """The states `order`, in that order, and those of the arcs `keep` that leave and enter one of them."""
        number = np.full(self.num_states, -1, np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        source = number[self.source]
        arcs = np.flatnonzero(keep & (source >= 0) & (number[self.next] >= 0))
        arcs = arcs[np.argsort(source[arcs], kind="stable")]
        begin, ids = gathered(self.begin, self.ids, np.concatenate([arcs, self.num_arcs + order]))
        return Lattice(
            np.searchsorted(source[arcs], np.arange(len(order) + 1)),
            *(self.word[arcs], self.graph[arcs], self.acoustic[arcs], number[self.next[arcs]]),
            *(self.final_graph[order], self.final_acoustic[order], begin, ids),
            compact=self.compact,
        )


def gathered(
    begin: NDArray[np.int64], ids: NDArray[np.int32], which: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The strings `which` of those that lie end to end in `ids`, likewise."""
    lengths = np.diff(begin)[which]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return offsets, ids[np.repeat(begin[which] - offsets[:-1], lengths) + np.arange(offsets[-1])]


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
def _reaches(first, next_state, ends):  # type: ignore[no-untyped-def]
    """Whether a final state can be reached; states are in topological order."""
    reached = np.zeros(len(ends), np.bool_)
    reached[0] = True
    for state in range(len(ends)):
        if reached[state]:
            if ends[state]:
                return True
            for arc in range(first[state], first[state + 1]):
                reached[next_state[arc]] = True
    return False
