"""What ridge regression takes of disk and memory, known before any frame is mapped."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from kernelam.errors import KernelamError
from kernelam.memory import available, check_memory, mapped_now
from kernelam.models import ridge as model
from kernelam.progress import say
from kernelam.training.calibration import ELEMENTS
from kernelam.training.cost import peak_memory
from kernelam.training.gram import chunk_of, units
from kernelam.training.ridge_scores import TEMPERATURE_FRAMES, kept
from kernelam.training.ridge_solvers import VECTORS, Solver, largest_block, paired_classes, side_of
from kernelam.training.triangles import Triangle

GIB = 2**30
LIBRARIES = 88 << 20
"""Bytes that PyTorch's optimisers, which fit the temperature, take once they are first called."""


@dataclass(frozen=True)
class Needs:
    """Bytes of files, of memory, and of the files that are mapped into memory while there is room for them; and the
    memory of a job that sums."""

    disk: int
    memory: int
    mapped: int
    job: int

    def told(self) -> str:
        return (
            f"{self.disk / GIB:.2f} GiB of disk and {self.memory / GIB:.2f} GiB of memory, besides"
            f" {self.mapped / GIB:.2f} GiB of files that are mapped while there is room; each job of the sums"
            f" {self.job / GIB:.2f} GiB"
        )


def matrix_sizes(counts: np.ndarray, scheme: str) -> np.ndarray:
    """Frames of each matrix that is summed: of every class, or all."""
    return counts if scheme == "one-vs-one" else counts.sum(keepdims=True)


def problems_of(counts: np.ndarray, scheme: str) -> int:
    classes = len(paired_classes(counts))
    return classes * (classes - 1) // 2 if scheme == "one-vs-one" else classes


@dataclass(frozen=True)
class Task:
    """What decides the needs: frames of each class, features, inputs, heldout frames, and the bytes of both stores."""

    counts: np.ndarray
    count: int
    dim: int
    heldout: int
    stores: int
    scheme: str
    solver: Solver
    ridges: int

    def needs(self, device: torch.device, held: int = 0) -> Needs:
        """Besides what the process has already, `held` bytes of mapped files left out, as these are counted apart:
        in its largest phase, the sums of a unit, the systems of a block with the answers so far, the scoring of heldout
        frames (both beside the answers of the best λ before), or two copies of the answers as they are saved. The
        first λ has its systems before the optimisers are loaded."""
        D, parts = self.count, units(matrix_sizes(self.counts, self.scheme))
        triangle, problems = Triangle(D).size, problems_of(self.counts, self.scheme)
        several = sum(unit.of > 1 for unit in parts)
        answers = problems * D
        chunk = chunk_of(D)
        sums = triangle * (3 if several else 1) + chunk * (D + 2 * self.dim)
        scores = kept(self.heldout, len(paired_classes(self.counts)))
        fitting = 16 * min(ELEMENTS, scores or ELEMENTS)  # eight arrays in double precision
        scoring = max(scores + max(self._scoring(), fitting), self._scoring() + self._temperature())
        models = answers * min(2, self.ridges)
        loaded = LIBRARIES if self.ridges > 1 else 0
        solved = loaded + 4 * (models + self._solving())
        memory = max(4 * sums, solved, LIBRARIES + 4 * max(models + scoring, 3 * answers))
        matrices = len({unit.matrix for unit in parts})
        written = triangle * (len(parts) + (several > 0)) + answers * (self.ridges + 1)
        used = peak_memory(device) - held if device.type == "cpu" else 0
        mapped = 4 * triangle * matrices + self.stores
        return Needs(4 * written + self.stores, memory + used, mapped, 4 * sums + used)

    def _scoring(self) -> int:
        """Numbers: z of a chunk of frames, and what is made of it."""
        classes = len(paired_classes(self.counts))
        frames = max(1, min(2048, model.CHUNK_ELEMENTS // (self.count + model.of_classes(self.scheme, classes))))
        return frames * (self.count + model.of_classes(self.scheme, classes))

    def _temperature(self) -> int:
        """Numbers: inputs of the frames that it is fitted to, twice, and their scores, twice; then these, once and
        seven times in double precision."""
        frames, classes = min(self.heldout, TEMPERATURE_FRAMES), len(paired_classes(self.counts))
        return frames * max(2 * (self.dim + classes), 15 * classes)

    def _solving(self) -> int:
        """Numbers: the vectors of a block, or the matrices of a factor and in double precision its copies."""
        D = self.count
        if self.scheme == "one-vs-rest":
            return 4 * D * D
        if self.solver.name == "cholesky":
            return 6 * D * D
        block = largest_block(len(paired_classes(self.counts)), side_of(self.solver, D))
        return block * D * VECTORS[self.solver.name]


def on_disk(folder: Path) -> int:
    """Bytes of frames and sums, of which what an earlier call left is used again or makes room. A model is replaced
    when all else is written."""
    paths = [*(folder / "frames").rglob("*"), *(folder / "sums").rglob("*")]
    return sum(path.stat().st_size for path in paths if path.is_file())


def check_needs(task: Task, folder: Path, device: torch.device) -> Needs:
    """Say what it takes; refuse what there is no room for."""
    needs = task.needs(device, mapped_now(folder))
    what = f"{task.scheme} of {len(paired_classes(task.counts))} classes with {task.count} features"
    say(f"{what}, {problems_of(task.counts, task.scheme)} systems: {needs.told()}")
    free = shutil.disk_usage(folder).free + on_disk(folder)
    advice = "fewer --num-features or classes take less"
    if needs.disk > free:
        raise KernelamError(
            f"{what} takes {needs.disk / GIB:.2f} GiB of disk in {folder}, and {free / GIB:.2f} GiB are free; {advice}"
        )
    used = peak_memory(device) if device.type == "cpu" else 0
    check_memory(needs.memory, available(device) + used, what, advice)
    return needs
