"""egs/iban and egs/timit: what they take from a Kaldi experiment, and what they say when something is missing there."""

import gzip
import subprocess
from pathlib import Path

import pytest

from kernelam.kaldi.ark import MatrixScp


def call(root: Path, *args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / args[0], *map(str, args[1:])], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_directories_and_graph_of_iban(corpora, root, tmp_path):
    iban = corpora / "kaldi-iban"
    done = call(root, "local/iban/from_kaldi.sh", iban, "data", "exp/graph", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    features = MatrixScp(tmp_path / "data/dev/feats.scp")
    assert (len(features), features.dim) == (147, 40)
    assert (tmp_path / "exp/graph/HCLG.fst").read_bytes() == gzip.decompress(
        (iban / "exp/gmm/graph/HCLG.fst.gz").read_bytes()
    )
    assert (tmp_path / "exp/graph/num_pdfs").read_text() == "1232\n"


def test_directories_of_timit(corpora, root, tmp_path):
    done = call(root, "local/timit/from_kaldi.sh", corpora / "kaldi-timit-sample", "data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sizes = {x: len(MatrixScp(tmp_path / "data" / x / "feats.scp")) for x in ("train", "heldout", "dev", "test")}
    assert sizes == {"train": 80, "heldout": 20, "dev": 24, "test": 24}
    speakers = [(tmp_path / "data" / x / "spk2utt").read_text().split("\n") for x in ("train", "heldout")]
    assert not {line[:5] for line in speakers[0]} & {line[:5] for line in speakers[1] if line}


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        ("iban/s5/run.sh", "the folder of the Iban corpus"),
        ("iban/s5/run_kaldi.sh", "Kaldi experiment on Iban"),
        ("iban/s5/run_gmm.sh", "Kaldi experiment on Iban"),
        ("timit/s5/run_kaldi.sh", "Kaldi's TIMIT recipe"),
    ],
)
@pytest.mark.parametrize("args", [(), ("--corpus", "nosuch")])
def test_a_corpus_that_is_not_there(root, tmp_path, recipe, name, args):
    done = call(root, f"egs/{recipe}", *args, cwd=tmp_path)
    assert done.returncode == 1
    assert ("no such file" if args else name) in done.stderr
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize("args", [("iban", "data", "exp/graph"), ("timit", "data")])
def test_an_experiment_without_what_is_needed(root, tmp_path, args):
    (tmp_path / "corpus").mkdir()
    done = call(root, f"local/{args[0]}/from_kaldi.sh", "corpus", *args[1:], cwd=tmp_path)
    assert done.returncode == 1
    assert "no such file" in done.stderr
    assert not (tmp_path / "data").exists()


def test_the_phones_of_timit_have_39_classes(root):
    rows = [line.split("\t") for line in (root / "local/timit/phones.60-48-39.map").read_text().splitlines()]
    assert [len({row[column] for row in rows if len(row) == 3}) for column in range(3)] == [60, 48, 39]
    assert [row for row in rows if len(row) < 3] == [["q"]]
    assert len({tuple(row[1:]) for row in rows if len(row) == 3}) == 48  # each of the 48 is of one class
