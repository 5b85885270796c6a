"""Utterances that are of one class each, such as images: the class of the most probable frames."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.models import load_model
from kernelam.models.posterior import SCORED, PosteriorModel
from kernelam.progress import progress
from kernelam.training.examination import class_phones


def classify(folder: Path, data: Path, device: str = "cpu") -> dict[str, list[str]]:
    """Of each utterance of a data directory, the phone whose state has the largest sum of log posteriors."""
    model = load_model(folder, device)
    if not isinstance(model, PosteriorModel):
        raise KernelamError(f"{folder} holds a {model.kind}, which has no posteriors of classes")
    phones = class_phones(TransitionModel.load(folder / "final.mdl"), folder / "phones.txt")
    features = model.open(data)
    found: dict[str, list[str]] = {}
    waiting: dict[str, Tensor] = {}
    frames = 0
    for utt in progress(features, f"classifying {data}"):
        waiting[utt] = model.inputs.tensor(features[utt])
        frames += len(waiting[utt])
        if frames >= SCORED:
            found |= _classes(model, waiting, phones)
            waiting, frames = {}, 0
    return found | _classes(model, waiting, phones)


def _classes(model: PosteriorModel, inputs: dict[str, Tensor], phones: list[str]) -> dict[str, list[str]]:
    """Of several utterances at once: of images, which have one frame, a model scores thousands as fast as some."""
    if not inputs:
        return {}
    log_p = model.log_posteriors_of(torch.cat(list(inputs.values())))
    ends = np.cumsum([len(x) for x in inputs.values()])
    parts = np.split(log_p, ends[:-1])
    return {utt: [phones[int(part.sum(axis=0).argmax())]] for utt, part in zip(inputs, parts, strict=True)}
