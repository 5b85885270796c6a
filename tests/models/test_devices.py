"""The training step and the forward pass on a GPU that is not there: no tensor of another device slips in."""

import copy

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import FeatureMap, Gaussian, SparseGaussian
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs, PosteriorModel
from kernelam.models.pursuit import KernelExpansion
from kernelam.models.softmax import KernelSoftmax

CLASSES, DIM, BATCH = 11, 6, 32
CUDA = torch.device("cuda")


def on_fake_gpu(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=CUDA)


def map_on_fake_gpu(z: FeatureMap) -> FeatureMap:
    made = copy.copy(z)
    made.own = {name: on_fake_gpu(array) for name, array in z.own.items()}
    return made


def common() -> tuple:
    inputs = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    return Pipeline(), inputs, np.ones(CLASSES), torch.device("cpu")


def models() -> dict[str, PosteriorModel]:
    dense, sparse = (kernel.feature_map(DIM, 40, 1) for kernel in (Gaussian(2.0), SparseGaussian(2.0, 3)))
    return {
        "kernel": KernelSoftmax(Gaussian(2.0), dense, 0, *common()),
        "bottleneck": KernelSoftmax(SparseGaussian(2.0, 3), sparse, 5, *common()),
        "dnn": Dnn(Network(2, 13), *common()),
        "dnn-modern": Dnn(Network(2, 13, "relu", bottleneck=3, normalise=True, dropout=0.2), *common()),
    }


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("name", ["kernel", "bottleneck"])
def test_a_step_and_a_forward_pass_stay_on_the_device(name: str, mixed: bool) -> None:
    model = models()[name]
    model.initialise(1)
    with FakeTensorMode():
        model.parameters = {key: on_fake_gpu(array) for key, array in model.parameters.items()}
        assert isinstance(model, KernelSoftmax)
        model.feature_map = map_on_fake_gpu(model.feature_map)
        model.device, model.mixed = CUDA, mixed
        x, labels = torch.empty(BATCH, DIM, device=CUDA), torch.empty(BATCH, dtype=torch.int64, device=CUDA)
        loss = model.step(x, labels, 0.1, 1e-3)
        assert loss.device.type == "cuda"
        logits = model.logits(x)
        assert (logits.device.type, logits.shape) == ("cuda", (BATCH, CLASSES))
        assert logits.dtype == torch.float32


@pytest.mark.parametrize("name", ["dnn", "dnn-modern"])
def test_the_forward_pass_of_a_network_stays_on_the_device(name: str) -> None:
    """Its step is automatic differentiation, which asks for the streams of a real GPU."""
    model = models()[name]
    model.initialise(1)
    with FakeTensorMode():
        model.parameters = {key: on_fake_gpu(array) for key, array in model.parameters.items()}
        assert model.logits(torch.empty(BATCH, DIM, device=CUDA)).device.type == "cuda"


def test_an_expansion_stays_on_the_device() -> None:
    model = KernelExpansion(Gaussian(2.0), "orthogonal", torch.ones(7, DIM), torch.ones(7, CLASSES), *common())
    with FakeTensorMode():
        model.parameters = {key: on_fake_gpu(array) for key, array in model.parameters.items()}
        assert model.logits(torch.empty(BATCH, DIM, device=CUDA)).device.type == "cuda"


@pytest.mark.parametrize("name", ["kernel", "bottleneck", "dnn"])
def test_mixed_precision_is_near_single_precision(name: str) -> None:
    single, mixed = models()[name], models()[name]
    mixed.mixed = True
    generator = torch.Generator().manual_seed(0)
    for model in (single, mixed):
        model.initialise(1)
    for _ in range(5):
        x, labels = torch.randn(BATCH, DIM, generator=generator), torch.randint(CLASSES, (BATCH,), generator=generator)
        losses = [float(model.step(x, labels, 0.5)) for model in (single, mixed)]
        assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert losses[0] != losses[1]
