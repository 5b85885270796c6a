import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from kernelam.hmm.topology import Topology
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.fst import ARC, Fst
from kernelam.kaldi.lattice import Lattice


@pytest.fixture(scope="session")
def transitions() -> TransitionModel:
    """Two phones of three states: 12 transition-ids, 6 pdfs."""
    topology = Topology.left_to_right([1, 2], [], num_nonsil_states=3)
    return TransitionModel.from_tree(topology, ContextTree.monophone([[1], [2]], {1: 3, 2: 3}))


def _random_graph(rng: np.random.Generator, num_states: int, num_arcs: int) -> Fst:
    source, target = rng.integers(0, num_states, (2, num_arcs))
    epsilon = (source < target) & (rng.random(num_arcs) < 0.4)
    arcs = np.empty(num_arcs, ARC)
    arcs["ilabel"] = np.where(epsilon, 0, rng.integers(1, 13, num_arcs))
    arcs["olabel"] = np.arange(1, num_arcs + 1)
    arcs["weight"] = rng.uniform(-0.5, 2.0, num_arcs)
    arcs["nextstate"] = target
    final = np.where(rng.random(num_states) < 0.4, rng.uniform(0.0, 2.0, num_states), np.inf)
    return Fst.of(0, final, source, arcs)


@pytest.fixture(scope="session")
def random_graph() -> Callable[[np.random.Generator, int, int], Fst]:
    """random_graph(rng, states, arcs): arcs anywhere, epsilons only forward, each with its own output label."""
    return _random_graph


def _graph_paths(graph: Fst, num_frames: int) -> Iterator[tuple[int, ...]]:
    def extend(state: int, left: int, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if not left and np.isfinite(graph.final[state]):
            yield path
        for arc in range(graph.offsets[state], graph.offsets[state + 1]):
            emits = int(graph.arcs["ilabel"][arc] != 0)
            if emits <= left:
                yield from extend(int(graph.arcs["nextstate"][arc]), left - emits, (*path, arc))

    return extend(graph.start, num_frames, ())


@pytest.fixture(scope="session")
def graph_paths() -> Callable[[Fst, int], Iterator[tuple[int, ...]]]:
    """graph_paths(graph, frames): every path of so many emitting arcs to a final state, as numbers of arcs."""
    return _graph_paths


def _random_lattice(seed: int) -> Lattice:
    """States 0 … n−1, arcs forward only; few words, and few transition-ids on an arc, so that many paths agree."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    arcs = [(s, t) for s, t in itertools.combinations(range(n), 2) for _ in range(rng.integers(0, 3))] + [(0, n - 1)]
    source, target = (np.array(column) for column in zip(*sorted(arcs), strict=True))
    m = len(arcs)
    compact = bool(rng.random() < 0.5)
    costs = (rng.integers(-8, 8, (2, m)) / 4 if rng.random() < 0.5 else rng.standard_normal((2, m))).astype(np.float32)
    final = np.where((rng.random(n) < 0.3) | (np.arange(n) == n - 1), rng.standard_normal((2, n)), np.inf)
    lengths = rng.integers(0, 3 if compact else 2, m + n) * (compact | (np.arange(m + n) < m))
    return Lattice(
        np.searchsorted(source, np.arange(n + 1)),
        rng.integers(0, 3, m).astype(np.int32),
        *(costs[0], costs[1], target.astype(np.int32), *final.astype(np.float32)),
        np.concatenate([[0], np.cumsum(lengths)]),
        rng.integers(1, 4, lengths.sum()).astype(np.int32),
        compact=compact,
    )


@pytest.fixture(scope="session")
def random_lattice() -> Callable[[int], Lattice]:
    """random_lattice(seed)"""
    return _random_lattice


@pytest.fixture(scope="session")
def lattices() -> list[Lattice]:
    return [_random_lattice(seed) for seed in range(300)]


def _all_paths(lattice: Lattice, state: int = 0) -> list[tuple[int, ...]]:
    paths: list[tuple[int, ...]] = [()] if np.isfinite(lattice.final_graph[state]) else []
    for arc in range(lattice.first[state], lattice.first[state + 1]):
        paths += [(arc, *rest) for rest in _all_paths(lattice, int(lattice.next[arc]))]
    return paths


@pytest.fixture(scope="session")
def all_paths() -> Callable[[Lattice], list[tuple[int, ...]]]:
    """all_paths(lattice): every path, as numbers of arcs."""
    return _all_paths
