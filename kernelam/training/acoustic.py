"""From data directories and alignments to a trained posterior model, the same way for every kind of model."""

import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch

from kernelam.errors import KernelamError
from kernelam.files import alone_in, remove_partial, replacing
from kernelam.frames.augmentation import Augmentation
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.lang import check_phones
from kernelam.hmm.transitions import TransitionModel, check_tree
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import aligned, read_alignment_dir
from kernelam.kaldi.tables import read_symbols
from kernelam.models import is_posterior
from kernelam.models.base import PRIOR_FLOOR
from kernelam.models.description import describe
from kernelam.models.directory import STATES, is_whole, save_model
from kernelam.models.posterior import GradientModel, Inputs, find_device, has_bfloat16
from kernelam.progress import progress, say, warn
from kernelam.ranks import current, is_first, joined
from kernelam.training.checkpoint import Clock
from kernelam.training.cost import peak_memory, training_flops
from kernelam.training.examination import class_phones, examine
from kernelam.training.metrics import evaluate
from kernelam.training.search import Variants, search
from kernelam.training.trainer import Diverged, TrainingOptions, fit

UNFINISHED = (
    *("checkpoint*.safetensors", "search.json", "selection*.safetensors", "pretraining*.safetensors", "seconds.json"),
    *("selection.new.json", "posteriors.*.table"),
)
SCALINGS = ("each", "shared")
COUNTED = 1 << 20  # labels at once: to be counted they become numbers of twice the size
SELECTED = "selection.new.json"  # what becomes selection.json when training ends
HELDOUT = ("ce", "perplexity", "entropy", "erll", "accuracy", "frame_error")


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


@dataclass(frozen=True)
class TrainingInput:
    """Kaldi's six positionals of a training script with a heldout set, and the features it asks for."""

    data: Path
    heldout_data: Path
    lang: Path
    ali: Path
    heldout_ali: Path
    folder: Path
    pipeline: Pipeline
    context: tuple[int, int]
    scaling: str = "each"  # of SCALINGS


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
    setup = Setup(train, heldout, given.pipeline, packed.inputs, packed.counts, place, options, *run)
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
        "heldout": {name: value for name, value in _last_kept(epochs).items() if name in HELDOUT},
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


def check_alignments(given: TrainingInput, kind: str) -> TransitionModel:
    """Everything that can disagree, before any work; `kind` is that of the model to come."""
    for what, place in (("an alignment", given.ali), ("an alignment", given.heldout_ali), ("a lang", given.lang)):
        if given.folder.resolve() == place.resolve():
            raise KernelamError(f"{given.folder} is {what} directory; train into another one")
    if (given.folder / "final.mdl").exists() and not is_posterior(given.folder):
        raise KernelamError(f"{given.folder}/final.mdl is a GMM, which would be lost; name another directory")
    if (given.folder / "model.json").exists() and (old := describe(given.folder).get("kind")) != kind:
        raise KernelamError(f"{given.folder} has a model of kind {old}, which would be lost; name another directory")
    if (given.folder / "utt2spk").exists():
        raise KernelamError(f"{given.folder} is a data directory; train into another one")
    transitions, heldout = (TransitionModel.load(ali / "final.mdl") for ali in (given.ali, given.heldout_ali))
    if transitions.tuples != heldout.tuples:
        raise KernelamError(
            f"{given.ali}/final.mdl and {given.heldout_ali}/final.mdl number the states differently:"
            " both alignments must come from one model"
        )
    check_tree(ContextTree.load(given.ali / "tree"), transitions, f"{given.ali}: ")
    check_phones(given.lang / "phones.txt", given.ali / "phones.txt")
    if unknown := set(transitions.topology.phones) - set(read_symbols(given.lang / "phones.txt").values()):
        raise KernelamError(
            f"phone {min(unknown)} of {given.ali}/final.mdl is not in {given.lang}/phones.txt:"
            " the alignments are of another lang directory"
        )
    return transitions


def state_files(given: TrainingInput) -> list[Path]:
    """The files that say what the classes are. Alignments of older recipes of Kaldi have no phones.txt: the lang
    directory's is kept then."""
    folders = {"phones.txt": given.ali if (given.ali / "phones.txt").exists() else given.lang}
    return [folders.get(name, given.ali) / name for name in STATES]


@dataclass(frozen=True)
class Packed:
    """The frames of a training, and all that decides what comes of it."""

    train: Batches
    heldout: Batches
    inputs: Inputs
    counts: np.ndarray  # training frames of each class
    told: dict[str, Any]
    fingerprint: str
    states: list[Path]  # files that the model directory keeps
    phones: list[str]  # of the classes


def pack_frames(
    given: TrainingInput,
    transitions: TransitionModel,
    settings: dict[str, Any],
    options: dict[str, Any],
    place: torch.device,
) -> Packed | None:
    """Frame stores in DIR/frames; nothing where DIR holds the model of these data, settings and options."""
    if is_first():
        remove_partial(given.folder)
    stores, inputs = pack_sets(given, transitions)
    settings = {**settings, "pipeline": given.pipeline.settings(), "context": given.context}
    if given.scaling != "each":  # which models knew nothing else than before there was another
        settings["scaling"] = given.scaling
    told = {"settings": settings, "options": options, "data": [store.digest for store in stores]}
    fingerprint = fingerprint_of(told)
    states = [*state_files(given), *([given.pipeline.lda] if given.pipeline.lda else [])]
    whole = is_whole(given.folder, fingerprint, states)
    current().check(f"{fingerprint} {whole}", given.folder)
    if whole:
        say(f"{given.folder} holds the model of these data and settings already")
        return None
    train, heldout = (Batches(store, inputs.context, inputs.mean, inputs.scale, place) for store in stores)
    counts = count_classes(stores[0], transitions.num_pdfs)
    say(f"{len(train)} training frames, {len(heldout)} heldout frames, {transitions.num_pdfs} classes, on {place}")
    phones = class_phones(transitions, states[STATES.index("phones.txt")])
    return Packed(train, heldout, inputs, counts, told, fingerprint, states, phones)


