"""From trained models and a heldout set to the model that combines them."""

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelam.errors import KernelamError
from kernelam.files import alone_in, remove_partial
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.hmm.lang import check_phones
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.tables import read_symbols
from kernelam.models import is_posterior
from kernelam.models.combination import Combination
from kernelam.models.description import describe
from kernelam.models.directory import STATES, is_whole, load_posterior_model, save_model
from kernelam.models.posterior import PosteriorModel
from kernelam.models.softmax import KernelSoftmax, averaged
from kernelam.progress import say, warn
from kernelam.training.logit_weights import HeldoutLogits, fit_weights
from kernelam.training.metrics import evaluate
from kernelam.training.packing import TrainingInput, check_alignments, pack


@dataclass(frozen=True)
class CombinationInput:
    """A heldout set with its alignment, the directories of the models, and where their combination goes."""

    data: Path
    lang: Path
    ali: Path
    members: tuple[Path, ...]
    folder: Path


def combine(given: CombinationInput, weights: Sequence[float] | None, device: str, blocks: bool = False) -> None:
    """Check, fit the weights, save; a directory that has this combination already is left as it is.

    Where the weights are given, data and alignment are only checked. Models of blocks of random features have equal
    weights, and become one kernel model.
    """
    if len(given.members) < 2:
        raise KernelamError("a combination takes at least two models")
    if len({folder.resolve() for folder in given.members}) < len(given.members):
        raise KernelamError(f"a combination takes different models, not {' '.join(map(str, given.members))}")
    models = [_load_member(folder, device) for folder in given.members]
    model = Combination.of(models, weights or [1.0 / len(models)] * len(models))
    transitions = _check(given, model, KernelSoftmax.kind if blocks else Combination.kind)
    with alone_in(given.folder):
        try:
            _combine(given, model, transitions, weights, blocks)
        finally:
            shutil.rmtree(given.folder / "frames", ignore_errors=True)


def _combine(
    given: CombinationInput,
    model: Combination,
    transitions: TransitionModel,
    weights: Sequence[float] | None,
    blocks: bool,
) -> None:
    remove_partial(given.folder)
    store = None if weights else pack(given.data, given.ali, transitions, model.pipeline, given.folder / "frames")
    told = {
        "members": [_digests(folder) for folder in given.members],
        "counts": hashlib.sha256(model.counts.tobytes()).hexdigest(),
        "weights": weights or ("equal" if blocks else "fitted"),
        "data": store and store.digest,
    }
    fingerprint = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    if is_whole(given.folder, fingerprint):
        say(f"{given.folder} holds the combination of these models already")
        return
    training: dict[str, Any] = {**told, "frames": 0, "seconds": 0.0}
    about: dict[str, Any] = {"fingerprint": fingerprint, "training": training, "seed": _seed(given.members)}
    result: PosteriorModel = model
    if store:
        start = time.monotonic()
        result, measured = (_join if blocks else _fit)(given, model, store)
        training |= {"frames": len(store), "seconds": round(time.monotonic() - start, 1)}
        about |= measured
    else:
        about["members"] = [{"folder": str(folder)} for folder in given.members]
    lda = [model.pipeline.lda] if model.pipeline.lda else []
    save_model(given.folder, result, about, [*(given.members[0] / name for name in STATES), *lda])


def _digests(folder: Path) -> dict[str, str]:
    """Of what a model was saved with; its counts may have been changed since."""
    files = describe(folder)["files"]
    return {name: files[name] for name in files if name != "ali_train_pdf.counts"}


def _seed(folders: Sequence[Path]) -> Any:
    """That of the models, or the list of theirs if they differ."""
    seeds = [describe(folder).get("seed") for folder in folders]
    return seeds[0] if seeds.count(seeds[0]) == len(seeds) else seeds


