"""Kernel gradient matching pursuit: log-linear models whose basis vectors are searched for (kubo2012, algorithm 1)."""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import reserve
from kernelam.kernels import Kernel
from kernelam.progress import say
from kernelam.randomness import stream
from kernelam.training import checkpoint
from kernelam.training.exact import Samples
from kernelam.training.log_linear import Fitted, LogLinear
from kernelam.training.preimages import CANDIDATES, Target, best_preimage, joint_preimages
from kernelam.training.subspace import LEAST, Subspace, check_differentiable

METHODS = ("orthogonal", "joint", "nystrom")
BLOCK = 8192  # samples whose coordinates are computed at once
SUMMED = 512  # of them whose ψψᵀ is summed at once, in double precision: one far out would drown the others' in single
APART = (
    0.1  # sines of angles between new vectors and the subspace, above which kernels are computed in single precision
)
CHECKPOINT, TABLE = "pursuit.safetensors", "coordinates.table"


class Some:
    """As many random ones of samples."""

    def __init__(self, samples: Samples, count: int, seed: int) -> None:
        self.samples, self.device = samples, samples.device
        self.numbers = torch.from_numpy(stream(seed, "some").permutation(len(samples))[:count])

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        return self.samples.take(self.numbers[frames])


@dataclass(frozen=True)
class PursuitOptions:
    basis: int = 1000  # vectors in the end, M̂
    first: int = 10  # random samples that it begins with
    added: int = 10  # vectors of a round, R
    method: str = "orthogonal"  # KGMP with orthogonalised gradients; joint: with eq. 3; nystrom: random samples at once
    penalty: float = 1.0  # c
    searched: int = 4000  # samples that stand for the gradient in a round
    tolerance: float = 1e-3  # a fit ends when its steps gain less than this share of the objective
    max_steps: int = 100  # of a fit
    seed: int = 1

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise KernelamError(f"no way to find basis vectors is called {self.method}; there are {', '.join(METHODS)}")
        if not 1 <= self.begin <= self.basis:
            raise KernelamError(f"pursuit begins with 1 to {self.basis} vectors, not {self.begin}")
        if self.added < 1 or self.searched < 1:
            few = f"adds {self.added}" if self.added < 1 else f"searches by {self.searched} samples"
            raise KernelamError(f"a round of pursuit {few}: it takes at least 1")
        if not 0.0 <= self.penalty < math.inf:
            raise KernelamError(f"a penalty is a number from 0 on, not {self.penalty:g}")

    @property
    def begin(self) -> int:
        """Random samples that it begins with: of Nyström's method, all."""
        return self.basis if self.method == "nystrom" else self.first

    def check(self, samples: int) -> None:
        if self.basis > samples:
            raise KernelamError(f"{self.basis} basis vectors are more than the {samples} samples")


@dataclass
class Pursuit:
    """A subspace, the model in it, and the story of its rounds."""

    subspace: Subspace
    fitted: Fitted
    rounds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def beta(self) -> Tensor:
        """β_lm of eq. 4, basis vectors × classes."""
        return self.subspace.coefficients(self.fitted.weights)


class Design:
    """Coordinates ψ of all samples in the orthonormal basis, basis × samples, and `squares`, the sum of ψψᵀ; they grow
    with the basis."""

    def __init__(self, samples: Samples, basis: int, folder: Path | None) -> None:
        shape = (basis, len(samples))
        if folder is None:
            self.table = torch.empty(shape, device=samples.device)
        else:
            path, size = folder / TABLE, 4 * basis * len(samples)
            what = f"the table of coordinates takes {size / 2**30:.2f} GiB"
            reserve(path, size, what, "a smaller --basis takes less")
            self.table = torch.from_numpy(np.memmap(path, np.float32, "r+", shape=shape))
        self.samples, self.rows = samples, 0
        self.squares = torch.empty(0, 0, dtype=torch.float64, device=samples.device)

    @property
    def done(self) -> Tensor:
        return self.table[: self.rows]

    def extend(self, subspace: Subspace) -> None:
        """Ψ₂ = L₂₂⁻¹ (K₂ − L₂₁ Ψ₁) for the rows of L that are new."""
        old, new = self.rows, len(subspace)
        if old == new:
            return
        below, own = subspace.factor[old:new, :old].float(), subspace.factor[old:new, old:new]
        rows = own.new_zeros(new - old, new)
        apart = float((own.diagonal() / subspace.factor[old:new].norm(dim=1)).min())
        y = subspace.y[old:new].to(torch.float32 if apart > APART else torch.float64)
        for frames in torch.arange(len(self.samples)).split(BLOCK):
            x, _ = self.samples.take(frames)
            part = slice(int(frames[0]), int(frames[-1]) + 1)
            k = subspace.kernel.by_products(y, x.to(y.dtype)).double()
            k -= below @ self.table[:old, part].to(x.device)
            self.table[old:new, part] = torch.linalg.solve_triangular(own, k, upper=False).to(self.table)
            for some in self.table[:new, part].split(SUMMED, dim=1):
                psi = some.to(x.device).double()
                rows += psi[old:] @ psi.T
        self.rows = new
        self.squares = torch.cat([torch.cat([self.squares, rows[:, :old].T], dim=1), rows])


