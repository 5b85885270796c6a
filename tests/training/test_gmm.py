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
from kernelam.training.gmm import assembled, reestimate, share, split, targets, viterbi_update


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
        gmms = split(gmms, targets(np.bincount(pdfs[50:]), total), range(2), seed=1)
        for _ in range(4):
            gmms, log_likelihood = reestimate(gmms, data, pdfs)
            story.append(log_likelihood)
    assert all(later >= earlier - 1e-4 for earlier, later in pairwise(story))
    assert story[-1] > story[3] + 0.1
    assert len(gmms.weights) == 8
    np.testing.assert_allclose(np.add.reduceat(gmms.weights, gmms.first[:-1]), 1.0)


@pytest.mark.parametrize("jobs", [1, 2, 3, 7])
def test_a_model_does_not_depend_on_the_number_of_jobs(data, jobs):
    rng = np.random.default_rng(2)
    pdfs = rng.choice(5, len(data), p=[0.5, 0.2, 0.2, 0.09, 0.01]).astype(np.int32)
    gmms = DiagGmms(np.arange(6), np.ones(5), rng.standard_normal((5, 4)), np.ones((5, 4)))
    parts = [share(5, job, jobs) for job in range(1, jobs + 1)]
    assert sorted(pdf for part in parts for pdf in part) == list(range(5))
    whole = viterbi_update(gmms, data, pdfs, [5, 9, 14], range(5), seed=1)
    made = assembled([viterbi_update(gmms, data, pdfs, [5, 9, 14], part, seed=1) for part in parts])
    assert len(made.weights) == 14
    for name in ("first", "weights", "means", "variances"):
        np.testing.assert_array_equal(getattr(made, name), getattr(whole, name))


def test_means_alone(data):
    pdfs = (data[:, 0] > 0).astype(np.int32)
    gmms = DiagGmms(np.arange(3), np.ones(2), np.zeros((2, 4)), np.full((2, 4), 2.0))
    moved = viterbi_update(gmms, data, pdfs, [0, 0], range(2), seed=1, means_only=True)
    np.testing.assert_allclose(moved.means, [data[pdfs == pdf].mean(axis=0) for pdf in (0, 1)], rtol=1e-5)
    np.testing.assert_array_equal(moved.variances, gmms.variances)


def test_targets_go_with_the_power_of_the_frames():
    counts = np.array([16000, 1000, 0, 30])
    sizes = targets(counts, 60)
    assert sizes.sum() == 60
    assert sizes[2] == sizes[3] == 1  # too few frames for another
    np.testing.assert_allclose(sizes[0] / sizes[1], 2.0, rtol=0.06)
    assert targets(counts, 2).tolist() == [1, 1, 1, 1]
    assert targets(counts, 10**9).tolist() == [800, 50, 1, 1]  # twenty frames each


def test_means_of_other_features_by_the_posteriors_of_these(data):
    """What speaker adaptive training makes for features without transforms."""
    ours = mixture(data, 3)
    pdfs = np.zeros(len(data), np.int32)
    straight, _ = reestimate(ours, data, pdfs)
    moved, _ = reestimate(ours, data, pdfs, 2.0 * data + 1.0, drop=False)
    np.testing.assert_allclose(moved.means, 2.0 * straight.means + 1.0, rtol=1e-5)
    np.testing.assert_allclose(moved.variances, 4.0 * straight.variances, rtol=1e-4)
    np.testing.assert_array_equal(moved.weights, straight.weights)


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
