"""Memory of epochs of training, and how they go on with many frames, each in a process of its own."""

import contextlib
import io
import math
import multiprocessing
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.progress import say, warn
from kernelam.training.metrics import evaluate
from kernelam.training.trainer import TrainingOptions, fit

STATUS = Path("/proc/self/status")
DIM, CONTEXT, UTTERANCE = 40, 5, 500
TILE = 100  # utterances that are different; more frames are these again
HELDOUT = 2000


@dataclass(frozen=True)
class Case:
    D: int
    C: int
    r: int
    frames: int


LARGE = (Case(200_000, 147, 0, 1024), Case(100_000, 5000, 1000, 1024))
FRAMES = (Case(1000, 147, 0, 360_000), Case(1000, 147, 0, 8_640_000))  # one hour and 24
QUICK_LARGE = (Case(2000, 20, 0, 256),)
QUICK_FRAMES = (Case(100, 20, 0, 1000), Case(100, 20, 0, 3000))


class Measured(NamedTuple):
    """Of an epoch: bytes at the most, resident and private, which no file stands behind; frames a second."""

    resident: float
    private: float
    speed: float


def memory(threads: int, quick: bool) -> dict[str, Any]:
    """Peak resident memory of large models."""
    if not STATUS.exists():
        say("this system has no /proc: memory is left out")
        return {}
    large = QUICK_LARGE if quick else LARGE
    rows = [(case, _in_child(case, threads)) for case in large]
    return {"memory": [{"D": case.D, "C": case.C, "r": case.r, "peak_gb": _gb(it.resident)} for case, it in rows]}


def many_frames(threads: int, quick: bool) -> list[dict[str, Any]]:
    """Private memory and speed of an epoch of an hour of speech and of a day."""
    rows = [(case, _in_child(case, threads)) for case in (QUICK_FRAMES if quick else FRAMES)]
    return [{"frames": case.frames, "private_gb": _gb(it.private), "speed": round(it.speed)} for case, it in rows]


def describe_frames(found: list[dict[str, Any]]) -> str:
    first, *others = found
    lines = [f"{row['frames']} frames: {row['private_gb']} GB private, {row['speed']} frames/s" for row in found]
    for row in others:
        less = row["private_gb"] - first["private_gb"]
        lines.append(f"from the first to the last: {less:+.3f} GB, speed times {row['speed'] / first['speed']:.3f}")
    return "\n".join(lines)


def _gb(size: float) -> float | None:
    return round(size / 1e9, 3) if math.isfinite(size) else None


def _in_child(case: Case, threads: int) -> Measured:
    """`epoch_memory`, NaN if it was killed."""
    say(f"an epoch at {case}")
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(epoch_memory, case, threads).result()
    except BrokenProcessPool:
        warn("it was killed, perhaps for want of memory")
        return Measured(math.nan, math.nan, math.nan)


def epoch_memory(case: Case, threads: int) -> Measured:
    """An epoch with all that `fit` does.

    Resident memory includes the pages of the frame store that were read, which the system takes back when it needs to.
    """
    torch.set_num_threads(threads)
    quiet = contextlib.redirect_stderr(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, quiet, _peak_of("RssAnon") as private:
        _, epoch = _train(case, Path(folder))
    return Measured(status("VmHWM"), max(private), epoch["frames"] / epoch["cpu_seconds"])


def _train(case: Case, folder: Path) -> list[dict[str, Any]]:
    inputs = Inputs((CONTEXT, CONTEXT), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    device = torch.device("cpu")
    few = replace(case, frames=min(case.frames, HELDOUT))
    train, heldout = (
        Batches(_store(one, folder / name), inputs.context, inputs.mean, inputs.scale, device)
        for name, one in (("train", case), ("heldout", few))
    )
    kernel = Gaussian(30.0)
    features = kernel.feature_map(inputs.dim, case.D, 1)
    model = KernelSoftmax(kernel, features, case.r, Pipeline(), inputs, np.ones(case.C), device)
    model.initialise(1)
    first = {"epoch": 0, **evaluate(model, heldout)}
    return fit(model, train, heldout, TrainingOptions((1.0,), case.frames, max_epochs=1), 1.0, first, folder, "")


def _store(case: Case, folder: Path) -> FrameStore:
    rng = np.random.default_rng(1)
    lengths = {f"u{n}": min(UTTERANCE, case.frames - start) for n, start in enumerate(range(0, case.frames, UTTERANCE))}
    tiles = [
        (rng.standard_normal((UTTERANCE, DIM), dtype=np.float32), rng.integers(case.C, size=UTTERANCE))
        for _ in range(min(TILE, len(lengths)))
    ]
    own = {utt: (tiles[n % TILE], length) for n, (utt, length) in enumerate(lengths.items())}
    drawn = ((utt, features[:length]) for utt, ((features, _), length) in own.items())
    return FrameStore.build(folder, drawn, {utt: labels[:length] for utt, ((_, labels), length) in own.items()})


@contextlib.contextmanager
def _peak_of(name: str) -> Iterator[list[int]]:
    """What /proc says of `name`, again and again until the end."""
    seen, ended = [status(name)], threading.Event()

    def look() -> None:
        while not ended.wait(0.005):
            seen.append(status(name))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def status(name: str) -> int:
    """Bytes of this process that the system tells under that name."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])