def pursue(
    samples: Samples,
    num_classes: int,
    kernel: Kernel,
    options: PursuitOptions,
    folder: Path | None = None,
    fingerprint: str = "",
    goal: float = math.inf,
) -> Pursuit:
    """Fit, add basis vectors, and so on until there are enough, or the objective is the `goal`; the last fit is of all
    of them.

    With a `folder`, coordinates are in a file there, and so is, after each round, what a run that was killed goes on
    from; it ends where an uninterrupted one would have.
    """
    if options.method != "nystrom":
        check_differentiable(kernel)
    options.check(len(samples))
    found, design, labels = _begin(samples, num_classes, kernel, options, folder)
    if folder is not None:
        _go_on(found, design, folder, fingerprint)
    while not found.rounds or (len(found.subspace) < options.basis and found.fitted.objective < goal):
        clock, before = time.monotonic(), len(found.subspace)
        if not found.rounds:
            _add_samples(found.subspace, samples, options)
        elif options.method != "nystrom":
            _widen(found, design, labels, samples, num_classes, options)
        if len(found.subspace) == before:
            say(f"{before} basis vectors span all that there is: no more are added")
            break
        design.extend(found.subspace)
        _refit(found, design, labels, options, options.penalty)
        _tell(found, time.monotonic() - clock)
        if folder is not None:
            _keep(found, folder, fingerprint)
    return found


def try_penalties(
    samples: Samples, num_classes: int, kernel: Kernel, options: PursuitOptions, penalties: Iterable[float]
) -> Iterator[tuple[float, Pursuit]]:
    """Models of one basis of random samples: of the largest penalty first, and of each from that of the one before."""
    found, design, labels = _begin(samples, num_classes, kernel, options, None)
    _add_samples(found.subspace, samples, options)
    design.extend(found.subspace)
    for penalty in sorted(penalties, reverse=True):
        _refit(found, design, labels, options, penalty)
        yield penalty, found


def _begin(
    samples: Samples, num_classes: int, kernel: Kernel, options: PursuitOptions, folder: Path | None
) -> tuple[Pursuit, Design, Tensor]:
    """No vectors yet, room for them, and the labels of all samples."""
    x, _ = samples.take(torch.zeros(1, dtype=torch.int64))
    nothing = torch.empty(0, num_classes, dtype=torch.float64, device=samples.device)
    found = Pursuit(Subspace(kernel, x.shape[1], samples.device), Fitted(nothing, 0.0, 0))
    labels = torch.cat([samples.take(part)[1] for part in torch.arange(len(samples)).split(BLOCK)])
    return found, Design(samples, options.basis, folder), labels


def _refit(found: Pursuit, design: Design, labels: Tensor, options: PursuitOptions, penalty: float) -> None:
    """β of all vectors, from what it was."""
    before = found.fitted.weights
    model = LogLinear(design.done, labels, before.shape[1], penalty)
    start = torch.cat([before, before.new_zeros(design.rows - len(before), before.shape[1])])
    found.fitted = model.fit(start, options.tolerance, options.max_steps, design.squares)


def _add_samples(subspace: Subspace, samples: Samples, options: PursuitOptions) -> None:
    """Those random samples that it begins with, by Nyström's method all; none that lies in the subspace already."""
    order, added = torch.from_numpy(stream(options.seed, "basis").permutation(len(samples))), 0
    for part in order.split(256):
        x = samples.take(part)[0]
        for y in x[subspace.residual(x) > LEAST]:  # of linear kernels, most of them are not new
            added += subspace.add(y)
            if added == options.begin:
                return
    if not added:
        raise KernelamError("all samples are zero in the feature space of the kernel: there is no basis of them")


