"""The lattice search, against Kaldi's own output, enumeration of all paths, and dynamic programming in numpy."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kernelam.decoding.decoder import LatticeDecoder
from kernelam.decoding.lattice import best_path, path_alignment, path_costs, path_words
from kernelam.decoding.search import Beams
from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.ark import read_ark
from kernelam.kaldi.fst import ARC, Fst, load_fst
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.tables import read_table

Maker = Callable[[np.random.Generator, int, int], Fst]
Paths = Callable[[Fst, int], Iterator[tuple[int, ...]]]

SCALE = 0.5
WIDE = Beams(1e6, 1e6, 10**9, 0)
KALDI = {
    "A_acwt0.083333_beam13_lat6": (0.083333, Beams(13.0, 6.0)),
    "B_acwt0.1_beam13_lat8": (0.1, Beams(13.0, 8.0)),
    "C_acwt0.2_beam18_lat8": (0.2, Beams(18.0, 8.0)),
    "D_acwt0.1_beam6_lat4_max200": (0.1, Beams(6.0, 4.0, 200)),
    "D2_acwt0.1_beam3_lat2_min20_max50": (0.1, Beams(3.0, 2.0, 50, 20)),
    "E_acwt0.1_exact_lat2": (0.1, Beams(2000.0, 2.0, 2**31 - 1)),
    "F_acwt0.2_exact_lat2": (0.2, Beams(2000.0, 2.0, 2**31 - 1)),
}


def numbers(path: Path) -> dict[str, list[int]]:
    return {utt: [int(field) for field in row.split()] for utt, row in read_table(path, empty_values=True).items()}


@pytest.mark.parametrize("name", KALDI)
def test_kaldi_finds_the_same(corpora: Path, name: str) -> None:
    sample = corpora / "kaldi-timit-sample"
    expected = sample / "expected/tri1/latgen-faster-mapped" / name
    words, alignments = numbers(expected / "words.int.txt"), numbers(expected / "ali.int.txt")
    graph_costs, acoustic_costs = (read_table(expected / f"1best.{kind}_cost.txt") for kind in ("graph", "acoustic"))
    scale, beams = KALDI[name]
    transitions = TransitionModel.load(sample / "exp/tri1/final.mdl")
    decoder = LatticeDecoder(load_fst(sample / "exp/tri1/graph/HCLG.fst"), transitions, scale, beams)
    for utt, log_likelihoods in read_ark(sample / "expected/tri1/loglikes/test.ark"):
        found = decoder.search(utt, log_likelihoods)
        assert found is not None
        lattice, reached_final = found
        assert reached_final
        path = best_path(lattice, 1 / scale)
        assert path_words(lattice, path) == words.pop(utt)
        assert path_alignment(lattice, path).tolist() == alignments[utt]
        graph, acoustic = path_costs(lattice, path)
        assert graph == pytest.approx(float(graph_costs[utt]), abs=2e-3)
        assert scale * acoustic == pytest.approx(scale * float(acoustic_costs[utt]), abs=2e-3)
    assert not words


def by_dynamic_programming(graph: Fst, scores: np.ndarray, pdf: np.ndarray) -> float:
    """The cost of the best path through all frames to a final state."""
    source, target, weight = graph.source, graph.arcs["nextstate"], graph.arcs["weight"].astype(float)
    pdfs = pdf[graph.arcs["ilabel"]]
    epsilon = pdfs < 0
    cost = np.full(len(graph.final), np.inf)
    cost[graph.start] = 0.0
    for frame in range(len(scores) + 1):
        if frame:
            before, cost = cost, np.full(len(graph.final), np.inf)
            through = before[source] + weight - scores[frame - 1, pdfs]
            np.minimum.at(cost, target[~epsilon], through[~epsilon])
        for _ in graph.final:  # no path of epsilons is longer than there are states
            np.minimum.at(cost, target[epsilon], (cost[source] + weight)[epsilon])
    return float((cost + graph.final).min())


@pytest.mark.parametrize("beams", [WIDE, Beams(np.inf, np.inf, 10**9, 0), Beams(1e6, 0.0, 10**9, 0, 3)])
def test_best_path_is_that_of_dynamic_programming(
    transitions: TransitionModel, random_graph: Maker, beams: Beams
) -> None:
    reached = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, int(rng.integers(1, 40)), int(rng.integers(1, 160)))
        likelihoods = (4 * rng.standard_normal((int(rng.integers(1, 30)), 6))).astype(np.float32)
        best = by_dynamic_programming(graph, SCALE * likelihoods, transitions.pdf)
        found = LatticeDecoder(graph, transitions, SCALE, beams).search("u", likelihoods)
        if np.isinf(best):
            assert found is None or not found[1]
            continue
        assert found is not None
        assert found[1]
        graph_cost, acoustic = path_costs(found[0], best_path(found[0], 1 / SCALE))
        assert graph_cost + SCALE * acoustic == pytest.approx(best, abs=1e-4)
        reached += 1
    assert reached > 30


def lattice_paths(lattice: Lattice, state: int = 0) -> list[tuple[int, ...]]:
    """All paths, as numbers of arcs."""
    paths: list[tuple[int, ...]] = [()] if np.isfinite(lattice.final_graph[state]) else []
    for arc in range(lattice.first[state], lattice.first[state + 1]):
        paths += [(arc, *rest) for rest in lattice_paths(lattice, int(lattice.next[arc]))]
    return paths


def path_cost(graph: Fst, path: tuple[int, ...], likelihoods: np.ndarray, transitions: TransitionModel) -> float:
    arcs = graph.arcs[list(path)]
    pdfs = transitions.pdf[arcs["ilabel"][arcs["ilabel"] > 0]]
    acoustic = likelihoods[np.arange(len(pdfs)), pdfs].sum(dtype=float)
    return float(arcs["weight"].sum(dtype=float) + graph.final[arcs["nextstate"][-1]] - SCALE * acoustic)


def test_lattice_has_all_paths_within_its_beam_and_no_arc_without_one(
    transitions: TransitionModel, random_graph: Maker, graph_paths: Paths
) -> None:
    """The arcs of a path have output labels of their own, so that these name it."""
    seen = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, int(rng.integers(2, 5)), int(rng.integers(3, 10)))
        likelihoods = (2 * rng.standard_normal((int(rng.integers(1, 5)), 6))).astype(np.float32)
        costs = {
            tuple(graph.arcs["olabel"][list(path)].tolist()): path_cost(graph, path, likelihoods, transitions)
            for path in graph_paths(graph, len(likelihoods))
        }
        if not costs:
            continue
        for beam in (0.0, 1.5, 4.0):
            found = LatticeDecoder(graph, transitions, SCALE, WIDE._replace(lattice_beam=beam)).search("u", likelihoods)
            assert found is not None
            lattice = found[0]
            limit = min(costs.values()) + beam
            kept = {tuple(path_words(lattice, np.array(path))): path for path in lattice_paths(lattice)}
            assert kept.keys() <= costs.keys()
            assert {words for words, cost in costs.items() if cost < limit - 1e-4} <= kept.keys()
            needed = {arc for words, path in kept.items() if costs[words] < limit + 1e-4 for arc in path}
            assert needed == set(range(len(lattice.next)))
            for words, path in kept.items():
                graph_cost, acoustic = path_costs(lattice, np.array(path))
                assert graph_cost + SCALE * acoustic == pytest.approx(costs[words], abs=1e-4)
            seen += len(kept)
    assert seen > 500


def arc_set(lattice: Lattice) -> list[tuple[float, ...]]:
    """The arcs with the states they join; pruning may number states otherwise, never lose an arc."""
    columns = (lattice.source, lattice.next, lattice.word, lattice.graph, lattice.acoustic)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("beams", [Beams(8.0, 5.0), Beams(6.0, 3.0, 30, 10), Beams(1e6, 4.0)])
def test_pruning_on_the_way_changes_nothing(transitions: TransitionModel, random_graph: Maker, beams: Beams) -> None:
    """Without it there are more tokens and links than there is room for at first."""
    sizes = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 60, 300)
        likelihoods = (3 * rng.standard_normal((300, 6))).astype(np.float32)
        lattices = []
        for interval in (1, 7, 25, 10**6):
            found = LatticeDecoder(graph, transitions, SCALE, beams._replace(prune_interval=interval)).search(
                "u", likelihoods
            )
            assert found is not None
            lattices.append(found[0])
        for lattice in lattices[:-1]:
            assert arc_set(lattice) == arc_set(lattices[-1])
            for weight in (0.5, 2.0, 10.0):
                np.testing.assert_array_equal(best_path(lattice, weight), best_path(lattices[-1], weight))
        sizes.append(len(lattices[0].next))
    assert min(sizes) > 300


def test_few_tokens_still_give_a_path(transitions: TransitionModel, random_graph: Maker) -> None:
    lengths = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 60, 400)
        likelihoods = (3 * rng.standard_normal((40, 6))).astype(np.float32)
        wide = LatticeDecoder(graph, transitions, SCALE, WIDE).search("u", likelihoods)
        assert wide is not None
        best = sum(np.array([1, SCALE]) * path_costs(wide[0], best_path(wide[0], 1 / SCALE)))
        for max_active, min_active in ((1, 0), (1, 1), (2, 0), (10, 200)):
            beams = Beams(10.0, 6.0, max_active, min_active)
            found = LatticeDecoder(graph, transitions, SCALE, beams).search("u", likelihoods)
            if found is None:  # so few can all run into a dead end
                continue
            lattice, reached_final = found
            path = best_path(lattice, 1 / SCALE)
            lengths.append(len(path_alignment(lattice, path)))
            assert not reached_final or sum(np.array([1, SCALE]) * path_costs(lattice, path)) > best - 1e-4
    assert len(lengths) > 20
    assert set(lengths) == {40}


@pytest.mark.parametrize(
    ("beams", "count"),
    [
        (Beams(1.0, 100.0, 7000, 0), 1),
        (Beams(5.0, 100.0, 7000, 0), 3),
        (Beams(1.0, 100.0, 7000, 1), 2),
        (Beams(1.0, 100.0, 7000, 4), 5),
        (Beams(1.0, 100.0, 7000, 6), 6),
        (Beams(100.0, 100.0, 1, 0), 2),
        (Beams(100.0, 100.0, 4, 0), 5),
        (Beams(3.0, 100.0, 4, 0), 2),
        (Beams(100.0, 3.0, 7000, 0), 2),
    ],
)
def test_limits_of_the_search(transitions: TransitionModel, beams: Beams, count: int) -> None:
    """Six ways of cost 0, 2, … 10: the numbers of active tokens are those followed besides the best, as in Kaldi."""
    arcs = [(2, i, 2.0 * i, 1 + i) for i in range(6)] + [(4, 0, 0.0, 7) for _ in range(6)]
    graph = Fst.of(0, np.where(np.arange(8) == 7, 0.0, np.inf), np.r_[np.zeros(6, int), 1:7], np.array(arcs, ARC))
    found = LatticeDecoder(graph, transitions, SCALE, beams).search("u", np.zeros((2, 6), np.float32))
    assert found is not None
    assert len(lattice_paths(found[0])) == count


def chain(*labels: int) -> Fst:
    """States 0, 1, … with one arc to the next, of that input label; output labels are 1, 2, …."""
    arcs = [(label, number + 1, 0.25, number + 1) for number, label in enumerate(labels)]
    ends = np.full(len(labels) + 1, np.inf)
    ends[-1] = 0.5
    return Fst.of(0, ends, np.arange(len(labels)), np.array(arcs, ARC))


def test_no_path_survives(transitions: TransitionModel) -> None:
    decoder = LatticeDecoder(chain(2, 0, 4), transitions, SCALE, Beams())
    assert decoder.search("u", np.zeros((3, 6), np.float32)) is None
    assert decoder.search("u", np.zeros((2, 6), np.float32)) is not None


def test_end_that_is_not_final(transitions: TransitionModel) -> None:
    likelihoods = np.arange(12, dtype=np.float32).reshape(2, 6)
    found = LatticeDecoder(chain(2, 0, 4, 6), transitions, SCALE, Beams()).search("u", likelihoods)
    assert found is not None
    lattice, reached_final = found
    assert not reached_final
    path = best_path(lattice, 1 / SCALE)
    assert path_words(lattice, path) == [1, 2, 3]
    assert path_alignment(lattice, path).tolist() == [2, 4]
    pdf = transitions.pdf
    assert path_costs(lattice, path) == (0.75, -float(likelihoods[0, pdf[2]] + likelihoods[1, pdf[4]]))
    determinised = LatticeDecoder(chain(2, 0, 4, 6), transitions, SCALE, Beams()).decode("u", likelihoods)
    assert determinised is not None
    words, reached_final = determinised
    assert not reached_final
    assert words.compact
    assert path_words(words, best_path(words, 1 / SCALE)) == [1, 2, 3]


def test_one_frame(transitions: TransitionModel) -> None:
    likelihoods = np.arange(6, dtype=np.float32)[None]
    found = LatticeDecoder(chain(0, 2, 0), transitions, SCALE, Beams()).search("u", likelihoods)
    assert found is not None
    lattice, reached_final = found
    assert reached_final
    path = best_path(lattice, 1 / SCALE)
    assert path_words(lattice, path) == [1, 2, 3]
    assert path_costs(lattice, path) == (1.25, -float(likelihoods[0, transitions.pdf[2]]))


def test_order_in_memory_does_not_matter(transitions: TransitionModel, random_graph: Maker) -> None:
    rng = np.random.default_rng(0)
    decoder = LatticeDecoder(random_graph(rng, 60, 300), transitions, SCALE, Beams())
    likelihoods = rng.standard_normal((20, 6))
    one, two = (decoder.search("u", np.asarray(likelihoods, order=order)) for order in "CF")
    assert one is not None
    assert two is not None
    assert arc_set(one[0]) == arc_set(two[0])


def test_epsilon_cycle_is_a_sentence(transitions: TransitionModel) -> None:
    arcs = np.array([(2, 1, 0.0, 1), (0, 2, 0.5, 0), (0, 3, 0.5, 1)], ARC)
    graph = Fst.of(0, np.array([np.inf, 0.0]), np.array([0, 1, 0]), arcs)
    with pytest.raises(KernelamError, match="the lattice of utt-1 has a cycle"):
        LatticeDecoder(graph, transitions, SCALE, Beams()).search("utt-1", np.zeros((3, 6), np.float32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_likelihoods_that_are_not_finite(transitions: TransitionModel, bad: float) -> None:
    likelihoods = np.zeros((4, 6), np.float32)
    likelihoods[2, 5] = bad
    with pytest.raises(KernelamError, match="utterance utt-1: the likelihoods of frame 2 are not finite"):
        LatticeDecoder(chain(2, 4), transitions, SCALE, Beams()).search("utt-1", likelihoods)


def test_other_pdfs(transitions: TransitionModel) -> None:
    decoder = LatticeDecoder(chain(2, 4), transitions, SCALE, Beams())
    with pytest.raises(KernelamError, match=r"utterance utt-1: 5 likelihoods a frame .* of 6 pdfs"):
        decoder.search("utt-1", np.zeros((2, 5), np.float32))
    with pytest.raises(KernelamError, match="utterance utt-1 has no frames"):
        decoder.search("utt-1", np.zeros((0, 6), np.float32))
    with pytest.raises(KernelamError, match="transition-ids up to 13, the model 12"):
        LatticeDecoder(chain(13), transitions, SCALE, Beams())
