import shutil
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.frontend import cmvn
from kernelam.kaldi.ark import ArkWriter, MatrixScp


def noise(rows: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((rows, 4)) * [1, 5, 0.1, 30] + 7).astype(np.float32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "utt2spk").write_text("a-1 a\na-2 a\nb-1 b\n")
    with ArkWriter(tmp_path / "f.ark", data / "feats.scp") as writer:
        for i, utt in enumerate(("a-1", "a-2", "b-1")):
            writer.write(utt, noise(50 + i, i))
    return data


def test_statistics_are_sums(data: Path, tmp_path: Path) -> None:
    cmvn.write_cmvn(data, tmp_path / "cmvn.ark")
    stats = MatrixScp(data / "cmvn.scp", double=True)
    assert list(stats) == ["a", "b"]
    both = np.vstack([noise(50, 0), noise(51, 1)]).astype(np.float64)
    expected = np.array([[*both.sum(axis=0), 101], [*(both**2).sum(axis=0), 0]])
    assert stats["a"].dtype == np.float64
    np.testing.assert_allclose(stats["a"], expected, rtol=1e-14)


def test_normalised_features_have_mean_0_and_variance_1() -> None:
    feats = noise(500)
    stats = cmvn.cmvn_stats([feats])
    means = cmvn.apply(feats, stats)
    np.testing.assert_allclose(means.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(means, feats - feats.mean(axis=0, dtype=np.float64), atol=1e-5)
    both = cmvn.apply(feats, stats, norm_vars=True)
    np.testing.assert_allclose(both.std(axis=0), 1, atol=1e-4)
    assert both.dtype == means.dtype == np.float32


def test_a_constant_dimension_has_its_variance_floored() -> None:
    feats = np.full((10, 1), 0.5, np.float32)
    np.testing.assert_array_equal(cmvn.apply(feats, cmvn.cmvn_stats([feats]), norm_vars=True), 0)
    shifted = cmvn.apply(feats + 1, cmvn.cmvn_stats([feats]), norm_vars=True)
    np.testing.assert_allclose(shifted, 1e10, rtol=1e-3)  # 1 / √1e-20


@pytest.mark.parametrize(
    ("stats", "sentence"),
    [
        (np.ones((2, 4)), "u1: statistics are 2 × 4, but features of 4 dimensions need 2 × 5"),
        (np.zeros((2, 5)), "u1: statistics are of 0 frames"),
    ],
)
def test_bad_statistics(stats: np.ndarray, sentence: str) -> None:
    with pytest.raises(KernelamError, match=sentence):
        cmvn.apply(noise(5), stats, where="u1")


def test_an_utterance_without_features(data: Path, tmp_path: Path) -> None:
    (data / "utt2spk").write_text("a-1 a\na-2 a\nb-1 b\nb-2 b\n")
    with pytest.raises(KernelamError, match=r"feats\.scp has no b-2"):
        cmvn.write_cmvn(data, tmp_path / "cmvn.ark")
    assert not (data / "cmvn.scp").exists()
    assert not (tmp_path / "cmvn.ark").exists()


def test_parity_with_kaldi(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    shutil.copytree("data/dev", tmp_path / "dev")
    (tmp_path / "dev/cmvn.scp").unlink()
    cmvn.write_cmvn(tmp_path / "dev", tmp_path / "cmvn.ark")
    ours, theirs = MatrixScp(tmp_path / "dev/cmvn.scp", double=True), MatrixScp("data/dev/cmvn.scp", double=True)
    assert list(ours) == list(theirs)
    for speaker in ours:
        frames = theirs[speaker][0, -1]
        np.testing.assert_allclose(ours[speaker], theirs[speaker], rtol=1e-6, atol=5e-7 * frames)
