"""From packed frames to a trained posterior model, the same way for every kind that descends along a gradient."""

import json
import math
import shutil
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch

from kernelam.errors import KernelamError
from kernelam.files import alone_in, replacing
from kernelam.frames.augmentation import Augmentation
from kernelam.frames.batches import Batches
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.transitions import TransitionModel
from kernelam.models.directory import save_model
from kernelam.models.posterior import GradientModel, Inputs, find_device, has_bfloat16
from kernelam.ranks import current, is_first, joined
from kernelam.training.checkpoint import Clock
from kernelam.training.cost import peak_memory, training_flops
from kernelam.training.examination import examine
from kernelam.training.metrics import evaluate, recorded
from kernelam.training.packing import TrainingInput, check_alignments, pack_frames
from kernelam.training.search import Variants, search
from kernelam.training.trainer import Diverged, TrainingOptions, fit

UNFINISHED = (
    *("checkpoint*.safetensors", "search.json", "selection*.safetensors", "pretraining*.safetensors", "seconds.json"),
    *("selection.new.json", "posteriors.*.table"),
)
SELECTED = "selection.new.json"  # what becomes selection.json when training ends


@dataclass(frozen=True)
class Setup:
    """What a plan builds a model from."""

    train: Batches
    heldout: Batches
    pipeline: Pipeline
    inputs: Inputs
    counts: np.ndarray  # training frames of each class
    device: torch.device
    options: TrainingOptions
    folder: Path
    fingerprint: str
    clock: Clock
    scaling: str = "each"  # of the inputs


class Plan(Protocol):
    """A kind of model and its settings."""

    kind: ClassVar[str]

    def check(self, options: TrainingOptions, num_classes: int) -> None:
        """Refuse what cannot be, before any work."""

    @property
    def variants(self) -> Variants:
        """The option of which there are several values to choose from, and these."""

    def settings(self) -> dict[str, Any]:
        """Everything that decides the result."""

    def build(self, setup: Setup, variant: float) -> GradientModel:
        """The model before training."""

    def prepare(self, setup: Setup) -> list[dict[str, Any]]:
        """What comes before the search; the trials of a search of its own."""

    def refine(self, setup: Setup, model: GradientModel, rate: float) -> GradientModel:
        """What is done to the model, initialised, once all is chosen that there is to choose: where training starts."""


def train_model(given: TrainingInput, plan: Plan, options: TrainingOptions, device: str, frame_shards: int = 1) -> None:
    """Check, pack frames, train, save; a directory whose model has the same inputs and settings is left as it is.

    Processes of torchrun share the work: `frame_shards` of them the frames of each batch, the others the features.
    """
    transitions = check_alignments(given, plan.kind)
    with joined(device, frame_shards) as device:
        place = find_device(device)
        set_precision(options.precision, place)
        plan.check(options, transitions.num_pdfs)
        with alone_in(given.folder) if is_first() else nullcontext():
            try:
                _train(given, transitions, plan, options, place)
            except Diverged:
                if is_first():
                    _clean(given.folder)
                raise
            finally:
                if is_first():
                    shutil.rmtree(given.folder / "frames", ignore_errors=True)


def _train(
    given: TrainingInput, transitions: TransitionModel, plan: Plan, options: TrainingOptions, place: torch.device
) -> None:
    packed = pack_frames(given, transitions, plan.settings(), asdict(options), place)
    if packed is None:
        if is_first():
            _clean(given.folder)
        return
    train, heldout, told = packed.train, packed.heldout, packed.told
    if options.augment:
        Augmentation.parse(options.augment).check(packed.inputs.dim, given.context, given.scaling)
    run = (given.folder, packed.fingerprint, Clock(given.folder, packed.fingerprint))
    common = (given.pipeline, packed.inputs, packed.counts, place, options)
    setup = Setup(train, heldout, *common, *run, given.scaling)
    model, epochs = _fit(setup, plan)
    seen, model = examine(model, heldout, packed.phones), model.whole()
    current().wait()  # the first one removes the frames
    if not is_first():
        return
    about = {
        "fingerprint": packed.fingerprint,
        "training": {
            **told,
            "frames": len(train),
            "configurations": len(epochs[0]["search"]) + len(epochs[0]["prepared"]),
            "search_frames": epochs[0]["search"][0]["frames"],
            "epochs": len(epochs) - 1,
            "seconds": round(sum(row["seconds"] for row in epochs), 1),
            "flops": training_flops(model, told["settings"], epochs, len(train)),
            "memory": peak_memory(place),
        },
        "heldout": recorded(_last_kept(epochs)),
        **seen.record,
        "seed": options.seed,
    }
    stories = partial(_write_stories, given.folder, epochs)
    save_model(given.folder, model, about, packed.states, [seen.save, stories])
    _clean(given.folder)


def set_precision(precision: str, device: torch.device) -> None:
    """Let a GPU multiply matrices in TF32; or it, and a CPU with instructions for that, (mixed) in bfloat16 with sums
    and weights in single precision."""
    if device.type == "cpu" and precision == "tf32":
        raise KernelamError("--precision tf32 is for GPUs")
    if device.type == "cpu" and precision == "mixed" and not has_bfloat16():
        raise KernelamError("--precision mixed would be slower than single on this CPU, which cannot multiply bfloat16")
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")


def _fit(setup: Setup, plan: Plan) -> tuple[GradientModel, list[dict[str, Any]]]:
    place = (setup.folder, setup.fingerprint)
    prepared = plan.prepare(setup)

    def build(variant: float) -> GradientModel:
        model = plan.build(setup, variant)
        model.mixed = setup.options.precision == "mixed"
        return model

    found = search(build, plan.variants, setup.train, setup.heldout, setup.options, *place, setup.clock)
    best = found.trials[0]
    options = setup.options.chosen(best["l2"], best["momentum"])
    setup = replace(setup, options=options)
    model = build(best[plan.variants.name])
    model.initialise(options.seed)
    if is_first():
        (setup.folder / SELECTED).unlink(missing_ok=True)  # of a training that was killed
    model = plan.refine(setup, model, best["rate"])
    seconds = setup.clock.seconds
    untrained = evaluate(model, setup.heldout, options.metric)  # not the search's: a bottleneck starts at random
    if not math.isfinite(untrained[options.metric]):
        raise Diverged(
            f"the heldout {options.metric} is not finite where training starts, pre-training has diverged:"
            f" try lower {options.gentler}"
        )
    first = {"epoch": 0, "search": found.trials, "prepared": prepared, **untrained, "seconds": seconds}
    epochs = fit(model, setup.train, setup.heldout, options, best["rate"], first, *place)
    if not any(row["kept"] for row in epochs[1:]):
        raise Diverged(
            f"every epoch ended with a heldout {options.metric} above that of the untrained model:"
            f" try lower {options.gentler}"
        )
    return model, epochs


def _write_stories(folder: Path, epochs: list[dict[str, Any]], out: Path) -> None:
    """To `out`, of a training in `folder`: epochs.jsonl, and selection.json where features were selected."""
    with replacing(out / "epochs.jsonl", "w") as stream:
        stream.writelines(json.dumps(row, allow_nan=False) + "\n" for row in epochs)
    if (folder / SELECTED).exists():
        shutil.copyfile(folder / SELECTED, out / "selection.json")


def _clean(folder: Path) -> None:
    """Remove what only an unfinished training needs, and what one that was killed has left."""
    for name in UNFINISHED:
        for path in folder.glob(name):
            path.unlink()


def _last_kept(epochs: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in reversed(epochs) if row.get("kept", True))
