"""Large-margin nearest neighbours against brute force, finite differences, and noise that Euclid is lost in."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from kernelam.errors import KernelamError
from kernelam.models import energies as model
from kernelam.training import lmnn
from kernelam.training.lmnn import Margins, MetricOptions, energies, learn_metric, target_neighbours

MU = 0.3
OPTIONS = MetricOptions(targets=2, impostors=MU)


def problem(count: int, noise: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Three classes in two coordinates, and as many large ones that tell nothing."""
    rng = np.random.default_rng(seed)
    labels = torch.from_numpy(rng.integers(3, size=count))
    angle = 2 * np.pi * labels.numpy() / 3
    own = 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.5 * rng.standard_normal((count, 2))
    return torch.from_numpy(np.concatenate([own, 4 * rng.standard_normal((count, noise))], axis=1)), labels


def squared(a: torch.Tensor, b: torch.Tensor, metric: torch.Tensor) -> float:
    return float((metric @ (a - b)).square().sum())


def nearest(x: torch.Tensor, candidates: list[int], at: torch.Tensor, metric: torch.Tensor, count: int) -> list[int]:
    return sorted(candidates, key=lambda j: squared(at, x[j], metric))[:count]


def loss(x: torch.Tensor, labels: torch.Tensor, metric: torch.Tensor, options: MetricOptions) -> float:
    """As it is written."""
    total, unit = 0.0, torch.eye(x.shape[1], dtype=x.dtype)
    for i in range(len(x)):
        others = [j for j in range(len(x)) if j != i and labels[j] == labels[i]]
        for j in nearest(x, others, x[i], unit, options.targets):
            near = squared(x[i], x[j], metric)
            total += (1 - options.impostors) * near
            for far in range(len(x)):
                if labels[far] != labels[i]:
                    total += options.impostors * max(0.0, 1 + near - squared(x[i], x[far], metric))
    return total


def test_the_loss_is_that_of_brute_force():
    x, labels = problem(24, 2)
    rng = np.random.default_rng(1)
    for scale in (0.05, 0.3, 2.0):
        metric = scale * torch.from_numpy(rng.standard_normal((4, 4)))
        margins = Margins(x, labels, OPTIONS)
        margins.look(metric)
        assert margins.value_and_gradient(metric)[0] == pytest.approx(loss(x, labels, metric, OPTIONS), rel=1e-9)
    margins.look(metric)  # those that are far by now do not matter
    assert margins.value_and_gradient(metric)[0] == pytest.approx(loss(x, labels, metric, OPTIONS), rel=1e-9)


def test_the_gradient_is_that_of_finite_differences():
    x, labels = problem(30, 2)
    metric = 0.3 * torch.from_numpy(np.random.default_rng(2).standard_normal((4, 4)))
    margins = Margins(x, labels, OPTIONS)
    margins.look(metric)
    assert len(margins.impostors) > 30
    gradient, step = margins.value_and_gradient(metric)[1], 1e-6
    for place in range(16):
        shift = torch.zeros(16, dtype=torch.float64)
        shift[place] = step
        up, down = (margins.value_and_gradient(metric + s * shift.view(4, 4))[0] for s in (1, -1))
        assert float(gradient.flatten()[place]) == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-4)


def test_impostors_that_are_too_far_take_no_time(monkeypatch):
    """Of two million that a first round finds of 10,000 images, one in ten is in a margin later."""
    x, labels = problem(200, 2)
    metric, pulled = torch.eye(4, dtype=torch.float64), []
    margins = Margins(x, labels, OPTIONS)
    margins.look(0.05 * metric)
    y, pairs = x @ metric.T, margins.impostors
    difference = (y[pairs.i] - y[pairs.j]).square().sum(dim=1)
    torch.testing.assert_close(pairs.distances(y), difference)
    live = int((difference < 1.0 + margins.reach(y).amax(dim=1)[pairs.i]).sum())
    bag = lmnn.embedding_bag
    monkeypatch.setattr(lmnn, "embedding_bag", lambda j, *a, **named: pulled.append(len(j)) or bag(j, *a, **named))
    margins.value_and_gradient(metric)
    assert 0 < live < 0.5 * len(pairs)
    assert pulled == [400, 400, live, live]


