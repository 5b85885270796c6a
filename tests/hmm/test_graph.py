import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import kaldi_decoder
import kaldifst
import kaldiio
import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.hmm.graph import TrainingGraphs, make_hclg, read_graph
from kernelam.hmm.lang import Lang
from kernelam.hmm.topology import State, Topology
from kernelam.hmm.transducer import HTransducer
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.fst import ARC, Fst

Model = tuple[ContextTree, TransitionModel]


def best_path(graph: object, scores: np.ndarray, transitions: TransitionModel) -> tuple[list[int], list[int], float]:
    """Alignment, words and graph cost of the best path; `scores` are log-likelihoods by frame and pdf."""
    matrix = np.ascontiguousarray(scores[:, transitions.pdf[1:]], np.float32)
    decoder = kaldi_decoder.FasterDecoder(graph, kaldi_decoder.FasterDecoderOptions(beam=1000.0, max_active=10**6))
    decoder.decode(kaldi_decoder.DecodableCtc(matrix))
    assert decoder.reached_final()
    _, alignment, words, weight = kaldifst.get_linear_symbol_sequence(decoder.get_best_path()[1])
    return alignment, words, weight.value1


def total(path: tuple[list[int], list[int], float], scores: np.ndarray, transitions: TransitionModel) -> float:
    return path[2] - float(scores[np.arange(len(scores)), transitions.pdf[path[0]]].sum())


def lm_cost(lang: Lang, words: Sequence[int]) -> float:
    known = {lang.words[word]: 1.0 + 0.1 * i for i, word in enumerate(("ab", "abc", "ba", "ba2", "c"))}
    return sum(known[word] for word in words) + 0.7


