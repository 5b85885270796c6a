"""Support vector machines by scikit-learn's libsvm on kernel matrices that PyTorch computes (cho2009, section 2.4); and
linear ones by its liblinear, which needs none (a row of kubo2012, table 1)."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import Kernel
from kernelam.kernels.linear import Linear
from kernelam.memory import available, check_memory
from kernelam.models.svm import KernelSvm
from kernelam.progress import say, warn
from kernelam.training.calibration import Scores, calibrate
from kernelam.training.exact import Table, check_bandwidths, fit_kernel, unit_kernel

ELEMENTS = 1 << 23  # of a kernel matrix, computed at once
CACHE = 200  # MiB that libsvm keeps of rows of it
LEAST = 1e-3  # a slope: examples that contradict a decision make it less certain, and do not turn it around


@dataclass(frozen=True)
class SvmOptions:
    kernel: str = "arccos1"  # an expression with a closed form
    bandwidths: tuple[float, ...] = (1.0,)  # multiples of the median distance, to choose from
    penalties: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1e3)  # C × the variance in feature space, to choose from
    seed: int = 1  # of the pairs that the median is of

    def __post_init__(self) -> None:
        if wrong := [c for c in self.penalties if not 0.0 < c < float("inf")]:
            raise KernelamError(f"the penalty C of a support vector machine is above zero, not {wrong[0]:g}")
        check_bandwidths(self.bandwidths)
        unit_kernel(self.kernel)


@dataclass(frozen=True)
class Found:
    machine: KernelSvm  # of all examples
    chosen: KernelSvm  # the best of those that the new ones were no part of
    slopes: Tensor  # of the decisions of both
    trials: list[dict[str, float]]  # best first


def check_gram(size: int, kernel: str) -> None:
    if isinstance(unit_kernel(kernel), Linear):
        return
    needed = 8 * size**2 + (CACHE << 20)
    say(f"the kernel matrix of {size} examples takes {needed / 2**30:.1f} GiB of memory")
    check_memory(needed, available(), f"the kernel matrix of {size} examples", "fewer examples take less")


def gram(kernel: Kernel, x: Tensor) -> np.ndarray:
    """k(x_i, x_j) as libsvm takes it, in double precision; computed in that of x, but for the diagonal, where an angle
    of 0 is the root of a rounding error."""
    size = len(x)
    found = np.empty((size, size))
    for rows in torch.arange(size).split(max(1, ELEMENTS // size)):
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        found[part] = kernel.matrix(x[part], x).cpu().numpy()
    np.fill_diagonal(found, kernel.diagonal(x.double()).cpu().numpy())
    return found


def fit_svm(kernel: Kernel, x: Tensor, labels: Tensor, penalty: float, matrix: np.ndarray | None = None) -> KernelSvm:
    """The machine of penalty C; `matrix` is `gram(kernel, x)`, if it is there already."""
    svm = _scikit_learn()
    if len(labels.unique()) < 2:
        raise KernelamError("a support vector machine needs examples of two classes, and has those of one")
    if isinstance(kernel, Linear):
        return _fit_linear(kernel, x, labels, penalty)
    matrix = gram(kernel, x) if matrix is None else matrix
    fitted = svm.SVC(C=penalty, kernel="precomputed", cache_size=CACHE).fit(matrix, labels.cpu().numpy())
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


def _scikit_learn() -> Any:
    try:
        import sklearn.svm as svm
    except ImportError:
        raise KernelamError(
            "support vector machines are trained by scikit-learn, which is not installed: pip install scikit-learn"
        ) from None
    return svm


def _fit_linear(kernel: Linear, x: Tensor, labels: Tensor, penalty: float) -> KernelSvm:
    """Pair by pair, the least ½ (|w|² + b²) + C Σ [1 − y (wᵀ(x − x̄) + b)]₊²: of the hinge itself liblinear has only a
    coordinate descent, which does not converge on images. The only vector of a pair is its w, one of the first class.
    """
    classes, count = labels.unique(), len(labels.unique())
    i, j = torch.triu_indices(count, count, 1)
    normals, offsets, unfinished = [], [], 0
    for pair in zip(classes[i], classes[j], strict=True):
        own = torch.isin(labels, torch.stack(pair))
        some = x[own].double()
        mean = some.mean(dim=0)
        machine = _scikit_learn().LinearSVC(C=penalty, dual=False)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            machine.fit((some - mean).cpu().numpy(), (labels[own] == pair[0]).cpu().numpy())
        unfinished += bool(said)
        normals.append(torch.from_numpy(machine.coef_[0]))
        offsets.append(float(machine.intercept_[0] - mean.cpu() @ normals[-1]))
    if unfinished:
        warn(f"{unfinished} of {len(i)} linear machines with C = {penalty:.3g} had not converged after their last step")
    alpha = torch.zeros(count - 1, len(i))
    alpha[j - 1, torch.arange(len(i))] = 1.0
    sizes = torch.bincount(i, minlength=count)
    return KernelSvm(kernel, classes, sizes, torch.stack(normals).to(x), alpha.to(x), torch.tensor(offsets).to(x))


def train_svm(x: Tensor, labels: Tensor, x_new: Tensor, labels_new: Tensor, options: SvmOptions) -> Found:
    """Choose the kernel width and C that make the fewest errors on the new examples, then train on these too (cho2009,
    section 2.4).

    Penalties are multiples of 1/v, with v the variance of φ(x): C then means the same for kernels of any scale and with
    any mean, of which layers of arc-cosine kernels have more and more.
    """
    known = torch.isin(labels_new, labels)
    if not known.any():
        raise KernelamError("no heldout frame is of a class that training frames are of: there is nothing to choose by")
    if not known.all():
        warn(
            f"{int((~known).sum())} of {len(known)} heldout frames are left out: no training frame is of their"
            f" {len(labels_new[~known].unique())} classes, {int(labels_new[~known].min())} first"
        )
        x_new, labels_new = x_new[known], labels_new[known]
    both, all_labels = torch.cat([x, x_new]), torch.cat([labels, labels_new])
    trials: list[dict[str, float]] = []
    chosen, fewest = None, float("inf")
    for bandwidth in options.bandwidths:
        kernel = fit_kernel(options.kernel, bandwidth, Table(both, all_labels), options.seed)
        matrix, variance = None, float(x.var(dim=0, correction=0).sum())
        if not isinstance(kernel, Linear):
            matrix = gram(kernel, x)
            variance = float(matrix.diagonal().mean() - matrix.mean())
        if not variance > 0.0:
            raise KernelamError("all examples are one in the feature space of the kernel: their kernels are equal")
        for penalty in options.penalties:
            machine = fit_svm(kernel, x, labels, penalty / variance, matrix)
            error = float((machine.predict(x_new) != labels_new).double().mean())
            trials.append({"bandwidth": bandwidth, "penalty": penalty, "C": penalty / variance, "error": error})
            say(f"bandwidth {bandwidth:g}, penalty {penalty:g}: {100 * error:.2f} % of {len(x_new)} wrong")
            if error < fewest:
                chosen, fewest = machine, error
        del matrix
    trials.sort(key=lambda trial: trial["error"])
    _look_at_edges(trials[0], {"bandwidth": options.bandwidths, "penalty": options.penalties})
    assert chosen is not None
    machine = fit_svm(chosen.kernel, both, all_labels, trials[0]["C"])
    return Found(machine, chosen, fit_slopes(chosen, x_new, labels_new), trials)


def fit_slopes(machine: KernelSvm, x: Tensor, labels: Tensor) -> Tensor:
    """a of σ(a f) of each pair, by maximum likelihood on examples that the machine was not trained on.

    As each comes with its mirror image, −f of the other class, the best constant beside a f is 0.
    """
    f = machine.decisions(x)
    i, j = torch.triu_indices(len(machine.classes), len(machine.classes), 1, device=x.device)

    def scores() -> Iterator[Scores]:
        for pair in range(f.shape[1]):
            first, second = (labels == machine.classes[side[pair]] for side in (i, j))
            own, where = f[first | second, pair : pair + 1], torch.tensor([pair], device=x.device)
            is_first = first[first | second][:, None]
            yield Scores(torch.cat([own, -own]), where, torch.cat([is_first, ~is_first]))

    return calibrate(scores, f.new_full((f.shape[1],), 0.5))[:, 0].clamp_min(LEAST)


def _look_at_edges(best: dict[str, float], tried: dict[str, Sequence[float]]) -> None:
    for name, values in tried.items():
        if len(values) > 1 and best[name] in (min(values), max(values)):
            warn(f"the best {name}, {best[name]:g}, is at the edge of those tried")
