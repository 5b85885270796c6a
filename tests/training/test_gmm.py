"""Gaussian mixtures against scikit-learn, and against Kaldi's own likelihoods."""

from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.binary import KaldiReader, KaldiWriter
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


@pytest.mark.parametrize(
    ("behind", "message"),
    [
        (b"", "a transition model without an acoustic model"),
        (b"<Nnet3> \nx", "no diagonal GMM: it begins with '<Nnet3>'"),
    ],
)
def test_other_acoustic_models_are_named(corpora, tmp_path, behind, message):
    """Their transition models are read all the same."""
    text = (corpora / "kaldi-timit-sample/expected/tri1/transition-model.txt").read_bytes()
    (tmp_path / "final.mdl").write_bytes(text + behind)
    with pytest.raises(KernelamError, match=message):
        GmmModel.read(tmp_path / "final.mdl")
    assert TransitionModel.load(tmp_path / "final.mdl").num_pdfs == 128


def test_text_models(corpora, tmp_path):
    model = GmmModel.read(corpora / "kaldi-timit-sample/exp/mono/final.mdl")
    model.write(tmp_path / "text", binary=False)
    again = GmmModel.read(tmp_path / "text")
    np.testing.assert_allclose(again.gmms.factors, model.gmms.factors, rtol=1e-6)
    again.write(tmp_path / "again", binary=False)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "text").read_bytes()


def test_a_weight_may_be_zero():
    gmms = DiagGmms(np.array([0, 2]), np.array([1.0, 0.0]), np.zeros((2, 3)), np.ones((2, 3)))
    stream = BytesIO()
    gmms.write(KaldiWriter(stream))
    again = DiagGmms.read(KaldiReader(stream.getvalue(), "final.mdl"))
    assert again.log_likelihoods(np.zeros((1, 3), np.float32)) == pytest.approx(-1.5 * np.log(2 * np.pi))


def test_constants_are_not_trusted():
    """Kaldi computes them again; ours stay as they are in the file only if they belong there."""
    gmms = DiagGmms(np.array([0, 1]), np.ones(1), np.zeros((1, 3)), np.ones((1, 3)))
    right, gmms.gconsts = gmms.gconsts, gmms.gconsts + 1
    stream = BytesIO()
    gmms.write(KaldiWriter(stream))
    assert DiagGmms.read(KaldiReader(stream.getvalue(), "final.mdl")).gconsts == right


def test_damaged_mixtures_are_sentences(corpora):
    data = (corpora / "kaldi-timit-sample/exp/mono/final.mdl").read_bytes()
    start = data.index(b"<DIMENSION>")
    for end in range(start, len(data), 9973):
        with pytest.raises(KernelamError, match=r"x\.mdl"):
            DiagGmms.read(KaldiReader(b"\0B" + data[start:end], "x.mdl"))
