"""The ridge model against its equations, one frame and one pair at a time."""

import copy
import math
import weakref
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models import load_model, ridge
from kernelam.models.combination import Combination
from kernelam.models.coupling import couple
from kernelam.models.directory import save_model
from kernelam.models.posterior import Inputs
from kernelam.models.ridge import Ridge

COUNTS = np.array([5.0, 0.0, 7.0, 9.0, 1.0, 8.0])
CLASSES = [0, 2, 3, 5]
LEAST = 0.01 * 30 / 6  # frames, of a class that has none
DIM, D = 4, 30


def make(scheme: str = "one-vs-one") -> Ridge:
    rng = torch.Generator().manual_seed(0)
    kernel = Gaussian(2.0)
    problems = 6 if scheme == "one-vs-one" else 4
    inputs = Inputs((0, 1), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    common = (Pipeline(), inputs, COUNTS, torch.device("cpu"))
    beta = torch.randn(problems, D, generator=rng)
    model = Ridge(kernel, kernel.feature_map(2 * DIM, D, 1), scheme, torch.tensor(CLASSES), beta, *common)
    model.calibrate(torch.rand(problems, 2, generator=rng))
    return model


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(9, 2 * DIM, generator=torch.Generator().manual_seed(1))


def test_one_against_one(x: torch.Tensor) -> None:
    model = make()
    p, votes = model.logits(x).exp(), model.votes(x)
    fixed = {1: LEAST / (30 + LEAST), 4: 1.0 / (30 + LEAST)}
    for row, z in enumerate(model.feature_map(x)):
        f = model.parameters["beta"] @ z
        won = dict.fromkeys(CLASSES, 0)
        for number, pair in enumerate(combinations(CLASSES, 2)):
            won[pair[0] if f[number] > 0 else pair[1]] += 1
        assert [votes[row, label] for label in CLASSES] == list(won.values())
        alpha, gamma = model.parameters["calibration"].T
        coupled = couple(torch.sigmoid(alpha * f + gamma)[None], 4)[0] * (1.0 - sum(fixed.values()))
        torch.testing.assert_close(p[row, CLASSES], coupled, rtol=1e-4, atol=1e-6)
        assert {label: float(p[row, label]) for label in fixed} == pytest.approx(fixed, rel=1e-4)
    torch.testing.assert_close(p.sum(dim=1), torch.ones(9))
    assert (votes[:, [1, 4]] == -math.inf).all()


def test_one_against_the_rest(x: torch.Tensor) -> None:
    model = make("one-vs-rest")
    f = model.feature_map(x) @ model.parameters["beta"].T
    torch.testing.assert_close(model.votes(x)[:, CLASSES], f)
    alpha, gamma = model.parameters["calibration"].T
    mu = torch.sigmoid(alpha * f + gamma)
    expected = mu / mu.sum(dim=1, keepdim=True) * (29 / (30 + LEAST))
    torch.testing.assert_close(model.logits(x).exp()[:, CLASSES], expected)


@pytest.mark.parametrize("scheme", ridge.SCHEMES)
def test_the_temperature_sharpens_what_is_told_apart_and_nothing_else(x: torch.Tensor, scheme: str) -> None:
    model = make(scheme)
    flat = model.logits(x).exp()
    model.calibrate(model.parameters["calibration"], 3.0)
    sharp = model.logits(x).exp()
    expected = flat[:, CLASSES] ** 3
    expected *= flat[:, CLASSES].sum(dim=1, keepdim=True) / expected.sum(dim=1, keepdim=True)
    torch.testing.assert_close(sharp[:, CLASSES], expected, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(sharp[:, [1, 4]], flat[:, [1, 4]])


@pytest.mark.parametrize("scheme", ridge.SCHEMES)
def test_logits_are_normalised_and_parts_make_the_whole(monkeypatch, x: torch.Tensor, scheme: str) -> None:
    model = make(scheme)
    logits, votes = model.logits(x), model.votes(x)
    torch.testing.assert_close(torch.log_softmax(logits, dim=1), logits)
    monkeypatch.setattr(ridge, "CHUNK_ELEMENTS", 2 * (model.feature_map.count + ridge.of_classes(scheme, len(CLASSES))))
    assert model.chunk == 2
    torch.testing.assert_close(model.logits(x), logits)
    assert torch.equal(model.votes(x), votes) or scheme == "one-vs-rest"


def test_votes_of_an_hour_take_no_more_memory_than_of_a_minute(monkeypatch, x: torch.Tensor) -> None:
    model, alive = make(), []
    outputs = model.outputs

    def watched(part: torch.Tensor) -> torch.Tensor:
        found = outputs(part)
        alive.append(weakref.ref(found))
        assert sum(one() is not None for one in alive) <= 2
        return found

    monkeypatch.setattr(ridge, "CHUNK_ELEMENTS", 2 * (model.feature_map.count + ridge.of_classes("one-vs-one", 4)))
    monkeypatch.setattr(model, "outputs", watched)
    model.votes(x)
    assert len(alive) == 5


@pytest.mark.parametrize("scheme", ridge.SCHEMES)
def test_saved_and_loaded(tmp_path: Path, scheme: str) -> None:
    model = make(scheme)
    features = np.random.default_rng(0).standard_normal((20, DIM)).astype(np.float32)
    save_model(tmp_path, model, {})
    loaded = load_model(tmp_path)
    assert isinstance(loaded, Ridge)
    np.testing.assert_array_equal(loaded.log_likelihoods(features), model.log_likelihoods(features))
    assert loaded.num_parameters() == model.parameters["beta"].numel() + 2 * len(model.parameters["beta"]) + 1
    assert np.isfinite(loaded.log_likelihoods(features)).all()


def test_combined_with_another_model(x: torch.Tensor) -> None:
    one, rest = make(), make("one-vs-rest")
    both = Combination.of([one, rest], [0.5, 0.5])
    torch.testing.assert_close(both.logits(x), 0.5 * one.logits(x) + 0.5 * rest.logits(x))
    again = Combination.restore(both.config(), both.arrays(), both.pipeline, both.inputs, both.counts, both.device)
    torch.testing.assert_close(again.logits(x), both.logits(x))


@pytest.mark.parametrize("scheme", ridge.SCHEMES)
def test_everything_stays_on_the_device(scheme: str) -> None:
    model = make(scheme)
    cuda = torch.device("cuda")
    with FakeTensorMode():
        fake = lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype, device=cuda)  # noqa: E731
        model.parameters = {name: fake(array) for name, array in model.parameters.items()}
        model.feature_map = copy.copy(model.feature_map)
        model.feature_map.own = {name: fake(array) for name, array in model.feature_map.own.items()}
        model.classes, model.device = fake(model.classes), cuda
        x = torch.empty(9, 2 * DIM, device=cuda)
        assert model.votes(x).device.type == "cuda"
        if scheme == "one-vs-rest":  # factors ask for a driver; test_ridge_devices has them without
            assert model.logits(x).device.type == "cuda"


def test_bad_settings_are_sentences() -> None:
    model = make()
    common = (model.pipeline, model.inputs, COUNTS, model.device)
    beta = model.parameters["beta"]
    with pytest.raises(KernelamError, match="no scheme is called all-vs-all"):
        Ridge(model.kernel, model.feature_map, "all-vs-all", model.classes, beta, *common)
    with pytest.raises(KernelamError, match="fewer than two classes"):
        Ridge(model.kernel, model.feature_map, "one-vs-one", model.classes[:1], beta[:0], *common)
