"""Support vector machines by scikit-learn's libsvm on kernel matrices that PyTorch computes (cho2009, section 2.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import Kernel
from kernelam.memory import available, check_memory
from kernelam.models.svm import KernelSvm
from kernelam.progress import say, warn
from kernelam.training.exact import Table, fit_kernel, unit_kernel

ELEMENTS = 1 << 23  # of a kernel matrix, computed at once
CACHE = 200  # MiB that libsvm keeps of rows of it


@dataclass(frozen=True)
class SvmOptions:
    kernel: str = "arccos1"  # an expression with a closed form
    bandwidths: tuple[float, ...] = (1.0,)  # multiples of the median distance, to choose from
    penalties: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)  # C, to choose from
    validation: int = 2000  # examples at the end that choose
    seed: int = 1  # of the pairs that the median is of

    def __post_init__(self) -> None:
        if wrong := [c for c in self.penalties if not 0.0 < c < float("inf")]:
            raise KernelamError(f"the penalty C of a support vector machine is above zero, not {wrong[0]:g}")
        unit_kernel(self.kernel)


def gram(kernel: Kernel, x: Tensor) -> np.ndarray:
    """k(x_i, x_j) as libsvm takes it, in double precision; computed in that of x, but for the diagonal, where an angle
    of 0 is the root of a rounding error."""
    size = len(x)
    advice = "fewer examples take less"
    check_memory(8 * size**2 + (CACHE << 20), available(), f"the kernel matrix of {size} examples", advice)
    found = np.empty((size, size))
    for rows in torch.arange(size).split(max(1, ELEMENTS // size)):
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        found[part] = kernel.matrix(x[part], x).cpu().numpy()
    np.fill_diagonal(found, kernel.diagonal(x.double()).cpu().numpy())
    return found


def fit_svm(kernel: Kernel, x: Tensor, labels: Tensor, penalty: float, matrix: np.ndarray | None = None) -> KernelSvm:
    """The machine of penalty C; `matrix` is `gram(kernel, x)`, if it is there already."""
    try:
        from sklearn.svm import SVC
    except ImportError:
        raise KernelamError(
            "support vector machines are trained by scikit-learn, which is not installed: pip install scikit-learn"
        ) from None
    if len(labels.unique()) < 2:
        raise KernelamError("a support vector machine needs examples of two classes, and has those of one")
    matrix = gram(kernel, x) if matrix is None else matrix
    fitted = SVC(C=penalty, kernel="precomputed", cache_size=CACHE).fit(matrix, labels.cpu().numpy())
    sign = -1.0 if len(fitted.classes_) == 2 else 1.0  # of two classes, scikit-learn has f positive for the second

    def single(array: Any) -> Tensor:
        return torch.from_numpy(sign * np.asarray(array)).to(x)

    return KernelSvm(
        kernel,
        torch.from_numpy(fitted.classes_).to(x.device),
        torch.from_numpy(fitted.n_support_.astype(np.int64)),
        x[torch.from_numpy(fitted.support_).long().to(x.device)],
        single(fitted.dual_coef_),
        single(fitted.intercept_),
    )


def train_svm(x: Tensor, labels: Tensor, options: SvmOptions) -> tuple[KernelSvm, list[dict[str, float]]]:
    """The machine of all examples, with the kernel width and C that make the fewest errors on the last of them where it
    is trained on the others; and what was tried, best first."""
    count = len(x) - options.validation
    if options.validation < 1 or count < 1:
        raise KernelamError(
            f"{options.validation} examples that choose C do not leave any of {len(x)} to be trained on"
        )
    trials: list[dict[str, float]] = []
    for bandwidth in options.bandwidths:
        kernel = fit_kernel(options.kernel, bandwidth, Table(x, labels), options.seed)
        matrix = gram(kernel, x[:count])
        for penalty in options.penalties:
            machine = fit_svm(kernel, x[:count], labels[:count], penalty, matrix)
            error = float((machine.predict(x[count:]) != labels[count:]).double().mean())
            trials.append({"bandwidth": bandwidth, "penalty": penalty, "error": error})
            say(f"bandwidth {bandwidth:g}, C {penalty:g}: {100 * error:.2f} % of {options.validation} wrong")
    trials.sort(key=lambda trial: trial["error"])
    _look_at_edges(trials[0], {"bandwidth": options.bandwidths, "penalty": options.penalties})
    kernel = fit_kernel(options.kernel, trials[0]["bandwidth"], Table(x, labels), options.seed)
    return fit_svm(kernel, x, labels, trials[0]["penalty"]), trials


def _look_at_edges(best: dict[str, float], tried: dict[str, Sequence[float]]) -> None:
    for name, values in tried.items():
        if len(values) > 1 and best[name] in (min(values), max(values)):
            warn(f"the best {name}, {best[name]:g}, is at the edge of those tried")
