"""N-best lists, oracles, minimum Bayes risk and word times, against enumeration and Kaldi's programs."""

import io
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import kaldialign
import numpy as np
import pytest

from kernelam.decoding.determinise import determinise
from kernelam.decoding.lattice import best_path, path_alignment, path_costs, path_words
from kernelam.decoding.mbr import _part, minimum_bayes_risk
from kernelam.decoding.nbest import best_strings
from kernelam.decoding.oracle import depth, oracle
from kernelam.decoding.words import WordAligner, _built, boundary_rule, lexicon_rule, read_rule
from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.lattices import read_lattices, write_lattice
from kernelam.kaldi.tables import read_symbols, read_table

AllPaths = Callable[[Lattice], list[tuple[int, ...]]]


def distance(one: list[int], two: list[int]) -> int:
    return int(kaldialign.edit_distance(one, two)["total"])


def strings_of(lattice: Lattice, paths: list[tuple[int, ...]], weight: float, penalty: float) -> dict:
    """The least cost of each word string."""
    best: dict[tuple[int, ...], float] = {}
    for path in paths:
        arcs = np.array(path, int)
        graph, acoustic = path_costs(lattice, arcs)
        words = tuple(path_words(lattice, arcs))
        best[words] = min(best.get(words, np.inf), graph + acoustic / weight + penalty * len(words))
    return best


@pytest.mark.parametrize(("weight", "penalty"), [(1.0, 0.0), (7.0, 0.5)])
def test_best_strings_are_those_of_enumeration(
    lattices: list[Lattice], all_paths: AllPaths, weight: float, penalty: float
) -> None:
    for lattice in lattices[:100]:
        expected = strings_of(lattice, all_paths(lattice), weight, penalty)
        found = [
            (tuple(path_words(strings, path)), path_costs(strings, path))
            for strings, path in itertools.islice(best_strings(lattice, weight, penalty), 2000)
        ]
        costs = [graph + acoustic / weight + penalty * len(words) for words, (graph, acoustic) in found]
        assert costs == pytest.approx(sorted(expected.values()), abs=1e-3)
        assert {words for words, _ in found} == expected.keys()


def test_oracle_is_that_of_enumeration(lattices: list[Lattice], all_paths: AllPaths) -> None:
    for seed, lattice in enumerate(lattices[:100]):
        reference = np.random.default_rng(seed).integers(1, 4, seed % 6).tolist()
        strings = [path_words(lattice, np.array(path, int)) for path in all_paths(lattice)]
        errors, words = oracle(lattice, reference)
        assert errors == min(distance(reference, string) for string in strings)
        assert distance(reference, words) == errors
        assert words in strings


def test_kaldi_finds_the_same_oracle(corpora: Path) -> None:
    """Its log: Overall %WER 11.3636 [ 100 / 880, … ]."""
    sample = corpora / "kaldi-timit-sample"
    symbols = read_symbols(sample / "data/lang/words.txt")
    text = read_table(sample / "data/test/text")
    errors = 0
    for job in (1, 2, 3):
        for utt, lattice in read_lattices(sample / f"exp/tri1/decode_test/lat.{job}.gz"):
            errors += oracle(lattice, [symbols[word] for word in text[utt].split()])[0]
    assert errors == 100


def test_depth(corpora: Path) -> None:
    for _, lattice in read_lattices(corpora / "kaldi-timit-sample/exp/tri3/decode_dev/lat.1.gz"):
        crossing, frames = depth(lattice)
        assert frames == len(path_alignment(lattice, best_path(lattice, 7.0)))
        assert crossing == lattice.lengths.sum() + np.diff(lattice.begin)[lattice.num_arcs :].sum()


def tree(seed: int) -> tuple[Lattice, list[list[int]], np.ndarray]:
    """A lattice whose paths meet only at the start, their word strings and probabilities."""
    rng = np.random.default_rng(seed)
    strings = [rng.integers(1, 4, rng.integers(1, 5)).tolist() for _ in range(rng.integers(2, 6))]
    costs = rng.uniform(0, 2, len(strings)).astype(np.float32)
    source, target, word, graph, ends, count = [], [], [], [], [], 1
    for string, cost in zip(strings, costs, strict=True):
        states = [0, *range(count, count + len(string))]
        count += len(string)
        source, target, word = source + states[:-1], target + states[1:], word + string
        graph += [cost, *[0.0] * (len(string) - 1)]
        ends.append(states[-1])
    order = np.argsort(source, kind="stable")
    final = np.full(count, np.inf, np.float32)
    final[ends] = 0.0
    lattice = Lattice(
        np.searchsorted(np.array(source)[order], np.arange(count + 1)),
        np.array(word, np.int32)[order],
        np.array(graph, np.float32)[order],
        np.zeros(len(word), np.float32),
        np.array(target, np.int32)[order],
        final,
        final.copy(),
        np.concatenate([np.arange(len(word) + 1), np.full(count, len(word))]),
        np.ones(len(word), np.int32),
    )
    return lattice, strings, np.exp(-costs) / np.exp(-costs).sum()