@pytest.mark.parametrize("kind", ["monophones", "triphones"])
def test_hclg_finds_the_best_of_all_transcripts(
    lang: Lang, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """Against brute force: every transcript of up to three words aligned on its own, plus its language model cost."""
    tree, transitions = request.getfixturevalue(kind)
    make_hclg(lang.directory, tree, transitions, tmp_path / "graph")
    hclg = read_graph(tmp_path / "graph/HCLG.fst").to_kaldifst()
    graphs = TrainingGraphs(lang, tree, transitions)
    vocabulary = [lang.words[word] for word in ("ab", "abc", "ba", "ba2", "c")]
    rng = np.random.default_rng(0)
    for frames in (12, 20):
        scores = 2 * rng.normal(size=(frames, transitions.num_pdfs))
        found = best_path(hclg, scores, transitions)
        assert len(found[1]) <= 3
        costs = {}
        for count in range(4):
            for words in itertools.product(vocabulary, repeat=count):
                try:
                    path = best_path(graphs.compile(words).to_kaldifst(), scores, transitions)
                except AssertionError:  # too few frames for its phones
                    continue
                costs[words] = total(path, scores, transitions) + lm_cost(lang, words)
        best = min(costs, key=lambda words: costs[words])
        assert tuple(found[1]) == best
        assert total(found, scores, transitions) == pytest.approx(costs[best], abs=2e-3)


@pytest.mark.parametrize("kind", ["monophones", "triphones"])
def test_costs_of_a_path_are_lexicon_plus_transitions(lang: Lang, request: pytest.FixtureRequest, kind: str) -> None:
    tree, transitions = request.getfixturevalue(kind)
    words = lang.words_to_ids("u", ["ab", "c", "ba"])
    names = {number: phone for phone, number in lang.phones.items()}
    rng = np.random.default_rng(1)
    for scales in ((1.0, 0.1), (0.0, 0.0), (0.7, 1.0)):
        graph = TrainingGraphs(lang, tree, transitions, *scales).compile(words).to_kaldifst()
        alignment, output, cost = best_path(graph, rng.normal(size=(40, transitions.num_pdfs)), transitions)
        assert output == words
        phones = [phone for phone, _ in transitions.ali_to_phones(np.array(alignment))]
        assert [names[phone] for phone in phones if phone != 1] in (
            ["a", "b", "c", "b", "a"],
            ["a", "b", "a", "c", "b", "a"],
        )
        lexicon = 4 * np.log(2)  # silence or not, at the start and after each word
        assert cost == pytest.approx(lexicon - transitions.log_prob(*scales)[alignment].sum(), abs=3e-3)


def test_context_decides_the_pdf(lang: Lang, triphones: Model) -> None:
    tree, transitions = triphones
    graph = TrainingGraphs(lang, tree, transitions).compile(lang.words_to_ids("u", ["ba"]))
    labels = graph.arcs["ilabel"]
    pdfs = set(transitions.pdf[labels[labels > 0]].tolist())
    a, b = lang.phones["a"], lang.phones["b"]
    expected = {tree.pdf((b, a, right), state) for state in range(3) for right in (0, 1)}
    expected |= {tree.pdf((left, b, a), state) for state in range(3) for left in (0, 1)}
    assert pdfs == expected | {tree.pdf((0, 1, 0), state) for state in range(3)}


def test_empty_transcript_is_silence(lang: Lang, monophones: Model) -> None:
    graph = TrainingGraphs(lang, *monophones).compile([]).to_kaldifst()
    alignment, words, _ = best_path(graph, np.zeros((5, monophones[1].num_pdfs)), monophones[1])
    assert words == []
    assert monophones[1].ali_to_phones(np.array(alignment)) == [(1, 5)]


def test_word_without_pronunciation(lang: Lang, monophones: Model) -> None:
    with pytest.raises(KernelamError, match=r"L\.fst has no pronunciation of <s>"):
        TrainingGraphs(lang, *monophones).compile([lang.words["ab"], lang.words["<s>"]])


def test_topologies_with_a_way_back_and_silent_states() -> None:
    """State 1 may return to state 0, and state 2 emits nothing: H must not let one phone run into the next."""
    topology = Topology(
        ((
            State(0, 0, ((0, 0.5), (1, 0.5))),
            State(1, 1, ((1, 0.2), (0, 0.4), (2, 0.4))),
            State(-1, -1, ((3, 1.0),)),
            State(-1, -1, ()),
        ),),
        {1: 0, 2: 0},
    )  # fmt: skip
    tree = ContextTree.monophone([[1], [2]], {1: 2, 2: 2})
    transitions = TransitionModel.from_tree(topology, tree)
    h = HTransducer(tree, transitions).fst([(), (1,), (2,)])[0].to_kaldifst()
    kaldifst.arcsort(h, "olabel")
    graph = Fst.from_kaldifst(kaldifst.compose(h, kaldifst.make_linear_acceptor([1, 2])))
    sequences = set()

    def follow(state: int, labels: tuple[int, ...]) -> None:
        if len(labels) > 6:
            return
        if np.isfinite(graph.final[state]):
            sequences.add(labels)
        for ilabel, _, _, to in graph.arcs[graph.offsets[state] : graph.offsets[state + 1]].tolist():
            follow(to, (*labels, ilabel) if ilabel else labels)

    follow(graph.start, ())
    # transition-ids: phone 1 has 2 (0→1), 4 (1→0), 5 (1→2); phone 2 has 7, 9, 10
    assert sequences == {(2, 5, 7, 10), (2, 4, 2, 5, 7, 10), (2, 5, 7, 9, 7, 10)}


def test_tree_of_another_model(lang: Lang, monophones: Model, triphones: Model, tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match="the tree has 19 pdfs, the transition model 15"):
        make_hclg(lang.directory, triphones[0], monophones[1], tmp_path / "graph")
    assert not (tmp_path / "graph").exists()


def test_homophones_without_disambiguation(lang: Lang, monophones: Model, tmp_path: Path) -> None:
    shutil.copy(lang.directory / "L.fst", lang.directory / "L_disambig.fst")
    with pytest.raises(KernelamError, match="homophones need disambiguation symbols"):
        make_hclg(lang.directory, *monophones, tmp_path / "graph")


def test_grammar_of_other_words(lang: Lang, monophones: Model, tmp_path: Path) -> None:
    grammar = Fst.from_kaldifst(kaldifst.make_linear_acceptor([12345]))
    grammar.save(lang.directory / "G.fst")
    with pytest.raises(KernelamError, match="accepts no sentence"):
        make_hclg(lang.directory, *monophones, tmp_path / "graph")
    (lang.directory / "G.fst").unlink()
    with pytest.raises(KernelamError, match=r"no such file .*G\.fst"):
        make_hclg(lang.directory, *monophones, tmp_path / "graph")


def test_damaged_graphs_are_sentences(lang: Lang, monophones: Model, tmp_path: Path) -> None:
    make_hclg(lang.directory, *monophones, tmp_path)
    path = tmp_path / "HCLG.fst"
    data = path.read_bytes()
    assert path.read_bytes()[8:13] == b"const"
    for length in range(0, len(data), 37):
        path.write_bytes(data[:length])
        with pytest.raises(KernelamError, match=r"HCLG\.fst"):
            read_graph(path)
    Fst.of(0, np.array([np.inf]), np.zeros(0, int), np.zeros(0, ARC)).save(path)
    with pytest.raises(KernelamError, match="without a final state"):
        read_graph(path)
    with pytest.raises(KernelamError, match="no such file"):
        read_graph(tmp_path / "none.fst")


def test_commands(
    kernelam: Callable, lang: Lang, monophones: Model, dict_dir: Callable[..., Path], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    monophones[0].save(model / "tree")
    monophones[1].save(model / "final.mdl")
    done = kernelam("graph", "hclg", lang.directory, model, tmp_path / "graph")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "graph/num_pdfs").read_text() == "15\n"
    assert (tmp_path / "graph/words.txt").read_bytes() == (lang.directory / "words.txt").read_bytes()
    (model / "tree").write_bytes((model / "tree").read_bytes()[:50])
    failed = kernelam("graph", "hclg", lang.directory, model, tmp_path / "graph2")
    assert failed.returncode == 1
    assert failed.stderr.startswith("kernelam graph hclg: ")
    assert len(failed.stderr.splitlines()) == 1
    assert not (tmp_path / "graph2").exists()
    assert kernelam("graph", "lang", "--sil-prob", "0", dict_dir(), "<UNK>", tmp_path / "lang2").returncode == 0
    assert (tmp_path / "lang2/L.fst").exists()


@pytest.mark.parametrize("name", ["mono", "tri1"])
def test_kaldis_graph_gives_the_same_paths(corpora: Path, tmp_path: Path, name: str) -> None:
    sample = corpora / "kaldi-timit-sample"
    transitions = TransitionModel.load(sample / f"exp/{name}/final.mdl")
    make_hclg(sample / "data/lang_test_bg", ContextTree.load(sample / f"exp/{name}/tree"), transitions, tmp_path)
    ours = read_graph(tmp_path / "HCLG.fst").to_kaldifst()
    kaldis = read_graph(sample / f"exp/{name}/graph/HCLG.fst").to_kaldifst()
    for path in (sample / f"exp/{name}/graph").rglob("*"):
        if path.is_file() and path.name != "HCLG.fst":
            assert (tmp_path / path.relative_to(sample / f"exp/{name}/graph")).read_bytes() == path.read_bytes()
    matrices = kaldiio.load_ark(str(sample / "expected/tri1/loglikes/test.ark"))
    for _, matrix in itertools.islice(matrices, 6):
        scores = 0.1 * matrix[:, np.arange(transitions.num_pdfs) % matrix.shape[1]]
        found, expected = (best_path(graph, scores, transitions) for graph in (ours, kaldis))
        assert found[:2] == expected[:2]
        assert found[2] == pytest.approx(expected[2], abs=0.01)


def test_kaldi_aligns_alike(corpora: Path) -> None:
    sample = corpora / "kaldi-timit-sample"
    expected = sample / "expected/tri1/align-compiled-mapped"
    tree, transitions = ContextTree.load(sample / "exp/tri1/tree"), TransitionModel.load(sample / "exp/tri1/final.mdl")
    graphs = TrainingGraphs(Lang(sample / "data/lang"), tree, transitions)
    text, alignments = (
        {row.split()[0]: [int(field) for field in row.split()[1:]] for row in (expected / name).open()}
        for name in ("text.int", "ali.int.txt")
    )
    for utterance, matrix in kaldiio.load_ark(str(sample / "expected/tri1/loglikes/test.ark")):
        alignment, words, _ = best_path(graphs.compile(text[utterance]).to_kaldifst(), 0.1 * matrix, transitions)
        assert words == text[utterance]
        assert alignment == alignments[utterance]
