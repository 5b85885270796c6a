"""Training steps as a share of the machine's own matrix product, and against plain PyTorch and scikit-learn.

What is compared is run in turn, nine rounds after one that is not counted; a figure is the median. The peak is the
best product of 2048 × 2048 matrices, as they are or one of them transposed, in the same rounds. Times are of the
processor for one thread, which a busy machine hardly changes, and of the clock for more.
"""

import math
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import ArcCosine, Composition, FeatureMap, Gaussian, Kernel, Laplacian, SparseGaussian, Sum
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax, padded
from kernelam.progress import progress, say

RATE = 0.1
SIGMA = 30.0  # of 440 inputs of variance 1: about the median distance
NONZEROS = 5

Task = Callable[[], object]


@dataclass(frozen=True)
class Size:
    """A model and its batch: D features of d inputs, C classes, a bottleneck of rank r unless it is 0."""

    D: int
    C: int
    r: int = 0
    d: int = 440
    batch: int = 256

    def forward_flops(self, nonzeros: int | None = None) -> int:
        """Those executed, padding included; a frequency has `nonzeros` coordinates, or all."""
        return 2 * self.batch * (self.D * (nonzeros or self.d) + self._weights())

    def step_flops(self, nonzeros: int | None = None) -> int:
        """2N(dD + 2DC), with a bottleneck 2N(dD + 2Dr + 3rC), C and r padded."""
        through_top = padded(self.r) * padded(self.C)
        return self.forward_flops(nonzeros) + 2 * self.batch * (self._weights() + through_top)

    def _weights(self) -> int:
        C, r = padded(self.C), padded(self.r)
        return self.D * r + r * C if r else self.D * C

    def data(self) -> tuple[Tensor, Tensor]:
        x = torch.randn(self.batch, self.d, generator=torch.Generator().manual_seed(1))
        return x, torch.arange(self.batch) % self.C

    def model(self, kernel: Kernel, plan: str = "independent") -> KernelSoftmax:
        inputs = Inputs((0, 0), np.zeros(self.d, np.float32), np.ones(self.d, np.float32))
        features = kernel.feature_map(self.d, self.D, 1, plan)
        made = KernelSoftmax(*(kernel, features, self.r, Pipeline(), inputs, np.ones(self.C), torch.device("cpu")))
        made.initialise(1)
        return made


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    main: tuple[Size, ...] = (Size(25_000, 147), Size(25_000, 1000, 250))
    grid: tuple[Size, ...] = tuple(
        Size(D, C, r) for D in (1000, 5000, 25_000) for C in (147, 1000, 5000) for r in (0, 250) if r < C
    )
    networks: tuple[tuple[int, Size], ...] = ((4, Size(1000, 1000)), (4, Size(2000, 1000)))
    gram: tuple[int, ...] = (2000, 5000)
    peak: int = 2048
    rounds: int = 9


_SMALL = Size(400, 20, d=40, batch=32)
QUICK = Scale((_SMALL, Size(400, 40, 8, d=40, batch=32)), (Size(200, 20, d=40),), ((2, _SMALL),), (200,), 256, 3)


