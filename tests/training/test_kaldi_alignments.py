"""Alignment directories of Kaldi: in text and in binary, and what does not fit them."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import read_alignments, write_alignments
from kernelam.kaldi.ark import read_ark
from kernelam.kaldi.binary import KaldiWriter
from kernelam.models.gmm import GmmModel
from kernelam.training.packing import TrainingInput, check_alignments, pack

Paths = Callable[[str], tuple[Path, Path]]


@pytest.fixture
def copied(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """copied(name): a copy of data/dev and one of exp/<name>_ali_dev, to be spoilt."""
    monkeypatch.chdir(corpora / "kaldi-timit-sample")

    def make(name: str) -> tuple[Path, Path]:
        shutil.copytree("data/dev", tmp_path / "data", copy_function=shutil.copyfile)
        shutil.copytree(f"exp/{name}_ali_dev", tmp_path / "ali", copy_function=shutil.copyfile)
        return tmp_path / "data", tmp_path / "ali"

    return make


def load(data: Path, ali: Path) -> tuple[np.ndarray, np.ndarray]:
    """All frames and their labels, after every check."""
    pipeline = Pipeline.of_directory(ali)
    given = TrainingInput(data, data, Path("data/lang"), ali, ali, ali.parent / "exp", pipeline, (0, 0))
    store = pack(data, ali, check_alignments(given, "kernel"), pipeline, ali.parent / "frames")
    assert store.labels is not None
    return np.array(store.features), np.array(store.labels)


def write_text(path: Path) -> None:
    """An archive of matrices, again in text."""
    matrices = dict(read_ark(path))
    with open(path, "wb") as stream:
        for key, matrix in matrices.items():
            stream.write(key.encode() + b" ")
            KaldiWriter(stream, binary=False).matrix(matrix)


def test_everything_in_text(corpora: Path, copied: Paths) -> None:
    """final.mdl and tree as Kaldi prints them, the others as it would."""
    data, ali = copied("tri3")
    features, labels = load(data, ali)
    kaldi = corpora / "kaldi-timit-sample/expected/tri3"
    shutil.copyfile(kaldi / "transition-model.txt", ali / "final.mdl")
    shutil.copyfile(kaldi / "tree.txt", ali / "tree")
    for path in sorted(ali.glob("ali.*.gz")):
        alignments = dict(read_alignments(path))
        path.unlink()
        write_alignments(path, alignments, binary=False)
        assert gzip.decompress(path.read_bytes()).isascii()
    for path in sorted(ali.glob("trans.*")):
        write_text(path)
        assert path.read_bytes().isascii()
    again = load(data, ali)
    assert (again[1] == labels).all()
    np.testing.assert_allclose(again[0], features, atol=1e-4)  # Kaldi prints seven digits


def test_a_gmm_in_text(corpora: Path, tmp_path: Path) -> None:
    gmm = GmmModel.read(corpora / "kaldi-timit-sample/exp/tri1/final.mdl")
    gmm.write(tmp_path / "final.mdl", binary=False)
    ContextTree.load(corpora / "kaldi-timit-sample/exp/tri1/tree").save(tmp_path / "tree", binary=False)
    assert (tmp_path / "final.mdl").read_bytes().isascii()
    again = GmmModel.read(tmp_path / "final.mdl")
    features = np.random.default_rng(0).standard_normal((5, gmm.feature_dim)).astype(np.float32)
    np.testing.assert_allclose(again.log_likelihoods(features), gmm.log_likelihoods(features), rtol=1e-4)
    assert TransitionModel.load(tmp_path / "final.mdl").tuples == gmm.transitions.tuples


@pytest.mark.parametrize("more", [-3, 2])
def test_an_alignment_that_is_shorter_or_longer_than_the_features(copied: Paths, more: int) -> None:
    data, ali = copied("tri1")
    alignments = dict(read_alignments(ali / "ali.2.gz"))
    utt, one = next(iter(alignments.items()))
    changed = one[:more] if more < 0 else np.append(one, [one[-1]] * more)
    write_alignments(ali / "ali.2.gz", alignments | {utt: changed.astype(np.int32)})
    sentence = (
        f"utterance {utt} has {len(one)} frames of features in {data} but an alignment of {len(one) + more} frames"
    )
    with pytest.raises(KernelamError, match=f"{sentence} in {ali}"):
        load(data, ali)
    assert not (ali.parent / "frames").exists()


def test_a_speaker_without_statistics(copied: Paths) -> None:
    data, ali = copied("tri1")
    rows = (data / "cmvn.scp").read_text().splitlines(keepends=True)
    (data / "cmvn.scp").write_text("".join(rows[:1] + rows[2:]))
    speaker = rows[1].split()[0]
    with pytest.raises(KernelamError, match=rf"speaker {speaker} of utterance {speaker}.* has no CMVN .*/cmvn.scp"):
        load(data, ali)


def test_a_speaker_without_a_transform(copied: Paths) -> None:
    data, ali = copied("tri3")
    (ali / "trans.2").write_bytes(b"")
    with pytest.raises(KernelamError, match=r"speaker \w+ of utterance \w+ of .* has no transform in .*ali/trans"):
        load(data, ali)
