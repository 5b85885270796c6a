"""From data directories and alignments to a ridge model: sums over frames, systems, calibration (chen2016).

Everything that takes long is kept in DIR/sums until the model is there: the features, the sums of each unit of frames,
the answers of each block of pairs. The sums can be made by other processes, which only need that folder and the frames.
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import alone_in
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.kernels import FeatureMap, Kernel
from kernelam.memory import keep_no_gaps
from kernelam.models.directory import save_model
from kernelam.models.posterior import find_device
from kernelam.models.ridge import Ridge
from kernelam.progress import say, warn
from kernelam.training import checkpoint
from kernelam.training.cost import peak_memory
from kernelam.training.examination import examine
from kernelam.training.gram import Grams, accumulate, assemble, assign, units
from kernelam.training.metrics import evaluate, recorded
from kernelam.training.packing import TrainingInput, check_alignments
from kernelam.training.ridge_needs import on_disk
from kernelam.training.ridge_plan import RidgePlan, Work, begin, clean, drawn_in, features_of, restore, sums_in
from kernelam.training.ridge_scores import calibrate_model, vote_error
from kernelam.training.ridge_solvers import paired_classes, solve_pairs, solve_rest


def prepare_ridge(given: TrainingInput, plan: RidgePlan, device: str) -> None:
    """All that comes before the sums, so that several processes can share these (see `sum_share`)."""
    transitions = check_alignments(given, Ridge.kind)
    with alone_in(given.folder):
        if work := begin(given, transitions, plan, device):
            features_of(work)


def sum_share(folder: Path, job: int, jobs: int, device: str) -> None:
    """The sums of share `job` of `jobs`, of a training into `folder` that is prepared."""
    if not 1 <= job <= jobs:
        raise KernelamError(f"there is no job {job} of {jobs}")
    drawn = drawn_in(folder)
    if not drawn.exists():
        if (folder / "model.json").exists():
            say(f"{folder} holds its model already")
            return
        raise KernelamError(f"{drawn} is not there: no training into {folder} is prepared")
    place = find_device(device)
    arrays, about = checkpoint.verified(drawn)
    inputs, _, features = restore(arrays, about, place)
    store = FrameStore(folder / "frames" / "train")
    if store.digest != about["frames"]:
        raise KernelamError(
            f"{folder} has frames of a training that was begun after this one: run that one, or this one again"
        )
    store.verify()
    train = Batches(store, inputs.context, inputs.mean, inputs.scale, place)
    share = assign(units(np.array(about["sizes"])), jobs)[job - 1]
    accumulate(share, train, features, sums_in(folder, about["fingerprint"]))


def train_ridge(given: TrainingInput, plan: RidgePlan, device: str) -> None:
    """Check, pack frames, sum, solve, calibrate, save; a directory whose model has the same inputs and settings is left
    as it is, and what an earlier call left undone is gone on with."""
    keep_no_gaps()
    transitions = check_alignments(given, Ridge.kind)
    with alone_in(given.folder):
        if work := begin(given, transitions, plan, device):
            _finish(work)


def _finish(work: Work) -> None:
    clock, given, plan = time.monotonic(), work.given, work.plan
    kernel, features = features_of(work)
    every = units(work.sizes)
    accumulate(every, work.packed.train, features, work.sums)
    grams = assemble(every, features.count, work.packed.counts, work.sums, work.packed.train.device)
    say(
        f"sums over frames in {grams.seconds:.0f} s of all jobs; the largest error of a sampled entry {grams.error:.1e}"
    )
    trials, model = _choose(work, grams, kernel, features)
    best = trials[0]
    votes = vote_error(model, work.packed.heldout)
    say(f"ridge {best['ridge']:g} is the best; its votes are wrong in {100 * votes:.2f} % of heldout frames")
    seen = examine(model, work.packed.heldout, work.packed.phones)
    phases = {"sums": round(grams.seconds, 1), **best["seconds"]}
    about = {
        "fingerprint": work.packed.fingerprint,
        "training": {
            **work.packed.told,
            "frames": len(work.packed.train),
            "seconds": round(sum(phases.values()), 1),
            "seconds_of_phases": {**phases, "this process": round(time.monotonic() - clock, 1)},
            "sums_error": grams.error,
            "ridge": best["ridge"],
            "iterations": best["iterations"],
            "trials": trials,
            "flops": _flops(work, features, best["iterations"]["sum"]),
            "memory": peak_memory(work.packed.train.device),
            "disk": on_disk(given.folder),
            "estimate": asdict(work.needs),
        },
        "heldout": {**recorded(best["heldout"]), "vote_error": votes},
        **seen.record,
        "seed": plan.seed,
    }
    save_model(given.folder, model, about, work.packed.states, [seen.save])
    clean(given.folder)


def _choose(work: Work, grams: Grams, kernel: Kernel, features: FeatureMap) -> tuple[list[dict[str, Any]], Ridge]:
    """What came of each λ, the one with the lowest heldout frame error first, and its model."""
    ridges, error = work.plan.ridges, lambda trial: float(trial["heldout"]["frame_error"])
    model, trial = _try(work, grams, kernel, features, ridges[0])
    trials = [trial]
    for ridge in ridges[1:]:
        other, trial = _try(work, grams, kernel, features, ridge)
        if error(trial) < min(map(error, trials)):
            model = other
        del other  # before the next has its systems
        trials.append(trial)
    trials.sort(key=error)
    best = trials[0]["ridge"]
    if len(ridges) > 1 and best in (min(ridges), max(ridges)):
        side = "lower" if best == min(ridges) else "higher"
        warn(f"the best ridge, {best:g}, is at the edge of those tried: {side} --ridge may do better")
    return trials, model


def _try(work: Work, grams: Grams, kernel: Kernel, features: FeatureMap, ridge: float) -> tuple[Ridge, dict[str, Any]]:
    """The model of one λ, and how well it does on heldout frames."""
    plan, given = work.plan, work.given
    if plan.scheme == "one-vs-one":
        sums = work.sums
        solved = solve_pairs(grams, ridge, plan.solver, sums.folder / f"ridge.{ridge!r}", sums.fingerprint)
    else:
        solved = solve_rest(grams, ridge)
    classes = torch.from_numpy(paired_classes(work.packed.counts))
    common = (given.pipeline, work.packed.inputs, work.packed.counts, work.packed.train.device)
    model = Ridge(kernel, features, plan.scheme, classes, solved.beta, *common)
    start = time.monotonic()
    temperature = calibrate_model(model, work.packed.heldout)
    calibrated = time.monotonic()
    heldout = evaluate(model, work.packed.heldout)
    ended = time.monotonic()
    steps = solved.iterations[:, -1]
    iterations = {**_figures(steps), "median": float(steps.double().median()), "sum": int(steps.sum())}
    if iterations["sum"]:
        levels = zip(plan.solver.levels, solved.iterations.T, strict=True)
        iterations["to"] = {f"{level:g}": _figures(column) for level, column in levels}
    took = f", iterations {iterations['median']:g} (median) and {iterations['max']} (most)" if iterations["sum"] else ""
    say(
        f"ridge {ridge:g}: {len(steps)} systems in {solved.seconds:.1f} s{took}; heldout CE {heldout['ce']:.4f},"
        f" frame error {100 * heldout['frame_error']:.2f} %"
    )
    seconds = {"systems": solved.seconds, "calibration": calibrated - start, "heldout": ended - calibrated}
    rounded = {name: round(value, 1) for name, value in seconds.items()}
    iterated = {"iterations": iterations, "residual": solved.residual}
    trial = {"ridge": ridge, **iterated, "temperature": temperature, "seconds": rounded}
    return model, {**trial, "heldout": heldout}


def _figures(steps: Tensor) -> dict[str, Any]:
    return {"mean": round(float(steps.double().mean()), 2), "max": int(steps.max())}


def _flops(work: Work, features: FeatureMap, iterations: int) -> int:
    """Of the sums, half a product of Zᵀ and Z and the projections; of the systems of the chosen λ, two symmetric
    matrices an iteration, or D³/3 a factor."""
    D = features.count
    projections = sum(
        array.numel() for array in features.arrays.values() if array.ndim == 2 and array.is_floating_point()
    )
    sums = len(work.packed.train) * (2 * projections + D * (D + 1))
    if iterations:
        return sums + 4 * D * D * iterations
    classes = len(paired_classes(work.packed.counts))
    factors = classes * (classes - 1) // 2 if work.plan.scheme == "one-vs-one" else 1
    return sums + factors * D**3 // 3
