"""The best word strings of a lattice, each once."""

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.determinise import determinise
from kernelam.decoding.lattice import backward_costs, costs
from kernelam.kaldi.lattice import Lattice
from kernelam.progress import warn


def is_deterministic(lattice: Lattice) -> bool:
    """Whether every arc has a word, and no two arcs of a state the same."""
    pairs = lattice.source.astype(np.int64) << 32 | lattice.word
    return bool((lattice.word > 0).all()) and len(np.unique(pairs)) == len(pairs)


def best_strings(
    lattice: Lattice, lm_weight: float, penalty: float = 0.0
) -> Iterator[tuple[Lattice, NDArray[np.int64]]]:
    """The paths of the different word strings, the best first, as a lattice and the numbers of its arcs.

    A* search: the cost of what lies ahead is known, so that a path is only followed when it is the next best.
    """
    if not is_deterministic(lattice):
        lattice, beam = determinise(lattice, 1 / lm_weight, np.inf)
        if np.isfinite(beam):
            warn(f"only word strings within {beam:.1f} of the best are known: more would take too much memory")
    weight, ends = costs(lattice, 1.0, 1 / lm_weight, penalty)
    ahead = backward_costs(lattice.first, lattice.next, weight, ends)
    arcs: list[tuple[int, int]] = [(-1, -1)]  # of all paths begun: the arc, and the number of what comes before it
    queue = [(float(ahead[0]), 0, 0, 0.0)]  # cost of the whole path, number of its last arc, state, cost so far
    while queue:
        _, number, state, cost = heapq.heappop(queue)
        if state < 0:
            yield lattice, _trace(arcs, number)
            continue
        if np.isfinite(ends[state]):
            heapq.heappush(queue, (cost + float(ends[state]), number, -1, 0.0))
        for arc in range(lattice.first[state], lattice.first[state + 1]):
            after, behind = int(lattice.next[arc]), cost + float(weight[arc])
            if np.isfinite(ahead[after]):
                heapq.heappush(queue, (behind + float(ahead[after]), len(arcs), after, behind))
                arcs.append((arc, number))


def _trace(arcs: list[tuple[int, int]], number: int) -> NDArray[np.int64]:
    path = []
    while number:
        arc, number = arcs[number]
        path.append(arc)
    return np.array(path[::-1], np.int64)
