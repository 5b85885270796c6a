"""Damped directions against the eigenvectors of the covariance, and the step that uses them."""

import numpy as np
import pytest
import torch

from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training.precondition import leading_directions

DIM, CLASSES, CPU = 4, 5, torch.device("cpu")


@pytest.fixture
def train(tmp_path) -> Batches:
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=900, dtype=np.int32)
    x = (rng.standard_normal((900, DIM)) + 0.7 * labels[:, None]).astype(np.float32)
    store = FrameStore.build(tmp_path / "frames", [("u", x)], {"u": labels})
    return Batches(store, (0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32), CPU)


def model(bottleneck: int = 0) -> KernelSoftmax:
    kernel = Gaussian(3.0)
    inputs = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    made = KernelSoftmax(kernel, kernel.feature_map(DIM, 60, 1), bottleneck, Pipeline(), inputs, np.ones(CLASSES), CPU)
    made.initialise(1)
    return made


def appended(z: torch.Tensor, bottleneck: int) -> torch.Tensor:
    return z if bottleneck else torch.cat([z, torch.ones(len(z), 1)], dim=1)


@pytest.mark.parametrize("bottleneck", [0, 3])
def test_directions_are_the_eigenvectors_of_the_second_moment(train, bottleneck):
    made = model(bottleneck)
    directions, shares = leading_directions(made, train, 6, seed=1)
    z = appended(made.feature_map(train.take(torch.arange(900))[0]), bottleneck).double().numpy()
    values, vectors = np.linalg.eigh(z.T @ z / 900)
    values, vectors = values[::-1], vectors[:, ::-1]
    np.testing.assert_allclose(shares, 1 - values[6] / values[:6], atol=1e-4)
    cosines = np.abs((directions.numpy() * vectors[:, :6]).sum(axis=0))
    np.testing.assert_allclose(cosines, 1.0, atol=1e-3)


def test_no_more_directions_than_there_are(train):
    """What hardly varies is none: damped by all of the rest, nothing would be left of a gradient."""
    directions, shares = leading_directions(model(), train, 1000, seed=1)
    assert 40 < directions.shape[1] < 60
    assert shares.shape == directions.shape[1:]
    assert ((shares >= 0) & (shares < 1)).all()


@pytest.mark.parametrize("bottleneck", [0, 3])
def test_a_step_damps_the_gradient_of_what_meets_the_features(train, bottleneck):
    plain, damped = model(bottleneck), model(bottleneck)
    damped.damping = leading_directions(damped, train, 4, seed=1)
    directions, shares = damped.damping
    damping = torch.eye(len(directions)) - directions @ torch.diag(shares) @ directions.T
    before = {name: array.clone() for name, array in plain.arrays().items()}
    x, labels = train.take(torch.arange(50))
    assert plain.step(x, labels, 0.5) == damped.step(x, labels, 0.5)
    moves = [{name: made.arrays()[name] - before[name] for name in made.parameters} for made in (plain, damped)]
    if bottleneck:
        moves[0]["U"] = damping @ moves[0]["U"]
    else:
        both = damping @ torch.cat([moves[0]["theta"], moves[0]["bias"][None]])
        moves[0] |= {"theta": both[:-1], "bias": both[-1]}
    for name, expected in moves[0].items():
        torch.testing.assert_close(moves[1][name], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bottleneck", [0, 3])
def test_what_damping_leaves_is_not_the_rounding_of_mixed_precision(train, bottleneck):
    """The gradient that is left is small against what was taken away, in which bfloat16 has three digits."""
    moves = []
    for mixed in (False, True):
        made = model(bottleneck)
        made.damping, made.mixed = leading_directions(made, train, 30, seed=1), mixed
        name = "U" if bottleneck else "theta"
        before = made.parameters[name].clone()
        made.step(*train.take(torch.arange(50)), 0.5)
        moves.append(made.parameters[name] - before)
    assert (moves[1] - moves[0]).norm() < 0.01 * moves[0].norm()


def test_without_noise_the_rate_can_be_higher_and_the_loss_falls_faster(train):
    x, labels = train.take(torch.arange(900))

    def loss(directions: int, rate: float) -> float:
        made = model()
        if directions:
            made.damping = leading_directions(made, train, directions, seed=1)
        for _ in range(20):
            made.step(x, labels, rate)
        value = float(torch.nn.functional.cross_entropy(made.logits(x), labels))
        return value if np.isfinite(value) else np.inf

    rates = [2.0**k for k in range(-1, 12)]
    assert min(loss(4, rate) for rate in rates) < min(loss(0, rate) for rate in rates) - 0.005
