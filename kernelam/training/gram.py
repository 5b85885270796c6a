"""What ridge regression needs of the frames, summed once (chen2016, section 2.1): A_i = Z_iᵀZ_i and g_i = Z_iᵀ1.

Frames are taken class by class, in units of a fixed size. A unit is summed in single precision and written to a file of
its own; A_i is the sum of its units in their order. Which process sums which unit does not matter to the last bit, and
one that is killed costs its unit.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frames.batches import Batches
from kernelam.kernels import FeatureMap
from kernelam.memory import available
from kernelam.models.arrays import read_arrays, write_arrays
from kernelam.progress import progress
from kernelam.randomness import stream
from kernelam.training.triangles import Triangle

UNIT = 131_072
"""Frames summed into one file, at most."""
CHUNK = 2_048
CHUNK_ELEMENTS = 1 << 25
"""Frames mapped at once, and numbers of z, at most."""
SAMPLE = 64
"""Entries of each matrix that are summed in double precision too, a quarter of them on the diagonal."""
BOUND = 1e-5
"""The largest error of an entry A_kl that is let pass, as a share of √(A_kk A_ll)."""


@dataclass(frozen=True)
class Unit:
    """The frames start … stop − 1 of all frames in the order of their classes: part `number` of the `of` of a class."""

    label: int
    number: int
    of: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        return str(self.label) if self.of == 1 else f"{self.label}.{self.number}"

    @property
    def frames(self) -> int:
        return self.stop - self.start


def units(counts: np.ndarray) -> list[Unit]:
    """Of the classes that have frames."""
    found: list[Unit] = []
    ends = np.cumsum(counts).astype(int).tolist()
    for label, (end, count) in enumerate(zip(ends, counts.astype(int).tolist(), strict=True)):
        starts = range(end - count, end, UNIT)
        found += [Unit(label, n, len(starts), start, min(start + UNIT, end)) for n, start in enumerate(starts)]
    return found


def assign(every: Sequence[Unit], jobs: int) -> list[list[Unit]]:
    """The units of each job: the largest first, to the one that has least."""
    shares: list[list[Unit]] = [[] for _ in range(jobs)]
    loads = [0] * jobs
    for unit in sorted(every, key=lambda unit: -unit.frames):
        job = loads.index(min(loads))
        shares[job].append(unit)
        loads[job] += unit.frames
    return shares


def chunk_of(count: int) -> int:
    """Frames that are mapped at once to `count` features."""
    return max(1, min(CHUNK, CHUNK_ELEMENTS // count))


def accumulate(todo: Sequence[Unit], train: Batches, features: FeatureMap, folder: Path) -> None:
    """Sum the units that `folder` has not got yet."""
    missing = [unit for unit in todo if not is_summed(unit, folder)]
    order = torch.from_numpy(np.argsort(train.labels.cpu().numpy(), kind="stable"))
    for unit in progress(missing, f"sums of {features.count} features"):
        start = time.monotonic()
        packed, about = _sum(unit, order[unit.start : unit.stop], train, features)
        seconds = {"seconds": time.monotonic() - start, "frames": unit.frames}
        write_arrays(_about(folder, unit.name), about, seconds)
        _write(folder, unit.name, packed)


def is_summed(unit: Unit, folder: Path) -> bool:
    """Whether its sums are there, or those of its class."""
    return any(_matrix(folder, name).exists() for name in (unit.name, str(unit.label)))


def _sum(unit: Unit, frames: Tensor, train: Batches, features: FeatureMap) -> tuple[Tensor, dict[str, Tensor]]:
    """The packed ZᵀZ, and in double precision Zᵀ1 and the sampled entries."""
    triangle = Triangle(features.count)
    packed = torch.zeros(triangle.size, device=train.device)
    rows, columns = (index.to(train.device) for index in sampled(unit.label, features.count))
    g = torch.zeros(features.count, dtype=torch.float64, device=train.device)
    entries = torch.zeros(len(rows), dtype=torch.float64, device=train.device)
    z: Tensor | None = None
    for part in torch.split(frames, chunk_of(features.count)):
        z = features(train.take(part)[0], z)
        zt = z.T
        triangle.add(packed, zt)
        g += zt.sum(dim=1)
        entries += (zt[rows].double() * zt[columns]).sum(dim=1)
    return packed, {"g": g, "entries": entries}


def sampled(label: int, count: int) -> tuple[Tensor, Tensor]:
    """Row and column numbers of the entries of A_label that are summed in double precision too."""
    pairs = np.sort(stream(0, "entries", label).integers(count, size=(SAMPLE, 2)), axis=1)
    pairs[::4, 1] = pairs[::4, 0]
    rows, columns = torch.from_numpy(pairs).unbind(dim=1)
    return rows, columns


def _matrix(folder: Path, name: str) -> Path:
    return folder / f"{name}.f32"


def _about(folder: Path, name: str) -> Path:
    return folder / f"{name}.safetensors"


def _write(folder: Path, name: str, packed: Tensor) -> None:
    with replacing(_matrix(folder, name)) as stream:
        packed.cpu().numpy().tofile(stream)


def _map(folder: Path, name: str, size: int) -> Tensor:
    """The numbers of a file, in memory only while there is room."""
    path = _matrix(folder, name)
    found = path.stat().st_size if path.exists() else 0
    if found != 4 * size:
        raise KernelamError(f"{path} has {found} bytes, but {4 * size} belong to it; remove it and run this again")
    return torch.from_numpy(np.memmap(path, np.float32, "c", shape=(size,)))


class Grams:
    """A_i and g_i of the classes that have frames, on disk."""

    def __init__(self, folder: Path, count: int, counts: np.ndarray, device: torch.device) -> None:
        self.folder, self.counts, self.device = folder, counts, device
        self.triangle = Triangle(count)
        self.sums = torch.zeros(len(counts), count, dtype=torch.float64)
        self.seconds = self.error = 0.0
        for label in np.flatnonzero(counts).tolist():
            arrays, about = read_arrays(_about(folder, str(label)))
            self.sums[label] = arrays["g"]
            self.seconds += about["seconds"]
            self.error = max(self.error, about["error"])
        self._maps: dict[int, Tensor] = {}
        self._hold = device.type == "cpu" or self.num_bytes < available(device) // 2

    @property
    def count(self) -> int:
        return self.triangle.r

    @property
    def num_bytes(self) -> int:
        return 4 * self.triangle.size * int((self.counts > 0).sum())

    def packed(self, label: int) -> Tensor:
        """A_label as `triangle` has it, on the device; a GPU keeps them if it has room for all."""
        if label in self._maps:
            return self._maps[label]
        found = _map(self.folder, str(label), self.triangle.size).to(self.device)
        if self._hold:
            self._maps[label] = found
        return found

    def full(self, label: int) -> Tensor:
        """A_label, r × r."""
        return self.triangle.full(self.packed(label))


def assemble(every: Sequence[Unit], count: int, counts: np.ndarray, folder: Path, device: torch.device) -> Grams:
    """The matrices of all classes, of units that are all summed; each is checked against its sample."""
    classes: dict[int, list[Unit]] = {}
    for unit in every:
        classes.setdefault(unit.label, []).append(unit)
    for label, parts in classes.items():
        _finish(label, parts, Triangle(count), folder)
    return Grams(folder, count, counts, device)


def _finish(label: int, parts: Sequence[Unit], triangle: Triangle, folder: Path) -> None:
    """Write the sum of the units of a class, check it, and remove them."""
    name = str(label)
    if _matrix(folder, name).exists() and "error" in read_arrays(_about(folder, name))[1]:
        return
    described = [read_arrays(_about(folder, unit.name)) for unit in parts]
    packed = _map(folder, parts[0].name, triangle.size)
    for unit in parts[1:]:
        packed += _map(folder, unit.name, triangle.size)
    arrays = {key: torch.stack([one[key] for one, _ in described]).sum(dim=0) for key in ("g", "entries")}
    error = _error(label, packed, arrays["entries"], triangle)
    if not error <= BOUND:
        raise KernelamError(
            f"the sums over the frames of class {label} in single precision are off by {error:.1e} of their size, more"
            f" than {BOUND:g}; remove {folder} and run this again"
        )
    about = {key: sum(told[key] for _, told in described) for key in ("seconds", "frames")}
    write_arrays(_about(folder, name), arrays, {**about, "error": error})
    if len(parts) > 1:
        _write(folder, name, packed)
        for unit in parts:
            _matrix(folder, unit.name).unlink()
            _about(folder, unit.name).unlink()


def _error(label: int, packed: Tensor, exact: Tensor, triangle: Triangle) -> float:
    """The largest |A_kl − exact| / √(A_kk A_ll) of the sample."""
    rows, columns = sampled(label, triangle.r)
    found = triangle.at(packed, rows, columns).double()
    scale = (triangle.at(packed, rows, rows).double() * triangle.at(packed, columns, columns)).sqrt()
    return float(((found - exact).abs() / scale.clamp_min(torch.finfo(torch.float32).tiny)).max())
