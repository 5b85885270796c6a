import gzip
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelam.decoding.lattice import Lattice, read_lattices, write_entry
from kernelam.errors import KernelamError
from kernelam.files import replacing


def random_lattice(seed: int) -> Lattice:
    """States 0 … n−1, arcs forward only, the last state final."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    arcs = [(s, t) for s, t in itertools.combinations(range(n), 2) for _ in range(rng.integers(1, 3))]
    source, target = (np.array(column) for column in zip(*arcs, strict=True))
    m = len(arcs)
    costs = rng.standard_normal((2, m)).astype(np.float32)
    final = np.full((2, n), np.inf, np.float32)
    final[:, -1] = rng.standard_normal(2)
    labels = rng.integers(0, 4, (2, m)).astype(np.int32)
    first = np.searchsorted(source, np.arange(n + 1))
    return Lattice(first, labels[0], labels[1], costs[0], costs[1], target.astype(np.int32), final[0], final[1])


def all_paths(lattice: Lattice, state: int = 0) -> list[list[int]]:
    paths = [[]] if np.isfinite(lattice.final_graph[state]) else []
    for arc in range(lattice.first[state], lattice.first[state + 1]):
        paths += [[arc, *rest] for rest in all_paths(lattice, int(lattice.next[arc]))]
    return paths


@given(st.integers(0, 10_000), st.sampled_from([1.0, 7.0, 15.0]), st.sampled_from([0.0, 0.5, -1.0]))
def test_best_path_is_that_of_enumeration(seed, lm_weight, penalty):
    lattice = random_lattice(seed)

    def cost(path: list[int]) -> float:
        last = lattice.next[path[-1]] if path else 0
        total = lattice.final_graph[last] + lattice.final_acoustic[last] / lm_weight
        for arc in path:
            total += lattice.graph[arc] + lattice.acoustic[arc] / lm_weight + penalty * bool(lattice.olabel[arc])
        return float(total)

    found = list(lattice.best_path(lm_weight, penalty))
    assert cost(found) == pytest.approx(min(map(cost, all_paths(lattice))), abs=1e-4)


@given(st.integers(0, 10_000))
def test_written_lattices_read_back(tmp_path_factory, seed):
    path = tmp_path_factory.mktemp("lattices") / "lat.1.gz"
    lattices = {f"utt-{i}": random_lattice(seed + i) for i in range(3)}
    with replacing(path) as stream:
        for utt, lattice in lattices.items():
            write_entry(stream, utt, lattice)
    again = dict(read_lattices(path))
    assert list(again) == list(lattices)
    for utt, lattice in lattices.items():
        one, two = (item.best_path(7.0) for item in (lattice, again[utt]))
        assert lattice.words(one) == again[utt].words(two)
        np.testing.assert_array_equal(lattice.alignment(one), again[utt].alignment(two))


def test_truncation_anywhere_is_a_sentence(tmp_path):
    path = tmp_path / "lat.1.gz"
    with replacing(path) as stream:
        write_entry(stream, "utt", random_lattice(3))
    data = gzip.decompress(path.read_bytes())
    for end in range(1, len(data)):
        path.write_bytes(gzip.compress(data[:end]))
        with pytest.raises(KernelamError, match=r"lat\.1\.gz"):
            list(read_lattices(path))
    path.write_bytes(b"not gzip")
    with pytest.raises(KernelamError, match="not a whole gzip file"):
        list(read_lattices(path))


def test_a_cycle_is_refused():
    lattice = random_lattice(1)
    with pytest.raises(KernelamError, match="cycle"):
        replace(lattice, next=np.zeros_like(lattice.next)).topologically_sorted(0, "x")
