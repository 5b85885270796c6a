"""Layers of a multilayer kernel machine (cho2009, section 3.1): pruned inputs, then kernel PCA, pruned, and so on.

The widths, and those of Gaussian kernels, are chosen layer by layer on other examples, which the layers are not made of
(in section 3.2 they become part of the training set again). Each layer is kept in a file, from which a run that was
killed goes on.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import kernel_from
from kernelam.models.kernel_pca import KernelPca
from kernelam.progress import say
from kernelam.randomness import stream
from kernelam.training import checkpoint
from kernelam.training.checkpoint import Clock
from kernelam.training.exact import Table, check_bandwidths, fit_kernel, unit_kernel
from kernelam.training.kernel_pca import check_components, fit_kernel_pca
from kernelam.training.lmnn import MetricOptions, learn_metric
from kernelam.training.pruning import Width, choose_width, ranking

VALIDATION = 2000  # other examples that choose

Saved = tuple[dict[str, Tensor], dict[str, Any]]
"""Arrays, and what is told of them."""


@dataclass(frozen=True)
class LayerOptions:
    kernel: str = "arccos1"  # an expression with a closed form
    layers: int = 1
    bandwidths: tuple[float, ...] = (1.0,)  # multiples of the median distance, to choose from in each layer
    examples: int = 12_000  # at most
    pca_examples: int = 6000  # random ones of these that components are of
    components: int = 500  # of kernel PCA, before pruning
    targets: int = 3  # neighbours of an example that its metric draws near
    seed: int = 1

    def __post_init__(self) -> None:
        if self.layers < 0:
            raise KernelamError(f"a multilayer kernel machine has a depth of 0 or more layers, not {self.layers}")
        if self.layers and self.pca_examples > self.examples:
            raise KernelamError(
                f"kernel PCA of {self.pca_examples} examples cannot be where there are {self.examples} in all"
            )
        check_bandwidths(self.bandwidths)
        if self.layers:
            check_components(self.components, self.pca_examples)
        MetricOptions(self.targets)
        unit_kernel(self.kernel)


@dataclass(frozen=True)
class Layers:
    """What was chosen, and the layers that were made by it."""

    kept: Tensor  # numbers of the inputs
    layers: list[KernelPca]
    chosen: list[dict[str, Any]]  # of the inputs and of each layer
    hidden: Tensor  # the examples at the top

    @property
    def text(self) -> str:
        return "-".join(str(row["features"]) for row in self.chosen)


class Steps:
    """Arrays and descriptions by name: made, or read from where an earlier run has left them."""

    def __init__(self, folder: Path | None, fingerprint: str) -> None:
        self.folder, self.fingerprint = folder, fingerprint
        self.clock = Clock(folder, fingerprint) if folder else None

    def path(self, name: str) -> Path | None:
        return self.folder / f"{name}.safetensors" if self.folder else None

    def read(self, name: str) -> Saved | None:
        path = self.path(name)
        return checkpoint.read(path, self.fingerprint) if path else None

    def write(self, name: str, arrays: dict[str, Tensor], about: dict[str, Any]) -> None:
        if path := self.path(name):
            checkpoint.write(path, arrays, about, self.fingerprint)
        if self.clock:
            self.clock.keep()

    def get(self, name: str, make: Callable[[], Saved]) -> Saved:
        if saved := self.read(name):
            say(f"going on with {self.path(name)}")
            return saved
        made = make()
        self.write(name, *made)
        return made


def build_layers(
    x: Tensor,
    labels: Tensor,
    options: LayerOptions,
    steps: Steps,
    others: tuple[Tensor, Tensor],
    below: Layers | None = None,
) -> Layers:
    """With as many features of the inputs and of each layer, and with such kernel widths, as are best for `others`
    with their labels; on top of the layers `below`, if there are any."""
    x_new, labels_new = others

    def inputs() -> Saved:
        order = ranking(x, labels).to(x.device)
        width = choose_width(x[:, order], labels, x_new[:, order], labels_new)
        return {"kept": order[: width.features]}, asdict(width)

    if below is None:
        arrays, about = steps.get("choice.0", inputs)
        kept = arrays["kept"].to(x.device)
        below = Layers(kept, [], [_told(0, about)], x[:, kept])
    kept, layers, chosen, old, new = below.kept, [*below.layers], [*below.chosen], below.hidden, x_new[:, below.kept]
    for layer in layers:
        new = layer(new)
    for number in range(len(layers) + 1, options.layers + 1):
        trials = [
            steps.get(f"choice.{number}.{place}", partial(_try, old, labels, new, labels_new, width, number, options))
            for place, width in enumerate(options.bandwidths)
        ]
        best = min(trials, key=lambda trial: trial[1]["error"])
        layers.append(_restored(best, x))
        old, new = layers[-1](old), layers[-1](new)
        chosen.append(_told(number, best[1]))
    return Layers(kept, layers, chosen, old)


def _told(number: int, about: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {
        name: about[name] for name in ("features", "neighbours", "error", "bandwidth") if name in about
    }
    error = f"{100 * row['error']:.2f} % wrong by {row['neighbours']} neighbours"
    say(f"{f'layer {number}' if number else 'inputs'}: {row['features']} features, {error}")
    return row


def _components(x: Tensor, bandwidth: float, number: int, options: LayerOptions) -> KernelPca:
    kernel = fit_kernel(options.kernel, bandwidth, Table(x, torch.zeros(len(x), device=x.device)), options.seed)
    count = min(options.pca_examples, len(x))
    order = torch.from_numpy(stream(options.seed, "components", number).permutation(len(x))[:count])
    return fit_kernel_pca(kernel, x[order.to(x.device)], min(options.components, count), options.seed)


def _try(
    x: Tensor, labels: Tensor, x_new: Tensor, labels_new: Tensor, bandwidth: float, number: int, options: LayerOptions
) -> Saved:
    layer = _components(x, bandwidth, number, options)
    old, new = layer(x), layer(x_new)
    order = ranking(old, labels).to(x.device)
    width: Width = choose_width(old[:, order], labels, new[:, order], labels_new)
    return _saved(layer.some(order[: width.features]), {**asdict(width), "bandwidth": bandwidth})


def _saved(layer: KernelPca, about: dict[str, Any]) -> Saved:
    arrays = {"vectors": layer.vectors, "matrix": layer.matrix, "offset": layer.offset}
    return arrays, {**about, "kernel": layer.kernel.settings()}


def _restored(saved: Saved, like: Tensor) -> KernelPca:
    arrays, about = saved
    names = ("vectors", "matrix", "offset")
    return KernelPca(kernel_from(about["kernel"]), *(arrays[name].to(like.device) for name in names))


def build_metric(
    x: Tensor, labels: Tensor, options: MetricOptions, steps: Steps
) -> tuple[Tensor, list[dict[str, Any]]]:
    """L of the top, round by round."""
    saved = steps.read("metric")
    kept = (saved[0], saved[1]["rounds"]) if saved else None
    if kept:
        say(f"going on with {steps.path('metric')}")

    def keep(arrays: dict[str, Tensor], rounds: list[dict[str, Any]]) -> None:
        steps.write("metric", arrays, {"rounds": rounds})

    return learn_metric(x, labels, options, keep, kept)
