"""Probabilities of states by a lattice, against the enumeration of its paths."""

import numpy as np
import pytest

from kernelam.decoding.lattice import costs
from kernelam.decoding.posteriors import state_posteriors
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.lattices import read_lattices


def paths(lattice: Lattice, scale: float) -> list[tuple[list[int], float]]:
    arcs, ends = costs(lattice, 1.0, scale)
    found, waiting = [], [(0, list[int](), 0.0)]
    while waiting:
        state, ids, cost = waiting.pop()
        if np.isfinite(ends[state]):
            own = lattice.begin[lattice.num_arcs + state : lattice.num_arcs + state + 2]
            found.append(([*ids, *lattice.ids[own[0] : own[1]]], cost + ends[state]))
        for arc in range(lattice.first[state], lattice.first[state + 1]):
            more = lattice.ids[lattice.begin[arc] : lattice.begin[arc + 1]]
            waiting.append((lattice.next[arc], [*ids, *more], cost + arcs[arc]))
    return found


def random_lattice(rng: np.random.Generator) -> Lattice:
    """Six states in a row, each two frames after the one before, two or three arcs to the next."""
    counts = rng.integers(2, 4, size=5)
    first = np.concatenate([[0], np.cumsum(counts), [counts.sum()]])
    arcs = int(counts.sum())
    final = np.full(6, np.inf, np.float32)
    final[5] = 0.5
    begin = np.concatenate([np.arange(0, 2 * arcs + 1, 2), np.full(5, 2 * arcs), [2 * arcs + 1]])
    return Lattice(
        first,
        rng.integers(0, 3, arcs).astype(np.int32),
        rng.uniform(0, 3, arcs).astype(np.float32),
        rng.uniform(0, 30, arcs).astype(np.float32),
        np.repeat(np.arange(1, 6), counts).astype(np.int32),
        final,
        final.copy(),
        begin,
        rng.integers(1, 5, 2 * arcs + 1).astype(np.int32),
    )


@pytest.mark.parametrize("seed", range(5))
def test_by_all_paths(seed):
    lattice = random_lattice(np.random.default_rng(seed))
    every = paths(lattice, 0.1)
    weight = np.exp(-np.array([cost for _, cost in every]))
    weight /= weight.sum()
    expected = np.zeros((11, 5))
    for (ids, _), share in zip(every, weight, strict=True):
        expected[np.arange(11), ids] += share
    frames, ids, found = state_posteriors(lattice, 0.1)
    dense = np.zeros((11, 5))
    dense[frames, ids] = found
    assert len(found) == len({*zip(frames.tolist(), ids.tolist(), strict=True)})
    np.testing.assert_allclose(dense, np.where(expected < 1e-3, 0.0, expected), atol=1e-9)


def test_every_frame_of_a_lattice_of_kaldis_is_somewhere(corpora):
    for number, (_, lattice) in enumerate(read_lattices(corpora / "kaldi-timit-sample/exp/tri3/decode_dev/lat.1.gz")):
        frames, _, weight = state_posteriors(lattice, 0.1)
        np.testing.assert_allclose(np.bincount(frames, weight), 1.0, atol=0.05)
        if number == 3:
            break
