"""Determinisation, against enumeration of all paths, OpenFst, and Kaldi's own lattices."""

import heapq
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kaldifst
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelam.decoding.decoder import LatticeDecoder, decode_data
from kernelam.decoding.determinise import determinise
from kernelam.decoding.lattice import backward_costs, best_path, costs, path_alignment, path_costs, path_words
from kernelam.decoding.search import Beams
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.ark import read_ark
from kernelam.kaldi.fst import load_fst
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.lattices import read_lattices

AllPaths = Callable[[Lattice], list[tuple[int, ...]]]
Best = dict[tuple[int, ...], tuple[float, list[tuple[float, float, tuple[int, ...]]]]]
SCALE = 0.5


def best_of_each(lattice: Lattice, paths: list[tuple[int, ...]]) -> Best:
    """By word string: the least cost, and graph cost, acoustic cost and alignment of the paths that have it."""
    found: Best = {}
    for path in paths:
        arcs = np.array(path, int)
        graph, acoustic = path_costs(lattice, arcs)
        words, total = tuple(path_words(lattice, arcs)), graph + SCALE * acoustic
        way = (round(graph, 3), round(acoustic, 3), tuple(path_alignment(lattice, arcs).tolist()))
        least, ways = found.get(words, (np.inf, []))
        if total < least - 1e-4:
            found[words] = (total, [way])
        elif total < least + 1e-4:
            ways.append(way)
    return found


@pytest.mark.parametrize("beam", [0.0, 1.0, 3.0, 1e6])
def test_each_word_string_once_as_its_best_path(lattices: list[Lattice], all_paths: AllPaths, beam: float) -> None:
    strings = 0
    for lattice in lattices:
        best = best_of_each(lattice, all_paths(lattice))
        result, reached = determinise(lattice, SCALE, beam)
        assert reached == pytest.approx(beam)
        assert (result.word > 0).all()
        paths = all_paths(result)
        kept = best_of_each(result, paths)
        assert len(kept) == len(paths)
        limit = min(total for total, _ in best.values()) + beam
        within = {words for words, (total, _) in best.items() if total < limit - 1e-3}
        assert within <= kept.keys() <= best.keys()
        for words in within:
            assert kept[words][0] == pytest.approx(best[words][0], abs=1e-3)
            graph, acoustic, alignment = kept[words][1][0]
            assert any(
                alignment == way[2] and (graph, acoustic) == pytest.approx(way[:2], abs=3e-3) for way in best[words][1]
            )
        assert (result.next > result.source).all()
        strings += len(within)
    assert strings >= len(lattices) * (beam > 0)


def test_no_room(lattices: list[Lattice], all_paths: AllPaths) -> None:
    """What is left is right for the beam that is returned, and there is always the best path."""
    narrowed = 0
    for lattice, room in itertools.product(lattices, (10, 20)):
        result, beam = determinise(lattice, SCALE, 100.0, room)
        best, kept = (best_of_each(item, all_paths(item)) for item in (lattice, result))
        least = min(total for total, _ in best.values())
        assert {words for words, (total, _) in best.items() if total < least + beam - 1e-3} <= kept.keys()
        assert min(total for total, _ in kept.values()) == pytest.approx(least, abs=1e-3)
        narrowed += beam < 100.0
    assert narrowed > 20


