"""Optimisers of networks against the plain ones of PyTorch."""

from pathlib import Path

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training.optimisers import assign, make_optimiser
from kernelam.training.trainer import TrainingOptions

INPUTS = Inputs((0, 0), np.zeros(4, np.float32), np.ones(4, np.float32))
COMMON = (Pipeline(), INPUTS, np.ones(3), torch.device("cpu"))


def network() -> Dnn:
    model = Dnn(Network(2, 6, "sigmoid", bottleneck=2), *COMMON)
    model.initialise(1)
    return model


@pytest.mark.parametrize(("name", "momentum"), [("sgd", 0.0), ("sgd", 0.9), ("adamw", 0.0)])
def test_steps_are_those_of_pytorch(name, momentum):
    ours, theirs, rate, l2 = network(), network(), 0.1, 0.05
    optimiser = make_optimiser(name, ours, l2, momentum, 0, Path(), False)
    weights = [array for key, array in theirs.parameters.items() if theirs.decays(key)]
    others = [array for key, array in theirs.parameters.items() if not theirs.decays(key)]
    groups = [{"params": weights, "weight_decay": l2}, {"params": others, "weight_decay": 0.0}]
    if name == "adamw":
        known: torch.optim.Optimizer = torch.optim.AdamW(groups, lr=rate)
    else:
        known = torch.optim.SGD(groups, lr=rate, momentum=momentum)
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        x, labels = torch.randn(20, 4, generator=generator), torch.randint(3, (20,), generator=generator)
        loss = torch.nn.functional.cross_entropy(theirs.logits(x), labels)
        known.zero_grad()
        loss.backward()
        known.step()
        assert float(optimiser.step(torch.arange(20), x, labels, rate)) == pytest.approx(
            20 * float(loss.detach()), rel=1e-5
        )
    for key, array in ours.arrays().items():
        torch.testing.assert_close(array, theirs.arrays()[key], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "momentum"), [("sgd", 0.9), ("adamw", 0.0)])
def test_the_state_is_all_that_is_remembered(name, momentum):
    def ten_steps(stop: int) -> dict[str, torch.Tensor]:
        model, generator = network(), torch.Generator().manual_seed(0)
        optimiser = make_optimiser(name, model, 0.01, momentum, 0, Path(), False)
        for number in range(10):
            if number == stop:  # all that a checkpoint has goes into new ones
                state, weights = optimiser.state, model.arrays()
                model = network()
                optimiser = make_optimiser(name, model, 0.01, momentum, 0, Path(), False)
                assign(model.parameters, weights)
                assign(optimiser.state, state)
            x, labels = torch.randn(20, 4, generator=generator), torch.randint(3, (20,), generator=generator)
            optimiser.step(torch.arange(20), x, labels, 0.1 / (1 + number))
        return model.arrays()

    whole, resumed = ten_steps(-1), ten_steps(5)
    assert all(torch.equal(array, resumed[key]) for key, array in whole.items())


def test_what_is_for_networks_or_for_sgd_is_told():
    kernel = Gaussian(1.0)
    convex = KernelSoftmax(kernel, kernel.feature_map(4, 8, 1), 0, *COMMON)
    for name, model, momentum, sentence in (
        ("adamw", convex, 0.0, "are for networks"),
        ("sgd", convex, 0.9, "are for networks"),
    ):
        with pytest.raises(KernelamError, match=sentence):
            make_optimiser(name, model, 0.0, momentum, 0, Path(), False)
    with pytest.raises(KernelamError, match="--momentum is that of sgd, not of adamw"):
        TrainingOptions((1.0,), 100, optimiser="adamw", momenta=(0.0, 0.9))
    with pytest.raises(KernelamError, match="--rates are numbers above zero, not 0"):
        TrainingOptions((1.0, 0.0), 100)