def test_targets_are_the_nearest_of_the_class(monkeypatch):
    x, labels = problem(60, 1)
    monkeypatch.setattr(lmnn, "ELEMENTS", 100)
    found = target_neighbours(x, labels, 3)
    unit = torch.eye(3, dtype=x.dtype)
    for i in range(60):
        others = [j for j in range(60) if j != i and labels[j] == labels[i]]
        assert found[i].tolist() == nearest(x, others, x[i], unit, 3)
    with pytest.raises(KernelamError, match="class 7 has 3 examples, and each needs 3 target neighbours"):
        target_neighbours(x, torch.where(torch.arange(60) < 3, 7, labels), 3)
    with pytest.raises(KernelamError, match="at least 1 target neighbour, not 0"):
        MetricOptions(targets=0)


def energy(x: torch.Tensor, labels: torch.Tensor, metric: torch.Tensor, new: torch.Tensor, c: int) -> float:
    """What is added to the loss by an example of class c."""
    unit, total = torch.eye(x.shape[1], dtype=x.dtype), 0.0
    of_class = [j for j in range(len(x)) if labels[j] == c]
    others = [j for j in range(len(x)) if labels[j] != c]
    for j in nearest(x, of_class, new, metric, OPTIONS.targets):
        near = squared(new, x[j], metric)
        total += (1 - MU) * near + MU * sum(max(0.0, 1 + near - squared(new, x[far], metric)) for far in others)
    for i in others:
        same = [j for j in range(len(x)) if j != i and labels[j] == labels[i]]
        for j in nearest(x, same, x[i], unit, OPTIONS.targets):
            total += MU * max(0.0, 1 + squared(x[i], x[j], metric) - squared(x[i], new, metric))
    return total


def test_energies_are_those_of_brute_force(monkeypatch):
    x, labels = problem(30, 1)
    new, _ = problem(5, 1, seed=3)
    metric = 0.4 * torch.from_numpy(np.random.default_rng(4).standard_normal((3, 3)))
    monkeypatch.setattr(model, "ELEMENTS", 70)
    found = energies(x, labels, metric, OPTIONS)(new)
    expected = [[energy(x, labels, metric, one, c) for c in range(3)] for one in new]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    single = energies(x.float(), labels, metric, OPTIONS)(new.float())
    np.testing.assert_allclose(single, expected, rtol=1e-4)


def test_a_metric_is_not_lost_in_noise():
    x, labels = (part.float() if part.is_floating_point() else part for part in problem(600, 20))
    new, truth = (part.float() if part.is_floating_point() else part for part in problem(600, 20, seed=5))
    euclid = 1 - KNeighborsClassifier(3).fit(x, labels).score(new, truth)
    metric, rounds = learn_metric(x, labels, MetricOptions())
    learnt = x @ metric.float().T
    error = 1 - KNeighborsClassifier(3).fit(learnt, labels).score(new @ metric.float().T, truth)
    by_energy = float((energies(x, labels, metric, MetricOptions())(new).argmin(1) != truth).double().mean())
    assert euclid > 0.3
    assert error < 0.05
    assert by_energy < 0.05
    losses = [row["loss"] for row in rounds]
    assert losses[-1] < 0.5 * losses[0]
    assert float(metric[:, :2].norm()) > 2 * float(metric[:, 2:].norm())


def test_a_search_that_was_killed_ends_where_it_would_have():
    x, labels = problem(200, 6)
    whole, told = learn_metric(x, labels, MetricOptions())
    left: list[object] = []

    def dying(*state: object) -> None:
        left.append(state)
        if len(left) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_metric(x, labels, MetricOptions(), dying)
    again, retold = learn_metric(x, labels, MetricOptions(), kept=left[-1])
    assert torch.equal(again, whole)
    assert retold == told