def test_risk_is_least_and_confidences_are_posteriors() -> None:
    """Where no paths meet, the expected distances are exact."""
    better = 0
    for seed in range(200):
        lattice, strings, probabilities = tree(seed)
        found = minimum_bayes_risk(lattice, 1.0)
        first = minimum_bayes_risk(lattice, 1.0, improve=False)
        assert [item.word for item in first] == path_words(lattice, best_path(lattice, 1.0))
        risks = [
            sum(
                p * distance([item.word for item in items], string)
                for string, p in zip(strings, probabilities, strict=True)
            )
            for items in (found, first)
        ]
        assert risks[0] <= risks[1] + 1e-4
        better += risks[0] < risks[1] - 1e-4
        assert all(0 < item.confidence <= 1 and item.begin < item.end for item in found)
    assert better > 20


def test_confidences_of_any_lattice(lattices: list[Lattice], all_paths: AllPaths) -> None:
    """A word that stands alone in every path is as probable as the paths that have it."""
    for lattice in lattices[:100]:
        found = minimum_bayes_risk(lattice, 2.0)
        assert all(0 < item.confidence <= 1 for item in found)
        costs = np.array(
            [sum(path_costs(lattice, np.array(path, int)) * np.array([1, 0.5])) for path in all_paths(lattice)]
        )
        shares = np.exp(costs.min() - costs) / np.exp(costs.min() - costs).sum()
        strings = [path_words(lattice, np.array(path, int)) for path in all_paths(lattice)]
        if all(len(string) == 1 for string in strings) and found:
            share = sum(p for p, string in zip(shares, strings, strict=True) if string == [found[0].word])
            assert found[0].confidence == pytest.approx(share, abs=1e-4)


def test_one_path_is_certain() -> None:
    lattice, strings, _ = next(case for case in map(tree, range(100)) if len(case[1]) >= 2)
    only = lattice.selected(np.r_[0, 1 : len(strings[0]) + 1], np.ones(lattice.num_arcs, bool))
    found = minimum_bayes_risk(only, 5.0)
    assert [item.word for item in found] == strings[0]
    assert [item.confidence for item in found] == pytest.approx([1.0] * len(found))
    assert [(item.begin, item.end) for item in found] == [(n, n + 1) for n in range(len(found))]


def test_overlapping_times_are_shared_by_length() -> None:
    times = np.array([[0.0, 4.0], [3.0, 5.0], [5.0, 6.0], [5.0, 5.0], [9.0, 10.0]])
    _part(times)
    assert times == pytest.approx(np.array([[0, 10 / 3], [10 / 3, 5], [5, 6], [6, 6], [9, 10]]))


def test_words_have_their_own_phones(corpora: Path) -> None:
    """A word of the sample is a phone."""
    sample = corpora / "kaldi-timit-sample"
    transitions = TransitionModel.load(sample / "exp/tri1/final.mdl")
    lexicon = {
        word: phone
        for word, _, phone in (
            map(int, line.split()) for line in (sample / "data/lang/phones/align_lexicon.int").read_text().splitlines()
        )
    }
    aligner = WordAligner(transitions, read_rule(sample / "data/lang/phones"))
    for utt, lattice in read_lattices(sample / "exp/tri1/decode_test/lat.1.gz"):
        aligned = aligner.align(lattice, utt)
        one, two = best_path(lattice, 7.0), best_path(aligned, 7.0)
        assert path_words(lattice, one) == path_words(aligned, two)
        assert path_alignment(lattice, one).tolist() == path_alignment(aligned, two).tolist()
        assert path_costs(lattice, one) == pytest.approx(path_costs(aligned, two), rel=1e-5)
        for arc in range(aligned.num_arcs):
            ids = aligned.ids[aligned.begin[arc] : aligned.begin[arc + 1]]
            assert set(transitions.phone[ids].tolist()) == {lexicon[int(aligned.word[arc])]}


