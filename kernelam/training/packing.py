"""From data directories and alignments to packed frames, checked before any work."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernelam.errors import KernelamError
from kernelam.files import remove_partial
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
from kernelam.models.directory import STATES, is_whole
from kernelam.models.posterior import Inputs
from kernelam.progress import progress, say, warn
from kernelam.ranks import current, is_first
from kernelam.training.examination import class_phones

SCALINGS = ("each", "shared")
COUNTED = 1 << 20  # labels at once: to be counted they become numbers of twice the size


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
