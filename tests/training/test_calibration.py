"""Logistic maps of many problems against scikit-learn, and where there is no maximum."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from kernelam.training import calibration
from kernelam.training.calibration import Scores, calibrate

CLASSES = 4
PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
EVEN = torch.full((6,), 0.5)


def by_class(f: np.ndarray, labels: np.ndarray):
    """f of all pairs and frames, handed out class by class and only for its own pairs."""

    def source() -> Iterator[Scores]:
        for label in range(CLASSES):
            own = [number for number, pair in enumerate(PAIRS) if label in pair]
            first = torch.tensor([PAIRS[number][0] == label for number in own])
            yield Scores(torch.from_numpy(f[labels == label][:, own]), torch.tensor(own), first)

    return source


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=600)
    f = rng.standard_normal((600, 6)).astype(np.float32)
    for number, (i, j) in enumerate(PAIRS):
        f[:, number] += (0.3 + 0.2 * number) * ((labels == i).astype(np.float32) - (labels == j))
    return f, labels


@pytest.mark.parametrize("elements", [1 << 20, 64])
def test_pairs_are_those_of_scikit_learn(data, monkeypatch, elements: int) -> None:
    monkeypatch.setattr(calibration, "ELEMENTS", elements)
    f, labels = data
    found = calibrate(by_class(f, labels), EVEN)
    for number, (i, j) in enumerate(PAIRS):
        here = (labels == i) | (labels == j)
        exact = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(f[here, number, None], labels[here] == i)
        np.testing.assert_allclose(found[number], [exact.coef_[0, 0], exact.intercept_[0]], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("unit", [1e-14, 1e-8, 1e6])
def test_outputs_of_any_size(data, unit: float) -> None:
    """Those of a large ridge are small: the probabilities are the same."""
    f, labels = data
    found, scaled = calibrate(by_class(f, labels), EVEN), calibrate(by_class(f * np.float32(unit), labels), EVEN)
    np.testing.assert_allclose(scaled * torch.tensor([unit, 1.0]), found, rtol=1e-3, atol=1e-4)


def test_one_against_the_rest(data) -> None:
    f, labels = data
    first = torch.from_numpy(labels)[:, None] == torch.arange(CLASSES)
    f[:, :4] += first.float().numpy()
    chunks = [
        Scores(torch.from_numpy(f[part, :4]), torch.arange(4), first[part]) for part in (slice(250), slice(250, None))
    ]
    found = calibrate(lambda: iter(chunks), EVEN[:4])
    for number in range(4):
        exact = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(f[:, number, None], labels == number)
        np.testing.assert_allclose(found[number], [exact.coef_[0, 0], exact.intercept_[0]], rtol=1e-3, atol=1e-3)


def test_separated_pairs_have_the_targets_of_platt(data) -> None:
    """The derivatives of their likelihood are zero; a pair that one frame keeps from being separated is fitted too."""
    f, labels = data
    f[:, 0] = np.where(labels == 0, 1.0, -1.0) + 0.1 * f[:, 0].clip(-1, 1)
    f[:, 1] = np.where(labels == 0, 1.0, -1.0)
    f[np.flatnonzero(labels == 2)[0], 1] = 1.5
    found = calibrate(by_class(f, labels), EVEN).double().numpy()
    assert np.isfinite(found).all()
    here = labels < 2
    x, first = f[here, 0].astype(float), labels[here] == 0
    targets = np.where(first, (first.sum() + 1) / (first.sum() + 2), 1 / ((~first).sum() + 2))
    error = 1 / (1 + np.exp(-found[0, 0] * x - found[0, 1])) - targets
    assert abs(error.sum()) < 1e-3
    assert abs((error * x).sum()) < 1e-3
    assert found[0, 0] > 3


def test_what_is_not_known_has_the_slope_of_the_others_and_its_share_of_training(data) -> None:
    f, labels = data
    kept = labels != 3
    shares = np.array([0.5, 0.5, 1 - 1e-4, 0.5, 0.9, 0.4])
    known = np.array([3 not in pair for pair in PAIRS])
    found = calibrate(by_class(f[kept], labels[kept]), torch.from_numpy(shares)).double().numpy()
    np.testing.assert_allclose(found[~known, 0], np.median(found[known, 0]), rtol=1e-6)
    of_mean = 1 / (1 + np.exp(-found[:, 0] * (2 * shares - 1) - found[:, 1]))
    np.testing.assert_allclose(of_mean[~known], shares[~known], rtol=1e-5)
    none = calibrate(by_class(f[:0], labels[:0]), torch.from_numpy(shares)).double().numpy()
    np.testing.assert_allclose(none[:, 0], 2.0)


def test_constant_scores_tell_the_shares(data) -> None:
    f, labels = data
    f[:] = 0.5
    found = calibrate(by_class(f, labels), EVEN).double()
    mu = torch.sigmoid(0.5 * found[:, 0] + found[:, 1])
    counts = np.bincount(labels)
    shares = [counts[i] / (counts[i] + counts[j]) for i, j in PAIRS]
    np.testing.assert_allclose(mu, shares, atol=0.01)


def test_an_order_that_is_wrong_is_not_turned_round(data) -> None:
    f, labels = data
    found = calibrate(by_class(-f, labels), EVEN)
    counts = np.bincount(labels)
    for number, (i, j) in enumerate(PAIRS):
        assert found[number, 0] == 0.0
        assert float(found[number, 1]) == pytest.approx(np.log((counts[i] + 1) / (counts[j] + 1)), rel=1e-4)
