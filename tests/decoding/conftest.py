from collections.abc import Callable, Iterator

import numpy as np
import pytest

from kernelam.hmm.topology import Topology
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.fst import ARC, Fst


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
