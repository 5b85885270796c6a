"""From data directories and alignments to a kernel log-linear model with a basis of its own (kubo2012, section 4.2)."""

import shutil
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from kernelam.errors import KernelamError
from kernelam.files import alone_in
from kernelam.hmm.transitions import TransitionModel
from kernelam.kernels import Kernel
from kernelam.models.directory import save_model
from kernelam.models.posterior import find_device
from kernelam.models.pursuit import KernelExpansion
from kernelam.progress import say, warn
from kernelam.training import checkpoint
from kernelam.training.cost import peak_memory
from kernelam.training.exact import check_bandwidths, fit_kernel, unit_kernel
from kernelam.training.examination import examine
from kernelam.training.metrics import evaluate, recorded
from kernelam.training.packing import Packed, TrainingInput, check_alignments, pack_frames
from kernelam.training.pursuit import CHECKPOINT, TABLE, Pursuit, PursuitOptions, Some, pursue, try_penalties
from kernelam.training.subspace import check_differentiable

TRIED_ON = 100_000  # random frames that kernels and penalties are tried on
TRIED, WORK = 100, 5 * 10**9  # at least so many of them are the basis; more, if frames × classes × basis is not above
PRIORS = ("uniform", "counts")


@dataclass(frozen=True)
class ExpansionPlan:
    kernel: str  # an expression of kernelam.kernels.expression with a closed form
    pursuit: PursuitOptions
    bandwidths: tuple[float, ...] = (1.0,)  # to choose from
    penalties: tuple[float, ...] = (1.0,)  # to choose from
    priors: str = "uniform"  # what decoding divides by: as the paper has it, or shares of the training frames

    def __post_init__(self) -> None:
        check_bandwidths(self.bandwidths)

    def settings(self) -> dict[str, Any]:
        """All but the seed, in which runs may differ and be one experiment."""
        pursuit = asdict(self.pursuit)
        del pursuit["seed"]
        return {name: value for name, value in asdict(self).items() if name != "pursuit"} | pursuit


def train_expansion(given: TrainingInput, plan: ExpansionPlan, device: str) -> None:
    """Check, pack frames, choose, pursue, save; a directory whose model has the same inputs and settings is left as it
    is, and what an earlier call left undone is gone on with."""
    transitions, place = check_alignments(given, KernelExpansion.kind), find_device(device)
    kernel = unit_kernel(plan.kernel)
    if plan.pursuit.method != "nystrom":
        check_differentiable(kernel)
    with alone_in(given.folder):
        try:
            _train(given, transitions, plan, place)
        finally:
            shutil.rmtree(given.folder / "frames", ignore_errors=True)
            (given.folder / TABLE).unlink(missing_ok=True)


def _train(given: TrainingInput, transitions: TransitionModel, plan: ExpansionPlan, place: torch.device) -> None:
    clock = time.monotonic()
    (given.folder / TABLE).unlink(missing_ok=True)  # of a run that was killed, which would take the disk of the new one
    packed = pack_frames(given, transitions, plan.settings(), {"seed": plan.pursuit.seed}, place)
    if packed is None:
        return
    plan.pursuit.check(len(packed.train))  # before trials, which have smaller bases
    _check_disk(given, len(packed.train), plan.pursuit.basis)
    trials = _trials(given, packed, plan)
    best = trials[0]
    kernel = fit_kernel(plan.kernel, best["bandwidth"], packed.train, plan.pursuit.seed)
    options = replace(plan.pursuit, penalty=best["penalty"])
    found = pursue(packed.train, transitions.num_pdfs, kernel, options, given.folder, packed.fingerprint)
    model = _model(given, packed, plan, kernel, found)
    heldout, seen = evaluate(model, packed.heldout), examine(model, packed.heldout, packed.phones)
    say(f"heldout CE {heldout['ce']:.4f}, frame error {100 * heldout['frame_error']:.2f} %")
    about = {
        "fingerprint": packed.fingerprint,
        "training": {
            **packed.told,
            "frames": len(packed.train),
            "configurations": len(trials),
            "search_frames": min(TRIED_ON, len(packed.train)) if len(trials) > 1 else 0,
            "penalty": best["penalty"],
            "bandwidth": best["bandwidth"],
            "trials": trials,
            "rounds": found.rounds,
            "seconds": round(sum(row["seconds"] for row in found.rounds), 1),
            "seconds_of_this_process": round(time.monotonic() - clock, 1),
            "memory": peak_memory(place),
        },
        "heldout": recorded(heldout),
        **seen.record,
        "seed": plan.pursuit.seed,
    }
    save_model(given.folder, model, about, packed.states, [seen.save])
    checkpoint.remove(given.folder / CHECKPOINT)


def _check_disk(given: TrainingInput, frames: int, basis: int) -> None:
    needed, free = 4 * frames * basis, shutil.disk_usage(given.folder).free
    say(f"coordinates of {frames} frames for {basis} vectors take {needed / 2**30:.1f} GiB of disk")
    if needed > free:
        raise KernelamError(
            f"{basis} vectors take {needed / 2**30:.2f} GiB of disk in {given.folder}, and {free / 2**30:.2f} GiB are"
            " free; a smaller --basis takes less"
        )


def _model(
    given: TrainingInput, packed: Packed, plan: ExpansionPlan, kernel: Kernel, found: Pursuit
) -> KernelExpansion:
    counts = np.ones_like(packed.counts) if plan.priors == "uniform" else packed.counts
    common = (given.pipeline, packed.inputs, counts, packed.train.device)
    return KernelExpansion(kernel, plan.pursuit.method, found.subspace.y, found.beta, *common)


def _trials(given: TrainingInput, packed: Packed, plan: ExpansionPlan) -> list[dict[str, Any]]:
    """Each bandwidth with each penalty, judged by heldout cross-entropy where the basis is random frames: as many as
    there will be, if that is no more WORK, as few would have wider kernels. On part of the frames a penalty is as much
    less."""
    if len(plan.bandwidths) * len(plan.penalties) == 1:
        return [{"bandwidth": plan.bandwidths[0], "penalty": plan.penalties[0]}]
    some, trials = Some(packed.train, TRIED_ON, plan.pursuit.seed), []
    count = min(max(TRIED, WORK // (len(some) * len(packed.counts))), plan.pursuit.basis, len(some))
    options, share = replace(plan.pursuit, basis=count, method="nystrom"), len(some) / len(packed.train)
    for bandwidth in plan.bandwidths:
        kernel = fit_kernel(plan.kernel, bandwidth, packed.train, plan.pursuit.seed)
        penalties = {share * penalty: penalty for penalty in plan.penalties}
        for penalty, found in try_penalties(some, len(packed.counts), kernel, options, penalties):
            told = evaluate(_model(given, packed, plan, kernel, found), packed.heldout)
            trials.append({"bandwidth": bandwidth, "penalty": penalties[penalty], **told})
            say(f"bandwidth {bandwidth:g}, penalty {penalties[penalty]:g}: heldout CE {told['ce']:.4f}")
    trials.sort(key=lambda trial: float(trial["ce"]))
    for name, tried in (("bandwidth", plan.bandwidths), ("penalty", plan.penalties)):
        if len(tried) > 1 and trials[0][name] in (min(tried), max(tried)):
            warn(f"the best {name}, {trials[0][name]:g}, is at the edge of those tried")
    return trials
