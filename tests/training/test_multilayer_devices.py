"""A multilayer kernel machine on a GPU that is not there: it is that of the CPU."""

import numpy as np
import pytest
import torch
from pretended_gpu import DEVICE, OnDevice, PretendedGpu

from kernelam.frontend.pipeline import Pipeline
from kernelam.models.multilayer import Multilayer
from kernelam.models.posterior import Inputs
from kernelam.training import exact
from kernelam.training.layers import LayerOptions, Steps, build_layers, build_metric
from kernelam.training.lmnn import MetricOptions, energies
from kernelam.training.temperature import fit_temperature

CPU = torch.device("cpu")
DIM = 12


def fitted(x: torch.Tensor, labels: torch.Tensor, kernel: str) -> Multilayer:
    """All that training does with tensors."""
    options = LayerOptions(kernel, 1, examples=200, pca_examples=100, components=20)
    found = build_layers(x[:200], labels[:200], options, Steps(None, ""), (x[200:], labels[200:]))
    metric, _ = build_metric(found.hidden, labels[:200], MetricOptions(rounds=2), Steps(None, ""))
    top = energies(found.hidden, labels[:200], metric, MetricOptions())
    inputs = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    classes = torch.tensor([0, 1, 3]).to(x.device)
    model = Multilayer(found.kept, found.layers, top, classes, Pipeline(), inputs, np.array([9.0, 9, 1, 9]), x.device)
    model.calibrate(*fit_temperature(model.scores(x), labels))
    return model


@pytest.mark.parametrize("kernel", ["arccos1", "gaussian o arccos0"])
def test_everything_stays_on_the_device(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "PAIRS", 1000)
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(rng.integers(3, size=240))
    means = 2 * rng.standard_normal((3, DIM))
    x = torch.from_numpy((rng.standard_normal((240, DIM)) + means[labels]).astype(np.float32))
    expected = fitted(x, labels, kernel)
    with PretendedGpu():
        model = fitted(x.to(DEVICE), labels.to(DEVICE), kernel)
        assert all(isinstance(array, OnDevice) for array in model.parameters.values())
        logits = model.logits(x.to(DEVICE))
        assert isinstance(logits, OnDevice)
        found = logits.cpu()
        with pytest.raises(RuntimeError, match="on the device"):
            model.logits(x)
    assert float((found.argmax(1) == expected.logits(x).argmax(1)).double().mean()) > 0.97
    assert model.widths == expected.widths
