"""Best paths and pruning, against enumeration of all paths and Kaldi's lattice-best-path."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelam.decoding.lattice import best_path, path_alignment, path_costs, path_words, pruned
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.lattices import read_lattices
from kernelam.kaldi.tables import read_table

AllPaths = Callable[[Lattice], list[tuple[int, ...]]]


def cost(lattice: Lattice, path: tuple[int, ...], lm_weight: float, penalty: float = 0.0) -> float:
    arcs = np.array(path, int)
    graph, acoustic = path_costs(lattice, arcs)
    return graph + acoustic / lm_weight + penalty * len(path_words(lattice, arcs))


def test_best_path_is_that_of_enumeration(lattices: list[Lattice], all_paths: AllPaths) -> None:
    for lattice, lm_weight, penalty in itertools.product(lattices[:40], (1.0, 7.0, 15.0), (0.0, 0.5, -1.0)):
        found = tuple(best_path(lattice, lm_weight, penalty))
        least = min(cost(lattice, path, lm_weight, penalty) for path in all_paths(lattice))
        assert cost(lattice, found, lm_weight, penalty) == pytest.approx(least, abs=1e-4)


def test_pruning_keeps_what_is_within_the_beam(lattices: list[Lattice], all_paths: AllPaths) -> None:
    for lattice, beam in itertools.product(lattices[:60], (0.0, 1.0, 3.0)):
        small = pruned(lattice, 0.5, beam)
        costs = [cost(lattice, path, 2.0) for path in all_paths(lattice)]
        kept = {path: cost(small, path, 2.0) for path in all_paths(small)}
        limit = min(costs) + beam
        within = sorted(value for value in costs if value < limit - 1e-3)
        assert sorted(value for value in kept.values() if value < limit - 1e-3) == pytest.approx(within, abs=1e-4)
        needed = {arc for path, value in kept.items() if value < limit + 1e-3 for arc in path}
        assert needed == set(range(small.num_arcs))


@pytest.mark.parametrize("lm_scale", [1, 5, 7, 10])
def test_kaldi_finds_the_same(corpora: Path, lm_scale: int) -> None:
    sample = corpora / "kaldi-timit-sample"
    expected = sample / "expected/tri1/lattice-tools"
    words, alignments = (
        {utt: row.split() for utt, row in read_table(expected / f"best-path.lmscale{lm_scale}.{kind}.int.txt").items()}
        for kind in ("words", "ali")
    )
    for job in (1, 2, 3):
        for utt, lattice in read_lattices(sample / f"exp/tri1/decode_test/lat.{job}.gz"):
            path = best_path(lattice, lm_scale)
            assert path_words(lattice, path) == [int(word) for word in words.pop(utt)]
            assert path_alignment(lattice, path).tolist() == [int(label) for label in alignments[utt]]
    assert not words
