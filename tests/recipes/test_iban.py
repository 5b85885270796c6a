"""egs/iban: what it takes from a Kaldi experiment, and what it says when something is missing there."""

import gzip
import subprocess
from pathlib import Path

import pytest

from kernelam.kaldi.ark import MatrixScp


def call(root: Path, *args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / args[0], *map(str, args[1:])], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_directories_and_graph_of_the_experiment(corpora, root, tmp_path):
    iban = corpora / "kaldi-iban"
    done = call(root, "local/iban/from_kaldi.sh", iban, "data", "exp/graph", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    features = MatrixScp(tmp_path / "data/dev/feats.scp")
    assert (len(features), features.dim) == (147, 40)
    assert (tmp_path / "exp/graph/HCLG.fst").read_bytes() == gzip.decompress(
        (iban / "exp/gmm/graph/HCLG.fst.gz").read_bytes()
    )
    assert (tmp_path / "exp/graph/num_pdfs").read_text() == "1232\n"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "--corpus is needed: the folder of a Kaldi experiment on Iban"),
        (("--corpus", "nosuch"), "no such file"),
    ],
)
def test_a_corpus_that_is_not_there(root, tmp_path, args, sentence):
    done = call(root, "egs/iban/s5/run.sh", *args, cwd=tmp_path)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_an_experiment_without_a_graph(root, tmp_path):
    (tmp_path / "corpus").mkdir()
    done = call(root, "local/iban/from_kaldi.sh", "corpus", "data", "exp/graph", cwd=tmp_path)
    assert done.returncode == 1
    assert "no such file" in done.stderr
    assert not (tmp_path / "data").exists()
