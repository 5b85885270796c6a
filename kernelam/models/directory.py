"""A model directory explains itself: arrays, configuration, class counts, and where it all came from."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import beside, copy_whole, is_name
from kernelam.frontend.pipeline import Pipeline
from kernelam.kaldi.counts import read_counts, write_counts
from kernelam.models.arrays import read_arrays, write_arrays
from kernelam.models.combination import Combination
from kernelam.models.description import CLASS_MEANS, describe, write_description
from kernelam.models.dnn import Dnn
from kernelam.models.multilayer import Multilayer
from kernelam.models.posterior import Inputs, PosteriorModel, find_device
from kernelam.models.pursuit import KernelExpansion
from kernelam.models.ridge import Ridge
from kernelam.models.softmax import KernelSoftmax
from kernelam.models.svm import Svm
from kernelam.ranks import current

DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError, ArithmeticError, AssertionError)
"""What comes of arrays and settings that are not those of a model."""
STATES = ("final.mdl", "tree", "phones.txt")
"""Of the alignment directory, what a model directory keeps too; and final.mat where its features need it."""

_MODELS = (KernelSoftmax, Ridge, KernelExpansion, Multilayer, Svm, Dnn, Combination)
KINDS: dict[str, type[PosteriorModel]] = {model.kind: model for model in _MODELS}


def save_model(
    folder: Path,
    model: PosteriorModel,
    about: dict[str, Any],
    states: Sequence[Path] = (),
    also: Sequence[Callable[[Path], None]] = (),
) -> None:
    """Write model.safetensors, ali_train_pdf.counts, copies of the files of its `states`, what functions of a folder
    write `also`, and model.json. All this takes the place of an earlier model once it is on the disk.

    The order matters: a `final.mdl` without model.safetensors is a GMM, and model.json says that all is there.
    """
    arrays = model.arrays()
    arrays |= {"input.mean": torch.from_numpy(model.inputs.mean), "input.scale": torch.from_numpy(model.inputs.scale)}
    what = {
        "kind": model.kind,
        "config": model.config(),
        "num_classes": model.num_classes,
        "num_parameters": model.num_parameters(),
        "input": {"pipeline": model.pipeline.settings(), "context": model.inputs.context, "dim": model.inputs.dim},
    }
    with beside(folder / "model") as new:
        write_arrays(new / "model.safetensors", arrays, what)
        write_counts(new / "ali_train_pdf.counts", model.counts)
        for file in states:
            copy_whole(file, new / file.name)
        names = sorted(os.listdir(new), key="model.safetensors".__ne__)
        for write in also:
            write(new)
        write_description(new, {**what, **about, "files": {name: _digest(new / name) for name in names}})
        _remove_model(folder)
        others = set(os.listdir(new)) - {*names, "model.json"}
        for name in (*names, *sorted(others), "model.json"):
            (new / name).replace(folder / name)


def is_whole(folder: Path, fingerprint: str, states: Sequence[Path] = ()) -> bool:
    """Whether `folder` holds the model that `fingerprint` names, every file of it as it was saved, and as those of its
    `states` are now."""
    if not (folder / "model.json").exists():
        return False
    about = describe(folder)
    files = about.get("files")
    if not isinstance(files, dict) or not all(map(is_name, files)):  # nothing outside is looked at
        return False
    saved = all(_digest(folder / name) == files.get(name, "missing") for name in {*files, *STATES, "final.mat"})
    return about.get("fingerprint") == fingerprint and saved and all(files.get(p.name) == _digest(p) for p in states)


def _remove_model(folder: Path) -> None:
    """Remove what training wrote, in an order that never leaves half a model, or something else, to be read."""
    stories = (CLASS_MEANS, "epochs.jsonl", "selection.json")
    for name in ("model.json", *STATES, "final.mat", "model.safetensors", "ali_train_pdf.counts", *stories):
        (folder / name).unlink(missing_ok=True)


def _digest(path: Path) -> str:
    if not path.is_file():
        return "missing"
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_digests(folder: Path) -> None:
    """Counts may be the user's own; what else there is must be as it was saved, or decoding would be with something."""
    if not (folder / "model.safetensors").exists():
        raise KernelamError(f"no such file {folder}/model.safetensors")
    files = describe(folder).get("files")
    for name in ("model.safetensors", *STATES, "final.mat"):
        known = files.get(name) if isinstance(files, dict) else None
        if (folder / name).exists() and known != _digest(folder / name):
            raise KernelamError(
                f"{folder / name} is not the file that {folder}/model.json was written with; train again"
            )


def load_posterior_model(folder: Path, device: str = "cpu") -> PosteriorModel:
    """What `save_model` saved: files whose digest is not the one in model.json are refused, and so is what somebody
    else saved if it is no model."""
    place = find_device(device)
    _check_digests(folder)
    alone = current().features.count == 1
    arrays, about = read_arrays(folder / "model.safetensors", copied=alone)
    try:
        given = about["input"]
        inputs = Inputs.restore(given["context"], arrays)
        counts = read_counts(folder / "ali_train_pdf.counts")
        if len(counts) != about["num_classes"]:
            raise KernelamError(
                f"{folder}/ali_train_pdf.counts has {len(counts)} classes, {folder}/model.json {about['num_classes']}"
            )
        common = (Pipeline.restore(given["pipeline"], folder), inputs, counts, place)
        model = KINDS[about["kind"]].restore(about["config"], {**arrays}, *common)
        if alone:  # those who share the features have views of the file, and would have to score together
            _check_numbers(arrays)
            _try(model)
    except DAMAGE as error:
        raise KernelamError(f"{folder} holds no whole model: {_reason(error)}; train again") from None
    except KernelamError as error:
        raise error if str(folder) in str(error) else KernelamError(f"{folder} holds no whole model: {error}") from None
    return model


def _reason(error: Exception) -> str:
    """In words, of which a KeyError has but the key, and an assertion none."""
    return f"there is no {error}" if isinstance(error, KeyError) else str(error) or "its parts do not fit together"


def _check_numbers(arrays: dict[str, Tensor]) -> None:
    for name, array in arrays.items():
        if not torch.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")


def _try(model: PosteriorModel) -> None:
    """Score a frame: arrays that do not fit each other, or the configuration, are found here and not hours later."""
    found = model.log_posteriors(np.zeros((1, model.feature_dim), np.float32))
    if found.shape != (1, model.num_classes):
        raise ValueError(f"it scores {found.shape[1]} classes, not {model.num_classes}")
