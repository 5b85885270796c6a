"""A training of a ridge model before its sums over frames: settings, checks, frames, features."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.hmm.transitions import TransitionModel
from kernelam.kernels import FeatureMap, Kernel, kernel_from
from kernelam.models.arrays import read_arrays
from kernelam.models.directory import is_whole
from kernelam.models.posterior import Inputs, find_device
from kernelam.models.ridge import SCHEMES
from kernelam.progress import say, warn
from kernelam.training import checkpoint
from kernelam.training.acoustic import TrainingInput, count_classes, pack_sets
from kernelam.training.features import build_features
from kernelam.training.ridge_needs import Needs, Task, check_needs, matrix_sizes
from kernelam.training.ridge_solvers import FEWEST, Solver, check_ridge, paired_classes

OF_SUMS = ("kernel", "bandwidth", "num_features", "sampling", "scheme", "seed")


@dataclass(frozen=True)
class RidgePlan:
    kernel: str  # an expression of kernelam.kernels.expression
    bandwidth: float  # a factor on the median
    num_features: int
    sampling: str = "paired"
    ridges: tuple[float, ...] = (0.1,)  # λ, to choose from
    scheme: str = "one-vs-one"
    solver: Solver = field(default_factory=Solver)
    seed: int = 1

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise KernelamError(f"no scheme is called {self.scheme}; there are {', '.join(SCHEMES)}")
        if not self.bandwidth > 0.0:
            raise KernelamError(f"a bandwidth must be above zero, not {self.bandwidth:g}")

    def settings(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "seed"}

    def of_sums(self) -> dict[str, Any]:
        """What decides the sums over frames."""
        return {name: getattr(self, name) for name in OF_SUMS}


@dataclass(frozen=True)
class Work:
    """A training that is checked and has its frames."""

    given: TrainingInput
    plan: RidgePlan
    transitions: TransitionModel
    train: Batches
    heldout: Batches
    inputs: Inputs
    counts: np.ndarray
    needs: Needs
    told: dict[str, Any]
    fingerprint: str
    fingerprint_of_sums: str

    @property
    def sizes(self) -> np.ndarray:
        return matrix_sizes(self.counts, self.plan.scheme)

    @property
    def folder(self) -> Path:
        return self.given.folder / "sums"


def begin(given: TrainingInput, transitions: TransitionModel, plan: RidgePlan, device: str) -> Work | None:
    """Frames and settings; nothing where the model is there. Of what is refused nothing stays behind."""
    place = find_device(device)
    stores, inputs = pack_sets(given, transitions)
    features = {"pipeline": given.pipeline.settings(), "context": given.context}
    told = {
        "settings": {**plan.settings(), **features},
        "options": {"seed": plan.seed},
        "data": [store.digest for store in stores],
    }
    fingerprint = _digest(told)
    if is_whole(given.folder, fingerprint):
        say(f"{given.folder} holds the model of these data and settings already")
        clean(given.folder)
        return None
    counts = count_classes(stores[0], transitions.num_pdfs)
    train, heldout = (Batches(store, inputs.context, inputs.mean, inputs.scale, place) for store in stores)
    say(f"{len(train)} training frames, {len(heldout)} heldout frames, {transitions.num_pdfs} classes, on {place}")
    of_sums = _digest({**plan.of_sums(), **features, "data": stores[0].digest})
    try:
        _check_classes(counts, plan)
        needs = check_needs(_task(plan, counts, stores, inputs), given.folder, place)
    except KernelamError:
        shutil.rmtree(given.folder / "frames")
        raise
    return Work(given, plan, transitions, train, heldout, inputs, counts, needs, told, fingerprint, of_sums)


def _digest(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _check_classes(counts: np.ndarray, plan: RidgePlan) -> None:
    paired = paired_classes(counts)
    if len(paired) < 2:
        raise KernelamError(f"{len(paired)} of {len(counts)} classes have {FEWEST} training frames; two must")
    if left := sorted(set(range(len(counts))) - set(paired.tolist())):
        names = " ".join(map(str, left[:10])) + (" …" if len(left) > 10 else "")
        warn(
            f"{len(left)} of {len(counts)} classes have fewer than {FEWEST} training frames ({names}) and cannot be set"
            " against others: each keeps its share of the training frames, half a frame at least, as its probability"
        )
    for ridge in plan.ridges:
        check_ridge(counts, plan.num_features, ridge, plan.scheme)


def features_of(work: Work) -> tuple[Kernel, FeatureMap]:
    """The features, drawn and fitted once; what is left of other sums is removed."""
    plan, path, place = work.plan, work.folder / "features.safetensors", work.train.device
    known = checkpoint.read(path, work.fingerprint_of_sums)
    if known is None:
        shutil.rmtree(work.folder, ignore_errors=True)
        source = (plan.bandwidth, plan.num_features, plan.sampling, work.train, work.inputs, plan.seed, place)
        kernel, features = build_features(plan.kernel, *source)
        mean, scale = (torch.from_numpy(array) for array in (work.inputs.mean, work.inputs.scale))
        about = {
            "kernel": kernel.settings(),
            "context": work.inputs.context,
            "sizes": work.sizes.astype(int).tolist(),
        }
        arrays = {**features.arrays, "input.mean": mean, "input.scale": scale}
        checkpoint.write(path, arrays, about, work.fingerprint_of_sums)
        known = read_arrays(path)
    _, kernel, features = restore(*known, place)
    return kernel, features


def restore(
    arrays: dict[str, Tensor], about: dict[str, Any], device: torch.device
) -> tuple[Inputs, Kernel, FeatureMap]:
    kernel = kernel_from(about["kernel"])
    mean, scale = (arrays.pop(f"input.{name}").numpy() for name in ("mean", "scale"))
    return Inputs(tuple(about["context"]), mean, scale), kernel, kernel.map_of(arrays).to(device)


def _task(plan: RidgePlan, counts: np.ndarray, stores: Sequence[FrameStore], inputs: Inputs) -> Task:
    size = 4 * sum(map(len, stores)) * (len(inputs.mean) + 1)
    sizes = (counts, plan.num_features, inputs.dim, len(stores[1]), size)
    return Task(*sizes, plan.scheme, plan.solver, len(plan.ridges))


def clean(folder: Path) -> None:
    """Remove what only an unfinished training needs, and files that a kill left unfinished."""
    for path in folder.glob(".*.partial"):
        path.unlink()
    for name in ("frames", "sums"):
        shutil.rmtree(folder / name, ignore_errors=True)
