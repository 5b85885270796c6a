"""Layer-wise pre-training: what it hands on, that it helps, and that a kill costs a layer at most."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs
from kernelam.training import pretraining
from kernelam.training.acoustic import Setup
from kernelam.training.metrics import evaluate
from kernelam.training.trainer import TrainingOptions

DIM, CLASSES, CPU = 6, 4, torch.device("cpu")
INPUTS = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))


@pytest.fixture
def setup(tmp_path) -> Setup:
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=3000, dtype=np.int32)
    centres = 1.5 * rng.standard_normal((CLASSES, DIM))
    x = (rng.standard_normal((3000, DIM)) + centres[labels]).astype(np.float32)
    store = FrameStore.build(tmp_path / "frames", [("u", x)], {"u": labels})
    train = Batches(store, (0, 0), INPUTS.mean, INPUTS.scale, CPU)
    options = TrainingOptions((0.5,), 1000, batch=50)
    return Setup(train, train, Pipeline(), INPUTS, np.ones(CLASSES), CPU, options, tmp_path, "f")


def network(layers: int = 3, activation: str = "sigmoid", **more) -> Dnn:
    model = Dnn(Network(layers, 20, activation, **more), Pipeline(), INPUTS, np.ones(CLASSES), CPU)
    model.initialise(1)
    return model


@pytest.mark.parametrize("kind", ["discriminative", "rbm"])
def test_hidden_layers_change_and_the_rest_does_not(setup, kind):
    model, fresh = network(), network().arrays()
    pretraining.pretrain(kind, model, setup, 0.5, 2)
    changed = {name for name, array in model.arrays().items() if not torch.equal(array, fresh[name])}
    expected = {"W0", "b0", "W1", "b1"} | ({"W2", "b2"} if kind == "rbm" else set())
    assert changed == expected


def test_each_shallower_network_goes_on_from_the_one_before(setup, monkeypatch):
    seen = []
    real = pretraining.one_pass

    def copied(model: Dnn) -> tuple[int, dict[str, torch.Tensor]]:
        return model.network.layers, {name: array.clone() for name, array in model.arrays().items()}

    def spied(optimiser, *rest):
        seen.append(copied(optimiser.model))
        result = real(optimiser, *rest)
        seen.append(copied(optimiser.model))
        return result

    monkeypatch.setattr(pretraining, "one_pass", spied)
    model = network(4, "relu", normalise=True, bottleneck=2)
    pretraining.pretrain("discriminative", model, setup, 0.1, 0)
    assert [depth for depth, _ in seen] == [1, 1, 2, 2, 3, 3]
    for (_, before), (_, after) in zip(seen[1::2], seen[2::2], strict=False):
        for name in ("W0", "b0", "g0"):
            assert torch.equal(before[name], after[name])
    assert torch.equal(model.arrays()["W2"], seen[-1][1]["W2"])


@pytest.mark.parametrize("kind", ["discriminative", "rbm"])
def test_a_start_that_helps(setup, kind):
    """After the same steps, deep sigmoid networks are better with it than without."""
    found = {}
    for begin in ("", kind):
        model = network(4)
        if begin:
            pretraining.pretrain(begin, model, setup, 0.5, 3)
        for epoch in range(2):
            for frames in setup.train.shuffled(50, 1, epoch):
                model.step(*setup.train.take(frames), 0.5)
        found[begin] = evaluate(model, setup.train)["ce"]
    assert found[kind] < found[""] - 0.1


@pytest.mark.parametrize("kind", ["discriminative", "rbm"])
def test_a_run_that_was_killed_ends_the_same(setup, kind, monkeypatch, tmp_path):
    whole = network()
    pretraining.pretrain(kind, whole, setup, 0.5, 2)
    other = replace(setup, folder=tmp_path / "other")
    (tmp_path / "other").mkdir()
    real, calls = pretraining.checkpoint.write, 0

    def killed(*arguments):
        nonlocal calls
        real(*arguments)
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(pretraining.checkpoint, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        pretraining.pretrain(kind, network(), other, 0.5, 2)
    assert (Path(tmp_path) / "other" / pretraining.FILE).exists()
    again = network()
    pretraining.pretrain(kind, again, other, 0.5, 2)
    assert all(torch.equal(array, again.arrays()[name]) for name, array in whole.arrays().items())


def test_machines_of_other_units_are_refused(setup):
    for model in (network(2, "tanh"), network(2, "sigmoid", normalise=True)):
        with pytest.raises(KernelamError, match="--pretraining rbm is for sigmoid units without normalisation"):
            pretraining.pretrain("rbm", model, setup, 0.5, 1)
