"""One process on one core against several on as many: steps of a model whose features they share, and their talk."""

import json
import tempfile
import time
from collections.abc import Iterator
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

RATE = 16.0
BATCHES = 50  # different ones
WARM = 5  # steps that are not timed
NETWORK = Path("/proc/net/dev")

SIZE, QUICK = Size(25_000, 147), Size(2000, 20, d=40)


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
            "losses": [float(loss) for loss in losses],
        }
        if is_first():
            with replacing(output, "w") as stream:
                json.dump(found, stream)


def _network() -> int:
    """Bytes that processes of this machine have sent each other."""
    rows = [line.split() for line in NETWORK.read_text().splitlines() if line.strip().startswith("lo:")]
    return int(rows[0][1]) if rows else 0


def compare_ranks(size: Size, steps: int, processes: int) -> dict[str, Any]:
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
        "one": one,
        "several": several,
        "speed": one["seconds"] / several["seconds"],
        "loss": max(abs(a - b) / abs(a) for a, b in pairs),
        "summed": summed(size),
        "sent": sent(size, processes),
    }


def describe_ranks(found: dict[str, Any]) -> str:
    one, several, size = found["one"], found["several"], Size(**found["size"])
    return "\n".join(
        [
            f"D = {size.D}, C = {size.C}, {size.d} inputs, batches of {size.batch}, {found['steps']} steps",
            f"one process, one core: {1e3 * one['seconds']:.1f} ms a step",
            f"{several['processes']} processes, a core each: {1e3 * several['seconds']:.1f} ms a step,"
            f" {found['speed']:.2f} times as fast",
            f"losses of all steps differ by {found['loss']:.1e} (relative) at most",
            f"summed in a step: {several['reduced']:.0f} bytes, by the formula {found['summed']}",
            f"sent in a step: {several['network']:.0f} bytes, by the formula {found['sent']}",
        ]
    )
