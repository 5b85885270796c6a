"""The union of lattices, against enumeration of their paths."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelam.decoding.lattice import costs, path_alignment
from kernelam.decoding.mbr import minimum_bayes_risk
from kernelam.decoding.union import side_by_side, union
from kernelam.errors import KernelamError
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.lattices import read_lattices, write_lattice

AllPaths = Callable[[Lattice], list[tuple[int, ...]]]
SCALES = [(1.0, 0.0), (7.0, 0.5), (12.5, -1.0)]
WEIGHTS = [0.5, 0.2, 0.3]
Posteriors = dict[tuple[tuple[int, ...], tuple[int, ...]], float]


def posteriors(lattice: Lattice, paths: list[tuple[int, ...]], lm_weight: float, penalty: float) -> Posteriors:
    """By words and transition-ids: the sum of the probabilities of paths that have them, not normalised."""
    arcs, ends = costs(lattice, 1.0, 1 / lm_weight, penalty)
    sums: Posteriors = defaultdict(float)
    for path in paths:
        numbers = np.array(path, int)
        cost = arcs[numbers].sum() + ends[lattice.next[path[-1]] if path else 0]
        words = tuple(word for word in lattice.word[numbers].tolist() if word)
        sums[words, tuple(path_alignment(lattice, numbers).tolist())] += np.exp(-cost)
    return sums


def test_paths_have_the_weighted_sum_of_their_probabilities(lattices: list[Lattice], all_paths: AllPaths) -> None:
    for seed in range(0, 300, 3):
        parts = lattices[seed : seed + 3]
        expected: Posteriors = defaultdict(float)
        for part, scale, weight in zip(parts, SCALES, WEIGHTS, strict=True):
            own = posteriors(part, all_paths(part), *scale)
            for path, probability in own.items():
                expected[path] += weight * probability / sum(own.values())
        joined = union(parts, SCALES, WEIGHTS)
        joined.checked(0, "the union")
        assert not joined.acoustic.any()
        found = posteriors(joined, all_paths(joined), 1.0, 0.0)
        assert found == pytest.approx(expected, abs=1e-6)
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-6)


def test_every_arc_is_on_a_path_and_has_a_probability(lattices: list[Lattice], all_paths: AllPaths) -> None:
    """States that lead nowhere would have none."""
    joined = union(lattices[:50], [(3.0, 0.2)] * 50, [0.02] * 50)
    assert {arc for path in all_paths(joined) for arc in path} == set(range(joined.num_arcs))
    assert joined.graph.min() > -1e-6
    leaving = np.bincount(joined.source, np.exp(-joined.graph.astype(float)), joined.num_states)
    assert leaving + np.exp(-joined.final_graph.astype(float)) == pytest.approx(np.ones(joined.num_states), abs=1e-6)


def test_large_costs_lose_no_precision(lattices: list[Lattice]) -> None:
    """Two million more on every path change nothing, though single precision has steps of a quarter there."""
    quarters = [
        lattice for lattice in lattices if not (lattice.graph * 4 % 1).any() and not np.isfinite(lattice.final_graph[0])
    ]
    assert len(quarters) > 50
    for lattice in quarters:
        far = replace(lattice, graph=lattice.graph + np.float32(2**21) * (lattice.source == 0))
        one, two = (union([part], [(7.0, 0.5)], [1.0]) for part in (lattice, far))
        assert two.graph == pytest.approx(one.graph, abs=1e-6)


def test_a_union_with_itself_says_what_the_lattice_says(corpora: Path) -> None:
    for utt, lattice in read_lattices(corpora / "kaldi-timit-sample/exp/tri3/decode_dev/lat.1.gz"):
        own = minimum_bayes_risk(lattice, 7.0, 0.5)
        for lattices in ([lattice], [lattice, lattice]):
            weights = [1.0] if len(lattices) == 1 else [0.3, 0.7]
            found = minimum_bayes_risk(union(lattices, [(7.0, 0.5)] * len(lattices), weights), 1.0)
            assert [item.word for item in found] == [item.word for item in own], utt
            assert np.array(found) == pytest.approx(np.array(own), abs=1e-3)


def test_the_heavier_system_decides() -> None:
    """Two systems that are each sure of another word."""
    sure = [_line([word]) for word in (1, 2)]
    for weight, word in ((0.6, 1), (0.4, 2)):
        (found,) = minimum_bayes_risk(union(sure, [(1.0, 0.0)] * 2, [weight, 1 - weight]), 1.0)
        assert (found.word, found.begin, found.end) == (word, 0, 1)
        assert found.confidence == pytest.approx(0.6, abs=1e-6)


def test_a_union_is_written_and_read(lattices: list[Lattice], tmp_path: Path) -> None:
    joined = union(lattices[:2], SCALES[:2], [0.5, 0.5])
    with open(tmp_path / "lat", "wb") as stream:
        write_lattice(stream, "u", joined)
    ((_, again),) = read_lattices(tmp_path / "lat")
    for name in ("first", "word", "graph", "acoustic", "next", "final_graph", "final_acoustic", "begin", "ids"):
        assert np.array_equal(getattr(again, name), getattr(joined, name)), name


@pytest.mark.parametrize("weights", [[0.5, 0.6], [0.5, 0.4], [1.5, -0.5], [1.0, 0.0], [np.nan, 1.0]])
def test_weights_sum_to_one(weights: list[float]) -> None:
    with pytest.raises(KernelamError, match="the weights of systems are above 0 and sum to 1, not "):
        union([_line([1]), _line([2])], [(1.0, 0.0)] * 2, weights)


def test_side_by_side() -> None:
    """In any order; what an archive lacks comes without it, and no more is read ahead than need be."""
    read: list[str] = []

    def archive(name: str, *utts: str) -> Iterator[tuple[str, Lattice]]:
        for utt in utts:
            read.append(name + utt)
            yield utt, _line([1])

    found = side_by_side({"x": archive("x", "a", "b", "c", "d"), "y": archive("y", "a", "c", "b")})
    utt, lattices = next(found)
    assert (utt, list(lattices), read) == ("a", ["x", "y"], ["xa", "ya"])
    rest = {utt: sorted(lattices) for utt, lattices in found}
    assert rest == {"b": ["x", "y"], "c": ["x", "y"], "d": ["x"]}


def test_other_numbers_of_frames() -> None:
    archives = {name: iter([("u", _line(words))]) for name, words in {"exp/a": [1, 2], "exp/b": [1, 2, 3]}.items()}
    with pytest.raises(KernelamError, match="utterance u has 2 frames in exp/a and 3 in exp/b: "):
        list(side_by_side(archives))


def _line(words: list[int]) -> Lattice:
    """One path, a frame a word."""
    size = len(words)
    final = np.where(np.arange(size + 1) == size, 0, np.inf).astype(np.float32)
    return Lattice(
        np.minimum(np.arange(size + 2), size),
        np.array(words, np.int32),
        *(np.ones(size, np.float32), np.ones(size, np.float32), np.arange(1, size + 1, dtype=np.int32)),
        *(final, final, np.minimum(np.arange(2 * size + 2), size), np.ones(size, np.int32)),
    )
