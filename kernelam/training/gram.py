"""What ridge regression needs of the frames, summed once (chen2016, section 2.1): A_i = Z_iᵀZ_i and g_i = Z_iᵀ1.

One against one, there is a matrix for each class; one against the rest, the sum of these alone. Frames are taken class
by class, in units of a fixed size, none with frames of two matrices. A unit is summed in single precision and written
to a file of its own; a matrix is the sum of its units in their order. Which process sums which unit does not matter to
the last bit, and one that is killed costs its unit. Files are used only if their digests are those they were written
with, and if they are of the same data and features.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frames.batches import Batches
from kernelam.kernels import FeatureMap
from kernelam.memory import available
from kernelam.progress import progress, say
from kernelam.randomness import stream
from kernelam.training import checkpoint
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
    """The frames start … stop − 1 of all, in the order of their classes: part `number` of the `of` of a matrix."""

    matrix: int
    number: int
    of: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        return str(self.matrix) if self.of == 1 else f"{self.matrix}.{self.number}"

    @property
    def frames(self) -> int:
        return self.stop - self.start


def units(sizes: np.ndarray) -> list[Unit]:
    """Of the matrices that have frames; `sizes` says how many each has."""
    found: list[Unit] = []
    ends = np.cumsum(sizes).astype(int).tolist()
    for matrix, (end, size) in enumerate(zip(ends, sizes.astype(int).tolist(), strict=True)):
        starts = range(end - size, end, UNIT)
        found += [Unit(matrix, n, len(starts), start, min(start + UNIT, end)) for n, start in enumerate(starts)]
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


@dataclass(frozen=True)
class Sums:
    """A folder of sums, of the data and features that its fingerprint stands for: of each unit or matrix, the packed
    A in NAME.f32, and g, sampled entries and a digest of A in NAME.safetensors."""

    folder: Path
    fingerprint: str

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.f32"

    def _about(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"

    def write(self, name: str, packed: Tensor, arrays: dict[str, Tensor], about: dict[str, Any]) -> None:
        if not self.folder.exists():
            raise KernelamError(f"{self.folder} was removed while sums were made: another training has taken its place")
        data = packed.cpu().numpy()
        checkpoint.write(self._about(name), arrays, {**about, "matrix": _digest(data)}, self.fingerprint)
        with replacing(self.path(name)) as stream:
            stream.write(data.data)

    def described(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All but the matrix."""
        if (known := checkpoint.read(self._about(name), self.fingerprint)) is None:
            raise KernelamError(f"{self._about(name)} is not there")
        return known

    def map(self, name: str, size: int) -> Tensor:
        """The matrix, in memory only while there is room."""
        path = self.path(name)
        found = path.stat().st_size if path.exists() else 0
        if found != 4 * size:
            raise KernelamError(f"{path} has {found} bytes, but {4 * size} belong to it")
        return torch.from_numpy(np.memmap(path, np.float32, "c", shape=(size,)))

    def has(self, name: str, size: int) -> bool:
        """Whether it is there, `size` numbers of it, as it was written."""
        if not self.path(name).exists():
            return False
        try:
            if self.described(name)[1]["matrix"] == _digest(self.map(name, size).numpy()):
                return True
            raise KernelamError(f"{self.path(name)} is damaged: its digest is not the one it was written with")
        except KernelamError as error:
            say(f"{error}: it is summed again")
        return False

    def remove(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)
        checkpoint.remove(self._about(name))


def _digest(data: np.ndarray) -> str:
    return hashlib.sha256(data.data).hexdigest()


def accumulate(todo: Sequence[Unit], train: Batches, features: FeatureMap, sums: Sums) -> None:
    """Sum the units that are not there yet, alone or in their matrices."""
    size = Triangle(features.count).size
    whole = {matrix for matrix in {unit.matrix for unit in todo} if sums.has(str(matrix), size)}
    for unit in todo:
        if unit.of > 1 and unit.matrix in whole:  # a run that was killed may have left it
            sums.remove(unit.name)
    sums.folder.mkdir(parents=True, exist_ok=True)
    missing = [unit for unit in todo if unit.matrix not in whole and (unit.of == 1 or not sums.has(unit.name, size))]
    labels = train.labels.cpu().numpy()
    order = np.argsort(labels, kind="stable")
    for unit in progress(missing, f"sums of {features.count} features"):
        start, frames = time.monotonic(), order[unit.start : unit.stop]
        packed, arrays = _sum(unit.matrix, frames, labels[frames], train, features)
        sums.write(unit.name, packed, arrays, {"seconds": time.monotonic() - start, "frames": unit.frames})


