"""Layer-wise pre-training: what it hands on, that it helps, and that a kill costs a layer at most."""

from dataclasses import replace
from itertools import islice
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
from kernelam.training.checkpoint import Clock
from kernelam.training.dnn import DnnPlan
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
    return Setup(train, train, Pipeline(), INPUTS, np.ones(CLASSES), CPU, options, tmp_path, "f", Clock(tmp_path, "f"))


def network(layers: int = 3, activation: str = "sigmoid", start=None, **more) -> Dnn:
    model = Dnn(Network(layers, 20, activation, **more), Pipeline(), INPUTS, np.ones(CLASSES), CPU)
    model.start = start or {}
    model.initialise(1)
    return model


def pretrained(kind: str, setup: Setup, epochs: int, layers: int = 3, activation: str = "sigmoid", **more) -> Dnn:
    pretraining.pretrain(kind, Network(layers, 20, activation, **more), setup, epochs)
    return network(layers, activation, pretraining.pretrained(setup), **more)


@pytest.mark.parametrize("kind", ["discriminative", "rbm"])
def test_hidden_layers_change_and_the_rest_does_not(setup, kind):
    model, fresh = pretrained(kind, setup, 2), network().arrays()
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
    setup = replace(setup, options=replace(setup.options, rates=(0.1,)))
    model = pretrained("discriminative", setup, 0, 4, "relu", normalise=True, bottleneck=2)
    assert [depth for depth, _ in seen] == [1, 1, 2, 2, 3, 3]
    for (_, before), (_, after) in zip(seen[1::2], seen[2::2], strict=False):
        for name in ("W0", "b0", "g0"):
            assert torch.equal(before[name], after[name])
    assert torch.equal(model.arrays()["W2"], seen[-1][1]["W2"])


@pytest.mark.parametrize("kind", ["discriminative", "rbm"])
def test_a_start_that_helps(setup, kind):
    """After the same few steps, deep sigmoid networks are better with it than without."""
    found = {}
    for begin in ("", kind):
        model = pretrained(begin, setup, 3, 6) if begin else network(6)
        for frames in islice(setup.train.shuffled(50, 1, 1), 10):
            model.step(*setup.train.take(frames), 0.5)
        found[begin] = evaluate(model, setup.train)["ce"]
    assert found[kind] < found[""] - 0.1


def test_machines_do_not_mind_where_inputs_lie(setup, tmp_path):
    """Inputs that are scaled together keep their means, as the grey of pixels, and hidden units must tell more."""
    x, place = setup.train.features.numpy(), tmp_path / "moved"
    moved = FrameStore.build(place / "frames", [("u", 5.0 + 0.5 * x)], {"u": setup.train.labels.numpy()})
    setup = replace(setup, scaling="shared")
    place = replace(setup, train=Batches(moved, (0, 0), INPUTS.mean, INPUTS.scale, CPU), folder=place)
    here, there = pretrained("rbm", setup, 2).arrays(), pretrained("rbm", place, 2).arrays()
    torch.testing.assert_close(0.5 * there["W0"], here["W0"], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(there["b0"] + 5.0 * there["W0"].sum(0), here["b0"], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", ["discriminative", "rbm"])
def test_a_run_that_was_killed_ends_the_same(setup, kind, monkeypatch, tmp_path):
    whole = pretrained(kind, setup, 2)
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
        pretrained(kind, other, 2)
    assert (Path(tmp_path) / "other" / pretraining.FILE).exists()
    again = pretrained(kind, other, 2)
    assert all(torch.equal(array, again.arrays()[name]) for name, array in whole.arrays().items())


def test_machines_of_other_units_are_refused(setup):
    for refused in (Network(2, 20, "tanh"), Network(2, 20, "sigmoid", normalise=True)):
        with pytest.raises(KernelamError, match="--pretraining rbm is for sigmoid units without normalisation"):
            DnnPlan(refused, "rbm").check(setup.options, CLASSES)


def test_a_network_that_memory_does_not_hold_is_refused_before_it_is_made(setup, monkeypatch):
    monkeypatch.setattr("kernelam.training.dnn.available", lambda _: 2**30)
    DnnPlan(Network(3, 200)).prepare(setup)
    for plan in (DnnPlan(Network(3, 10_000)), DnnPlan(Network(1, 10**9), "discriminative")):
        for work in (plan.prepare, lambda setup, plan=plan: plan.build(setup, 0.0)):
            with pytest.raises(KernelamError, match=r"GiB of memory, and 1\.00 GiB are free; .* --width"):
                work(setup)


def test_the_rate_of_shallow_networks_is_searched_and_told(setup, tmp_path):
    many = replace(setup, options=replace(setup.options, rates=(1e-4, 0.5, 1e4)))
    tried = pretraining.pretrain("discriminative", Network(3, 20, "sigmoid"), many, 0)
    assert tried[0]["rate"] == 0.5
    assert len(tried) == 3
    (tmp_path / "search.json").unlink()
    assert pretraining.pretrain("discriminative", Network(3, 20, "sigmoid"), many, 0) == tried  # from what is done
    assert not (tmp_path / "search.json").exists()


def test_a_machine_that_diverges_is_a_sentence_and_is_not_kept(setup, monkeypatch):
    monkeypatch.setattr("kernelam.training.rbm.RATE", 1e30)
    with pytest.raises(KernelamError, match="pre-training diverged in layer 2 of 3: try --pretraining discriminative"):
        pretraining.pretrain("rbm", Network(3, 20, "sigmoid"), setup, 2)
    assert set(pretraining.pretrained(setup)) == {"W0", "b0"}


def test_a_machine_that_diverges_starts_again_at_half_the_rate(setup, monkeypatch, capsys):
    monkeypatch.setattr("kernelam.training.rbm.GAUSSIAN_RATE", 8.0)
    pretraining.pretrain("rbm", Network(1, 20, "sigmoid"), setup, 2)
    told = capsys.readouterr().err
    assert "machine 1 diverged at the rate 8\n" in told
    assert "nan" not in told
    found, tried = pretraining.pretrained(setup), told.count("diverged")

    monkeypatch.setattr("kernelam.training.rbm.GAUSSIAN_RATE", 8.0 / 2**tried)
    pretraining.pretrain("rbm", Network(1, 20, "sigmoid"), replace(setup, fingerprint="g"), 2)
    assert "diverged" not in capsys.readouterr().err
    for name, array in pretraining.pretrained(replace(setup, fingerprint="g")).items():
        assert torch.equal(array, found[name])