def _fit(given: CombinationInput, model: Combination, store: FrameStore) -> tuple[Combination, dict[str, Any]]:
    """The combination with the weights of maximum likelihood, and how well it and its members do."""
    inputs = model.inputs
    heldout = Batches(store, inputs.context, inputs.mean, inputs.scale, model.device)
    say(f"fitting the weights of {len(model.members)} models on {len(heldout)} frames, on {model.device}")
    logits = HeldoutLogits(model, heldout)
    losses = logits.losses()
    for folder, loss in zip(given.members, losses, strict=True):
        if not np.isfinite(loss):
            raise KernelamError(f"the cross-entropy of {folder} on {given.data} is not finite; train it again")
    weights = fit_weights(logits.derivatives, len(model.members))
    if not weights.any():
        raise KernelamError(f"on {given.data} with {given.ali} none of the models is better than a guess")
    fitted = Combination.of(model.members, weights.tolist())
    measured = evaluate(fitted, heldout)
    members = [
        {"folder": str(folder), "weight": weight, "heldout_ce": float(loss)}
        for folder, weight, loss in zip(given.members, fitted.weights, losses, strict=True)
    ]
    for member in members:
        say(f"weight {member['weight']:.4f}, heldout CE {member['heldout_ce']:.4f}: {member['folder']}")
    say(f"combination, heldout CE {measured['ce']:.4f}, frame error {100 * measured['frame_error']:.2f} %")
    return fitted, {"heldout": measured, "members": members}


def _join(given: CombinationInput, model: Combination, store: FrameStore) -> tuple[PosteriorModel, dict[str, Any]]:
    """The one model of all blocks of random features, and how well it does."""
    members = [member for member in model.members if isinstance(member, KernelSoftmax)]
    if len(members) < len(model.members) or any(_inputs(member) != _inputs(members[0]) for member in members):
        raise KernelamError("blocks are kernel models of the same inputs; others are combined with weights")
    joined = averaged(members)
    inputs = joined.inputs
    measured = evaluate(joined, Batches(store, inputs.context, inputs.mean, inputs.scale, joined.device))
    say(f"{len(members)} blocks, heldout CE {measured['ce']:.4f}, frame error {100 * measured['frame_error']:.2f} %")
    return joined, {"heldout": measured}


def _inputs(model: PosteriorModel) -> tuple[Any, ...]:
    return model.inputs.context, model.inputs.mean.tobytes(), model.inputs.scale.tobytes()


def _load_member(folder: Path, device: str) -> PosteriorModel:
    if not is_posterior(folder) and (folder / "final.mdl").exists():
        raise KernelamError(f"{folder} is a GMM; only models of posteriors, such as kernel models and DNNs, combine")
    return load_posterior_model(folder, device)


def _check(given: CombinationInput, model: Combination, kind: str) -> TransitionModel:
    """Everything that can disagree, before any work."""
    first, first_model = given.members[0], model.members[0]
    expected = _states(first) | _features(first_model)
    for folder, member in zip(given.members[1:], model.members[1:], strict=True):
        _compare(first, expected, folder, _states(folder) | _features(member))
        if not np.array_equal(member.counts, first_model.counts):
            warn(f"the class counts of {folder} are not those of {first}, which the combination takes")
    if given.folder.resolve() in [folder.resolve() for folder in given.members]:
        raise KernelamError(f"{given.folder} is one of the models; combine into another directory")
    both = (given.data, given.data, given.lang, given.ali, given.ali, given.folder)
    transitions = check_alignments(TrainingInput(*both, model.pipeline, model.inputs.context), kind)
    _compare(first, expected, given.ali, _tree(given.ali))
    check_phones(given.lang / "phones.txt", first / "phones.txt")
    model.transform_dir = given.ali if model.pipeline.fmllr else None
    model.open(given.data)
    return transitions


def _tree(folder: Path) -> dict[str, Any]:
    transitions = TransitionModel.load(folder / "final.mdl")
    return {
        "the number of pdfs": transitions.num_pdfs,
        "the states of final.mdl": transitions.tuples,
        "tree": ContextTree.load(folder / "tree"),
    }


def _states(folder: Path) -> dict[str, Any]:
    phones = read_symbols(folder / "phones.txt")
    return {**_tree(folder), "phones.txt": {name: phones[name] for name in phones if not name.startswith("#")}}


def _features(model: PosteriorModel) -> dict[str, Any]:
    """What makes two feature pipelines one."""
    settings = {f"the features' {name}": str(value) for name, value in model.pipeline.settings().items()}
    matrix = model.pipeline.lda.read_bytes() if model.pipeline.lda else b""
    return {**settings, "final.mat": matrix, "the number of features a frame": model.feature_dim}


def _compare(first: Path, expected: dict[str, Any], other: Path, found: dict[str, Any]) -> None:
    for name, value in found.items():
        if value != expected[name]:
            both = f": {expected[name]} and {value}" if isinstance(value, int | str) else ""
            raise KernelamError(f"{first} and {other} do not go together, they differ in {name}{both}")
