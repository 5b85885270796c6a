"""Flops of training, counted by PyTorch or by the formulae of the benchmark."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian, SparseGaussian
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training.bench import Size
from kernelam.training.cost import peak_memory, training_flops
from kernelam.training.rbm import Rbm

DIM, CLASSES, FRAMES, CPU = 6, 16, 100, torch.device("cpu")
COMMON = (Pipeline(), Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32)), np.ones(CLASSES), CPU)
EPOCHS: list[dict[str, Any]] = [
    {"epoch": 0, "search": [{"frames": 30}, {"frames": 20}]},
    {"epoch": 1, "frames": FRAMES, "kept": False},
    {"epoch": 2, "frames": FRAMES, "kept": True},
]
STEPS = 30 + 20 + 2 * FRAMES


def network(layers: int, bottleneck: int = 0) -> Dnn:
    model = Dnn(Network(layers, 20, "sigmoid", bottleneck), *COMMON)
    model.initialise(1)
    return model


def counted(model: Dnn) -> int:
    with FlopCounterMode(display=False) as counter:
        model.gradients(torch.zeros(10, DIM), torch.zeros(10, dtype=torch.int64))
    return counter.get_total_flops() // 10


def settings(layers: int, pretraining: str = "") -> dict[str, Any]:
    return {"network": {"layers": layers}, "pretraining": pretraining, "rbm_epochs": 5}


@pytest.mark.parametrize(("layers", "bottleneck"), [(1, 0), (3, 0), (2, 4)])
def test_steps_of_networks(layers: int, bottleneck: int) -> None:
    model = network(layers, bottleneck)
    assert training_flops(model, settings(layers), EPOCHS, FRAMES) == STEPS * counted(model)


def test_pretraining() -> None:
    model = network(3)
    plain = STEPS * counted(model)
    shallow = FRAMES * sum(counted(network(depth)) for depth in (1, 2))
    assert training_flops(model, settings(3, "discriminative"), EPOCHS, FRAMES) == plain + shallow
    tried = [EPOCHS[0] | {"prepared": [{"frames": 7}, {"frames": 5}]}, *EPOCHS[1:]]
    more = 12 * counted(network(1))
    assert training_flops(model, settings(3, "discriminative"), tried, FRAMES) == plain + shallow + more
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        for layer, rows in enumerate((DIM, 20, 20)):
            units = model.hidden(torch.zeros(10, DIM), layer)
            Rbm(torch.zeros(rows, 20), layer == 0, 1).statistics(units)
    machines = 5 * FRAMES * counter.get_total_flops() // 10
    assert training_flops(model, settings(3, "rbm"), EPOCHS, FRAMES) == plain + machines


@pytest.mark.parametrize("bottleneck", [0, 8])
def test_steps_of_kernel_models(bottleneck: int) -> None:
    for kernel, nonzeros in ((Gaussian(1.0), DIM), (SparseGaussian(1.0, 3), 3)):
        model = KernelSoftmax(kernel, kernel.feature_map(DIM, 40, 1, "independent"), bottleneck, *COMMON)
        model.initialise(1)
        step = Size(40, CLASSES, bottleneck, DIM, 1).step_flops(nonzeros)
        assert training_flops(model, {"selection": ""}, EPOCHS, FRAMES) == STEPS * step
        for chosen, rounds in (("5", 4), ("10 20 30", 3)):
            more = {"selection": chosen, "selection_frames": 40}
            assert training_flops(model, more, EPOCHS, FRAMES) == (STEPS + rounds * 40) * step
        # features that another model had selected cost nothing
        assert training_flops(model, {"selection": "5"}, EPOCHS, FRAMES) == STEPS * step


def test_peak_memory_has_seen_what_was_there() -> None:
    ballast = np.ones(1 << 24)
    assert peak_memory(CPU) > ballast.nbytes
