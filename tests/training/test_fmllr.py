"""fMLLR against the likelihood that it is to maximise, and against Kaldi's own transforms."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.frontend.transforms import apply_linear, read_transforms
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.kaldi.tables import read_table
from kernelam.models.gmm import DiagGmms, GmmModel
from kernelam.training.fmllr import Collector, FmllrStats, Occupied, composed, fit_fmllr, objective


@pytest.fixture
def gmms() -> DiagGmms:
    rng = np.random.default_rng(0)
    return DiagGmms(
        np.array([0, 2, 3, 6]),
        np.array([0.3, 0.7, 1.0, 0.2, 0.5, 0.3]),
        3.0 * rng.standard_normal((6, 4)),
        rng.uniform(0.3, 2.0, (6, 4)),
    )


def occupied(pdfs: np.ndarray, weight: float = 1.0) -> Occupied:
    return Occupied(np.arange(len(pdfs)), pdfs.astype(np.int32), np.full(len(pdfs), weight, np.float32))


def sample(gmms: DiagGmms, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frames of the model, seen through an affine map; their pdfs; the inverse of the map."""
    rng = np.random.default_rng(1)
    pdfs = rng.integers(3, size=size)
    chosen = [rng.choice(np.arange(gmms.first[p], gmms.first[p + 1]), p=_shares(gmms, p)) for p in pdfs]
    y = gmms.means[chosen] + np.sqrt(gmms.variances[chosen]) * rng.standard_normal((size, 4))
    A, b = np.eye(4) + 0.2 * rng.standard_normal((4, 4)), rng.standard_normal(4)
    inverse = np.linalg.inv(A)
    return (y @ A.T + b).astype(np.float32), pdfs, np.column_stack([inverse, -inverse @ b])


def _shares(gmms: DiagGmms, pdf: int) -> np.ndarray:
    return gmms.weights[gmms.first[pdf] : gmms.first[pdf + 1]]


def likelihood(gmms: DiagGmms, x: np.ndarray, pdfs: np.ndarray, W: np.ndarray) -> float:
    scores = gmms.log_likelihoods(apply_linear(x, W.astype(np.float32)))
    return float(np.linalg.slogdet(W[:, :-1])[1] + scores[np.arange(len(x)), pdfs].mean(dtype=np.float64))


def test_repeated_estimates_find_the_map_that_hid_the_frames(gmms):
    x, pdfs, truth = sample(gmms, 20000)
    W, told = np.eye(4, 5), [likelihood(gmms, x, pdfs, np.eye(4, 5))]
    for _ in range(8):
        stats = FmllrStats.empty(4)
        Collector(gmms).add(stats, apply_linear(x, W.astype(np.float32)), occupied(pdfs))
        step, gain = fit_fmllr(stats)
        W = composed(step, W)
        told.append(likelihood(gmms, x, pdfs, W))
        assert told[-1] - told[-2] >= gain - 1e-3  # EM gains at least what its auxiliary function does
    np.testing.assert_allclose(W, truth, atol=0.05)


def test_no_other_map_is_better(gmms):
    x, pdfs, _ = sample(gmms, 1000)
    stats = FmllrStats.empty(4)
    for start in (0, 400):  # in two parts, with a weight
        part = slice(start, 400 if start == 0 else None)
        Collector(gmms).add(stats, x[part], occupied(pdfs[part], 0.7))
    assert stats.beta == pytest.approx(700, rel=1e-5)
    W, _ = fit_fmllr(stats)
    best = minimize(lambda w: -objective(stats, w.reshape(4, 5)) / 700, np.eye(4, 5).ravel(), method="BFGS")
    assert objective(stats, W) / 700 == pytest.approx(-best.fun, abs=1e-4)


def test_frames_in_several_states_count_in_each(gmms):
    x, pdfs, _ = sample(gmms, 600)
    both, parts = FmllrStats.empty(4), FmllrStats.empty(4)
    twice = np.tile(np.arange(600), 2)
    shared = Occupied(twice, np.concatenate([pdfs, (pdfs + 1) % 3]).astype(np.int32), np.full(1200, 0.5, np.float32))
    Collector(gmms).add(both, x, shared)
    for labels in (pdfs, (pdfs + 1) % 3):
        Collector(gmms).add(parts, x, occupied(labels, 0.5))
    np.testing.assert_allclose(both.K, parts.K, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(both.G, parts.G, rtol=1e-4, atol=1e-2)


def test_too_little_speech_is_left_as_it_is(gmms):
    x, pdfs, _ = sample(gmms, 400)
    stats = FmllrStats.empty(4)
    Collector(gmms).add(stats, x, occupied(pdfs))
    W, gain = fit_fmllr(stats)
    np.testing.assert_array_equal(W, np.eye(4, 5))
    assert gain == 0.0


def test_a_judge_of_another_size_is_refused(gmms):
    with pytest.raises(KernelamError, match="2 and 6 Gaussians: they are not of one training"):
        Collector(gmms, DiagGmms(np.array([0, 2]), np.full(2, 0.5), np.zeros((2, 4)), np.ones((2, 4))))


def test_as_likely_as_with_the_transforms_of_kaldi(corpora, monkeypatch):
    """Where Kaldi's own transforms are taken as the start, ours on top of them raise the likelihood, and hardly."""
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    model = GmmModel.read("exp/tri3/final.mdl")
    transforms, alignments = read_transforms(model_dir := _path("exp/tri3_ali")), read_alignment_dir(model_dir)
    speakers = read_table("data/train/utt2spk")
    features = Pipeline.of_directory(_path("exp/tri3"), "fmllr").open("data/train", model_dir)
    silence = model.transitions.pdf[1:][model.transitions.phone[1:] == 1]
    for speaker in sorted(transforms)[:3]:
        utts = [utt for utt, who in speakers.items() if who == speaker and utt in alignments]
        x = np.concatenate([features[utt] for utt in utts])
        pdfs = np.concatenate([model.transitions.pdf[alignments[utt]] for utt in utts])
        speech = ~np.isin(pdfs, silence)
        stats = FmllrStats.empty(40)
        Collector(model.gmms).add(stats, x[speech], occupied(pdfs[speech]))
        _, gain = fit_fmllr(stats)
        assert 0.0 < gain < 1.5  # of about 40 a frame that one from nothing gains


def _path(text: str):
    from pathlib import Path

    return Path(text)
