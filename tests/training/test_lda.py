"""LDA against scikit-learn, MLLT against what it is to maximise."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from kernelam.errors import KernelamError
from kernelam.models.gmm import DiagGmms
from kernelam.training.lda import fit_lda, fit_mllt


@pytest.fixture
def frames() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    classes = rng.integers(6, size=4000).astype(np.int32)
    mix = rng.standard_normal((8, 8))
    x = (2.0 * rng.standard_normal((6, 8))[classes] + rng.standard_normal((4000, 8))) @ mix
    return x.astype(np.float32), classes


def test_lda_spans_what_scikit_learns_does(frames):
    x, classes = frames
    hidden = np.where(np.arange(len(x)) < 100, -1, classes).astype(np.int32)  # silence, say
    ours = fit_lda(((x[start : start + 500], hidden[start : start + 500]) for start in range(0, 4000, 500)), 7, 3)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(x[100:], classes[100:]).scalings_[:, :3].T
    angle = np.linalg.svd(np.linalg.qr(ours.T)[0].T @ np.linalg.qr(theirs.T)[0])[1]
    np.testing.assert_allclose(angle, 1.0, atol=1e-5)
    away = np.concatenate([x[100:][classes[100:] == c] - x[100:][classes[100:] == c].mean(axis=0) for c in range(6)])
    within = ours @ (away.T @ away / len(away)) @ ours.T
    np.testing.assert_allclose(within, np.eye(3), atol=1e-4)


@pytest.mark.parametrize("dim", [0, 9])
def test_dimensions_that_cannot_be(frames, dim):
    with pytest.raises(KernelamError, match=f"LDA to {dim} dimensions of 8"):
        fit_lda([frames], 6, dim)


def test_constant_features_are_a_sentence(frames):
    x, classes = frames
    x[:, 3] = 1.0
    with pytest.raises(KernelamError, match="4000 frames within 6 classes is singular"):
        fit_lda([(x, classes)], 6, 3)


def log_likelihood(gmms: DiagGmms, x: np.ndarray, pdfs: np.ndarray, A: np.ndarray) -> float:
    """Of single Gaussians at the means of turned frames, with their old variances."""
    turned = x @ A.T
    away = turned - (gmms.means @ A.T)[pdfs]
    return float(np.linalg.slogdet(A)[1] - 0.5 * (away**2 / gmms.variances[pdfs]).sum(axis=1).mean())


def test_mllt_is_the_best_turn(frames, monkeypatch):
    """A numerical search from the identity ends nowhere higher, and the gain is that of the likelihood."""
    x, classes = (part[:1500] for part in frames)
    x = x[:, :4]
    means = np.stack([x[classes == c].mean(axis=0) for c in range(6)]).astype(np.float64)
    variances = np.stack([x[classes == c].var(axis=0) for c in range(6)]).astype(np.float64)
    gmms = DiagGmms(np.arange(7), np.ones(6), means, variances)
    monkeypatch.setattr("kernelam.training.lda.ROUNDS", 2000)  # the last steps are slow: 200 are within 2e-4
    A, gain = fit_mllt(gmms, x, classes)
    ours = log_likelihood(gmms, x, classes, A)
    start = log_likelihood(gmms, x, classes, np.eye(4))
    assert gain == pytest.approx(ours - start, rel=1e-3)
    assert gain > 0.1
    best = minimize(lambda a: -log_likelihood(gmms, x, classes, a.reshape(4, 4)), np.eye(4).ravel(), method="BFGS")
    assert ours == pytest.approx(-best.fun, abs=1e-5)
