"""Combinations: members of different kinds, contexts and normalisations in one self-contained model."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from torch._subclasses.fake_tensor import FakeTensorMode

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models import load_model
from kernelam.models.combination import Combination
from kernelam.models.directory import save_model
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs, PosteriorModel
from kernelam.models.softmax import KernelSoftmax

CLASSES, DIM = 11, 4
FEATURES = np.random.default_rng(5).standard_normal((9, DIM)).astype(np.float32)


def common(context: tuple[int, int]) -> tuple:
    rng = np.random.default_rng(sum(context))
    mean, scale = rng.standard_normal(DIM).astype(np.float32), rng.uniform(0.5, 2, DIM).astype(np.float32)
    return Pipeline(deltas=1), Inputs(context, mean, scale), np.arange(1.0, CLASSES + 1), torch.device("cpu")


def members() -> list[PosteriorModel]:
    """A kernel model that looks far back and a DNN that looks far ahead, each a few steps from where it began."""
    kernel = Gaussian(2.0)
    models = [
        KernelSoftmax(kernel, kernel.feature_map(DIM * 4, 60, seed=1), 5, *common((3, 0))),
        Dnn(Network(1, 13), *common((1, 2))),
    ]
    for model in models:
        model.initialise(seed=3)
        for _ in range(3):
            x = torch.randn(50, DIM * 4)
            model.step(x, torch.randint(CLASSES, (50,)), 2.0)
    return models


def combination(*weights: float) -> Combination:
    torch.manual_seed(0)
    return Combination.of(members(), weights)


def test_posteriors_are_the_normalised_product_of_powers():
    """Of the members' own posteriors, which each computes of an utterance with its own context and normalisation."""
    model = combination(0.4, 1.7)
    first, second = (member.log_posteriors(FEATURES).astype(np.float64) for member in model.members)
    assert np.abs(first - second).max() > 0.5
    expected = log_softmax(0.4 * first + 1.7 * second, axis=1)
    np.testing.assert_allclose(model.log_posteriors(FEATURES), expected, atol=1e-5)
    assert model.inputs.context == (3, 2)


def test_batches_of_packed_frames_are_the_same_inputs(tmp_path):
    model = combination(0.4, 1.7)
    utts = {"a": FEATURES[:5], "b": FEATURES[5:]}
    store = FrameStore.build(
        tmp_path / "frames", utts.items(), {u: np.zeros(len(x), np.int32) for u, x in utts.items()}
    )
    batches = Batches(store, model.inputs.context, model.inputs.mean, model.inputs.scale, model.device)
    x, _ = next(batches.in_order(9))
    expected = np.concatenate([model.log_posteriors(features) for features in utts.values()])
    np.testing.assert_allclose(torch.log_softmax(model.logits(x), 1).numpy(), expected, atol=1e-6)
    of_members = model.logits_of_members(x)
    for number, member in enumerate(model.members):
        expected = np.concatenate([member.log_posteriors(features) for features in utts.values()])
        np.testing.assert_allclose(torch.log_softmax(of_members[number], 1).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("chosen", [0, 1])
def test_all_the_weight_on_one_member_is_that_member(chosen):
    model = combination(*np.eye(2)[chosen])
    member = model.members[chosen]
    x = model.inputs.tensor(FEATURES)
    own = torch.clone(member.inputs.tensor(FEATURES))
    assert torch.equal(model.logits(x), member.logits(own))
    np.testing.assert_allclose(model.log_posteriors(FEATURES), member.log_posteriors(FEATURES), atol=1e-6)


def test_a_member_without_weight_is_not_computed(monkeypatch):
    model = combination(0.0, 1.0)
    monkeypatch.setattr(model.members[0], "logits", None)
    assert np.isfinite(model.log_posteriors(FEATURES)).all()


@pytest.mark.parametrize("nested", [False, True])
def test_a_saved_combination_is_the_same_model(tmp_path, nested):
    model = combination(0.4, 1 / 3)
    if nested:
        model = Combination.of([model, members()[1]], [0.7, 0.1])
    save_model(tmp_path, model, {"seed": 3})
    loaded = load_model(tmp_path)
    np.testing.assert_array_equal(loaded.log_likelihoods(FEATURES), model.log_likelihoods(FEATURES))
    assert loaded.weights == model.weights
    assert loaded.pipeline == model.pipeline
    assert loaded.num_parameters() == model.num_parameters() > sum(m.num_parameters() for m in model.members)
    first = (tmp_path / "model.safetensors").read_bytes()
    save_model(tmp_path, loaded, {"seed": 3})
    assert (tmp_path / "model.safetensors").read_bytes() == first


def test_a_combination_without_one_of_its_arrays_is_a_sentence(tmp_path):
    model = combination(0.4, 0.6)
    arrays = model.arrays()
    model.arrays = lambda: {name: array for name, array in arrays.items() if name != "1.input.mean"}
    save_model(tmp_path, model, {})
    with pytest.raises(KernelamError, match=f"{tmp_path} holds no whole model: there is no 'input.mean'; train again"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ((0.5,), "2 models take as many weights, not 1"),
        ((0.5, -0.1), "the weights 0.5 -0.1 cannot be used"),
        ((0.0, 0.0), "the weights 0 0 cannot be used"),
        ((float("nan"), 1.0), "the weights nan 1 cannot be used"),
    ],
)
def test_bad_weights(weights, sentence):
    with pytest.raises(KernelamError, match=sentence):
        combination(*weights)


def test_every_tensor_of_the_forward_pass_is_on_the_gpu():
    """A stand-in for a GPU refuses to mix tensors of two devices."""
    model = Combination.of([members()[1] for _ in range(2)], [0.4, 0.6])
    with FakeTensorMode():
        for member in model.members:
            member.parameters = {n: torch.empty(p.shape, device="cuda") for n, p in member.parameters.items()}
        model._scalings = [[torch.empty(DIM, device="cuda") for _ in range(2)] for _ in model.members]
        x = torch.zeros(7, model.inputs.dim, device="cuda")
        logits, every = model.logits(x), model.logits_of_members(x)
    assert (logits.device.type, logits.shape) == ("cuda", (7, CLASSES))
    assert (every.device.type, every.shape) == ("cuda", (2, 7, CLASSES))
