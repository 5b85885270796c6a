"""Random feature selection on a problem whose useful features are known."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian, SparseGaussian
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training import selection
from kernelam.training.checkpoint import Clock
from kernelam.training.selection import input_weights, schedule, select_features
from kernelam.training.trainer import TrainingOptions

DIM, CPU = 8, torch.device("cpu")
OPTIONS = TrainingOptions(rates=(4.0,), search_frames=300, batch=32, seed=5)


@pytest.fixture
def train(tmp_path) -> Batches:
    """Only the first two of eight inputs have to do with the class."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2000, DIM)).astype(np.float32)
    labels = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
    store = FrameStore.build(tmp_path / "frames", [("u", x)], {"u": labels})
    return Batches(store, (0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32), CPU)


def model(kernel, plan: str = "independent", bottleneck: int = 0) -> KernelSoftmax:
    inputs = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    features = kernel.feature_map(DIM, 200, 1, plan)
    made = KernelSoftmax(kernel, features, bottleneck, Pipeline(), inputs, np.ones(2), CPU)
    made.initialise(1)
    return made


def choose(made: KernelSoftmax, train: Batches, folder: Path, plan: str = "independent", sizes: str = "10"):
    per = made.feature_map.features_per_column

    def draw(columns: int, number: int):
        return made.kernel.feature_map(DIM, per * columns, 1, plan, number)

    folder.mkdir(exist_ok=True)
    rounds = schedule(sizes, made.feature_map.columns)

    def use(features):
        made.feature_map = features

    return select_features(made, draw, use, rounds, 1500, 4.0, train, OPTIONS, folder, "f", Clock(folder, "f"))


@pytest.mark.parametrize("plan", ["independent", "paired"])
def test_features_that_see_what_matters_are_kept(train, tmp_path, plan):
    made = model(SparseGaussian(0.7, 2), plan)
    before = input_weights(made.feature_map, DIM)
    chosen = choose(made, train, tmp_path / "s", plan)
    assert chosen.count == 200
    story = json.loads((tmp_path / "s/selection.new.json").read_text())
    weights = np.array(story["input_weights"])
    assert weights.mean() == pytest.approx(1.0)
    assert weights[:2].min() > weights[2:].max()
    assert weights[:2].mean() > 1.25 * before[:2].mean()
    assert story["kept"] == [t * chosen.columns // 10 for t in range(1, 10)]
    assert story["survival"][-1] == 1.0
    assert np.mean(story["survival"]) > 0.5 > np.mean(story["chance"])


def test_chance_is_the_papers_formula(train, tmp_path):
    choose(model(SparseGaussian(0.7, 2)), train, tmp_path / "s")
    chance = json.loads((tmp_path / "s/selection.new.json").read_text())["chance"]
    expected = [math.factorial(10) / (math.factorial(t) * 10 ** (10 - t)) for t in range(1, 10)]
    np.testing.assert_allclose(chance, expected)


def test_dense_input_weights(train):
    features = Gaussian(1.0).feature_map(DIM, 50, 1, "independent")
    omega = features.arrays["omega"].abs().numpy()
    expected = omega.sum(1) - omega.max(1)
    np.testing.assert_allclose(input_weights(features, DIM), expected / expected.mean(), rtol=1e-5)


@pytest.mark.parametrize("bottleneck", [0, 1])
def test_row_norms_are_those_of_the_whole_matrix(train, bottleneck):
    made = model(Gaussian(1.0), bottleneck=bottleneck)
    for frames in train.shuffled(32, 1, 1):
        made.step(*train.take(frames), 1.0)
    p = made.arrays()
    theta = p["U"] @ p["V"] if bottleneck else p["theta"]
    torch.testing.assert_close(made.row_norms(), theta.square().sum(1), rtol=1e-4, atol=1e-9)


def test_a_selection_that_is_killed_ends_where_an_uninterrupted_one_does(train, tmp_path, monkeypatch):
    whole = choose(model(Gaussian(1.0)), train, tmp_path / "whole").arrays
    real, calls = selection._train_round, 0

    def dying(*args):
        nonlocal calls
        calls += 1
        if calls in (1, 5):
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(selection, "_train_round", dying)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            choose(model(Gaussian(1.0)), train, tmp_path / "killed")
    resumed = choose(model(Gaussian(1.0)), train, tmp_path / "killed").arrays
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    stories = [(tmp_path / name / "selection.new.json").read_text() for name in ("whole", "killed")]
    assert stories[0] == stories[1]


def test_a_round_that_no_rate_helps_ends(train, monkeypatch):
    monkeypatch.setattr(selection, "one_pass", lambda *_: (math.nan, 0))
    with pytest.raises(KernelamError, match="selection 3 diverges at any rate"):
        selection._train_round(model(Gaussian(1.0)), train, 1500, 1.0, OPTIONS, 3)


def test_a_round_that_diverges_is_done_again_at_half_the_rate(train, capsys):
    made = model(Gaussian(1.0))
    rate = selection._train_round(made, train, 1500, 1e39, OPTIONS, 1)
    assert rate < 1e39
    assert "the rate is halved" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1", "0", "300", "50 40", "0 100", "100 200", "10 10", "x", "1.5"])
def test_a_schedule_that_does_not_increase_is_a_sentence(text):
    with pytest.raises(KernelamError, match="selection"):
        schedule(text, 200)


def test_schedules():
    assert schedule("4", 200) == [50, 100, 150]
    assert schedule("30 70", 200) == [30, 70]
