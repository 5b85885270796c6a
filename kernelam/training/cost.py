"""What training a model took, for reports."""

import resource
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernelam.models.posterior import GradientModel


def training_flops(
    model: GradientModel, settings: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]], frames: int
) -> int:
    """Those of the matrix products of every step of a training on `frames` frames: of its epochs (reverted ones too),
    of the search, of the rounds of feature selection and of pre-training.

    A matrix takes 2 flops an element and frame for its output and as many for its gradient, and where what it is
    multiplied by depends on other trained matrices, 2 for the gradient of that. Random projections take the first 2.
    Cosines, activations, damping, what an optimiser does beyond SGD, and heldout frames are not counted.
    """
    trained, _ = _sizes(model)
    seen = sum(row["frames"] for row in (*epochs[1:], *epochs[0]["search"]))
    seen += _rounds(settings) * min(settings.get("selection_frames", 0), frames)
    tried = sum(row["frames"] for row in epochs[0].get("prepared", ()))
    return seen * step_flops(model) + _pretraining(trained, settings, frames, tried)


def step_flops(model: GradientModel) -> int:
    """Of a frame."""
    return _step(*_sizes(model))


def _sizes(model: GradientModel) -> tuple[list[int], int]:
    """Elements of each trained matrix, from the input on, and of the others together."""
    matrices = {
        name: array.numel() for name, array in model.arrays().items() if array.ndim == 2 and array.is_floating_point()
    }
    trained = [matrices.pop(name) for name in model.parameters if name in matrices]
    return trained, sum(matrices.values())


def _step(trained: Sequence[int], fixed: int = 0) -> int:
    """Flops a frame; nothing goes back through the first trained matrix."""
    return 2 * (3 * sum(trained) - trained[0] + fixed)


def _rounds(settings: Mapping[str, Any]) -> int:
    """Passes of feature selection: one less than its rounds, or as many as sizes are given."""
    numbers = settings.get("selection", "").split()
    return int(numbers[0]) - 1 if len(numbers) == 1 else len(numbers)


def _pretraining(trained: Sequence[int], settings: Mapping[str, Any], frames: int, tried: int) -> int:
    """Steps of each shallower network on all frames and of the first on those where its rate was `tried`, or the five
    products of contrastive divergence in each machine and epoch, on the units of the layers below."""
    kind = settings.get("pretraining")
    if not kind:
        return 0
    layers = settings["network"]["layers"]
    hidden, output = trained[:layers], trained[layers:]
    if kind == "discriminative":
        steps = [_step([*hidden[:depth], *output]) for depth in range(1, layers + 1)]
        return frames * sum(steps[:-1]) + tried * steps[0]
    passes: int = settings["rbm_epochs"] * frames
    return passes * sum(2 * (5 * size + sum(hidden[:below])) for below, size in enumerate(hidden))


def peak_memory(device: torch.device) -> int:
    """Bytes: the most that tensors held of a GPU, or that this process held at once, mapped frames included."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
