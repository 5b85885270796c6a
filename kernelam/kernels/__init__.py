"""Kernels: the exact function beside its random feature map. Knows no speech."""

from kernelam.errors import KernelamError
from kernelam.kernels.base import FeatureMap, FourierFeatures, Kernel, ShiftInvariant
from kernelam.kernels.gaussian import Gaussian

__all__ = ["KERNELS", "FeatureMap", "FourierFeatures", "Gaussian", "Kernel", "ShiftInvariant", "kernel_class"]

KERNELS: dict[str, type[Gaussian]] = {"gaussian": Gaussian}


def kernel_class(name: str) -> type[Gaussian]:
    """The kernel of that name; an unknown one is a sentence that lists the known."""
    if name not in KERNELS:
        raise KernelamError(f"no kernel is called {name}; there are {', '.join(sorted(KERNELS))}")
    return KERNELS[name]
