"""Kernels: the exact function beside its random feature map. Knows no speech.

What needs PyTorch is imported when it is first asked for: reading a kernel expression does not.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelam.kernels.registry import (
        ArcCosine,
        Composition,
        FeatureMap,
        Gaussian,
        Kernel,
        Laplacian,
        Linear,
        Polynomial,
        Posteriors,
        Product,
        SparseGaussian,
        Sum,
        kernel_from,
    )

__all__ = [
    "ArcCosine",
    "Composition",
    "FeatureMap",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Posteriors",
    "Product",
    "SparseGaussian",
    "Sum",
    "kernel_from",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kernelam.kernels import registry

    return getattr(registry, name)
