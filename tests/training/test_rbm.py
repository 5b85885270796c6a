"""Restricted Boltzmann machines against one small enough to enumerate."""

from itertools import product

import numpy as np
import pytest
import torch

from kernelam.training.rbm import Rbm

VISIBLE, HIDDEN = 5, 4


def machine(gaussian: bool) -> Rbm:
    rng = np.random.default_rng(1)
    rbm = Rbm(torch.from_numpy(rng.standard_normal((VISIBLE, HIDDEN))), gaussian, seed=3)
    rbm.visible, rbm.hidden = (torch.from_numpy(rng.standard_normal(n)) for n in (VISIBLE, HIDDEN))
    return rbm


def states(count: int) -> torch.Tensor:
    return torch.tensor(list(product((0.0, 1.0), repeat=count)), dtype=torch.float64)


def energies(rbm: Rbm, v: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """E of every pair of rows, as it is defined."""
    own = (v - rbm.visible).square().sum(1) / 2 if rbm.gaussian else -(v @ rbm.visible)
    return own[:, None] - (h @ rbm.hidden)[None] - v @ rbm.weights @ h.T


def some(gaussian: bool, rows: int = 6) -> torch.Tensor:
    drawn = torch.from_numpy(np.random.default_rng(2).standard_normal((rows, VISIBLE)))
    return drawn if gaussian else (drawn > 0).double()


@pytest.mark.parametrize("gaussian", [False, True])
def test_conditionals_and_free_energy_are_those_of_all_states(gaussian):
    rbm, v, h = machine(gaussian), some(gaussian), states(HIDDEN)
    joint = -energies(rbm, v, h)
    torch.testing.assert_close(rbm.free_energy(v), -torch.logsumexp(joint, dim=1))
    torch.testing.assert_close(rbm.up(v), torch.softmax(joint, dim=1) @ h)
    if gaussian:  # the density of v given h is a normal one about the mean: its logarithm has no gradient there
        mean = rbm.down(h).requires_grad_()
        gradient = torch.autograd.grad(energies(rbm, mean, h).diagonal().sum(), mean)[0]
        torch.testing.assert_close(gradient, torch.zeros_like(gradient))
    else:
        everything = states(VISIBLE)
        torch.testing.assert_close(rbm.down(h), torch.softmax(-energies(rbm, everything, h), dim=0).T @ everything)


def test_probabilities_of_free_energies_are_those_of_the_model():
    rbm = machine(gaussian=False)
    v, h = states(VISIBLE), states(HIDDEN)
    partition = torch.logsumexp(-energies(rbm, v, h).flatten(), dim=0)
    assert float(torch.exp(-rbm.free_energy(v) - partition).sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("gaussian", [False, True])
def test_statistics_are_in_the_mean_those_over_all_hidden_states(gaussian):
    rbm, v, h = machine(gaussian), some(gaussian, 3), states(HIDDEN)
    first = rbm.up(v)
    weight = torch.softmax(-energies(rbm, v, h), dim=1)  # p(h | v)
    again = rbm.down(h)
    second = rbm.up(again)
    expected = (
        v.T @ first - torch.einsum("ns,sv,sh->vh", weight, again, second),
        v.sum(0) - (weight @ again).sum(0),
        first.sum(0) - (weight @ second).sum(0),
    )
    drawn = [rbm.statistics(v.repeat(2000, 1))[:3] for _ in range(20)]
    for number, known in enumerate(expected):
        means = torch.stack([one[number] / 2000 for one in drawn])
        error = means.std(0) / len(drawn) ** 0.5
        assert ((means.mean(0) - known).abs() < 5 * error + 1e-9).all()


@pytest.mark.parametrize("gaussian", [False, True])
def test_steps_make_the_data_likelier(gaussian):
    """Of binary data by the exact likelihood, of real data by the free energy against that of others."""
    rng = np.random.default_rng(0)
    real = 1.2 * (2.0 * rng.integers(2, size=(4000, 1)) - 1.0) + 0.8 * rng.standard_normal((4000, VISIBLE))
    v = torch.from_numpy(real if gaussian else (real > 0).astype(float))
    rbm = Rbm(torch.from_numpy(0.1 * rng.standard_normal((VISIBLE, HIDDEN))), gaussian, seed=1)

    def quality() -> float:
        others = torch.from_numpy(rng.standard_normal((4000, VISIBLE))) if gaussian else states(VISIBLE)
        normaliser = -rbm.free_energy(others).mean() if gaussian else torch.logsumexp(-rbm.free_energy(others), 0)
        return float(-rbm.free_energy(v).mean() - normaliser)

    before = quality()
    for epoch in range(1, 21):
        for part in v.split(100):
            rbm.step(part, epoch)
    assert quality() > before + 0.5


def test_wide_machines_climb_in_smaller_steps():
    for gaussian, full in ((True, 0.005), (False, 0.1)):
        rates = [Rbm(torch.zeros(1, width), gaussian, seed=1).rate for width in (500, 1000, 2000, 4000)]
        assert rates == pytest.approx([full, full, full / 4, full / 16])
