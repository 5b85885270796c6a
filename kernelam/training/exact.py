"""From a kernel expression to its exact function, bandwidths fitted to samples, where no random features are wanted."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frames.order import some
from kernelam.kernels import expression as ask
from kernelam.kernels.arccos import ArcCosine
from kernelam.kernels.base import BandwidthKernel, Kernel
from kernelam.kernels.composition import Composition
from kernelam.kernels.gaussian import Gaussian
from kernelam.kernels.laplacian import Laplacian
from kernelam.kernels.linear import Linear
from kernelam.kernels.polynomial import Polynomial
from kernelam.kernels.product import Product
from kernelam.kernels.sparse_gaussian import SparseGaussian
from kernelam.kernels.sum import Sum
from kernelam.randomness import stream

PAIRS = 20_000  # for a median
CHUNK = 2_000  # of them at once
LEAST = 1e-30  # width of a kernel; and the largest is its inverse
LARGEST = 1e18  # k: its square is a number of single precision
SQUARE = 100  # of them at once where a kernel has to be evaluated for all with all
RANGED = 1 << 16  # samples whose k(x, x) is looked at: all that a kernel matrix in memory is of


class Samples(Protocol):
    """What can be learned from, such as frames.Batches."""

    device: torch.device

    def __len__(self) -> int: ...

    def take(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and labels of samples by their numbers."""


class Table:
    """Samples in memory."""

    def __init__(self, x: Tensor, labels: Tensor) -> None:
        self.x, self.labels, self.device = x, labels, x.device

    def __len__(self) -> int:
        return len(self.x)

    def take(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        frames = frames.to(self.device)
        return self.x[frames], self.labels[frames]


Fit = Callable[[BandwidthKernel, float | None, Kernel | None], Kernel]
"""What gives a kernel its width: a multiple of the median, if there is one, of distances in the space of another."""


def check_bandwidths(values: Iterable[float]) -> None:
    """Before there are any frames."""
    if wrong := [value for value in values if not 0.0 < value < float("inf")]:
        raise KernelamError(f"a bandwidth is a number above zero, not {wrong[0]:g}")


def unit_kernel(expression: str) -> Kernel:
    """The exact kernel of an expression, bandwidths still 1; what has no closed form is refused."""
    node = ask.parse(expression)
    _kernel(node, None, lambda kernel, *_: kernel, sparse=False)(*torch.ones(2, 1, 2))
    return _kernel(node, None, lambda kernel, *_: kernel)


def fit_kernel(expression: str, bandwidth: float, samples: Samples, seed: int) -> Kernel:
    """The exact kernel of an expression. Widths are multiples of median distances: `bandwidth` times, if it says none.

    The distance that an outer kernel is fitted to is that of φ(x) and φ(y) of the inner one, by its exact function.
    """

    def fit(kernel: BandwidthKernel, factor: float | None, below: Kernel | None) -> Kernel:
        rng = stream(seed, "subsets")
        pairs = random_pairs(samples, seed)
        if below is not None:
            pairs = (_in_the_plane(below, *some) for pair in pairs for some in zip(*_split(pair), strict=True))
        median = float(torch.cat([kernel.distances(x, y, rng).cpu() for x, y in pairs]).median())
        return with_median(kernel, factor or bandwidth, median)

    kernel = _kernel(ask.parse(expression), None, fit)
    _check_range(kernel, samples, expression, seed)
    return kernel


def _check_range(kernel: Kernel, samples: Samples, expression: str, seed: int) -> None:
    """Layers of degree 2 square k(x, x), and polynomials raise it to their degree. No k(x, y) is above the largest
    k(x, x), which a single sample may have: libsvm would go on for ever, or be given what is not finite."""
    chosen = torch.from_numpy(some(len(samples), RANGED, stream(seed, "range")))
    for part in chosen.split(SQUARE):
        x, _ = samples.take(part)
        if not bool((kernel.matrix(x, x).abs() < LARGEST).all()):  # which what is not a number is not
            raise KernelamError(
                f"the kernel {expression} of these frames is too large for single precision, with inputs up to"
                f" {float(x.abs().max()):.3g}: take a lower degree, fewer layers of degree 2, or mend the features"
            )


def _kernel(node: ask.Expression, below: Kernel | None, fit: Fit, sparse: bool = True) -> Kernel:
    """Of a node whose inputs are φ(x) of the kernel `below`."""
    match node:
        case ask.SumOf(weights, terms):
            return Sum(weights, tuple(_kernel(term, below, fit, sparse) for term in terms))
        case ask.ProductOf(factors):
            return Product(tuple(_kernel(factor, below, fit, sparse) for factor in factors))
        case ask.CompositionOf(outer, projection, inside, _):
            if projection:
                raise KernelamError(f"{node} has no closed form: {projection} is fitted to random features")
            inner = _kernel(inside, below, fit, sparse)
            beneath = inner if below is None else Composition(inner, below)
            return Composition(_kernel(outer, beneath, fit, sparse), inner)
        case ask.Leaf("posteriors"):
            raise KernelamError(f"{node} has no closed form: it is features of a model")
    assert isinstance(node, ask.Leaf)
    kernel = leaf_kernel(node if sparse else replace(node, argument=min(1, node.argument)))
    return fit(kernel, node.factor, below) if isinstance(kernel, BandwidthKernel) else kernel


def leaf_kernel(leaf: ask.Leaf) -> Kernel:
    if leaf.name.startswith("arccos"):
        return ArcCosine(int(leaf.name[-1]))
    if leaf.name == "sparse-gaussian":
        return SparseGaussian(k=leaf.argument)
    if leaf.name == "polynomial":
        return Polynomial(leaf.argument)
    return {"gaussian": Gaussian, "laplacian": Laplacian, "linear": Linear}[leaf.name]()


def with_median(kernel: BandwidthKernel, factor: float, median: float) -> Kernel:
    if not 0.0 < median < float("inf"):
        raise KernelamError(
            f"the median distance of random frames is {median:g}, which leaves the {kernel.name} kernel no width:"
            " most of its inputs are equal, or not finite"
        )
    if not LEAST < (width := factor * median) < 1.0 / LEAST:
        raise KernelamError(
            f"{factor:g} times the median distance of random frames, {median:g}, is a width of the {kernel.name} kernel"
            " that single precision has no room for: choose a --bandwidth nearer to 1"
        )
    return kernel.with_width(width)


def random_pairs(samples: Samples, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """PAIRS pairs of different random samples, CHUNK at once."""
    rng = stream(seed, "pairs")
    left = rng.integers(len(samples), size=PAIRS)
    right = (left + rng.integers(1, max(2, len(samples)), size=PAIRS)) % len(samples)
    for start in range(0, PAIRS, CHUNK):
        x, y = (samples.take(torch.from_numpy(side[start : start + CHUNK]))[0] for side in (left, right))
        yield x, y


def _split(pair: tuple[Tensor, Tensor]) -> list[tuple[Tensor, ...]]:
    return [torch.split(side, SQUARE) for side in pair]


def _in_the_plane(kernel: Kernel, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors of two coordinates with the inner products of φ(x_i) and φ(y_i)."""
    a, b, c = kernel.diagonal(x).double(), kernel.diagonal(y).double(), kernel(x, y).diagonal().double()
    along = c / a.sqrt().clamp_min(torch.finfo(torch.float64).tiny)
    across = (b - along.square()).clamp_min(0.0).sqrt()
    return torch.stack([a.sqrt(), torch.zeros_like(a)], dim=1), torch.stack([along, across], dim=1)
