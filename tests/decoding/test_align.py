"""Forced alignment, against Kaldi's own output and enumeration of all paths."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kernelam.cli.align import command
from kernelam.decoding.align import Aligner, edges_of_silence, equal_alignment
from kernelam.errors import KernelamError
from kernelam.hmm.graph import TrainingGraphs
from kernelam.hmm.lang import Lang
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import read_alignments
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
    assert equal_alignment(graph, 8, "u") is None


def test_equal_alignments_are_paths(transitions: TransitionModel) -> None:
    for count in (1, 2, 5):
        graph = phones(count)
        for num_frames in (3 * count, 3 * count + 1, 12 * count, 100):
            alignment = equal_alignment(graph, num_frames, "u")
            assert alignment is not None
            assert len(alignment) == num_frames
            assert np.isfinite(graph_cost(graph, alignment))
            leaves = np.flatnonzero(~transitions.is_self_loop[alignment])
            lengths = np.diff(leaves, prepend=-1)
            assert len(lengths) == 3 * count
            assert lengths.max() - lengths.min() <= 1


def test_utterances_of_one_graph_start_apart() -> None:
    starts = {str(equal_alignment(phones(4), 60, f"u{number}")) for number in range(20)}
    assert len(starts) > 5  # of 16: which of the two phones is taken at each place


def test_equal_alignments_have_silence_at_their_edges_alone_where_they_can() -> None:
    silence = np.arange(13) > 6  # the second of the two phones
    path = equal_alignment(phones(4), 60, "u", edges_of_silence(silence))
    assert path is not None
    assert np.isfinite(graph_cost(phones(4), path))
    assert silence[path[[0, -1]]].all()
    assert np.diff(silence[path]).sum() == 2
    none = edges_of_silence(np.zeros(13, bool))
    assert str(equal_alignment(phones(4), 60, "u", none)) == str(equal_alignment(phones(4), 60, "u"))


def test_bad_likelihoods_are_sentences(transitions: TransitionModel) -> None:
    likelihoods = np.zeros((9, 6), np.float32)
    likelihoods[4, 1] = np.nan
    with pytest.raises(KernelamError, match="utterance utt-1: the likelihoods of frame 4 are not finite"):
        Aligner(transitions).align("utt-1", phones(1), MODEL, likelihoods)
    with pytest.raises(KernelamError, match="utterance utt-1 has no frames"):
        Aligner(transitions).align("utt-1", phones(1), MODEL, likelihoods[:0])


@pytest.fixture
def small(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two utterances of the sample in tmp_path/data, the sample being the current folder."""
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    (tmp_path / "data").mkdir()
    for name in ("feats.scp", "utt2spk", "text"):
        rows = Path("data/test", name).read_text().splitlines(keepends=True)[:2]
        (tmp_path / "data" / name).write_text("".join(rows))
    shutil.copyfile("data/test/cmvn.scp", tmp_path / "data/cmvn.scp")
    return tmp_path / "data"


def align(data: Path, model: str = "exp/tri1", lang: str = "data/lang") -> dict[str, np.ndarray]:
    out = data.parent / "ali.1.gz"
    result = CliRunner().invoke(command, [model, str(data), lang, str(out)])
    if isinstance(result.exception, KernelamError):
        assert not out.exists()
        raise result.exception
    assert result.exit_code == 0, result.output
    return dict(read_alignments(out))


def test_utterances_that_cannot_be_aligned_are_left_out_and_named(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("kernelam.decoding.align.warn", said.append)
    whole = align(small)
    first, second = whole
    text = (small / "text").read_text().splitlines()
    (small / "text").write_text(f"{text[0]} zzz\n{second}{' aa' * 500}\n")
    assert list(align(small)) == [first]
    assert said == [
        f"1 utterances are too short for their transcripts and are left out: {second}",
        f"1 words of {small}/text are not in data/lang/words.txt: zzz (1)",
    ]
    said.clear()
    (small / "text").write_text(f"{first}\n{text[1]}\n")
    assert align(small).keys() == {second}
    assert said[0].startswith(f"1 utterances have no words in {small}/text and are left out, as data/lang has no")
    assert said[0].endswith(f": {first}")
    (small / "text").write_text(f"{first}\n{second}\n")
    (small.parent / "ali.1.gz").unlink()
    with pytest.raises(KernelamError, match=f"no utterance of {small} could be aligned"):
        align(small)


def test_models_of_another_lang_or_tree(small: Path, tmp_path: Path) -> None:
    shutil.copytree("exp/tri1", tmp_path / "model", ignore=shutil.ignore_patterns("decode*", "graph", "*.gz"))
    shutil.copyfile("exp/mono/tree", tmp_path / "model/tree")
    with pytest.raises(KernelamError, match=f"{tmp_path}/model: the tree has 144 pdfs, the transition model 128"):
        align(small, str(tmp_path / "model"))
    shutil.copytree("data/lang", tmp_path / "lang")
    phones = (tmp_path / "lang/phones.txt").read_text()
    (tmp_path / "lang/phones.txt").write_text(phones.replace("aa ", "AA "))
    with pytest.raises(KernelamError, match=r"lang/phones.txt and exp/tri1/phones.txt differ in AA: the model is of"):
        align(small, lang=str(tmp_path / "lang"))
    (small / "text").write_text((small / "text").read_text() + "zz-1 aa\n")
    with pytest.raises(KernelamError, match=f"utterance zz-1 of {small}/text has no features"):
        align(small)