def naive_step(size: Size, features: FeatureMap) -> Callable[[Tensor, Tensor], Tensor]:
    """The same step as it is first written: z in plain operations, autograd, torch.optim.SGD."""
    omega, b = features.arrays["omega"], features.arrays["b"]
    shapes = [(size.D, size.r), (size.r, size.C)] if size.r else [(size.D, size.C)]
    matrices = [torch.randn(shape).mul_(0.01).requires_grad_() for shape in shapes]
    bias = torch.zeros(size.C, requires_grad=True)
    optimiser = torch.optim.SGD([*matrices, bias], lr=RATE)

    def step(x: Tensor, labels: Tensor) -> Tensor:
        h = math.sqrt(2.0 / size.D) * torch.cos(x @ omega + b)
        for matrix in matrices:
            h = h @ matrix
        loss = cross_entropy(h + bias, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    return step


def sag_epoch(size: Size, features: FeatureMap) -> tuple[Task, int] | None:
    """An epoch of scikit-learn's SAG on features that are there already, and its frames; none without the package."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        return None
    frames = 2 * size.C  # each class occurs
    z = features(torch.randn(frames, size.d, generator=torch.Generator().manual_seed(2))).contiguous().numpy()
    labels = np.arange(frames) % size.C

    def epoch() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            LogisticRegression(solver="sag", max_iter=1).fit(z, labels)

    return epoch, frames


class Stopwatch:
    """Runs tasks in turn, with the products whose best is the peak."""

    def __init__(self, threads: int, scale: Scale) -> None:
        self.clock = time.process_time if threads == 1 else time.perf_counter
        self.rounds, self.edge = scale.rounds, scale.peak
        self.a, self.b, self.c = torch.randn(3, self.edge, self.edge)

    def __call__(self, name: str, tasks: Mapping[str, Task]) -> "Times":
        peaks: dict[str, Task] = {
            "ab": lambda: torch.mm(self.a, self.b, out=self.c),
            "a'b": lambda: torch.mm(self.a.T, self.b, out=self.c),
            "ab'": lambda: torch.mm(self.a, self.b.T, out=self.c),
        }
        every = peaks | dict(tasks)
        seconds: dict[str, list[float]] = {task: [] for task in every}
        for _ in progress(range(1 + self.rounds), name):
            for task, run in every.items():
                start = self.clock()
                run()
                seconds[task].append(self.clock() - start)
        medians = {task: statistics.median(them[1:]) for task, them in seconds.items()}
        return Times(medians, 2 * self.edge**3 / min(medians[peak] for peak in peaks))


@dataclass(frozen=True)
class Times:
    median: dict[str, float]  # seconds
    peak: float  # flops a second

    def share(self, task: str, flops: int) -> float:
        return flops / self.median[task] / self.peak

    def ratio(self, slower: str, faster: str) -> float:
        return self.median[slower] / self.median[faster]


def compare(size: Size, watch: Stopwatch, suffix: str) -> dict[str, Any]:
    """The main figures at one size, which their names end in `suffix` for."""
    x, labels = size.data()
    dense, sparse = size.model(Gaussian(SIGMA)), size.model(SparseGaussian(3.0, NONZEROS))
    naive = naive_step(size, dense.feature_map)
    tasks: dict[str, Task] = {
        "step": lambda: dense.step(x, labels, RATE),
        "autograd": lambda: naive(x, labels),
        "sparse step": lambda: sparse.step(x, labels, RATE),
        "forward": lambda: dense.logits(x),
    }
    sag = None if size.r else sag_epoch(size, dense.feature_map)
    if sag:
        tasks["sag"] = sag[0]
    times = watch(f"steps at D = {size.D}, C = {size.C}", tasks)
    figures = {
        "train_gemm_share": times.share("step", size.step_flops()),
        "forward_gemm_share": times.share("forward", size.forward_flops()),
        "train_vs_autograd": times.ratio("autograd", "step"),
        "sparse_vs_dense": times.ratio("step", "sparse step"),
        "sparse_gemm_share": times.share("sparse step", size.step_flops(NONZEROS)),
        "peak_gflops": times.peak / 1e9,
        "step_ms": 1e3 * times.median["step"],
    }
    if sag:
        figures["train_vs_sklearn_sag"] = times.median["sag"] / sag[1] / (times.median["step"] / size.batch)
    return {name + suffix: round(value, 4) for name, value in figures.items()}


def grow(size: Size, watch: Stopwatch) -> dict[str, Any]:
    """Frames a second at one size, and against autograd."""
    x, labels = size.data()
    ours = size.model(Gaussian(SIGMA))
    naive = naive_step(size, ours.feature_map)
    times = watch(
        f"steps at {asdict(size)}", {"step": lambda: ours.step(x, labels, RATE), "autograd": lambda: naive(x, labels)}
    )
    return {
        **asdict(size),
        "frames_per_second": round(size.batch / times.median["step"], 1),
        "gemm_share": round(times.share("step", size.step_flops()), 4),
        "vs_autograd": round(times.ratio("autograd", "step"), 4),
    }


KERNELS: dict[str, tuple[Kernel, str]] = {
    "gaussian, paired": (Gaussian(SIGMA), "paired"),
    "gaussian, independent": (Gaussian(SIGMA), "independent"),
    "gaussian, orthogonal": (Gaussian(SIGMA), "orthogonal"),
    "laplacian": (Laplacian(500.0), "paired"),
    "sparse-gaussian": (SparseGaussian(3.0, NONZEROS), "paired"),
    "arccos1": (ArcCosine(1), "paired"),
    "gaussian + sparse-gaussian": (Sum((0.5, 0.5), (Gaussian(SIGMA), SparseGaussian(3.0, NONZEROS))), "paired"),
    "gaussian o gaussian#500": (Composition(Gaussian(1.0), Gaussian(SIGMA), 500), "paired"),
}


def project(size: Size, watch: Stopwatch) -> list[dict[str, Any]]:
    """What z(x) costs for each kernel, beside the product of a d × D matrix with the batch."""
    x, _ = size.data()
    omega = torch.randn(size.d, size.D)
    tasks: dict[str, Task] = {"product": lambda: torch.mm(x, omega)}
    for name, (kernel, plan) in KERNELS.items():
        features = kernel.feature_map(size.d, size.D, 1, plan)
        z = features(x)
        tasks[name] = lambda features=features, z=z: features(x, z)  # type: ignore[misc]
    times = watch(f"random features at D = {size.D}", tasks)
    return [
        {
            "kernel": name,
            "ms": round(1e3 * times.median[name], 3),
            "share_of_product": round(times.ratio(name, "product"), 4),
        }
        for name in tasks
    ]


def machine(threads: int) -> dict[str, Any]:
    """What the figures were measured on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    return {
        "cpu": cpu,
        "threads": threads,
        "clock": "processor" if threads == 1 else "wall",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def training_bench(threads: int, quick: bool) -> dict[str, Any]:
    """Everything that is measured, as JSON has it. `quick` shows that it runs; its figures mean nothing."""
    from kernelam.training.bench_gram import gram
    from kernelam.training.bench_memory import memory
    from kernelam.training.bench_networks import network

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        scale = QUICK if quick else Scale()
        watch = Stopwatch(threads, scale)
        found: dict[str, Any] = {"machine": machine(threads), "quick": quick}
        for size, suffix in zip(scale.main, ("", "_bottleneck"), strict=True):
            found |= compare(size, watch, suffix)
        if "train_vs_sklearn_sag" not in found:
            say("scikit-learn is not installed: train_vs_sklearn_sag is left out")
        found["projections"] = project(scale.main[0], watch)
        found["sizes"] = [grow(size, watch) for size in scale.grid]
        found["networks"] = [network(watch, *sizes) for sizes in scale.networks]
        found["gram"] = [gram(watch, D, scale.main[0].d) for D in scale.gram]
        found["gram_share"] = found["gram"][-1]["gemm_share"]
    finally:
        torch.set_num_threads(before)
    return found | memory(threads, quick)


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """Aligned columns: the first to the left, numbers to the right. `head` names them, two spaces or more between."""
    cells = [head.split("  "), *([str(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )


MAIN = {
    "train_gemm_share": "training step, share of the peak",
    "forward_gemm_share": "forward, share of the peak",
    "sparse_gemm_share": "sparse Gaussian step, share of the peak",
    "train_vs_autograd": "naive autograd / step, time",
    "train_vs_sklearn_sag": "scikit-learn's SAG / step, time a frame",
    "sparse_vs_dense": "step / sparse Gaussian step, time",
    "step_ms": "training step, ms",
    "peak_gflops": "peak, Gflop/s",
}


def describe_bench(found: Mapping[str, Any]) -> str:
    """The tables that people read."""
    about = found["machine"]
    size, narrow = (QUICK if found["quick"] else Scale()).main
    parts = [
        f"{about['cpu']}, {about['threads']} thread{'s' * (about['threads'] > 1)}, {about['clock']} time,"
        f" torch {about['torch']}, load {about['load']} at the start",
        table(
            f"d = {size.d}, D = {size.D}, batch {size.batch}, cos(Wx + b)  C = {size.C}"
            f"  C = {narrow.C}, r = {narrow.r}",
            ([text, found.get(name, "–"), found.get(f"{name}_bottleneck", "–")] for name, text in MAIN.items()),
        ),
        table(
            f"random features, D = {size.D}, batch {size.batch}  ms  of the product",
            (row.values() for row in found["projections"]),
        ),
        table(
            "D  C  r  frames/s  of the peak  naive autograd / step",
            (
                [row[name] for name in ("D", "C", "r", "frames_per_second", "gemm_share", "vs_autograd")]
                for row in found["sizes"]
            ),
        ),
    ]
    if "networks" in found:
        parts.append(
            table(
                "network  C  frames/s  of the peak  torch.nn / step  step / in bfloat16",
                (["–" if value is None else value for value in row.values()] for row in found["networks"]),
            )
        )
    if "gram" in found:
        parts.append(
            table(
                "sums of ridge regression at D  frames/s  of the peak  with z(x)",
                (row.values() for row in found["gram"]),
            )
        )
    if "memory" in found:
        parts.append(table("an epoch at D  C  r  peak resident GB", (row.values() for row in found["memory"])))
    return "\n\n".join(parts)
