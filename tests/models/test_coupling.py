"""Coupled probabilities against a quadratic program, and where the answer is known."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from kernelam.models.coupling import couple, quadratic_form


def pairs(classes: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(classes, 1)


def matrix(mu: np.ndarray, classes: int) -> np.ndarray:
    """μ_ij in row i and column j."""
    i, j = pairs(classes)
    found = np.zeros((classes, classes))
    found[i, j], found[j, i] = mu, 1.0 - mu
    return found


def loss(p: np.ndarray, wins: np.ndarray) -> float:
    """Σ_i Σ_{j≠i} (μ_ji p_i − μ_ij p_j)², as eq. 7 is written."""
    return float(np.square(wins.T * p[:, None] - wins * p[None]).sum())


def quadratic_program(mu: np.ndarray, classes: int) -> np.ndarray:
    wins = matrix(mu, classes)
    found = minimize(
        loss,
        np.full(classes, 1.0 / classes),
        (wins,),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * classes,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success
    return found.x


@pytest.mark.parametrize("classes", range(2, 13))
def test_random_pairs_against_a_quadratic_program(classes: int) -> None:
    rng = np.random.default_rng(classes)
    even = rng.uniform(size=(2, classes * (classes - 1) // 2))
    sharp = 1.0 / (1.0 + np.exp(-8.0 * rng.standard_normal(even.shape)))  # near 0 and 1
    for mu in (*even, *sharp):
        found = couple(torch.from_numpy(mu[None]), classes)[0].numpy()
        exact = quadratic_program(mu, classes)
        assert found.sum() == pytest.approx(1.0)
        assert (found >= 0.0).all()
        assert loss(found, matrix(mu, classes)) <= loss(exact, matrix(mu, classes)) + 1e-9
        np.testing.assert_allclose(found, exact, atol=2e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("classes", [2, 5, 40])
def test_pairs_that_agree_are_taken_at_their_word(classes: int, dtype: torch.dtype) -> None:
    p = np.random.default_rng(0).dirichlet(np.full(classes, 0.5), size=20) + 1e-4
    p /= p.sum(axis=1, keepdims=True)
    i, j = pairs(classes)
    found = couple(torch.from_numpy(p[:, i] / (p[:, i] + p[:, j])).to(dtype), classes)
    np.testing.assert_allclose(found, p, atol=1e-9 if dtype == torch.float64 else 2e-5)


def test_threads_change_nothing_and_stay_as_they_were() -> None:
    mu, before, found = torch.rand(20, 60 * 59 // 2), torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(couple(mu, 60))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


def test_certain_pairs_are_no_harm() -> None:
    """One class wins against all, all others are even."""
    classes = 6
    mu = torch.full((1, 15), 0.5)
    mu[:, : classes - 1] = 1.0
    p = couple(mu, classes)[0]
    assert p[0] > 0.999
    assert torch.isfinite(p).all()
    p = couple(1.0 - mu, classes)[0]
    assert p[0] < 1e-3
    torch.testing.assert_close(p[1:], torch.full((5,), 0.2), rtol=0, atol=1e-3)


def test_the_form_is_that_of_the_loss() -> None:
    mu = np.random.default_rng(0).uniform(size=10)
    upper = quadratic_form(torch.from_numpy(mu[None]), 5)[0].numpy()
    Q = upper + np.triu(upper, 1).T
    p = np.array([0.1, 0.3, 0.2, 0.15, 0.25])
    assert 2.0 * p @ Q @ p == pytest.approx(loss(p, matrix(mu, 5)))
