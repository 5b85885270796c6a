"""Memory of an epoch of training, each in a process of its own."""

import contextlib
import io
import math
import multiprocessing
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Case:
    D: int
    C: int
    r: int
    frames: int


LARGE = (Case(200_000, 147, 0, 1024), Case(100_000, 5000, 1000, 1024))
FRAMES = (Case(200, 147, 0, 50_000), Case(200, 147, 0, 500_000))
QUICK_LARGE = (Case(2000, 20, 0, 256),)
QUICK_FRAMES = (Case(100, 20, 0, 1000),)


def memory(threads: int, quick: bool) -> dict[str, Any]:
    """Peak resident memory of large models, and private memory, which no file stands behind, of many frames."""
    if not STATUS.exists():
        say("this system has no /proc: memory is left out")
        return {}
    large, frames = (QUICK_LARGE, QUICK_FRAMES) if quick else (LARGE, FRAMES)
    measured = {case: _in_child(case, threads) for case in (*large, *frames)}
    sizes = [{"D": case.D, "C": case.C, "r": case.r, "peak_gb": _gb(measured[case][0])} for case in large]
    stores = [{"frames": case.frames, "private_gb": _gb(measured[case][1])} for case in frames]
    return {"memory": sizes, "memory_of_frames": stores}


def _gb(size: float) -> float | None:
    return round(size / 1e9, 3) if math.isfinite(size) else None


def _in_child(case: Case, threads: int) -> tuple[float, float]:
    """`epoch_memory`, NaN if it was killed."""
    say(f"memory of an epoch at {case}")
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(epoch_memory, case, threads).result()
    except BrokenProcessPool:
        warn("it was killed, perhaps for want of memory")
        return math.nan, math.nan


def epoch_memory(case: Case, threads: int) -> tuple[int, int]:
    """Bytes of this process at the most, during an epoch with all that `fit` does: resident, and private.

    Resident memory includes the pages of the frame store that were read, which the system takes back when it needs to.
    """
    torch.set_num_threads(threads)
    quiet = contextlib.redirect_stderr(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, quiet, _peak_of("RssAnon") as private:
        _train(case, Path(folder))
    return _status("VmHWM"), max(private)


def _train(case: Case, folder: Path) -> None:
    inputs = Inputs((CONTEXT, CONTEXT), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    device = torch.device("cpu")
    batches = Batches(_store(case, folder / "frames"), inputs.context, inputs.mean, inputs.scale, device)
    kernel = Gaussian(30.0)
    features = kernel.feature_map(inputs.dim, case.D, 1)
    model = KernelSoftmax(kernel, features, case.r, Pipeline(), inputs, np.ones(case.C), device)
    model.initialise(1)
    first = {"epoch": 0, **evaluate(model, batches)}
    fit(model, batches, batches, TrainingOptions((1.0,), case.frames, max_epochs=1), 1.0, first, folder, "")


def _store(case: Case, folder: Path) -> FrameStore:
    rng = np.random.default_rng(1)
    lengths = {f"u{n}": min(UTTERANCE, case.frames - start) for n, start in enumerate(range(0, case.frames, UTTERANCE))}
    labels = {utt: rng.integers(case.C, size=length) for utt, length in lengths.items()}
    drawn = ((utt, rng.standard_normal((length, DIM), dtype=np.float32)) for utt, length in lengths.items())
    return FrameStore.build(folder, drawn, labels)


@contextlib.contextmanager
def _peak_of(name: str) -> Iterator[list[int]]:
    """What /proc says of `name`, again and again until the end."""
    seen, ended = [_status(name)], threading.Event()

    def look() -> None:
        while not ended.wait(0.005):
            seen.append(_status(name))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _status(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])
