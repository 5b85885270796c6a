"""Processes that train or score one model together, each with a slice of its random features, or of the frames.

torchrun starts them, and tells each its number in the environment. All run the same program on the same data and come
to the same sums in the same order; the first one alone writes files and speaks.
"""

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError


def _told(name: str, default: int) -> int:
    return int(os.environ[name]) if "TORCHELASTIC_RUN_ID" in os.environ else default


def world() -> int:
    """How many processes torchrun has started; 1 where it did not."""
    return _told("WORLD_SIZE", 1)


def number() -> int:
    """Which of them this is."""
    return _told("RANK", 0)


def beside() -> int:
    """How many of them share this machine."""
    return _told("LOCAL_WORLD_SIZE", 1)


def is_first() -> bool:
    return number() == 0


def end_with_starter() -> None:
    """Let a process of torchrun end soon after the one that has started it, however that ended: it would hold the
    folder that it trains in against the next one that is started."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    starter = os.getppid()

    def watch() -> None:
        while os.getppid() == starter:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class Shard:
    """Number `index` of `count` slices that differ by one at most."""

    index: int = 0
    count: int = 1

    def of(self, total: int) -> range:
        if total < self.count:
            raise KernelamError(
                f"{total} random frequencies are too few for {self.count} processes: start fewer of them"
            )
        return range(total * self.index // self.count, total * (self.index + 1) // self.count)


WHOLE = Shard()


class Ranks:
    """A grid of processes: those of a row share the features of a model, those of a column the frames of a batch."""

    def __init__(
        self,
        features: Shard = WHOLE,
        frames: Shard = WHOLE,
        row: Any = None,
        column: Any = None,
        patient: Any = None,
    ) -> None:
        self.features, self.frames = features, frames
        self._row, self._column = row, column
        self._patient = patient  # all of them, for what is in the memory of the CPU whatever the device
        self.reduced = 0  # bytes of the tensors that were summed, for benchmarks

    def sum(self, tensor: Any) -> Any:
        """Over the slices of the features, in place."""
        return self._reduce(tensor, self.features, self._row)

    def sum_frames(self, tensor: Any) -> Any:
        """Over the slices of a batch, in place."""
        return self._reduce(tensor, self.frames, self._column)

    def _reduce(self, tensor: Any, shard: Shard, group: Any) -> Any:
        if shard.count > 1:
            import torch.distributed as dist

            self.reduced += tensor.nbytes
            dist.all_reduce(tensor, group=group)
        return tensor

    def own_frames(self, x: Any, labels: Any) -> tuple[Any, Any]:
        """This process's slice of a batch, which may be empty."""
        if self.frames.count == 1:
            return x, labels
        index, count = self.frames.index, self.frames.count
        own = slice(len(labels) * index // count, len(labels) * (index + 1) // count)
        return x[own], labels[own]

    def spread(self, rows: Any, places: Any, total: int) -> Any:
        """The rows of all slices in their places, for all: for small ones."""
        if self.features.count == 1:
            return rows
        whole = rows.new_zeros(total, *rows.shape[1:])
        whole[places.to(rows.device)] = rows
        return self.sum(whole)

    def gathered(self, rows: Any, places: Any, total: int) -> Any:
        """The rows of all slices in their places, in the memory of the first process; None for the others."""
        import torch
        import torch.distributed as dist

        if self.frames.index:
            return None
        rows, size = rows.cpu(), torch.tensor([len(rows)])
        if self.features.index:
            for tensor in (size, places, rows):
                dist.send(tensor.contiguous(), 0, self._patient)
            return None
        whole = rows.new_empty(total, *rows.shape[1:])
        whole[places] = rows
        for other in range(1, self.features.count):
            dist.recv(size, other, self._patient)
            dist.recv(where := torch.empty(int(size), dtype=torch.int64), other, self._patient)
            dist.recv(theirs := rows.new_empty(int(size), *rows.shape[1:]), other, self._patient)
            whole[where] = theirs
        return whole

    def same(self, tensor: Any) -> Any:
        """What the first process has, in place: where machines differ, so does the rounding of what all computed."""
        if self is not ALONE:
            import torch.distributed as dist

            dist.broadcast(tensor, 0)
        return tensor

    def check(self, text: str, place: Path) -> None:
        """Refuse to go on where `text`, which was read from `place` and decides what comes next, is not the same for
        all: they would wait for each other for ever, or each train a part of another model."""
        if self is not ALONE:
            import torch
            import torch.distributed as dist

            own = torch.tensor(list(hashlib.sha256(text.encode()).digest()))
            dist.broadcast(first := own.clone(), 0, self._patient)
            if not torch.equal(own, first):
                raise KernelamError(
                    f"this process finds something else in {place} than the first one: all machines need the same"
                    " command, and folders that they share"
                )

    def wait(self) -> None:
        """Until all are here."""
        if self is not ALONE:
            import torch.distributed as dist

            dist.barrier(self._patient)


PATIENCE = timedelta(days=7)
"""How long all wait for one of them where that is no step of training: the first may pack frames for hours, and wait
for another training in the folder before."""

ALONE = Ranks()
_current = ALONE


def current() -> Ranks:
    return _current


@contextmanager
def alone() -> Iterator[None]:
    """Within, each process has models whole."""
    global _current
    before, _current = _current, ALONE
    try:
        yield
    finally:
        _current = before


def _own_device(device: str) -> str:
    """Of this process: a GPU of its own."""
    if not device.startswith("cuda"):
        return device
    import torch

    if device != "cuda":
        raise KernelamError(f"each of several processes has a GPU of its own: say --device cuda, not {device}")
    if (gpus := torch.cuda.device_count()) < beside():
        raise KernelamError(f"{beside()} processes share this machine, which has {gpus} GPUs: start one for each")
    device = f"cuda:{_told('LOCAL_RANK', 0)}"
    torch.cuda.set_device(device)
    return device


@contextmanager
def joined(device: str, frames: int = 1) -> Iterator[str]:
    """Within, the processes that torchrun has started work together, those of `frames` rows on a slice of each batch;
    the device of this one."""
    global _current
    if world() == 1:
        if frames > 1:
            raise KernelamError(f"one process cannot share frames {frames} ways: start more, with kernelam together")
        yield device
        return
    if world() % frames:
        raise KernelamError(f"{world()} processes do not make {frames} equal groups that share frames")
    import torch.distributed as dist

    device = _own_device(device)
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    width = world() // frames
    row, column = number() // width, number() % width
    rows = [dist.new_group(list(range(i * width, (i + 1) * width))) for i in range(frames)]
    columns = [dist.new_group(list(range(i, world(), width))) for i in range(width)]
    patient = dist.new_group(timeout=PATIENCE, backend="gloo")
    _current = Ranks(Shard(column, width), Shard(row, frames), rows[row], columns[column], patient)
    try:
        yield device
    finally:
        _current = ALONE
        dist.destroy_process_group()
