"""Forced alignment, against Kaldi's own output and enumeration of all paths."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelam.decoding.align import Aligner, equal_alignment
from kernelam.errors import KernelamError
from kernelam.hmm.graph import TrainingGraphs
from kernelam.hmm.lang import Lang
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.ark import read_ark
from kernelam.kaldi.fst import ARC, Fst
from kernelam.kaldi.tables import read_table

# features that are likelihoods already
MODEL: Any = SimpleNamespace(log_likelihoods=lambda features, classes: features[:, classes])


def numbers(path: Path) -> dict[str, list[int]]:
    return {utt: [int(field) for field in row.split()] for utt, row in read_table(path).items()}


def graph_cost(graph: Fst, alignment: np.ndarray) -> float:
    """The cost of the best path with exactly these input labels; infinite if the graph does not accept them."""
    source, target, weight = graph.source, graph.arcs["nextstate"], graph.arcs["weight"].astype(float)
    epsilon = graph.arcs["ilabel"] == 0
    cost = np.full(len(graph.final), np.inf)
    cost[graph.start] = 0.0
    for label in [0, *alignment]:
        if label:
            arcs = graph.arcs["ilabel"] == label
            before, cost = cost, np.full(len(graph.final), np.inf)
            np.minimum.at(cost, target[arcs], before[source[arcs]] + weight[arcs])
        while True:
            closed = cost.copy()
            np.minimum.at(closed, target[epsilon], cost[source[epsilon]] + weight[epsilon])
            if (closed == cost).all():
                break
            cost = closed
    return float((cost + graph.final).min())


def test_kaldi_aligns_alike(corpora: Path) -> None:
    sample = corpora / "kaldi-timit-sample"
    expected = sample / "expected/tri1/align-compiled-mapped"
    tree, transitions = ContextTree.load(sample / "exp/tri1/tree"), TransitionModel.load(sample / "exp/tri1/final.mdl")
    graphs, aligner = TrainingGraphs(Lang(sample / "data/lang"), tree, transitions), Aligner(transitions, 0.1)
    text, alignments = numbers(expected / "text.int"), numbers(expected / "ali.int.txt")
    scores = read_table(expected / "scores.txt")
    for utt, likelihoods in read_ark(sample / "expected/tri1/loglikes/test.ark"):
        graph = graphs.compile(text[utt])
        alignment = aligner.align(utt, graph, MODEL, likelihoods)
        assert alignment is not None
        assert alignment.tolist() == alignments.pop(utt)
        acoustic = likelihoods[np.arange(len(alignment)), transitions.pdf[alignment]].sum(dtype=float)
        assert 0.1 * acoustic - graph_cost(graph, alignment) == pytest.approx(float(scores[utt]), abs=5e-3)
    assert not alignments


def test_best_of_all_paths(
    transitions: TransitionModel,
    random_graph: Callable[[np.random.Generator, int, int], Fst],
    graph_paths: Callable[[Fst, int], Iterator[tuple[int, ...]]],
) -> None:
    aligned = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, int(rng.integers(2, 6)), int(rng.integers(3, 12)))
        likelihoods = (3 * rng.standard_normal((int(rng.integers(1, 5)), 6))).astype(np.float32)
        costs = {}
        for path in graph_paths(graph, len(likelihoods)):
            labels = graph.arcs["ilabel"][list(path)]
            labels = labels[labels > 0]
            acoustic = likelihoods[np.arange(len(labels)), transitions.pdf[labels]].sum(dtype=float)
            cost = graph.arcs["weight"][list(path)].sum(dtype=float) + graph.final[graph.arcs["nextstate"][path[-1]]]
            costs[tuple(labels.tolist())] = min(costs.get(tuple(labels.tolist()), np.inf), cost - 0.3 * acoustic)
        alignment = Aligner(transitions, 0.3).align("u", graph, MODEL, likelihoods)
        if not costs:
            assert alignment is None
            continue
        assert alignment is not None
        assert alignment.dtype == np.int32
        assert costs[tuple(alignment.tolist())] == pytest.approx(min(costs.values()), abs=1e-5)
        aligned += 1
    assert aligned > 30


def phones(count: int) -> Fst:
    """`count` times phone 1 or 2, in three states each; transition-ids 2n − 1 stay in the nth state, 2n leave it."""
    source, arcs = [], []
    for number in range(count):
        enter, leave = 7 * number, 7 * (number + 1)
        for phone in range(2):
            states = [enter + 1 + 3 * phone + state for state in range(3)]
            source.append(enter)
            arcs.append((0, phone + 1, 0.7, states[0]))
            for position, (state, after) in enumerate(zip(states, [*states[1:], leave], strict=True)):
                label = 6 * phone + 2 * position + 1
                source += [state, state]
                arcs += [(label, 0, 0.3, state), (label + 1, 0, 1.4, after)]
    final = np.full(7 * count + 1, np.inf)
    final[-1] = 0.0
    return Fst.of(0, final, np.array(source), np.array(arcs, ARC))


def test_too_few_frames(transitions: TransitionModel) -> None:
    graph, aligner = phones(3), Aligner(transitions)
    assert aligner.align("u", graph, MODEL, np.zeros((8, 6), np.float32)) is None
    alignment = aligner.align("u", graph, MODEL, np.zeros((9, 6), np.float32))
    assert alignment is not None
    assert np.isfinite(graph_cost(graph, alignment))
    assert equal_alignment(graph, 8) is None


def test_equal_alignments_are_paths(transitions: TransitionModel) -> None:
    for count in (1, 2, 5):
        graph = phones(count)
        for num_frames in (3 * count, 3 * count + 1, 12 * count, 100):
            alignment = equal_alignment(graph, num_frames)
            assert alignment is not None
            assert len(alignment) == num_frames
            assert np.isfinite(graph_cost(graph, alignment))
            leaves = np.flatnonzero(~transitions.is_self_loop[alignment])
            lengths = np.diff(leaves, prepend=-1)
            assert len(lengths) == 3 * count
            assert lengths.max() - lengths.min() <= 1


def test_bad_likelihoods_are_sentences(transitions: TransitionModel) -> None:
    likelihoods = np.zeros((9, 6), np.float32)
    likelihoods[4, 1] = np.nan
    with pytest.raises(KernelamError, match="utterance utt-1: the likelihoods of frame 4 are not finite"):
        Aligner(transitions).align("utt-1", phones(1), MODEL, likelihoods)
    with pytest.raises(KernelamError, match="utterance utt-1 has no frames"):
        Aligner(transitions).align("utt-1", phones(1), MODEL, likelihoods[:0])
