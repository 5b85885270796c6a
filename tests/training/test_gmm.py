"""Gaussian mixtures against scikit-learn, and against Kaldi's own likelihoods."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from kernelam.errors import KernelamError
from kernelam.kaldi.ark import read_ark
from kernelam.kaldi.binary import KaldiReader
from kernelam.models.gmm import DiagGmms, GmmModel
from kernelam.training.gmm import reestimate, split


@pytest.fixture
def data() -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((3, 4)) * 3
    return (centres[rng.integers(3, size=3000)] + rng.standard_normal((3000, 4))).astype(np.float32)


def mixture(data: np.ndarray, size: int) -> DiagGmms:
    rng = np.random.default_rng(1)
    means = data[rng.integers(len(data), size=size)].astype(np.float64)
    return DiagGmms(np.array([0, size]), np.full(size, 1 / size), means, np.ones((size, data.shape[1])))


def test_em_is_scikit_learns(data):
    ours = mixture(data, 3)
    theirs = GaussianMixture(
        3, covariance_type="diag", reg_covar=0.0, weights_init=ours.weights, means_init=ours.means,
        precisions_init=1 / ours.variances, max_iter=1, tol=0.0,
    )  # fmt: skip
    theirs.fit(data)
    before = ours.log_likelihoods(data).mean()
    updated, log_likelihood = reestimate(ours, data, np.zeros(len(data), np.int32))
    assert log_likelihood == pytest.approx(float(before), rel=1e-5)
    np.testing.assert_allclose(updated.means, theirs.means_, rtol=1e-3)
    np.testing.assert_allclose(updated.variances, theirs.covariances_, rtol=1e-3)
    np.testing.assert_allclose(updated.weights, theirs.weights_, rtol=1e-3)
    np.testing.assert_allclose(updated.log_likelihoods(data)[:, 0], theirs.score_samples(data), atol=1e-3)


def test_likelihood_never_falls_and_splitting_raises_it(data):
    pdfs = (data[:, 0] > 0).astype(np.int32)
    pdfs[:50] = -1  # not aligned
    gmms = DiagGmms(np.array([0, 1, 2]), np.ones(2), np.zeros((2, 4)), np.ones((2, 4)))
    story = []
    for total in (2, 4, 8):
        gmms = split(gmms, np.bincount(pdfs[50:]), total, seed=1)
        for _ in range(4):
            gmms, log_likelihood = reestimate(gmms, data, pdfs)
            story.append(log_likelihood)
    assert all(later >= earlier - 1e-4 for earlier, later in pairwise(story))
    assert story[-1] > story[3] + 0.1
    assert len(gmms.weights) == 8
    np.testing.assert_allclose(np.add.reduceat(gmms.weights, gmms.first[:-1]), 1.0)


def test_a_pdf_without_frames_keeps_its_gaussian(data):
    gmms = DiagGmms(np.array([0, 1, 2]), np.ones(2), np.zeros((2, 4)), np.full((2, 4), 7.0))
    updated, _ = reestimate(gmms, data, np.zeros(len(data), np.int32))
    np.testing.assert_array_equal(updated.variances[1], np.full(4, 7.0))
    assert updated.weights[1] == 1.0


def test_kaldis_likelihoods(corpora, monkeypatch):
    """gmm-compute-likes of Kaldi on the same features: within 0.01."""
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    model = GmmModel.read("exp/tri1/final.mdl")
    features = model.pipeline.open("data/test")
    expected = dict(read_ark("expected/tri1/loglikes/test.ark"))
    assert len(expected) == 24
    worst = max(float(np.abs(model.log_likelihoods(features[utt]) - expected[utt]).max()) for utt in expected)
    assert worst < 0.01


@pytest.mark.parametrize("system", ["mono", "tri1"])
def test_kaldis_model_written_back(corpora, tmp_path, system):
    source = corpora / "kaldi-timit-sample/exp" / system / "final.mdl"
    model = GmmModel.read(source)
    model.write(tmp_path / "final.mdl")
    again = GmmModel.read(tmp_path / "final.mdl")
    np.testing.assert_allclose(again.gmms.means, model.gmms.means, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(again.gmms.gconsts, model.gmms.gconsts, rtol=1e-5)
    assert (tmp_path / "final.mdl").stat().st_size == source.stat().st_size


def test_damaged_mixtures_are_sentences(corpora):
    data = (corpora / "kaldi-timit-sample/exp/mono/final.mdl").read_bytes()
    start = data.index(b"<DIMENSION>")
    for end in range(start, len(data), 9973):
        with pytest.raises(KernelamError, match=r"x\.mdl"):
            DiagGmms.read(KaldiReader(b"\0B" + data[start:end], "x.mdl"))