def kaldi_phones(phones: Sequence[int], words: tuple[int, ...], ended: bool) -> tuple[int, int] | None:
    """lattice-align-phones: a phone leaves at once, with the first word that waits, its own or not."""
    if phones:
        return min(len(words), 1), 1
    return (1, 0) if len(words) > 1 else None


def joined(lattice: Lattice) -> Lattice:
    """Arcs without a word become one with those behind them; of several ways the cheapest, as RmEpsilon of OpenFst."""
    lists = [lattice.next.tolist(), lattice.word.tolist(), lattice.graph.tolist(), lattice.acoustic.tolist()]
    strings = [tuple(lattice.ids[one:two].tolist()) for one, two in itertools.pairwise(lattice.begin.tolist())]
    behind: list[dict[tuple[int, int], tuple[float, float, tuple[int, ...]]]] = [{} for _ in range(lattice.num_states)]
    for state in range(lattice.num_states - 1, -1, -1):
        ways = []
        if np.isfinite(lattice.final_graph[state]):
            costs = float(lattice.final_graph[state]), float(lattice.final_acoustic[state])
            ways.append(((0, lattice.num_states), (*costs, strings[lattice.num_arcs + state])))
        for arc in range(lattice.first[state], lattice.first[state + 1]):
            target, word, graph, acoustic = (values[arc] for values in lists)
            more = {(word, target): (0.0, 0.0, ())} if word else behind[target]
            ways += [(key, (graph + g, acoustic + a, strings[arc] + ids)) for key, (g, a, ids) in more.items()]
        for key, way in ways:
            behind[state][key] = min(behind[state].get(key, way), way, key=lambda way: way[0] + way[1])
    arcs = [
        (state, target, word, *way) for state, several in enumerate(behind) for (word, target), way in several.items()
    ]
    return _built(lattice.num_states + 1, arcs, {lattice.num_states: (0.0, 0.0)})


def test_times_and_confidences_are_those_of_kaldi(corpora: Path) -> None:
    """lattice-align-phones | lattice-to-ctm-conf, to the digits that it prints.

    Ties between alignments, which in Kaldi rounding decides, make the rest: costs that are changed by 1e-11 there
    change strings and confidences as much.
    """
    sample = corpora / "kaldi-timit-sample"
    expected: dict[str, list[list[str]]] = {}
    for line in (sample / "expected/tri1/lattice-tools/test.acwt0.142857.ctm").read_text().splitlines():
        utt, _, *fields = line.split()
        expected.setdefault(utt, []).append(fields)
    aligner = WordAligner(TransitionModel.load(sample / "exp/tri1/final.mdl"), kaldi_phones)
    strings, same, differences = 0, 0, []
    for job in (1, 2, 3):
        for utt, lattice in read_lattices(sample / f"exp/tri1/decode_test/lat.{job}.gz"):
            found = minimum_bayes_risk(joined(aligner.align(lattice, utt)), 7.0)
            if [str(item.word) for item in found] == [word for _, _, word, _ in expected[utt]]:
                strings += 1
                for (begin, length, _, confidence), item in zip(expected[utt], found, strict=True):
                    ours = item.begin / 100, (item.end - item.begin) / 100, item.confidence
                    same += [begin, length, confidence] == [f"{value:.2f}" for value in ours]
                    differences.append(np.abs(np.array([begin, length, confidence], float) - ours))
    assert strings >= 21
    assert same >= 0.94 * len(differences)
    assert (np.max(differences, axis=0) < [0.03, 0.03, 0.08]).all()


def test_boundary_rule() -> None:
    rule = boundary_rule({1: "nonword", 2: "begin", 3: "internal", 4: "end", 5: "singleton"})
    assert rule([], (7,), False) is None
    assert rule([1, 2], (7,), False) == (0, 1)
    assert rule([2, 3], (7,), False) is None
    assert rule([2, 3, 4, 1], (7,), False) == (1, 3)
    assert rule([2, 3, 4], (), False) is None
    assert rule([5, 2], (7, 8), False) == (1, 1)
    with pytest.raises(KernelamError, match=r"phone 6 is not in word_boundary.int"):
        rule([6], (7,), False)


