"""Costs and best paths of lattices."""

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.search import compiled
from kernelam.kaldi.lattice import Lattice, gathered

Costs = NDArray[np.float64]


def costs(lattice: Lattice, lm_scale: float, acoustic_scale: float, penalty: float = 0.0) -> tuple[Costs, Costs]:
    """By arc and by state that ends a path: lm_scale · graph + acoustic_scale · acoustic cost + penalty · words."""
    arcs = lm_scale * lattice.graph.astype(float) + acoustic_scale * lattice.acoustic + penalty * (lattice.word != 0)
    return arcs, lm_scale * lattice.final_graph.astype(float) + acoustic_scale * lattice.final_acoustic


def best_path(lattice: Lattice, lm_weight: float, penalty: float = 0.0) -> NDArray[np.int64]:
    """The arcs of the path of least graph cost + acoustic cost / lm_weight + penalty · words."""
    return _shortest(lattice.first, lattice.next, *costs(lattice, 1.0, 1 / lm_weight, penalty))


def path_words(lattice: Lattice, path: NDArray[np.int64]) -> list[int]:
    return [int(word) for word in lattice.word[path] if word]


def path_times(lattice: Lattice, path: NDArray[np.int64]) -> list[tuple[int, int]]:
    """The frames where each word of a path begins and ends, in a lattice whose words have frames of their own."""
    ends = np.cumsum(lattice.lengths[path])
    spoken = lattice.word[path] != 0
    return list(zip((ends - lattice.lengths[path])[spoken].tolist(), ends[spoken].tolist(), strict=True))


def path_alignment(lattice: Lattice, path: NDArray[np.int64]) -> NDArray[np.int32]:
    """The transition-ids of a path, those of its end included."""
    end = lattice.next[path[-1]] if len(path) else 0
    return gathered(lattice.begin, lattice.ids, np.append(path, lattice.num_arcs + end))[1]


def path_costs(lattice: Lattice, path: NDArray[np.int64]) -> tuple[float, float]:
    """Graph and acoustic cost of a path, that of its end included."""
    end = lattice.next[path[-1]] if len(path) else 0
    graph = lattice.graph[path].sum(dtype=float) + lattice.final_graph[end]
    return float(graph), float(lattice.acoustic[path].sum(dtype=float) + lattice.final_acoustic[end])


def pruned(lattice: Lattice, acoustic_scale: float, beam: float) -> Lattice:
    """Without the arcs and states that are on no path, or on none within `beam` of the best."""
    arcs, ends = costs(lattice, 1.0, acoustic_scale)
    ahead = backward_costs(lattice.first, lattice.next, arcs, ends)
    behind = forward_costs(lattice.first, lattice.next, arcs)
    limit = min(ahead[0] + beam + 1e-4, np.finfo(float).max)
    keep = behind[lattice.source] + arcs + ahead[lattice.next] <= limit
    states = np.flatnonzero(behind + ahead <= limit)
    return lattice.selected(states, keep)


@compiled
def backward_costs(first, next_state, weight, final):  # type: ignore[no-untyped-def]
    """By state: the least cost from it to the end."""
    cost = final.copy()
    for state in range(len(final) - 1, -1, -1):
        for arc in range(first[state], first[state + 1]):
            cost[state] = min(cost[state], weight[arc] + cost[next_state[arc]])
    return cost


@compiled
def forward_costs(first, next_state, weight):  # type: ignore[no-untyped-def]
    """By state: the least cost from the start to it."""
    cost = np.full(len(first) - 1, np.inf)
    cost[0] = 0.0
    for state in range(len(cost)):
        for arc in range(first[state], first[state + 1]):
            cost[next_state[arc]] = min(cost[next_state[arc]], cost[state] + weight[arc])
    return cost


@compiled
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
