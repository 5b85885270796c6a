"""Training steps of networks as a share of the machine's own matrix product, and in bfloat16 where the CPU has it."""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from kernelam.frontend.pipeline import Pipeline
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs, has_bfloat16
from kernelam.training.bench import RATE, Size, Stopwatch, Task
from kernelam.training.cost import step_flops


def network(watch: Stopwatch, layers: int, size: Size) -> dict[str, Any]:
    """A step of `layers` of D tanh units. The peer is torch.nn.Sequential with torch.optim.SGD."""
    x, labels = size.data()
    inputs = Inputs((0, 0), np.zeros(size.d, np.float32), np.ones(size.d, np.float32))
    made = {
        name: Dnn(Network(layers, size.D), Pipeline(), inputs, np.ones(size.C), torch.device("cpu"))
        for name in ("single", *(["mixed"] if has_bfloat16() else []))
    }
    tasks: dict[str, Task] = {}
    for name, model in made.items():
        model.mixed = name == "mixed"
        model.initialise(1)
        tasks[name] = lambda model=model: model.step(x, labels, RATE)  # type: ignore[misc]
    sizes = [size.d, *[size.D] * layers]
    hidden = [layer for rows, columns in pairwise(sizes) for layer in (nn.Linear(rows, columns), nn.Tanh())]
    peer = nn.Sequential(*hidden, nn.Linear(size.D, size.C))
    optimiser = torch.optim.SGD(peer.parameters(), lr=RATE)

    def plain() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(peer(x), labels).backward()
        optimiser.step()

    times = watch(f"steps of {layers} × {size.D} units", {**tasks, "plain": plain})
    return {
        "units": f"{layers} × {size.D}",
        "C": size.C,
        "frames_per_second": round(size.batch / times.median["single"], 1),
        "gemm_share": round(times.share("single", size.batch * step_flops(made["single"])), 4),
        "vs_torch_nn": round(times.ratio("plain", "single"), 4),
        "mixed_vs_single": round(times.ratio("single", "mixed"), 4) if "mixed" in made else None,
    }
