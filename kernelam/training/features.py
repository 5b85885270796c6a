"""From a kernel expression to a kernel and its random features: bandwidths and projections fitted to training frames.

A bandwidth is a multiple of the median distance of random pairs (may2017, footnote 8); that of an outer kernel, of
the inner features it is to see (lu2014, supplement).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.order import some
from kernelam.kernels import expression as ask
from kernelam.kernels.base import BLOCK, PLANS, BandwidthKernel, Draw, FeatureMap, Kernel
from kernelam.kernels.composition import CompositeFeatures, Composition
from kernelam.kernels.posteriors import PosteriorFeatures, Posteriors
from kernelam.kernels.product import Product
from kernelam.kernels.sum import Sum, SumFeatures, shared_out
from kernelam.models.description import describe
from kernelam.models.directory import load_posterior_model
from kernelam.models.dnn import Dnn
from kernelam.models.posterior import Inputs, PosteriorModel
from kernelam.models.softmax import KernelSoftmax
from kernelam.randomness import stream
from kernelam.ranks import alone, current
from kernelam.training.exact import leaf_kernel, random_pairs, with_median
from kernelam.training.projection import fit_projection

ELEMENTS = 1 << 28  # of z that a projection is fitted to: 320,000 frames of 840 numbers, 53,000 of 5000 features
CHUNK = 2_000  # frames mapped at once

View = Callable[[Tensor], Tensor]
"""From an input of the model to the input of a part of it."""


def build_features(
    expression: str | ask.Expression,
    bandwidth: float,
    count: int,
    plan: str,
    train: Batches,
    inputs: Inputs,
    seed: int,
    device: torch.device,
    first_block: int = 0,
) -> tuple[Kernel, FeatureMap]:
    """The kernel of `expression`, fitted to training frames, and `count` random features of it, on the device.

    `bandwidth` is the multiple of the median where the expression has none, and `count` the number of features of
    inner maps where it has none. Maps of the same arguments but other blocks are parts of one larger map.
    """
    if plan not in PLANS:
        raise KernelamError(f"no sampling plan is called {plan}; there are {', '.join(PLANS)}")
    node = ask.parse(expression) if isinstance(expression, str) else expression
    builder = _Builder(bandwidth, count, train, inputs, seed, device)
    draw = Draw(seed, plan, first_block, shard=current().features)
    return builder.build(node, inputs.dim, count, draw, lambda x: x)


@dataclass(frozen=True)
class _Builder:
    bandwidth: float
    count: int
    train: Batches
    inputs: Inputs
    seed: int
    device: torch.device

    def build(self, node: ask.Expression, dim: int, count: int, draw: Draw, view: View) -> tuple[Kernel, FeatureMap]:
        """The kernel and map of `node`, whose inputs are `view` of a frame and have `dim` numbers."""
        if isinstance(node, ask.SumOf):
            return self.sum(node, dim, count, draw, view)
        if isinstance(node, ask.CompositionOf):
            return self.composition(node, dim, count, draw, view)
        if isinstance(node, ask.Leaf) and node.name == "posteriors":
            kernel, features = self.posteriors(node)
            return kernel, features.slice(draw.shard)
        kernel = self.fitted(node, view)
        return kernel, kernel.draw(dim, count, draw).to(self.device)

    def sum(self, node: ask.SumOf, dim: int, count: int, draw: Draw, view: View) -> tuple[Kernel, FeatureMap]:
        counts = shared_out(count, len(node.terms))
        built = [
            self.build(term, dim, n, draw.part(i), view)
            for i, (term, n) in enumerate(zip(node.terms, counts, strict=True))
        ]
        kernels, maps = zip(*built, strict=True)
        return Sum(node.weights, kernels), SumFeatures(node.weights, maps)

    def composition(
        self, node: ask.CompositionOf, dim: int, count: int, draw: Draw, view: View
    ) -> tuple[Kernel, FeatureMap]:
        inner_kernel, inner = self.build(node.inner, dim, node.features or self.count, draw.inner(), view)
        arrays: dict[str, Tensor] = {}
        size = inner.count
        if node.projection:
            classes = int(self.train.labels.max()) + 1
            frames = [self.frames(lambda x: inner(view(x)), max(CHUNK, ELEMENTS // size), part) for part in (0, 1)]
            arrays = fit_projection(node.projection.name, node.projection.dim, size, classes, *frames)
            size = node.projection.dim
        between = CompositeFeatures(inner, inner, arrays)
        outer_kernel, outer = self.build(node.outer, size, count, draw.part("outer"), lambda x: between.hidden(view(x)))
        projection = str(node.projection) if node.projection else None
        kernel = Composition(outer_kernel, inner_kernel, inner.count, projection)
        return kernel, CompositeFeatures(outer, inner, arrays)

    def fitted(self, node: ask.Expression, view: View) -> Kernel:
        """A leaf or a product of leaves, whose bandwidths are fitted."""
        if isinstance(node, ask.ProductOf):
            return Product(tuple(self.fitted(factor, view) for factor in node.factors))
        kernel = _unit(node)
        if not isinstance(kernel, BandwidthKernel):
            return kernel
        assert isinstance(node, ask.Leaf)  # a product has no width of its own
        return with_median(kernel, node.factor or self.bandwidth, self.median(kernel, view))

    def median(self, kernel: BandwidthKernel, view: View) -> float:
        """Of the kernel's distance between PAIRS pairs of different random frames."""
        subsets = stream(self.seed, "subsets")
        pairs = random_pairs(self.train, self.seed)
        return float(torch.cat([kernel.distances(view(x), view(y), subsets).cpu() for x, y in pairs]).median())

    def frames(self, view: View, most: int, part: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Random training frames as `view` has them, at most so many, each once, with their labels: three quarters of
        them, or (part 1) the rest."""
        order = some(len(self.train), most, stream(self.seed, "sample"))
        cut = 3 * len(order) // 4
        for chunk in torch.split(torch.from_numpy(order[cut:] if part else order[:cut]), CHUNK):
            x, labels = self.train.take(chunk)
            yield view(x), labels

    def posteriors(self, node: ask.Leaf) -> tuple[Kernel, FeatureMap]:
        folder = Path(node.folder)
        with alone():
            model = load_posterior_model(folder, str(self.device))
        _check_inputs(folder, model.inputs, self.inputs)
        return _posteriors_of(folder, model)


def features_of(folder: Path, inputs: Inputs, device: torch.device) -> tuple[Kernel, FeatureMap]:
    """The kernel and random features of a trained model, perhaps those that it selected."""
    model = load_posterior_model(folder, str(device))
    if not isinstance(model, KernelSoftmax):
        raise KernelamError(f"{folder} holds a {model.kind} model, which has no random features")
    _check_inputs(folder, model.inputs, inputs)
    return model.kernel, model.feature_map


def count_of(node: ask.Expression, dim: int, count: int, inner: int) -> int:
    """Features of the map that `build_features` makes of `dim` inputs: `count`, but inputs and posteriors are as many
    as they are."""
    if isinstance(node, ask.SumOf):
        shares = shared_out(count, len(node.terms))
        return sum(count_of(term, dim, n, inner) for term, n in zip(node.terms, shares, strict=True))
    if isinstance(node, ask.CompositionOf):
        hidden = count_of(node.inner, dim, node.features or inner, inner)
        return count_of(node.outer, node.projection.dim if node.projection else hidden, count, inner)
    if isinstance(node, ask.Leaf) and node.name == "linear":
        return dim
    if isinstance(node, ask.Leaf) and node.name == "posteriors":
        return int(describe(node.folder).get("num_classes", count))
    return count


def models_of(expression: str) -> list[Any]:
    """The fingerprints of the models whose posteriors are features: they decide as much as the expression does."""
    folders = re.findall(r"posteriors:([^\s()]+)", expression)
    return [describe(folder).get("fingerprint") for folder in folders]


def check_drawable(node: ask.Expression, count: int, inner: int, plan: str) -> FeatureMap | None:
    """Refuse what has no random features, or not `count` of them by this plan (`inner` in maps inside others), as long
    as there are no frames yet; return a few of those of a single kernel or product."""
    if isinstance(node, ask.SumOf):
        for term, n in zip(node.terms, shared_out(count, len(node.terms)), strict=True):
            check_drawable(term, n, inner, plan)
        return None
    if isinstance(node, ask.CompositionOf):
        check_drawable(node.inner, node.features or inner, inner, plan)
        check_drawable(node.outer, count, inner, plan)
        return None
    if isinstance(node, ask.Leaf) and node.name == "posteriors":
        return None
    kernel = _unit(node, sparse=False)
    kernel.check_count(count, plan)
    return kernel.draw(1, min(count, BLOCK), Draw(0, plan))


def _unit(node: ask.Expression, sparse: bool = True) -> Kernel:
    """The kernel of a leaf or a product, bandwidths still 1; of one coordinate where a sparse one is not wanted."""
    if isinstance(node, ask.ProductOf):
        return Product(tuple(_unit(factor, sparse) for factor in node.factors))
    if not isinstance(node, ask.Leaf) or node.name == "posteriors":
        raise KernelamError(f"a product is of kernels such as gaussian and laplacian, not of {node}")
    return leaf_kernel(node if sparse else replace(node, argument=min(1, node.argument)))


def _check_inputs(folder: Path, theirs: Inputs, ours: Inputs) -> None:
    if theirs.context != ours.context or len(theirs.mean) != len(ours.mean):
        raise KernelamError(
            f"the model of {folder} takes {len(theirs.mean)} features in a context of {theirs.context} frames, not"
            f" {len(ours.mean)} in {ours.context} as here: train it with the same --splice and features"
        )
    if not (np.allclose(theirs.mean, ours.mean) and np.allclose(theirs.scale, ours.scale)):
        raise KernelamError(
            f"the model of {folder} was trained on frames of another mean and variance: train it on the same data"
        )


def _posteriors_of(folder: Path, model: PosteriorModel) -> tuple[Kernel, FeatureMap]:
    """The layers of a trained model as plain arrays."""
    arrays = {name: array.to(model.device).contiguous() for name, array in model.arrays().items()}
    if isinstance(model, Dnn):
        if model.network.normalise:
            raise KernelamError(f"{folder} holds a network that normalises its layers: its posteriors are no features")
        if "U" in arrays:
            last = f"W{model.network.layers}"
            arrays[last] = arrays.pop("U") @ arrays[last]
        activation = model.network.activation
        return Posteriors(None, activation), PosteriorFeatures(arrays, None, activation)
    if not isinstance(model, KernelSoftmax):
        raise KernelamError(f"{folder} holds a {model.kind} model, whose posteriors cannot serve as features")
    if "U" in arrays:
        none = torch.zeros(arrays["U"].shape[1], device=model.device)
        layers = {"W0": arrays["U"], "b0": none, "W1": arrays["V"], "b1": arrays["bias"]}
    else:
        layers = {"W0": arrays["theta"], "b0": arrays["bias"]}
    return Posteriors(model.kernel, "linear"), PosteriorFeatures(layers, model.feature_map, "linear")