def _widen(
    found: Pursuit, design: Design, labels: Tensor, samples: Samples, num_classes: int, options: PursuitOptions
) -> None:
    number = len(found.rounds)
    count = min(options.added, options.basis - len(found.subspace))
    model = LogLinear(design.done, labels, num_classes, options.penalty)
    order, shares = _weighty(model, found.fitted.weights, options.searched, stream(options.seed, "pursuit", number))
    x, of_them = samples.take(order)
    some = LogLinear(design.done[:, order.to(design.table.device)], of_them, num_classes, 0.0)
    slopes = torch.cat([difference for _, _, difference in some.differences(found.fitted.weights)])
    slopes *= shares.to(slopes)[:, None]
    target = Target(found.subspace.kernel, x, slopes)
    starts = x[target.kernel.norm_from(target.norms) > 0.0]  # for a linear kernel, blank images lead nowhere
    if not len(starts):
        return
    if options.method == "joint":
        shrunk = target.and_of(found.subspace.y, -options.penalty * found.beta)
        for y in joint_preimages(shrunk, starts[:count]):
            found.subspace.add(y)
        return
    along = target.along(found.subspace.y)  # −cθ lies in the subspace, of which the search sees nothing
    for place in range(count):
        candidates = starts[place * CANDIDATES % len(starts) :][:CANDIDATES]
        y = best_preimage(target.without(found.subspace, along), candidates)
        if found.subspace.add(y):
            along = torch.cat([along, target.along(y[None])])


def _weighty(model: LogLinear, weights: Tensor, count: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Numbers of samples that stand for all in Σ_n d_n φ(x_n), and what each counts for.

    By their priorities |d_n| / u_n with uniform u_n, the highest first; those with |d_n| below the first priority that
    is left out count for as much as if they had it, so that the sum is that of all in the mean (Duffield, Lund and
    Thorup, Journal of the ACM 54, 2007). Where most samples are classified well, few make up most of the gradient.
    """
    sizes = torch.cat([difference.norm(dim=1).cpu() for _, _, difference in model.differences(weights)])
    priorities = sizes / torch.from_numpy(1.0 - rng.random(len(sizes), dtype=np.float32))
    best = priorities.topk(min(count + 1, len(sizes)))
    order = best.indices[:count]
    least = best.values[count] if len(sizes) > count else 0.0
    return order, (least / sizes[order].clamp_min(torch.finfo(sizes.dtype).tiny)).clamp_min(1.0)


def _tell(found: Pursuit, seconds: float) -> None:
    row = {
        "basis": len(found.subspace),
        "objective": found.fitted.objective,
        "steps": found.fitted.steps,
        "condition": found.subspace.condition(),
        "seconds": round(seconds, 3),
    }
    found.rounds.append(row)
    say(f"{row['basis']} basis vectors: objective {row['objective']:.6g} after {row['steps']} steps ({seconds:.1f} s)")


def _keep(found: Pursuit, folder: Path, fingerprint: str) -> None:
    arrays = {"y": found.subspace.y, "factor": found.subspace.factor, "weights": found.fitted.weights}
    about = {"rounds": found.rounds, "objective": found.fitted.objective}
    checkpoint.write(folder / CHECKPOINT, arrays, about, fingerprint)


def _go_on(found: Pursuit, design: Design, folder: Path, fingerprint: str) -> None:
    """From the checkpoint, the coordinates made again round by round, as they were made."""
    saved = checkpoint.read(folder / CHECKPOINT, fingerprint)
    if saved is None:
        return
    arrays, about = saved
    y, factor = (arrays[name].to(found.subspace.y.device) for name in ("y", "factor"))
    for row in about["rounds"]:
        size = row["basis"]
        found.subspace.y, found.subspace.factor = y[:size], factor[:size, :size].contiguous()
        design.extend(found.subspace)
    found.rounds = about["rounds"]
    found.fitted = Fitted(arrays["weights"].to(design.samples.device), about["objective"], found.rounds[-1]["steps"])
    say(f"going on with {len(found.subspace)} basis vectors of {folder / CHECKPOINT}")