def test_a_best_path_that_takes_more_than_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of words is as long as it is, whatever room there is by default."""
    monkeypatch.setattr(determinise, "__defaults__", (10,))
    count, inf = 50, np.float32(np.inf)
    ends = np.append(np.full(count, inf), np.float32(0))
    chain = Lattice(
        np.append(np.arange(count + 1), count),
        *(np.ones(count, np.int32), np.ones(count, np.float32), np.ones(count, np.float32)),
        *(np.arange(1, count + 1, dtype=np.int32), ends, ends),
        *(np.append(np.arange(count + 1), np.full(count + 1, count)), np.arange(1, count + 1, dtype=np.int32)),
    )
    result, beam = determinise(chain, SCALE, 5.0)
    assert beam == 0.0
    assert result.ids.tolist() == chain.ids.tolist()


@given(st.integers(300, 10**6), st.sampled_from([0.5, 2.0, np.inf]))
def test_determinising_again_changes_nothing(random_lattice: Callable[[int], Lattice], seed: int, beam: float) -> None:
    once, _ = determinise(random_lattice(seed), SCALE, beam)
    twice, _ = determinise(once, SCALE, beam + 1e-3)  # costs are rounded to single precision in between
    assert (twice.num_states, twice.num_arcs) == (once.num_states, once.num_arcs)
    one, two = (best_path(lattice, 1 / SCALE) for lattice in (once, twice))
    assert path_words(once, one) == path_words(twice, two)
    assert path_costs(once, one) == pytest.approx(path_costs(twice, two), abs=1e-4)
    assert path_alignment(once, one).tolist() == path_alignment(twice, two).tolist()


def words_fst(lattice: Lattice) -> kaldifst.StdVectorFst:
    """The lattice as an acceptor of words with the sum of its costs."""
    fst = kaldifst.StdVectorFst()
    for state in range(lattice.num_states):
        fst.add_state()
        if np.isfinite(lattice.final_graph[state]):
            fst.set_final(state, float(lattice.final_graph[state] + SCALE * lattice.final_acoustic[state]))
    fst.start = 0
    for arc, source in enumerate(lattice.source.tolist()):
        weight = float(lattice.graph[arc] + SCALE * lattice.acoustic[arc])
        word = int(lattice.word[arc])
        fst.add_arc(source, kaldifst.StdArc(word, word, weight, int(lattice.next[arc])))
    return fst


def best_strings(fst: kaldifst.StdVectorFst, count: int) -> dict[tuple[int, ...], float]:
    best = {}
    for path in kaldifst.convert_nbest_to_vector(kaldifst.shortest_path(fst, n=count)):
        _, words, _, weight = kaldifst.get_linear_symbol_sequence(path)
        best[tuple(words)] = weight.value
    return best


def test_narrowing_is_said_aloud(
    corpora: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = corpora / "kaldi-timit-sample"
    transitions = TransitionModel.load(sample / "exp/tri1/final.mdl")
    decoder = LatticeDecoder(load_fst(sample / "exp/tri1/graph/HCLG.fst"), transitions, 0.1, Beams())
    utt, log_likelihoods = next(iter(read_ark(sample / "expected/tri1/loglikes/test.ark")))
    monkeypatch.setattr("kernelam.decoding.decoder.determinise", partial(determinise, room=20000))
    inputs = {"a": log_likelihoods[:5], utt: log_likelihoods[:150]}
    model: Any = SimpleNamespace(open=lambda data: inputs, log_likelihoods=lambda features: features)
    found = dict(decode_data(Path("data"), model, decoder))
    said = capsys.readouterr().err
    assert "warning: the lattice beam was narrowed in 1 of 2 utterances, to " in said
    assert f" in {utt}, as lattices would take too much memory" in said
    assert found[utt].num_arcs


def test_openfst_finds_the_same(lattices: list[Lattice]) -> None:
    for lattice in lattices[:100]:
        fst = words_fst(lattice)
        kaldifst.determinize_star(fst)
        theirs = best_strings(fst, 1000)
        ours = best_strings(words_fst(determinise(lattice, SCALE, 1e6)[0]), 1000)
        assert ours == pytest.approx(theirs, abs=1e-3)


def check_strings(one: Lattice, two: Lattice, scale: float, beam: float) -> None:
    """Each word string within `beam` of the best of `one` is in `two` with the same graph and acoustic cost.

    Both are deterministic, so that in each pair of states the difference of the costs to it is the same for all paths.
    """
    arcs, ends = costs(one, 1.0, scale)
    ahead = backward_costs(one.first, one.next, arcs, ends)
    reached = {(0, 0): (0.0, 0.0, 0.0)}  # least cost to the pair; difference of graph and of scaled acoustic costs
    waiting = [(0, 0)]
    while waiting:
        s, t = heapq.heappop(waiting)
        cost, *difference = reached[s, t]
        if np.isfinite(ends[s]) and cost + ends[s] < ahead[0] + beam:
            graph, acoustic = two.final_graph[t] - one.final_graph[s], two.final_acoustic[t] - one.final_acoustic[s]
            assert np.add(difference, [graph, scale * acoustic]) == pytest.approx([0, 0], abs=5e-3)
        to = {int(two.word[arc]): arc for arc in range(two.first[t], two.first[t + 1])}
        for arc in range(one.first[s], one.first[s + 1]):
            if cost + arcs[arc] + ahead[one.next[arc]] > ahead[0] + beam:
                continue
            other = to[int(one.word[arc])]
            graph, acoustic = two.graph[other] - one.graph[arc], two.acoustic[other] - one.acoustic[arc]
            now = (cost + arcs[arc], difference[0] + graph, difference[1] + scale * acoustic)
            pair = (int(one.next[arc]), int(two.next[other]))
            if pair in reached:
                assert now[1:] == pytest.approx(reached[pair][1:], abs=5e-3)
                now = min(now, reached[pair])
            else:
                heapq.heappush(waiting, pair)
            reached[pair] = now


@pytest.mark.parametrize(
    ("name", "scale", "beams"),
    [
        ("E_acwt0.1_exact_lat2", 0.1, Beams(2000.0, 2.0, 2**31 - 1)),
        ("B_acwt0.1_beam13_lat8", 0.1, Beams(13.0, 8.0)),
    ],
)
def test_kaldi_has_the_same_strings(corpora: Path, name: str, scale: float, beams: Beams) -> None:
    sample = corpora / "kaldi-timit-sample"
    theirs = dict(read_lattices(sample / "expected/tri1/latgen-faster-mapped" / name / "lat.gz"))
    transitions = TransitionModel.load(sample / "exp/tri1/final.mdl")
    decoder = LatticeDecoder(load_fst(sample / "exp/tri1/graph/HCLG.fst"), transitions, scale, beams)
    for utt, log_likelihoods in itertools.islice(read_ark(sample / "expected/tri1/loglikes/test.ark"), 3):
        found = decoder.decode(utt, log_likelihoods)
        assert found is not None
        ours = found[0]
        check_strings(ours, theirs[utt], scale, beams.lattice_beam - 0.1)
        check_strings(theirs[utt], ours, scale, beams.lattice_beam - 0.1)
        one, two = (best_path(lattice, 1 / scale) for lattice in (ours, theirs[utt]))
        assert path_alignment(ours, one).tolist() == path_alignment(theirs[utt], two).tolist()
