"""Graphs of another tree, told by what follows what."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kernelam.cli.decode import command
from kernelam.decoding.decoder import check_sequences
from kernelam.errors import KernelamError
from kernelam.hmm.graph import read_graph
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.fst import ARC, Fst


def chain(*labels: int) -> Fst:
    """One path with these input labels, and a self-loop 5 on its second state, which is never looked at."""
    arcs = np.array([(label, 0, 0.0, to) for to, label in enumerate(labels, 1)] + [(5, 0, 0.0, 1)], ARC)
    final = np.full(len(labels) + 1, np.inf)
    final[-1] = 0.0
    return Fst.of(0, final, np.array([*range(len(labels)), 1]), arcs)


def test_order_of_states(transitions: TransitionModel) -> None:
    """2, 4, 6 leave the states of the first phone, 8, 10, 12 those of the second."""
    for labels in [(2, 4, 6, 8, 10, 12), (8, 10, 12, 2, 4, 6, 2), (2, 0, 10)]:
        check_sequences(chain(*labels), transitions, Path("HCLG.fst"))
    for labels, after, before in [((2, 6), 6, 2), ((2, 4, 6, 10), 10, 6), ((2, 10), 10, 2), ((6, 6), 6, 6)]:
        sentence = rf"HCLG.fst: transition-id {after} follows {before}, .*the graph is of another tree"
        with pytest.raises(KernelamError, match=sentence):
            check_sequences(chain(*labels), transitions, Path("HCLG.fst"))


def test_graphs_of_kaldi(corpora: Path) -> None:
    exp = corpora / "kaldi-timit-sample/exp"
    graphs = {name: read_graph(exp / name / "graph/HCLG.fst") for name in ("mono", "tri1", "tri3")}
    for name, graph in graphs.items():
        check_sequences(graph, TransitionModel.load(exp / name / "final.mdl"), exp / name)
    with pytest.raises(KernelamError, match="the graph is of another tree"):
        check_sequences(graphs["tri1"], TransitionModel.load(exp / "tri3/final.mdl"), exp)


def test_a_graph_of_another_tree_with_as_many_pdfs(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    shutil.copytree("exp/tri3/graph", tmp_path / "graph")
    shutil.copyfile("exp/tri1/graph/HCLG.fst", tmp_path / "graph/HCLG.fst")
    arguments = ("--transform-dir", "exp/tri3/decode_test", tmp_path / "graph", "exp/tri3", "data/test")
    result = CliRunner().invoke(command, [str(one) for one in (*arguments, tmp_path / "lat.gz")])
    assert isinstance(result.exception, KernelamError)
    assert re.search(r"/graph/HCLG.fst: transition-id .* the graph is of another tree", str(result.exception))
    assert not (tmp_path / "lat.gz").exists()
