"""Weights of logits against scipy's optimiser, derivatives against differences."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax

from kernelam.training.logit_weights import HeldoutLogits, fit_weights

CLASSES = 7


class Members:
    """Stands for a combination: its input is the number of a frame, and the logits of the frame are looked up."""

    num_classes = CLASSES

    def __init__(self, logits: np.ndarray) -> None:
        self.table, self.passes = torch.from_numpy(logits.astype(np.float32)), 0
        self.members = range(len(logits))

    def logits_of_members(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += int(x[0] == 0)
        return self.table[:, x]


class Frames:
    device = "cpu"

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = torch.from_numpy(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def in_order(self, size: int):
        for part in torch.split(torch.arange(len(self)), size):
            yield part, self.labels[part]


def problem(seed: int, useful: list[float], frames: int = 700) -> tuple[np.ndarray, np.ndarray]:
    """Logits of members that know the label as much as `useful` says, up to constants of frames, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=frames)
    logits = rng.standard_normal((len(useful), frames, CLASSES)) + 50 * rng.standard_normal((len(useful), frames, 1))
    logits[:, np.arange(frames), labels] += np.array(useful)[:, None]
    return logits.astype(np.float32), labels


def heldout(logits: np.ndarray, labels: np.ndarray, **options: int) -> HeldoutLogits:
    return HeldoutLogits(Members(logits), Frames(labels), **options)  # type: ignore[arg-type]


def naive_loss(a: np.ndarray, logits: np.ndarray, labels: np.ndarray) -> float:
    log_p = log_softmax(np.tensordot(a, logits.astype(np.float64), 1), axis=1)
    return -float(log_p[np.arange(len(labels)), labels].mean())


def reference(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    count = len(logits)
    found = minimize(
        naive_loss, np.ones(count) / count, (log_softmax(logits.astype(np.float64), axis=2), labels),
        method="L-BFGS-B", bounds=[(0, None)] * count, options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
    )  # fmt: skip
    return found.x


@pytest.mark.parametrize(
    "useful",
    [[1.0, 2.0], [0.5, 2.0, 1.5], [2.0, -0.5], [-1.0, 1.0, -0.3, 0.6], [3.0, 0.0, 0.0, 2.0, -2.0, 1.0], [1.0]],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_weights_are_those_of_lbfgs(seed, useful):
    logits, labels = problem(seed, useful)
    weights = fit_weights(heldout(logits, labels).derivatives, len(useful))
    expected = reference(logits, labels)
    np.testing.assert_allclose(weights, expected, atol=1e-4)
    assert (weights >= 0).all()
    assert (weights[np.array(useful) <= -0.5] == 0).all()
    assert naive_loss(weights, logits, labels) <= naive_loss(expected, logits, labels) + 1e-12


def test_derivatives_are_those_of_differences():
    logits, labels = problem(3, [1.0, 0.3, 2.0])
    held, a, h = heldout(logits, labels), np.array([0.3, 0.8, 0.1]), 1e-5
    loss, gradient, hessian = held.derivatives(a)
    assert loss == pytest.approx(naive_loss(a, logits, labels), abs=1e-9)
    for i, e in enumerate(np.eye(3) * h):
        slope = (naive_loss(a + e, logits, labels) - naive_loss(a - e, logits, labels)) / (2 * h)
        assert gradient[i] == pytest.approx(slope, abs=1e-7)
        curvature = (held.derivatives(a + e)[1] - held.derivatives(a - e)[1]) / (2 * h)
        np.testing.assert_allclose(hessian[i], curvature, atol=1e-7)


def test_losses_of_the_members():
    logits, labels = problem(4, [1.0, 2.0])
    expected = [naive_loss(row, logits, labels) for row in np.eye(2)]
    np.testing.assert_allclose(heldout(logits, labels).losses(), expected, atol=1e-9)


def test_what_does_not_fit_in_memory_is_computed_anew_with_the_same_result(monkeypatch):
    logits, labels = problem(5, [1.0, 2.0], frames=1300)  # three batches
    kept, streamed = heldout(logits, labels), heldout(logits, labels, kept=logits.nbytes - 1)
    np.testing.assert_array_equal(fit_weights(kept.derivatives, 2), fit_weights(streamed.derivatives, 2))
    assert kept.model.passes == 1  # type: ignore[attr-defined]
    assert 3 <= streamed.model.passes <= 12  # type: ignore[attr-defined]
    monkeypatch.setattr("kernelam.training.logit_weights.available", lambda _: 2 * logits.nbytes - 2)
    assert heldout(logits, labels)._kept is None


def test_equal_members_share_the_weight_and_are_no_worse_than_one():
    logits, labels = problem(6, [1.5])
    both = np.concatenate([logits, logits])
    weights = fit_weights(heldout(both, labels).derivatives, 2)
    alone = fit_weights(heldout(logits, labels).derivatives, 1)
    assert weights[0] == pytest.approx(weights[1])
    assert weights.sum() == pytest.approx(alone[0], abs=1e-4)
    assert naive_loss(weights, both, labels) <= naive_loss(np.ones(1), logits, labels)


@pytest.mark.parametrize("scale", [1e-3, 30.0, 1000.0])
def test_far_from_the_start(scale):
    """Logits so large, or so small, that a whole Newton step from the start leads astray."""
    logits, labels = problem(7, [1.0, 2.0])
    weights = fit_weights(heldout(scale * log_softmax(logits, axis=2), labels).derivatives, 2)
    np.testing.assert_allclose(weights * scale, reference(logits, labels), rtol=1e-3, atol=1e-4)


def test_members_that_know_nothing():
    """Equal logits for all classes: any weights are as good, and none is looked for."""
    _, labels = problem(8, [1.0])
    weights = fit_weights(heldout(np.zeros((2, len(labels), CLASSES)), labels).derivatives, 2)
    np.testing.assert_array_equal(weights, [0.5, 0.5])


def test_members_that_are_all_wrong_have_no_weight():
    logits, labels = problem(9, [-3.0, -2.0])
    np.testing.assert_array_equal(fit_weights(heldout(logits, labels).derivatives, 2), [0.0, 0.0])


def test_labels_that_are_always_found_end_with_finite_weights():
    logits, labels = problem(10, [40.0, 40.0], frames=50)
    weights = fit_weights(heldout(logits, labels).derivatives, 2)
    assert np.isfinite(weights).all()
    assert naive_loss(weights, logits, labels) < 1e-9


def test_a_weight_that_comes_close_to_zero_is_not_in_the_way_of_the_others():
    """Problems on which steps were cut off again and again by a weight of 1e-11, far from the solution."""
    rng = np.random.default_rng(0)
    for trial in range(1767):
        count = int(rng.integers(2, 7))
        root = rng.standard_normal((count, count)) + rng.uniform(0, 3) * rng.standard_normal((count, 1))
        H = root @ root.T / count + 1e-3 * np.eye(count)
        b = rng.standard_normal(count) * rng.uniform(0, 3)
        if trial in (1642, 1753, 1766):
            a = fit_weights(lambda a, H=H, b=b: (0.5 * a @ H @ a - b @ a, H @ a - b, H), count)
            gradient = H @ a - b
            assert (a >= 0).all()
            assert (gradient > -1e-5).all()
            assert (np.abs(a * gradient) < 1e-5).all()
