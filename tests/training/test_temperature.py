"""Calibration of scores of many classes."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from kernelam.errors import KernelamError
from kernelam.training.temperature import fit_temperature


def drawn(count: int, temperature: float, biases: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    scores = 100 + 30 * rng.standard_normal((count, len(biases)))
    p = torch.softmax(torch.from_numpy(temperature * scores + np.array(biases)), dim=1).numpy()
    return torch.from_numpy(scores), torch.from_numpy(np.array([rng.choice(len(biases), p=row) for row in p]))


def test_what_drew_the_labels_is_found():
    biases = [1.0, -1.0, 0.5, 0.0]
    temperature, found = fit_temperature(*drawn(5000, 0.04, biases))
    assert temperature == pytest.approx(0.04, rel=0.05)
    np.testing.assert_allclose(found - found.mean(), np.array(biases) - np.mean(biases), atol=0.15)


def test_it_is_the_maximum():
    scores, labels = drawn(200, 0.02, [0.5, 0.0, -0.5])

    def loss(given: np.ndarray) -> float:
        log_p = torch.log_softmax(given[0] * scores + torch.from_numpy(given[1:]), dim=1).gather(1, labels[:, None])
        return float(0.5 * (given[1:] ** 2).sum() - log_p.sum())

    best = minimize(loss, np.array([0.01, 0, 0, 0]), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    temperature, biases = fit_temperature(scores, labels)
    np.testing.assert_allclose([temperature, *biases.tolist()], best.x, atol=1e-3)


def test_without_biases_it_is_the_maximum_by_the_temperature_alone():
    scores, labels = drawn(300, 0.03, [0.5, 0.0, -0.5])
    each = np.linspace(0.0, 0.1, 2001)
    log_p = [torch.log_softmax(t * scores, dim=1).gather(1, labels[:, None]).sum().item() for t in each]
    temperature, biases = fit_temperature(scores, labels, biased=False)
    assert temperature == pytest.approx(each[np.argmax(log_p)], abs=1e-4)
    assert not biases.any()
    assert fit_temperature(-scores, labels, biased=False)[0] == 0.0


def test_a_class_without_examples_and_scores_that_are_wrong():
    scores, labels = drawn(500, 0.05, [0.0, 0.0, 0.0])
    _, biases = fit_temperature(torch.nn.functional.pad(scores, (0, 1)), labels)
    assert torch.isfinite(biases).all()
    temperature, biases = fit_temperature(-scores, labels)
    assert temperature == 0.0
    shares = torch.bincount(labels) / len(labels)
    torch.testing.assert_close(torch.softmax(biases, 0), shares, atol=0.01, rtol=0)
    with pytest.raises(KernelamError, match="no heldout example of the classes"):
        fit_temperature(scores[:0], labels[:0])
