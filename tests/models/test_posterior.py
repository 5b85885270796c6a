"""Kernel and DNN models against a plain version written with automatic differentiation."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models import load_model
from kernelam.models.base import log_priors
from kernelam.models.directory import save_model
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs, PosteriorModel
from kernelam.models.softmax import KernelSoftmax

CLASSES, DIM, CPU = 11, 4, torch.device("cpu")


def common() -> tuple:
    rng = np.random.default_rng(0)
    inputs = Inputs((1, 2), rng.standard_normal(DIM).astype(np.float32), np.ones(DIM, np.float32))
    return Pipeline(deltas=1), inputs, np.arange(1.0, CLASSES + 1), torch.device("cpu")


def kernel_model(bottleneck: int) -> KernelSoftmax:
    kernel = Gaussian(2.0)
    return KernelSoftmax(kernel, kernel.feature_map(DIM * 4, 60, seed=1), bottleneck, *common())


def models() -> dict[str, PosteriorModel]:
    networks = {
        "dnn": Network(2, 13),
        "dnn-bottleneck": Network(2, 13, "sigmoid", bottleneck=5),
        "dnn-normalised": Network(2, 13, "relu", normalise=True),
    }
    return {
        "kernel": kernel_model(0),
        "bottleneck": kernel_model(5),
        **{name: Dnn(network, *common()) for name, network in networks.items()},
    }


NAMES = ["kernel", "bottleneck", "dnn", "dnn-bottleneck", "dnn-normalised"]


def naive_logits(model: PosteriorModel, p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    if isinstance(model, Dnn):
        for layer in range(2):
            x = x @ p[f"W{layer}"]
            if model.network.normalise:
                x = (
                    (x - x.mean(1, keepdim=True))
                    / (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
                    * p[f"g{layer}"]
                )
            x = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu}[model.network.activation](
                x + p[f"b{layer}"]
            )
        return (x @ p["U"] if "U" in p else x) @ p["W2"] + p["b2"]
    z = model.feature_map(x)
    return (z @ p["U"] @ p["V"] if "U" in p else z @ p["theta"]) + p["bias"]


def trained(model: PosteriorModel) -> dict[str, torch.Tensor]:
    return {name: array.clone() for name, array in model.arrays().items() if name in model.parameters}


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_automatic_differentiation(name):
    model = models()[name]
    model.initialise(seed=3)
    p = {key: value.requires_grad_() for key, value in trained(model).items()}
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        x = torch.randn(17, DIM * 4, generator=generator)
        labels = torch.randint(CLASSES, (17,), generator=generator)
        loss = cross_entropy(naive_logits(model, p, x), labels)
        gradients = torch.autograd.grad(loss, list(p.values()))
        for array, gradient in zip(p.values(), gradients, strict=True):
            array.data -= 0.7 * gradient
        assert float(model.step(x, labels, 0.7)) == pytest.approx(17 * float(loss.detach()), rel=1e-5)
    for key, array in trained(model).items():
        torch.testing.assert_close(array, p[key].detach(), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(model.logits(x).detach(), naive_logits(model, p, x).detach(), rtol=1e-4, atol=1e-5)
    assert model.num_parameters() == sum(array.numel() for array in p.values())


def test_padding_never_takes_part():
    model = kernel_model(5)
    model.initialise(seed=1)
    for _ in range(3):
        model.step(torch.randn(20, DIM * 4), torch.randint(CLASSES, (20,)), 5.0)
    assert torch.equal(model.parameters["U"][:, 5:], torch.zeros(60, 3))
    assert torch.equal(model.parameters["V"][5:], torch.zeros(3, 16))
    assert torch.isinf(model.parameters["bias"][CLASSES:]).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_is_the_same_model(name, tmp_path):
    model = models()[name]
    model.initialise(seed=3)
    model.step(torch.randn(50, DIM * 4), torch.randint(CLASSES, (50,)), 1.0)
    save_model(tmp_path, model, {"seed": 3})
    features = np.random.default_rng(1).standard_normal((9, DIM)).astype(np.float32)
    loaded = load_model(tmp_path)
    np.testing.assert_array_equal(loaded.log_likelihoods(features), model.log_likelihoods(features))
    assert loaded.pipeline == model.pipeline
    first = (tmp_path / "model.safetensors").read_bytes()
    save_model(tmp_path, loaded, {"seed": 3})
    assert (tmp_path / "model.safetensors").read_bytes() == first


def test_dropout_is_for_training_alone():
    plain, dropped = (Dnn(Network(1, 400, "relu", dropout=share), *common()) for share in (0.0, 0.5))
    x, labels = torch.randn(50, DIM * 4), torch.randint(CLASSES, (50,))
    for model in (plain, dropped):
        model.initialise(1)
        torch.manual_seed(1)
        model.step(x, labels, 0.5)
    kept = (dropped.arrays()["W1"] != 0).any(dim=1).float().mean()
    assert kept == 1.0  # over 50 frames every unit was there once
    assert not torch.equal(dropped.arrays()["W1"], plain.arrays()["W1"])
    assert torch.equal(dropped.logits(x), dropped.logits(x))
    torch.manual_seed(1)
    again = Dnn(Network(1, 400, "relu", dropout=0.5), *common())
    again.initialise(1)
    again.step(x, labels, 0.5)
    assert torch.equal(again.arrays()["W1"], dropped.arrays()["W1"])


def test_networks_that_cannot_be_are_sentences():
    with pytest.raises(KernelamError, match="no activation is called swish; there are tanh, sigmoid, relu"):
        Dnn(Network(1, 5, "swish"), *common())
    with pytest.raises(KernelamError, match="a bottleneck of 11 is no narrower than 11 classes and 13 units"):
        Dnn(Network(1, 13, bottleneck=11), *common())


def test_likelihoods_are_posteriors_over_priors():
    model = models()["dnn"]
    model.initialise(seed=1)
    features = np.random.default_rng(1).standard_normal((6, DIM)).astype(np.float32)
    posteriors = np.exp(model.log_posteriors(features))
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, rtol=1e-5)
    expected = np.log(posteriors / (model.counts / model.counts.sum()))
    np.testing.assert_allclose(model.log_likelihoods(features), expected, atol=1e-5)


def test_sigmoid_units_begin_as_tanh_units_do():
    x = torch.randn(50, DIM * 4)
    sigmoid, tanh = (Dnn(Network(3, 30, activation), *common()) for activation in ("sigmoid", "tanh"))
    for model in (sigmoid, tanh):
        model.initialise(1)
    torch.testing.assert_close(sigmoid.hidden(x, 3), (1 + tanh.hidden(x, 3)) / 2, rtol=1e-4, atol=1e-5)


def test_a_class_that_was_never_seen_gains_no_more_than_the_floor_allows():
    priors = np.exp(log_priors(np.array([98.0, 2.0, 0.0, 0.0])))
    np.testing.assert_allclose(priors, [0.98, 0.02, 0.0025, 0.0025], rtol=1e-5)


@pytest.mark.parametrize("frames", [10, 1000, 10**6])
def test_classes_that_a_model_does_not_know_have_no_likelihood_above_that_of_all(frames):
    """Whatever is known of them: 2 of 100 classes with nearly all frames, two with few, and 96 with none."""
    counts = np.zeros(100)
    counts[:4] = frames, 1.0, frames, 2.0
    model = KernelSoftmax(
        Gaussian(1.0), Gaussian(1.0).feature_map(DIM * 4, 6, 1), 0, common()[0], common()[1], counts, CPU
    )
    known = torch.log_softmax(torch.randn(7, 2), dim=1)
    found = model.with_others(known, torch.tensor([0, 2]))
    torch.testing.assert_close(found.exp().sum(dim=1), torch.ones(7))
    likelihoods = found.numpy() - log_priors(counts)
    assert (np.delete(likelihoods, [0, 2], axis=1) <= 1e-5).all()
    torch.testing.assert_close(found[:, [0, 2]] - found[:, :1], known - known[:, :1])


def test_bottleneck_wider_than_the_classes_is_refused():
    with pytest.raises(KernelamError, match="a bottleneck of 11 is no narrower than the 11 classes"):
        kernel_model(11)


@pytest.mark.parametrize("damage", ["truncate", "counts", "missing"])
def test_a_damaged_model_directory_is_a_sentence(tmp_path, damage):
    model = models()["kernel"]
    model.initialise(seed=1)
    save_model(tmp_path, model, {})
    arrays = tmp_path / "model.safetensors"
    if damage == "truncate":
        arrays.write_bytes(arrays.read_bytes()[:-40])
    elif damage == "counts":
        (tmp_path / "ali_train_pdf.counts").write_text("[ 1 2 3 ]\n")
    else:
        arrays.unlink()
    with pytest.raises(KernelamError, match=str(tmp_path)):
        load_model(tmp_path)
