"""The systems of ridge regression on random features (chen2016, eqs. 3 and 5), with targets ±1 and no intercept: z has
what the kernel gives it, and no 1 is appended.

One-vs-one: β_ij = (A_i + A_j + λI)⁻¹(g_i − g_j) for each pair i < j. One-vs-rest: β_i = (ΣA + λI)⁻¹(2g_i − Σg).
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.memory import installed
from kernelam.progress import progress, warn
from kernelam.training import checkpoint
from kernelam.training.gram import Grams
from kernelam.training.krylov import Product, Progress, conjugate_gradients, fitting, gmres
from kernelam.training.triangles import Triangle

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
FEWEST = 2
"""Frames that a class must have to be paired."""
WIDEST = {"cg": 64, "gmres": 64, "cholesky": 8}
"""Classes on either side of a block of pairs, at most: what a kill may cost. More vectors at once make iterations
faster, but not factors."""
EXPECTED = 16
"""Steps of GMRES that blocks are made for. Where it takes more, fewer pairs go together: so memory is as estimated,
whatever the ridge."""
SLACK = 1.1
"""The residual is the real one, not that of the recursion, and may be so much above the tolerance."""
ROUNDING = 1e-5
"""A share of the right-hand side below which a residual that no longer falls is let pass: more digits than that are
not to be had of single precision."""

Method = Callable[[Product, Tensor, Tensor, Tensor, int, int], Progress]
METHODS: dict[str, Method] = {"cg": conjugate_gradients, "gmres": gmres}
VECTORS = {"cg": 16, "gmres": EXPECTED + 13, "cholesky": 2}
"""Of each pair, while it is solved; of GMRES up to nine fewer, as its steps fill the room for bases or do not."""


@dataclass(frozen=True)
class Solver:
    name: str = "gmres"  # or cg, cholesky
    tolerance: float = 1e-3  # |(A + λI)β − g| / |g|, of those that iterate
    max_iterations: int = 1000
    memory: int = 1 << 27  # bytes of the vectors of pairs that are solved together

    def __post_init__(self) -> None:
        if self.name not in VECTORS:
            raise KernelamError(f"no solver is called {self.name}; there are {', '.join(VECTORS)}")
        if not 0.0 < self.tolerance < 1.0:
            raise KernelamError(f"the tolerance is a number between 0 and 1, not {self.tolerance:g}")

    @property
    def levels(self) -> list[float]:
        """Tolerances of which it is told how many iterations they would have taken."""
        return [*(level for level in LEVELS if level > self.tolerance), self.tolerance]


@dataclass
class Solution:
    """β of each problem, problems × features; how many iterations it took to each level of the solver, problems ×
    levels, 0 for Cholesky; and the largest residual of those that iterate, as a share of its right-hand side."""

    beta: Tensor
    iterations: Tensor
    seconds: float
    residual: float = 0.0


def paired_classes(counts: np.ndarray) -> np.ndarray:
    """Those that have enough frames to be set against another class."""
    return np.flatnonzero(counts >= FEWEST)


def pairs_of(classes: int) -> Tensor:
    """All pairs i < j, as rows: (0, 1), (0, 2), …, (1, 2), …"""
    return torch.triu_indices(classes, classes, 1).T.contiguous()


def check_ridge(counts: np.ndarray, count: int, ridge: float, scheme: str = "one-vs-one") -> None:
    """λ = 0 leaves a system of fewer frames than features without a unique solution."""
    classes = paired_classes(counts)
    if ridge > 0.0 or len(classes) < 2:
        return
    what, frames = "all classes", int(counts.sum())
    if scheme == "one-vs-one":
        i, j = np.sort(classes[np.argsort(counts[classes], kind="stable")[:2]])
        what, frames = f"classes {i} and {j}", int(counts[i] + counts[j])
    if frames < count:
        raise _singular(what, f"{frames} frames for {count} features and a ridge of 0")


def _singular(what: str, why: str) -> KernelamError:
    return KernelamError(f"the system of {what} is singular: {why}; a higher --ridge makes it regular")


def solve_pairs(grams: Grams, ridge: float, solver: Solver, folder: Path, fingerprint: str) -> Solution:
    """β of all pairs of the paired classes. What is solved is kept in `folder`, block by block: a call that was ended
    goes on from there."""
    check_ridge(grams.counts, grams.count, ridge)
    classes = torch.from_numpy(paired_classes(grams.counts))
    pairs = pairs_of(len(classes))
    beta, iterations = torch.empty(len(pairs), grams.count), _no_iterations(len(pairs), solver)
    seconds, residual = 0.0, 0.0
    side = side_of(solver, grams.count)
    every = list(blocks(len(classes), side))
    for number, block in enumerate(progress(every, f"{len(pairs)} systems, ridge {ridge:g}")):
        path = folder / f"{number}.safetensors"
        named = f"{fingerprint} {ridge!r} {solver} {side} {number}"
        known = checkpoint.read(path, named)
        if known is None:
            start = time.monotonic()
            found = _solve(grams, classes[pairs[block]], ridge, solver, usual_steps(iterations, EXPECTED))
            about = {"seconds": time.monotonic() - start, "residual": found[2]}
            known = {"beta": found[0], "iterations": found[1]}, about
            checkpoint.write(path, *known, named)
        arrays, about = known
        beta[block], iterations[block] = arrays["beta"].cpu(), arrays["iterations"]
        seconds, residual = seconds + about["seconds"], max(residual, about["residual"])
    if residual > SLACK * solver.tolerance:
        warn(
            f"with a ridge of {ridge:g}, residuals ended at up to {residual:.1e} of their right-hand sides, above the"
            f" --tolerance of {solver.tolerance:g}: single precision has no more digits"
        )
    return Solution(beta, iterations, seconds, residual)


def side_of(solver: Solver, count: int) -> int:
    """Classes on either side of a block of pairs that takes the memory of the solver: little beside all matrices, since
    how much of it is really taken depends on the ridge. Each iteration reads the matrices of the block, for which half
    of the machine's memory must do: else every one of them comes from the disk again."""
    vectors = math.isqrt(solver.memory // (4 * count * VECTORS[solver.name]))
    matrices = installed() // 2 // (2 * 4 * Triangle(count).size)
    return max(1, min(WIDEST[solver.name], vectors, matrices))


def largest_block(classes: int, side: int) -> int:
    """Pairs of the largest of `blocks`."""
    inner = min(classes, side)
    return max(inner * (inner - 1) // 2, inner * min(side, classes - inner))


def blocks(classes: int, side: int) -> Iterator[Tensor]:
    """The pairs, by their numbers, in squares of `side` classes by as many: few matrices serve many pairs."""
    i, j = pairs_of(classes).T
    for first in range(0, classes, side):
        for second in range(first, classes, side):
            inside = (i // side == first // side) & (j // side == second // side)
            if inside.any():
                yield inside.nonzero()[:, 0]


def usual_steps(iterations: Tensor, otherwise: int) -> int:
    """Of the systems that are solved; of none, `otherwise`."""
    steps = iterations[iterations[:, -1] > 0, -1]
    return math.ceil(steps.double().mean()) if len(steps) else otherwise


def _solve(grams: Grams, pairs: Tensor, ridge: float, solver: Solver, steps: int) -> tuple[Tensor, Tensor, float]:
    """β of these pairs of classes, the iterations of each, of which `steps` are expected, and the largest residual."""
    b = (grams.g[pairs[:, 0]] - grams.g[pairs[:, 1]]).float().to(grams.device)
    if solver.name == "cholesky":
        return _direct(grams, pairs, b, ridge), _no_iterations(len(pairs), solver), 0.0
    return _iterate(grams, pairs, b, ridge, solver, steps)


def _no_iterations(systems: int, solver: Solver) -> Tensor:
    return torch.zeros(systems, len(solver.levels), dtype=torch.int64)


def _direct(grams: Grams, pairs: Tensor, b: Tensor, ridge: float) -> Tensor:
    beta, held = torch.empty_like(b), (-1, b)
    for number, (i, j) in enumerate(pairs.tolist()):
        if held[0] != i:
            held = (i, grams.full(i))
        factor = factorise(grams.full(j).add_(held[1]), ridge, f"classes {i} and {j}")
        beta[number] = _substitute(factor, b[number, :, None])[:, 0]
    return beta


def factorise(A: Tensor, ridge: float, what: str) -> Tensor:
    """L with LLᵀ = A + λI: where single precision cannot tell the least pivot from errors of the sums, in double; but
    without λ there is nothing else in it then."""
    noise = 16 * torch.finfo(torch.float32).eps * float(A.diagonal().max())
    diagonal = A.diagonal().double() + ridge
    A.diagonal().copy_(diagonal)
    factor, info = torch.linalg.cholesky_ex(A)
    regular = not info and (float(factor.diagonal().min()) ** 2 > noise or (ridge > 0.0 and A.dtype == torch.float64))
    if not regular and ridge > 0.0 and A.dtype != torch.float64:
        del factor  # before there are two more of twice the size
        A = A.double()
        A.diagonal().copy_(diagonal)
        factor, info = torch.linalg.cholesky_ex(A)
        regular = not info
    if not regular:
        raise _singular(what, f"a ridge of {ridge:g} is below the error of the sums over frames")
    return factor


def _substitute(factor: Tensor, b: Tensor) -> Tensor:
    return torch.cholesky_solve(b.to(factor.dtype), factor).float()


def _products(grams: Grams, pairs: Tensor, ridge: float) -> Product:
    """(A_i + A_j + λI)v of each pair; each A_k is read once, and multiplies the vectors of all its pairs at once."""

    def product(rows: Tensor, v: Tensor) -> Tensor:
        out, here = ridge * v, pairs[rows]
        for label in here.unique().tolist():
            own = (here == label).any(dim=1).nonzero()[:, 0].to(v.device)
            out.index_add_(0, own, grams.triangle.multiply(grams.packed(label), v[own]))
        return out

    return product


def _iterate(
    grams: Grams, pairs: Tensor, b: Tensor, ridge: float, solver: Solver, steps: int
) -> tuple[Tensor, Tensor, float]:
    """Until the residual itself is small enough, or no more than rounding; that may take a second start, from it."""
    product = _products(grams, pairs, ridge)
    x, iterations = torch.zeros_like(b), _no_iterations(len(b), solver)
    total = iterations[:, -1]
    targets = b.norm(dim=1).cpu()[:, None] * torch.tensor(solver.levels)
    residual, left = b.clone(), (targets[:, -1] > 0).nonzero()[:, 0]
    bases, worst = 4 * b.numel() * EXPECTED, 0.0
    while len(left):
        room = len(left) if solver.name == "cg" else fitting(bases, b.shape[1], usual_steps(iterations, steps))
        now, later = left[:room], left[room:]
        limit = solver.max_iterations - int(total[now].max())
        found = METHODS[solver.name](product, now, residual[now], targets[now], limit, bases)
        worked = now[found.begun]
        x[worked] += found.x[found.begun.to(b.device)]
        iterations[worked] = _later(iterations[worked], found.steps[found.begun])
        before = residual[worked].norm(dim=1)
        residual[worked] = b[worked] - product(worked, x[worked])
        after = residual[worked].norm(dim=1)
        failed = ~(after.cpu() <= SLACK * targets[worked, -1])  # what is not a number has not converged
        ended = found.steps[found.begun, -1] < limit  # which is that of the pair with the most iterations
        hopeless = failed & ((total[worked] >= solver.max_iterations) | ended & ~(after < 0.5 * before).cpu())
        shares = (after / b[worked].norm(dim=1)).cpu()
        passed = hopeless & (shares <= ROUNDING)
        if (hopeless & ~passed).any():
            rows = worked[hopeless & ~passed]
            raise _no_convergence(pairs[rows], shares[hopeless & ~passed], total[rows], ridge, solver)
        going = failed & ~passed
        worst = max(worst, *shares[~going].tolist(), 0.0)
        left = torch.cat([worked[going], now[~found.begun], later])
    return x, iterations, worst


def _later(before: Tensor, steps: Tensor) -> Tensor:
    """Iterations to each level, after a start whose steps come on top."""
    total = before[:, -1:]
    found = torch.where((before == 0) & (steps > 0), total + steps, before)
    found[:, -1:] = total + steps[:, -1:]
    return found


def _no_convergence(pairs: Tensor, shares: Tensor, iterations: Tensor, ridge: float, solver: Solver) -> KernelamError:
    """Of these pairs, whose residuals have such shares of their right-hand sides."""
    worst = int(shares.nan_to_num(math.inf).argmax())
    i, j = pairs[worst].tolist()
    return KernelamError(
        f"{solver.name} did not converge for {len(pairs)} pairs, classes {i} and {j} worst: after"
        f" {int(iterations[worst])} iterations the relative residual is {float(shares[worst]):.2g}, not"
        f" {solver.tolerance:g}; choose a --ridge above {ridge:g}, a higher --tolerance, or --solver cholesky"
    )


def solve_rest(grams: Grams, ridge: float) -> Solution:
    """β of each paired class against all other frames, by one Cholesky factor, in double precision."""
    check_ridge(grams.counts, grams.count, ridge, "one-vs-rest")
    start = time.monotonic()
    factor = factorise(grams.full(0).double(), ridge, "all classes")
    classes = torch.from_numpy(paired_classes(grams.counts))
    b = (2.0 * grams.g[classes] - grams.g.sum(dim=0)).to(grams.device)
    beta = _substitute(factor, b.T).T.contiguous().cpu()
    return Solution(beta, torch.zeros(len(classes), 1, dtype=torch.int64), time.monotonic() - start)
