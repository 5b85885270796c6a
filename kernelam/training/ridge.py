"""From data directories and alignments to a ridge model: sums over frames, systems, calibration (chen2016).

Everything that takes long is kept in DIR/sums until the model is there: the features, the sums of each unit of frames,
the answers of each block of pairs. The sums can be made by other processes, which only need that folder and the frames.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import alone_in
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.hmm.transitions import TransitionModel
from kernelam.kernels import FeatureMap, Kernel, kernel_from
from kernelam.models.arrays import read_arrays
from kernelam.models.directory import STATES, is_whole, remove_model, save_model
from kernelam.models.posterior import Inputs, find_device
from kernelam.models.ridge import SCHEMES, Ridge
from kernelam.progress import progress, say, warn
from kernelam.training import checkpoint
from kernelam.training.acoustic import (
    HELDOUT,
    TrainingInput,
    check_alignments,
    count_classes,
    pack_sets,
    state_files,
)
from kernelam.training.calibration import Scores, Source, calibrate
from kernelam.training.cost import peak_memory
from kernelam.training.examination import class_phones, examine
from kernelam.training.features import build_features
from kernelam.training.gram import Grams, accumulate, assemble, assign, units
from kernelam.training.metrics import evaluate
from kernelam.training.ridge_needs import Needs, Task, check_needs
from kernelam.training.ridge_solvers import FEWEST, Solver, check_ridge, paired_classes, solve_pairs, solve_rest

SCORES = 1 << 30
"""Bytes of heldout scores that are kept; where there are more, each step of the calibration computes them again."""


@dataclass(frozen=True)
class RidgePlan:
    kernel: str  # an expression of kernelam.kernels.expression
    bandwidth: float  # a factor on the median
    num_features: int
    sampling: str = "paired"
    ridges: tuple[float, ...] = (1.0,)  # λ, to choose from
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
        return {name: getattr(self, name) for name in ("kernel", "bandwidth", "num_features", "sampling", "seed")}


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
    told: dict[str, Any]
    fingerprint: str
    fingerprint_of_sums: str

    @property
    def folder(self) -> Path:
        return self.given.folder / "sums"


def prepare_ridge(given: TrainingInput, plan: RidgePlan, device: str) -> None:
    """All that comes before the sums, so that several processes can share these (see `sum_share`)."""
    transitions = check_alignments(given)
    with alone_in(given.folder):
        if work := _begin(given, transitions, plan, device):
            _features(work)


def sum_share(folder: Path, job: int, jobs: int, device: str) -> None:
    """The sums of share `job` of `jobs`, of a training into `folder` that is prepared."""
    if not 1 <= job <= jobs:
        raise KernelamError(f"there is no job {job} of {jobs}")
    if not (folder / "sums" / "features.safetensors").exists():
        if (folder / "model.json").exists():
            say(f"{folder} holds its model already")
            return
        raise KernelamError(f"{folder}/sums/features.safetensors is not there: no training into {folder} is prepared")
    place = find_device(device)
    arrays, about = read_arrays(folder / "sums" / "features.safetensors")
    inputs, _, features = _restore(arrays, about, place)
    store = FrameStore(folder / "frames" / "train")
    train = Batches(store, inputs.context, inputs.mean, inputs.scale, place)
    share = assign(units(np.array(about["counts"])), jobs)[job - 1]
    accumulate(share, train, features, folder / "sums")


def train_ridge(given: TrainingInput, plan: RidgePlan, device: str) -> None:
    """Check, pack frames, sum, solve, calibrate, save; a directory whose model has the same inputs and settings is left
    as it is, and what an earlier call left undone is gone on with."""
    transitions = check_alignments(given)
    with alone_in(given.folder):
        if work := _begin(given, transitions, plan, device):
            _finish(work)


def _begin(given: TrainingInput, transitions: TransitionModel, plan: RidgePlan, device: str) -> Work | None:
    """Frames and settings; nothing where the model is there."""
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
        _clean(given.folder)
        return None
    counts = count_classes(stores[0], transitions.num_pdfs)
    _check_classes(counts, plan)
    train, heldout = (Batches(store, inputs.context, inputs.mean, inputs.scale, place) for store in stores)
    say(f"{len(train)} training frames, {len(heldout)} heldout frames, {transitions.num_pdfs} classes, on {place}")
    of_sums = _digest({**plan.of_sums(), **features, "data": stores[0].digest})
    return Work(given, plan, transitions, train, heldout, inputs, counts, told, fingerprint, of_sums)


def _digest(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _check_classes(counts: np.ndarray, plan: RidgePlan) -> None:
    paired = paired_classes(counts)
    if len(paired) < 2:
        raise KernelamError(f"{len(paired)} classes have {FEWEST} training frames or more, and at least two must")
    if left := sorted(set(range(len(counts))) - set(paired.tolist())):
        names = " ".join(map(str, left[:10])) + (" …" if len(left) > 10 else "")
        warn(
            f"{len(left)} of {len(counts)} classes have fewer than {FEWEST} training frames ({names}) and cannot be set"
            " against others: each keeps its share of the training frames, half a frame at least, as its probability"
        )
    for ridge in plan.ridges:
        check_ridge(counts, plan.num_features, ridge, plan.scheme)


def _features(work: Work) -> tuple[Kernel, FeatureMap, Needs]:
    """The features, drawn and fitted once; what is left of other sums is removed, and what these will take is said."""
    plan, path, place = work.plan, work.folder / "features.safetensors", work.train.device
    needs = check_needs(_task(work), work.given.folder, place)
    known = checkpoint.read(path, work.fingerprint_of_sums)
    if known is None:
        shutil.rmtree(work.folder, ignore_errors=True)
        source = (plan.bandwidth, plan.num_features, plan.sampling, work.train, work.inputs, plan.seed, place)
        kernel, features = build_features(plan.kernel, *source)
        mean, scale = (torch.from_numpy(array) for array in (work.inputs.mean, work.inputs.scale))
        about = {
            "kernel": kernel.settings(),
            "context": work.inputs.context,
            "counts": work.counts.astype(int).tolist(),
        }
        arrays = {**features.arrays, "input.mean": mean, "input.scale": scale}
        checkpoint.write(path, arrays, about, work.fingerprint_of_sums)
        known = read_arrays(path)
    _, kernel, features = _restore(*known, place)
    return kernel, features, needs


def _restore(
    arrays: dict[str, Tensor], about: dict[str, Any], device: torch.device
) -> tuple[Inputs, Kernel, FeatureMap]:
    kernel = kernel_from(about["kernel"])
    mean, scale = (arrays.pop(f"input.{name}").numpy() for name in ("mean", "scale"))
    return Inputs(tuple(about["context"]), mean, scale), kernel, kernel.map_of(arrays).to(device)


def _task(work: Work) -> Task:
    plan, frames = work.plan, len(work.train) + len(work.heldout)
    stores = 4 * frames * (len(work.inputs.mean) + 1)
    sizes = (work.counts, plan.num_features, work.inputs.dim, len(work.heldout), stores)
    return Task(*sizes, plan.scheme, plan.solver, len(plan.ridges))


def _finish(work: Work) -> None:
    clock, given, plan = time.monotonic(), work.given, work.plan
    kernel, features, needs = _features(work)
    every = units(work.counts)
    accumulate(every, work.train, features, work.folder)
    grams = assemble(every, features.count, work.counts, work.folder, work.train.device)
    say(
        f"sums over frames in {grams.seconds:.0f} s of all jobs; the largest error of a sampled entry {grams.error:.1e}"
    )
    trials, model = _choose(work, grams, kernel, features)
    best = trials[0]
    disk = sum(path.stat().st_size for path in given.folder.rglob("*") if path.is_file())
    states = state_files(given)
    seen = examine(model, work.heldout, class_phones(work.transitions, states[STATES.index("phones.txt")]))
    phases = {"sums": round(grams.seconds, 1), **best["seconds"]}
    about = {
        "fingerprint": work.fingerprint,
        "training": {
            **work.told,
            "frames": len(work.train),
            "seconds": round(sum(phases.values()), 1),
            "seconds_of_phases": {**phases, "this process": round(time.monotonic() - clock, 1)},
            "sums_error": grams.error,
            "ridge": best["ridge"],
            "iterations": best["iterations"],
            "trials": trials,
            "flops": _flops(work, features, best["iterations"]["sum"]),
            "memory": peak_memory(work.train.device),
            "disk": disk,
            "estimate": asdict(needs),
        },
        "heldout": {name: best["heldout"][name] for name in (*HELDOUT, "vote_error")},
        **seen.record,
        "seed": plan.seed,
    }
    remove_model(given.folder)
    seen.save(given.folder)
    lda = [given.pipeline.lda] if given.pipeline.lda else []
    save_model(given.folder, model, about, [*states, *lda])
    _clean(given.folder)


def _clean(folder: Path) -> None:
    """Remove what only an unfinished training needs."""
    for name in ("frames", "sums"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _choose(work: Work, grams: Grams, kernel: Kernel, features: FeatureMap) -> tuple[list[dict[str, Any]], Ridge]:
    """What came of each λ, the one with the lowest heldout frame error first, and its model."""
    ridges, found = work.plan.ridges, []
    for ridge in ridges:
        model, trial = _try(work, grams, kernel, features, ridge)
        found.append(trial)
    trials = sorted(found, key=lambda trial: float(trial["heldout"]["frame_error"]))
    best = trials[0]["ridge"]
    if best != ridges[-1]:
        model, _ = _try(work, grams, kernel, features, best)  # whose systems are solved already
    if len(ridges) > 1 and best in (min(ridges), max(ridges)):
        side = "lower" if best == min(ridges) else "higher"
        say(f"the best ridge, {best:g}, is at the edge of those tried: {side} --ridge may do better")
    return trials, model


def _try(work: Work, grams: Grams, kernel: Kernel, features: FeatureMap, ridge: float) -> tuple[Ridge, dict[str, Any]]:
    """The model of one λ, and how well it does on heldout frames."""
    plan, given = work.plan, work.given
    if plan.scheme == "one-vs-one":
        solved = solve_pairs(grams, ridge, plan.solver, work.folder / f"ridge.{ridge!r}", work.fingerprint_of_sums)
    else:
        solved = solve_rest(grams, ridge)
    classes = torch.from_numpy(paired_classes(work.counts))
    common = (given.pipeline, work.inputs, work.counts, work.train.device)
    model = Ridge(kernel, features, plan.scheme, classes, solved.beta, *common)
    start = time.monotonic()
    model.calibrate(calibrate(heldout_scores(model, work.heldout), len(solved.beta), model.device))
    calibrated = time.monotonic()
    heldout = {**evaluate(model, work.heldout), "vote_error": vote_error(model, work.heldout)}
    ended = time.monotonic()
    steps = solved.iterations
    iterations = {"median": float(steps.double().median()), "max": int(steps.max()), "sum": int(steps.sum())}
    say(
        f"ridge {ridge:g}: {len(steps)} systems in {solved.seconds:.1f} s, iterations {iterations['median']:g} (median)"
        f" and {iterations['max']} (most); heldout CE {heldout['ce']:.4f}, frame error"
        f" {100 * heldout['frame_error']:.2f} % by probabilities, {100 * heldout['vote_error']:.2f} % by votes"
    )
    seconds = {"systems": solved.seconds, "calibration": calibrated - start, "heldout": ended - calibrated}
    rounded = {name: round(value, 1) for name, value in seconds.items()}
    return model, {"ridge": ridge, "iterations": iterations, "seconds": rounded, "heldout": heldout}


def heldout_scores(model: Ridge, heldout: Batches) -> Source:
    """f of heldout frames: of a class, in the pairs that it is in; or of all frames, against the rest."""
    parts = _of_pairs if model.scheme == "one-vs-one" else _of_classes
    size = 4 * len(heldout) * max(1, len(model.classes) - 1)
    if size > SCORES:
        return lambda: parts(model, heldout)
    known = list(progress(parts(model, heldout), "heldout scores"))
    return lambda: iter(known)


def _of_pairs(model: Ridge, heldout: Batches) -> Iterator[Scores]:
    labels, pairs = heldout.labels.cpu(), model.pairs
    for place, label in enumerate(model.classes.tolist()):
        problems = (pairs == place).any(dim=1).nonzero()[:, 0]
        first = pairs[problems, 0] == place
        for frames in torch.split((labels == label).nonzero()[:, 0], model.chunk):
            if len(frames):
                yield Scores(model.outputs(heldout.take(frames)[0], problems), problems, first)


def _of_classes(model: Ridge, heldout: Batches) -> Iterator[Scores]:
    problems = torch.arange(len(model.classes), device=model.device)
    for x, labels in heldout.in_order(model.chunk):
        yield Scores(model.outputs(x), problems, labels[:, None] == model.classes)


@torch.no_grad()
def vote_error(model: Ridge, heldout: Batches) -> float:
    """The share of frames whose class has not the most votes."""
    wrong = 0
    for x, labels in heldout.in_order(model.chunk):
        wrong += int((model.votes(x).argmax(dim=1) != labels).sum())
    return wrong / len(heldout)


def _flops(work: Work, features: FeatureMap, iterations: int) -> int:
    """Of the sums, half a product of Zᵀ and Z and the projections; of the systems of the chosen λ, two symmetric
    matrices an iteration, or D³/3 a factor."""
    D = features.count
    projections = sum(
        array.numel() for array in features.arrays.values() if array.ndim == 2 and array.is_floating_point()
    )
    sums = len(work.train) * (2 * projections + D * (D + 1))
    if iterations:
        return sums + 4 * D * D * iterations
    classes = len(paired_classes(work.counts))
    factors = classes * (classes - 1) // 2 if work.plan.scheme == "one-vs-one" else 1
    return sums + factors * D**3 // 3