def fingerprint_of(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def pack_sets(given: TrainingInput, transitions: TransitionModel) -> tuple[list[FrameStore], Inputs]:
    """The frame stores of the training and the heldout set, in DIR/frames, and how models take them."""
    sets = {"train": (given.data, given.ali), "heldout": (given.heldout_data, given.heldout_ali)}
    train, heldout = (
        pack(data, ali, transitions, given.pipeline, given.folder / "frames" / name)
        for name, (data, ali) in sets.items()
    )
    if train.dim != heldout.dim:
        raise KernelamError(f"{given.data} has {train.dim} features a frame, {given.heldout_data} has {heldout.dim}")
    _warn_of_both(given, train, heldout)
    inputs = fit_inputs(train, given.context, given.scaling)
    if len(beyond := inputs.beyond):
        worst = beyond[0]
        raise KernelamError(
            f"feature {worst} of {given.data} has a mean of {inputs.mean[worst]:g} and a deviation of"
            f" {1.0 / float(inputs.scale[worst]):g} in training, beyond all bounds: make these features again"
        )
    return [train, heldout], inputs


def _warn_of_both(given: TrainingInput, train: FrameStore, heldout: FrameStore) -> None:
    """Of heldout data that are training data too, whatever directory they are in."""
    if given.data.resolve() == given.heldout_data.resolve():
        warn(f"{given.heldout_data} is the training data and the heldout data: what it chooses may only fit best")
    elif both := [utt for utt in heldout.utts if utt in train and np.array_equal(train[utt], heldout[utt])]:
        warn(
            f"{len(both)} of {len(heldout.utts)} utterances of {given.heldout_data} are training data too, {both[0]}"
            " first: what they choose may only fit best"
        )


def pack(data: Path, ali: Path, transitions: TransitionModel, pipeline: Pipeline, folder: Path) -> FrameStore:
    """The frame store of the utterances of `data` that are aligned in `ali`; the others are counted and named. Of
    processes that train together the first one builds it, and has the alignments in memory meanwhile."""
    if is_first():
        _build_store(data, ali, transitions, pipeline, folder)
    current().wait()
    return FrameStore(folder)


def _build_store(data: Path, ali: Path, transitions: TransitionModel, pipeline: Pipeline, folder: Path) -> None:
    features, alignments = pipeline.open(data, ali if pipeline.fmllr else None), read_alignment_dir(ali)
    for utt, alignment in alignments.items():
        transitions.check_ids(alignment, f"{ali}, utterance {utt}")
    utts = aligned(features, alignments, data, ali)
    labels = {utt: transitions.ali_to_pdf(alignments.pop(utt)) for utt in utts}

    def frames() -> Iterator[tuple[str, np.ndarray]]:
        for utt in progress(utts, f"packing {data}"):
            matrix = features[utt]
            if len(matrix) != len(labels[utt]):
                raise KernelamError(
                    f"utterance {utt} has {len(matrix)} frames of features in {data} but an alignment of"
                    f" {len(labels[utt])} frames in {ali}: they must be of the same features"
                )
            yield utt, matrix

    FrameStore.build(folder, frames(), labels)


def fit_inputs(store: FrameStore, context: tuple[int, int], scaling: str = "each") -> Inputs:
    """Mean 0 and variance 1 of each coordinate over the training frames; one that never changes is left at 0. Or
    (shared) all coordinates times one number, so that the mean of their squares is 1."""
    mean, deviation = store.moments()
    if scaling == "shared":
        rms = float(np.sqrt(np.mean(np.square(mean) + np.square(deviation))))
        if not rms > np.finfo(np.float32).tiny:
            raise KernelamError(f"all features in {store.folder} are zero: make those of the training data again")
        return Inputs(context, np.zeros(store.dim, np.float32), np.full(store.dim, 1.0 / rms, np.float32))
    still = deviation < np.finfo(np.float32).tiny  # the inverse of what is smaller would be no single-precision number
    if constant := int(still.sum()):
        say(f"{constant} of {store.dim} features never change")
    scale = 1.0 / np.where(still, 1.0, deviation)
    return Inputs(context, mean.astype(np.float32), scale.astype(np.float32))


def count_classes(store: FrameStore, num_classes: int) -> np.ndarray:
    """Frames of each class; which have none is said, and what that means for their priors."""
    assert store.labels is not None
    counts = np.zeros(num_classes)
    for start in range(0, len(store), COUNTED):
        counts += np.bincount(store.labels[start : start + COUNTED], minlength=num_classes)
    if unseen := int((counts == 0).sum()):
        names = " ".join(map(str, np.flatnonzero(counts == 0)[:10])) + (" …" if unseen > 10 else "")
        say(
            f"{unseen} of {num_classes} classes have no training frame ({names}): a prior of {PRIOR_FLOOR:g} of uniform"
        )
    return counts
