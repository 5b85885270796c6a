"""A training of a ridge model before its sums over frames: settings, checks, frames, features."""

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kernels import FeatureMap, Kernel, kernel_from
from kernelam.kernels.expression import parse
from kernelam.models.arrays import read_arrays
from kernelam.models.posterior import Inputs, find_device
from kernelam.models.ridge import SCHEMES
from kernelam.progress import warn
from kernelam.training import checkpoint
from kernelam.training.exact import check_bandwidths
from kernelam.training.features import build_features, check_drawable, count_of, models_of
from kernelam.training.gram import Sums
from kernelam.training.packing import Packed, TrainingInput, fingerprint_of, pack_frames
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
        check_bandwidths([self.bandwidth])

    def settings(self) -> dict[str, Any]:
        own = {name: value for name, value in asdict(self).items() if name != "seed"}
        return {**own, "models": models_of(self.kernel)}

    def of_sums(self) -> dict[str, Any]:
        """What decides the sums over frames."""
        return {**{name: getattr(self, name) for name in OF_SUMS}, "models": models_of(self.kernel)}

    def count(self, dim: int) -> int:
        """Features of `dim` inputs."""
        return count_of(parse(self.kernel), dim, self.num_features, self.num_features)


@dataclass(frozen=True)
class Work:
    """A training that is checked and has its frames."""

    given: TrainingInput
    plan: RidgePlan
    packed: Packed
    needs: Needs
    fingerprint_of_sums: str

    @property
    def sizes(self) -> np.ndarray:
        return matrix_sizes(self.packed.counts, self.plan.scheme)

    @property
    def sums(self) -> Sums:
        return sums_in(self.given.folder, self.fingerprint_of_sums)


def drawn_in(folder: Path) -> Path:
    """The features of a training into `folder`."""
    return folder / "sums" / "features.safetensors"


def sums_in(folder: Path, fingerprint: str) -> Sums:
    """A folder of their own: jobs of another training that still run write elsewhere."""
    return Sums(folder / "sums" / fingerprint[:16], fingerprint)


def begin(given: TrainingInput, transitions: TransitionModel, plan: RidgePlan, device: str) -> Work | None:
    """Frames and settings; nothing where the model is there. Of what is refused nothing stays behind."""
    place = find_device(device)
    check_drawable(parse(plan.kernel), plan.num_features, plan.num_features, plan.sampling)
    try:
        packed = pack_frames(given, transitions, plan.settings(), {"seed": plan.seed}, place)
        if packed is None:
            clean(given.folder)
            return None
        _check_classes(packed, plan)
        needs = check_needs(_task(plan, packed), given.folder, place)
    except KernelamError:
        shutil.rmtree(given.folder / "frames", ignore_errors=True)
        raise
    features = {name: packed.told["settings"].get(name) for name in ("pipeline", "context", "scaling")}
    of_sums = fingerprint_of({**plan.of_sums(), **features, "data": packed.told["data"][0]})
    return Work(given, plan, packed, needs, of_sums)


def _check_classes(packed: Packed, plan: RidgePlan) -> None:
    counts = packed.counts
    paired = paired_classes(counts)
    if len(paired) < 2:
        raise KernelamError(f"{len(paired)} of {len(counts)} classes have {FEWEST} training frames; two must")
    if left := sorted(set(range(len(counts))) - set(paired.tolist())):
        warn(
            f"{len(left)} of {len(counts)} classes have fewer than {FEWEST} training frames ({_some(left)}) and cannot"
            " be set against others: each keeps its share of the training frames as its probability"
        )
    if len(unseen := np.setdiff1d(paired, packed.heldout.labels.cpu().numpy())) == len(paired):
        raise KernelamError(
            f"no heldout frame is of the {len(paired)} classes that have {FEWEST} training frames: there is nothing to"
            " fit their probabilities to"
        )
    if len(unseen):
        warn(
            f"{len(unseen)} of {len(paired)} classes have no heldout frames ({_some(unseen.tolist())}): the maps to"
            " probabilities of their problems have the median slope of the others, and the shares of training frames"
        )
    for ridge in plan.ridges:
        check_ridge(counts, plan.count(packed.inputs.dim), ridge, plan.scheme)


def _some(classes: list[int]) -> str:
    return " ".join(map(str, classes[:10])) + (" …" if len(classes) > 10 else "")


def features_of(work: Work) -> tuple[Kernel, FeatureMap]:
    """The features, drawn and fitted once; what is left of other sums is removed."""
    plan, path, place = work.plan, drawn_in(work.given.folder), work.packed.train.device
    known = checkpoint.read(path, work.fingerprint_of_sums)
    if known is None:
        shutil.rmtree(path.parent, ignore_errors=True)
        source = (
            plan.bandwidth,
            plan.num_features,
            plan.sampling,
            work.packed.train,
            work.packed.inputs,
            plan.seed,
            place,
        )
        try:
            kernel, features = build_features(plan.kernel, *source)
        except KernelamError:
            clean(work.given.folder)
            raise
        mean, scale = (torch.from_numpy(array) for array in (work.packed.inputs.mean, work.packed.inputs.scale))
        about = {
            "kernel": kernel.settings(),
            "context": work.packed.inputs.context,
            "frames": work.packed.told["data"][0],
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


def _task(plan: RidgePlan, packed: Packed) -> Task:
    stored = 4 * (len(packed.train) + len(packed.heldout)) * (len(packed.inputs.mean) + 1)
    sizes = (packed.counts, plan.count(packed.inputs.dim), packed.inputs.dim, len(packed.heldout), stored)
    return Task(*sizes, plan.scheme, plan.solver, len(plan.ridges))


def clean(folder: Path) -> None:
    """Remove what only an unfinished training needs."""
    for name in ("frames", "sums"):
        shutil.rmtree(folder / name, ignore_errors=True)