def test_lexicon_rule() -> None:
    rule = lexicon_rule({0: [(1,)], 7: [(2, 3), (2, 3, 4)], 8: [(3,)], 9: [(4,)], 10: [(1,)]})
    assert rule([1], (7,), False) == (0, 1)
    assert rule([2, 3], (7,), False) is None
    assert rule([2, 3], (7,), True) == (1, 2)
    assert rule([2, 3, 1], (7,), False) == (1, 2)
    assert rule([3], (8,), False) == (1, 1)
    assert rule([3], (), False) is None
    assert rule([1], (), False) is None
    with pytest.raises(KernelamError, match=r"phones 3 and words 7 do not fit each other by align_lexicon.int"):
        rule([3], (7,), False)


def test_pronunciation_that_begins_another() -> None:
    """Which of the two it is, is told by what follows."""
    rule = lexicon_rule({0: [(1,)], 7: [(2, 3), (2, 3, 4)], 8: [(3,)], 9: [(4,)], 10: [(1,)]})
    assert rule([2, 3, 4], (7,), False) is None
    assert rule([2, 3, 4, 3], (7, 8), False) == (1, 3)
    assert rule([2, 3, 4, 3], (7, 9), False) == (1, 2)
    assert rule([2, 3, 4], (7,), True) == (1, 3)
    assert rule([2, 3, 4], (7, 9), True) == (1, 2)
    assert rule([2, 3, 4, 1], (7, 9), True) == (1, 2)
    assert rule([1, 1], (10,), True) == (1, 1)
    assert rule([1, 3], (10, 8), False) == (1, 1)
    assert rule([1, 1], (10,), False) is None
    assert rule([1, 1, 3], (10, 8), False) == (1, 1)
    assert rule([2], (7,), True) is None


def test_lattice_of_another_model(corpora: Path, transitions: TransitionModel) -> None:
    _, lattice = next(read_lattices(corpora / "kaldi-timit-sample/exp/tri1/decode_test/lat.1.gz"))
    with pytest.raises(KernelamError, match=r"u: transition-id \d+ is not among the model's 1 … 12"):
        WordAligner(transitions, boundary_rule({})).align(lattice, "u")


def test_a_lattice_in_which_no_word_ends(transitions: TransitionModel) -> None:
    """Two ways at each of 60 frames, and all 2⁶⁰ strings of transition-ids wait for a word that never comes."""
    frames = 60
    arcs = 2 * frames
    zero = np.zeros(arcs, np.float32)
    lattice = Lattice(
        np.append(np.arange(0, arcs + 1, 2), arcs),
        np.zeros(arcs, np.int32),
        *(zero, zero, np.repeat(np.arange(1, frames + 1), 2).astype(np.int32)),
        *np.where(np.arange(frames + 1) == frames, 0, np.inf).astype(np.float32)[None].repeat(2, 0),
        np.append(np.arange(arcs + 1), np.full(frames + 1, arcs)),
        np.tile(np.array([1, 3], np.int32), frames),
    )
    start = time.process_time()
    with pytest.raises(KernelamError, match=r"u: no word of it ends: the model and the lang directory are not those"):
        WordAligner(transitions, boundary_rule({1: "begin", 2: "end"})).align(lattice, "u")
    assert time.process_time() - start < 10


def test_silence_only(transitions: TransitionModel) -> None:
    """A lattice without arcs, of one state that ends with transition-ids, is an utterance without words."""
    zero, none = np.zeros(1, np.float32), np.zeros(0, np.float32)
    labels = np.zeros(0, np.int32)
    ids = np.array([2, 4, 6], np.int32)
    lattice = Lattice(np.array([0, 0]), labels, none, none, labels, zero, zero, np.array([0, 3]), ids)
    assert best_path(lattice, 7.0).tolist() == []
    assert path_alignment(lattice, best_path(lattice, 7.0)).tolist() == [2, 4, 6]
    assert [path_words(*found) for found in best_strings(lattice, 7.0)] == [[]]
    assert minimum_bayes_risk(lattice, 7.0) == []
    assert oracle(lattice, [5, 6]) == (2, [])
    assert depth(lattice) == (3, 3)
    same, _ = determinise(lattice, 0.1, 8.0)
    assert (same.num_arcs, same.ids.tolist()) == (0, [2, 4, 6])
    aligned = WordAligner(transitions, boundary_rule({1: "nonword", 2: "singleton"})).align(same, "u")
    assert (aligned.word.tolist(), aligned.ids.tolist()) == ([0], [2, 4, 6])
    stream = io.BytesIO()
    write_lattice(stream, "u", same)
    assert len(stream.getvalue()) == len(b"u ") + 4 + 4 + 6 + 4 + 16 + 40 + 12 + 12 + 8
