"""One process on one core against several on as many: steps of a model whose features they share, and their talk."""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.files import replacing
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.kernels.base import Draw
from kernelam.launch import launch
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax, padded
from kernelam.progress import progress
from kernelam.ranks import current, is_first, joined, world
from kernelam.training.bench import SIGMA, Size
from kernelam.training.bench_memory import status

RATE = 16.0
BATCHES = 50  # different ones
WARM = 5  # steps that are not timed
NETWORK = Path("/proc/net/dev")

SIZES = ((Size(25_000, 147), 1000), (Size(100_000, 147), 50), (Size(25_000, 1000), 50), (Size(25_000, 1000, 250), 100))
QUICK = ((Size(2000, 20, d=40), 20), (Size(2000, 40, 8, d=40), 20))
"""Models, and steps that each takes."""


def flops(size: Size) -> int:
    """Of a step: 2N(dD/2 + 2DC), with a bottleneck 2N(dD/2 + 2Dr + 3rC): a pair of features has one frequency."""
    return size.step_flops(size.d // 2)


def memory(size: Size, processes: int) -> float:
    """Bytes of each process: its share of frequencies, of the matrix, and of z; and V."""
    r, C = padded(size.r), padded(size.C)
    return 4 * (size.D / processes * (size.d / 2 + (r or C) + size.batch) + r * C)


def summed(size: Size) -> int:
    """Bytes of what processes sum over their features in a step: the logits of a batch, or the bottleneck's values."""
    return 4 * size.batch * padded(size.r or size.C)


def sent(size: Size, processes: int) -> int:
    """Bytes that all of them send in a step, each 2 (F − 1) / F of the sum (a ring)."""
    return 2 * (processes - 1) * summed(size)


def batches(size: Size) -> Iterator[tuple[Tensor, Tensor]]:
    """Frames of classes with different means, over and over."""
    generator = torch.Generator().manual_seed(1)
    means = torch.randn(size.C, size.d, generator=generator)
    labels = torch.randint(size.C, (BATCHES, size.batch), generator=generator)
    noise = torch.randn(BATCHES, size.batch, size.d, generator=generator)
    while True:
        yield from ((0.5 * means[own] + x, own) for own, x in zip(labels, noise, strict=True))


def steps_here(size: Size, steps: int, output: Path) -> None:
    """What one of the processes does; the first one writes the losses of its steps and what they took."""
    torch.set_num_threads(1)
    with joined("cpu"):
        before = status("VmHWM")
        kernel, ranks = Gaussian(SIGMA * (size.d / 440) ** 0.5), current()
        features = kernel.draw(size.d, size.D, Draw(1, shard=ranks.features))
        inputs = Inputs((0, 0), np.zeros(size.d, np.float32), np.ones(size.d, np.float32))
        common = (Pipeline(), inputs, np.ones(size.C), torch.device("cpu"))
        model = KernelSoftmax(kernel, features, size.r, *common)
        model.initialise(1)
        losses, data = [], batches(size)
        for number in progress(range(steps + WARM), f"{world()} processes"):
            if number == WARM:
                ranks.wait()
                start, reduced, network = time.perf_counter(), ranks.reduced, _network()
            losses.append(model.step(*next(data), RATE) / size.batch)
        seconds = time.perf_counter() - start
        found = {
            "processes": world(),
            "seconds": seconds / steps,
            "reduced": (ranks.reduced - reduced) / steps,
            "network": (_network() - network) / steps,
            "memory": status("VmHWM") - before,
            "losses": [float(loss) for loss in losses],
        }
        if is_first():
            with replacing(output, "w") as stream:
                json.dump(found, stream)


def _network() -> int:
    """Bytes that processes of this machine have sent each other."""
    rows = [line.split() for line in NETWORK.read_text().splitlines() if line.strip().startswith("lo:")]
    return int(rows[0][1]) if rows else 0


def compare_ranks(sizes: Sequence[tuple[Size, int]], processes: int) -> list[dict[str, Any]]:
    return [_compared(size, steps, processes) for size, steps in sizes]


def _compared(size: Size, steps: int, processes: int) -> dict[str, Any]:
    """One process, then several, in one run."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, processes):
            output = Path(folder) / f"{count}.json"
            words = ("bench", "rank", *(str(value) for value in asdict(size).values()), str(steps), str(output))
            if launch(count, words, threads=1):
                raise SystemExit(1)
            runs.append(json.loads(output.read_text()))
    one, several = runs
    pairs = zip(one.pop("losses"), several.pop("losses"), strict=True)
    return {
        "size": asdict(size),
        "steps": steps,
        "flops": flops(size),
        "one": {**one, "formula": {"memory": memory(size, 1)}},
        "several": {**several, "formula": {"memory": memory(size, processes)}},
        "speed": one["seconds"] / several["seconds"],
        "loss": max(abs(a - b) / abs(a) for a, b in pairs),
        "summed": summed(size),
        "sent": sent(size, processes),
    }


def describe_ranks(found: Sequence[dict[str, Any]]) -> str:
    """Times by the formula are at the flops a second that one process has with the first model."""
    rate = found[0]["flops"] / found[0]["one"]["seconds"]
    lines = [f"one process with the first model: {rate / 1e9:.1f} Gflop/s"]
    for row in found:
        size, several = Size(**row["size"]), row["several"]
        rank = f", bottleneck {size.r}" if size.r else ""
        lines.append(
            f"D = {size.D}, C = {size.C}{rank}, {size.d} inputs, batches of {size.batch}, {row['steps']} steps:"
        )
        for run in (row["one"], several):
            count, what = run["processes"], "process, one core" if run["processes"] == 1 else "processes, a core each"
            lines.append(
                f"  {count} {what}: {1e3 * run['seconds']:.1f} ms a step (formula"
                f" {1e3 * row['flops'] / rate / count:.1f}), {run['memory'] / 2**20:.0f} MiB each (formula"
                f" {run['formula']['memory'] / 2**20:.0f})"
            )
        lines += [
            f"  {row['speed']:.2f} times as fast; losses of all steps differ by {row['loss']:.1e} (relative) at most",
            f"  summed in a step: {several['reduced']:.0f} bytes, by the formula {row['summed']}",
            f"  sent in a step: {several['network']:.0f} bytes, by the formula {row['sent']}",
        ]
    return "\n".join(lines)
