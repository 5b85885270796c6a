"""Time of pursuit until it is nearly as good as the model whose basis is all samples (kubo2012, figure 1)."""

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
import torch

from kernelam.errors import KernelamError
from kernelam.files import alone_in
from kernelam.frames.batches import Batches
from kernelam.kernels import Kernel
from kernelam.memory import available, check_memory
from kernelam.models.posterior import find_device
from kernelam.models.pursuit import KernelExpansion
from kernelam.progress import say
from kernelam.training.bench import machine, table
from kernelam.training.exact import Samples, Table, fit_kernel, unit_kernel
from kernelam.training.log_linear import Fitted, LogLinear
from kernelam.training.packing import TrainingInput, check_alignments, pack_sets
from kernelam.training.pursuit import PursuitOptions, Some, pursue
from kernelam.training.subspace import check_differentiable

SHARE = 0.95
SHIFT = 1e-6  # of the mean diagonal of a Gram matrix, so that it has a factor
TOLERANCE, MAX_STEPS = 1e-6, 1000  # the model that is the measure of the others is fitted to the end


@dataclass(frozen=True)
class Study:
    kernel: str
    bandwidth: float
    pursuit: PursuitOptions
    sizes: Sequence[int]
    trials: int

    def __post_init__(self) -> None:
        if min(self.sizes) < 2:
            raise KernelamError(f"--sizes are whole numbers from 2 on, not {min(self.sizes)}")


def fit_all(samples: Table, num_classes: int, kernel: Kernel, penalty: float) -> Fitted:
    """The model with every sample in its basis: for G = LLᵀ, row n of L has the coordinates of sample n."""
    x = samples.x.double()
    gram = kernel.by_products(x, x)
    gram.diagonal().add_(SHIFT * gram.diagonal().mean())
    features = torch.linalg.cholesky(gram).float().T
    start = torch.zeros(len(x), num_classes, dtype=torch.float64, device=samples.device)
    return LogLinear(features, samples.labels, num_classes, penalty).fit(start, TOLERANCE, MAX_STEPS)


def time_trial(samples: Table, num_classes: int, study: Study, clock: Callable[[], float]) -> dict[str, Any]:
    """Of one set of samples: how long either model took. An objective is a sum of log probabilities, below zero, and
    its share is that of the rise from β = 0, where it is −N log C."""
    kernel = fit_kernel(study.kernel, study.bandwidth, samples, study.pursuit.seed)
    start = clock()
    whole = fit_all(samples, num_classes, kernel, study.pursuit.penalty)
    seconds_all = clock() - start
    least = -len(samples) * math.log(num_classes)
    options = replace(study.pursuit, basis=min(study.pursuit.basis, len(samples)))
    start = clock()
    found = pursue(samples, num_classes, kernel, options, goal=least + SHARE * (whole.objective - least))
    seconds = clock() - start
    share = (found.fitted.objective - least) / (whole.objective - least)
    figures = {"seconds": seconds, "seconds_all": seconds_all, "share": share}
    return {"samples": len(samples), **figures, "basis": len(found.subspace), "steps_all": whole.steps}


def pursuit_bench(samples: Samples, num_classes: int, study: Study, threads: int) -> dict[str, Any]:
    """Times by the number of samples, and the slopes of their logarithms."""
    largest = max(study.sizes)
    if largest > len(samples):
        raise KernelamError(f"a model of {largest} samples is asked for, and there are {len(samples)}")
    need = 24 * largest**2
    check_memory(need, available(samples.device), f"a model of {largest} samples", "smaller --sizes take less")
    clock = time.process_time if threads == 1 and samples.device.type == "cpu" else time.perf_counter
    time_trial(_drawn(samples, min(study.sizes), 0), num_classes, study, clock)  # which is not counted
    trials = []
    for size in study.sizes:
        for number in range(1, study.trials + 1):
            row = time_trial(_drawn(samples, size, number), num_classes, study, clock)
            trials.append({"trial": number, **row})
            say(f"{size} samples, trial {number}: {row['seconds']:.2f} s, all samples {row['seconds_all']:.2f} s")
    rows = [_mean(size, [row for row in trials if row["samples"] == size]) for size in study.sizes]
    slopes = {f"slope{kind}": _slope(study.sizes, [row[f"seconds{kind}"] for row in rows]) for kind in ("", "_all")}
    return {"machine": machine(threads), "rows": rows, **slopes, "trials": trials}


def study_pursuit(given: TrainingInput, study: Study, device: str, threads: int) -> dict[str, Any]:
    """The bench on frames of a training."""
    transitions, place = check_alignments(given, KernelExpansion.kind), find_device(device)
    check_differentiable(unit_kernel(study.kernel))
    before = torch.get_num_threads()
    with alone_in(given.folder):
        try:
            torch.set_num_threads(threads)
            stores, inputs = pack_sets(given, transitions)
            frames = Batches(stores[0], inputs.context, inputs.mean, inputs.scale, place)
            return pursuit_bench(frames, transitions.num_pdfs, study, threads)
        finally:
            torch.set_num_threads(before)
            shutil.rmtree(given.folder / "frames", ignore_errors=True)


def _drawn(samples: Samples, size: int, number: int) -> Table:
    return Table(*Some(samples, size, number).take(torch.arange(size)))


def _mean(size: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("seconds", "seconds_all", "basis", "share")
    return {"samples": size, **{name: fmean(row[name] for row in rows) for name in names}}


def _slope(sizes: Sequence[int], seconds: Sequence[float]) -> float | None:
    """Of log seconds against log sizes, by least squares."""
    if len(set(sizes)) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def describe_pursuit(found: dict[str, Any]) -> str:
    cells = [
        [
            row["samples"],
            *(f"{row[name]:.2f}" for name in ("seconds", "seconds_all")),
            f"{row['basis']:.0f}",
            f"{row['share']:.3f}",
        ]
        for row in found["rows"]
    ]
    head = "samples  pursuit, s  all samples, s  vectors of pursuit  its share of the objective"
    slopes = ["–" if found[name] is None else f"{found[name]:.2f}" for name in ("slope", "slope_all")]
    return f"{table(head, cells)}\n\nslopes of log time: pursuit {slopes[0]}, all samples {slopes[1]}"