def _sum(
    matrix: int, frames: np.ndarray, labels: np.ndarray, train: Batches, features: FeatureMap
) -> tuple[Tensor, dict[str, Tensor]]:
    """The packed ZᵀZ, and in double precision Zᵀ1 of each class and the sampled entries."""
    triangle, classes = Triangle(features.count), np.unique(labels)
    packed = torch.zeros(triangle.size, device=train.device)
    rows, columns = (index.to(train.device) for index in sampled(matrix, features.count))
    g = torch.zeros(len(classes), features.count, dtype=torch.float64, device=train.device)
    entries = torch.zeros(len(rows), dtype=torch.float64, device=train.device)
    z: Tensor | None = None
    size = chunk_of(features.count)
    for start in range(0, len(frames), size):
        z = features(train.take(torch.from_numpy(frames[start : start + size]))[0], z)
        zt = z.T
        triangle.add(packed, zt)
        entries += (zt[rows].double() * zt[columns]).sum(dim=1)
        here, counts = np.unique(labels[start : start + size], return_counts=True)
        for place, own in zip(np.searchsorted(classes, here), zt.split(counts.tolist(), dim=1), strict=True):
            g[int(place)] += own.sum(dim=1)
    return packed, {"classes": torch.from_numpy(classes), "g": g, "entries": entries}


def sampled(matrix: int, count: int) -> tuple[Tensor, Tensor]:
    """Row and column numbers of the entries that are summed in double precision too."""
    pairs = np.sort(stream(0, "entries", matrix).integers(count, size=(SAMPLE, 2)), axis=1)
    pairs[::4, 1] = pairs[::4, 0]
    rows, columns = torch.from_numpy(pairs).unbind(dim=1)
    return rows, columns


class Grams:
    """The matrices, on disk: A_i of each class that has frames, or their sum as matrix 0; and g_i in `g`."""

    def __init__(
        self, sums: Sums, count: int, counts: np.ndarray, matrices: Sequence[int], device: torch.device
    ) -> None:
        self.sums, self.counts, self.matrices, self.device = sums, counts, matrices, device
        self.triangle = Triangle(count)
        self.g = torch.zeros(len(counts), count, dtype=torch.float64)
        self.seconds = self.error = 0.0
        self._maps: dict[int, Tensor] = {}
        self._hold = device.type == "cpu" or self.num_bytes < available(device) // 2
        for matrix in matrices:
            self._open(matrix)

    def _open(self, matrix: int) -> None:
        """Take g, and check A against its sample."""
        arrays, about = self.sums.described(str(matrix))
        error = _error(matrix, self._map(matrix), arrays["entries"], self.triangle)
        if not error <= BOUND:
            of = f"class {matrix}" if len(arrays["classes"]) == 1 else "all classes"
            raise KernelamError(
                f"the sums over the frames of {of} in single precision are off by {error:.1e} of their size, more"
                f" than {BOUND:g}: they do not do for such features; choose another --kernel or --bandwidth"
            )
        self.g[arrays["classes"]] = arrays["g"]
        self.seconds += about["seconds"]
        self.error = max(self.error, error)

    @property
    def count(self) -> int:
        return self.triangle.r

    @property
    def num_bytes(self) -> int:
        return 4 * self.triangle.size * len(self.matrices)

    def _map(self, matrix: int) -> Tensor:
        return self.sums.map(str(matrix), self.triangle.size)

    def packed(self, matrix: int) -> Tensor:
        """As `triangle` has it, on the device; a GPU keeps them if it has room for all."""
        if matrix in self._maps:
            return self._maps[matrix]
        found = self._map(matrix).to(self.device)
        if self._hold:
            self._maps[matrix] = found
        return found

    def full(self, matrix: int) -> Tensor:
        """r × r."""
        return self.triangle.full(self.packed(matrix))


def assemble(every: Sequence[Unit], count: int, counts: np.ndarray, sums: Sums, device: torch.device) -> Grams:
    """The matrices, of units that `accumulate` has summed or found; each is checked against its sample."""
    parts: dict[int, list[Unit]] = {}
    for unit in every:
        parts.setdefault(unit.matrix, []).append(unit)
    for matrix, its in parts.items():
        if len(its) > 1 and sums.path(its[0].name).exists():
            _join(str(matrix), its, Triangle(count).size, sums)
    return Grams(sums, count, counts, list(parts), device)


def _join(name: str, parts: Sequence[Unit], size: int, sums: Sums) -> None:
    """Write the sum of the units of a matrix, and remove them."""
    described = [sums.described(unit.name) for unit in parts]
    packed = sums.map(parts[0].name, size)
    for unit in parts[1:]:
        packed += sums.map(unit.name, size)
    about = {key: sum(told[key] for _, told in described) for key in ("seconds", "frames")}
    sums.write(name, packed, _add([arrays for arrays, _ in described]), about)
    for unit in parts:
        sums.remove(unit.name)


def _add(parts: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Entries and g of units together; a class may have frames in several."""
    of = torch.cat([part["classes"] for part in parts])
    classes, places = of.unique(return_inverse=True)
    g = torch.cat([part["g"] for part in parts])
    total = torch.zeros(len(classes), g.shape[1], dtype=g.dtype).index_add_(0, places, g)
    return {"classes": classes, "g": total, "entries": torch.stack([part["entries"] for part in parts]).sum(dim=0)}


def _error(matrix: int, packed: Tensor, exact: Tensor, triangle: Triangle) -> float:
    """The largest |A_kl − exact| / √(A_kk A_ll) of the sample."""
    rows, columns = sampled(matrix, triangle.r)
    found = triangle.at(packed, rows, columns).double()
    scale = (triangle.at(packed, rows, rows).double() * triangle.at(packed, columns, columns)).sqrt()
    return float(((found - exact).abs() / scale.clamp_min(torch.finfo(torch.float32).tiny)).max())
