"""Kernels by their names in settings."""

from typing import Any

from kernelam.errors import KernelamError
from kernelam.kernels.arccos import ArcCosine
from kernelam.kernels.base import FeatureMap, Kernel
from kernelam.kernels.composition import Composition
from kernelam.kernels.gaussian import Gaussian
from kernelam.kernels.laplacian import Laplacian
from kernelam.kernels.linear import Linear
from kernelam.kernels.polynomial import Polynomial
from kernelam.kernels.posteriors import Posteriors
from kernelam.kernels.product import Product
from kernelam.kernels.sparse_gaussian import SparseGaussian
from kernelam.kernels.sum import Sum

__all__ = ["KERNELS", "FeatureMap", "kernel_from"]

_CLASSES = (
    ArcCosine,
    Composition,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Posteriors,
    Product,
    SparseGaussian,
    Sum,
)
KERNELS: dict[str, type[Kernel]] = {kernel.name: kernel for kernel in _CLASSES}


def kernel_from(settings: dict[str, Any]) -> Kernel:
    """The kernel whose `settings()` these are; an unknown name is a sentence that lists the known."""
    name = settings["name"]
    if name not in KERNELS:
        raise KernelamError(f"no kernel is called {name}; there are {', '.join(sorted(KERNELS))}")
    return KERNELS[name](**{key: _restored(value) for key, value in settings.items() if key != "name"})


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        return kernel_from(value)
    return tuple(_restored(item) for item in value) if isinstance(value, list) else value
