"""Utterances that are of one class each, such as images: the class of the most probable frames."""

from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.models import load_model
from kernelam.models.posterior import PosteriorModel
from kernelam.progress import progress
from kernelam.training.examination import class_phones


def classify(folder: Path, data: Path, device: str = "cpu") -> dict[str, list[str]]:
    """Of each utterance of a data directory, the phone whose state has the largest sum of log posteriors."""
    model = load_model(folder, device)
    if not isinstance(model, PosteriorModel):
        raise KernelamError(f"{folder} holds a {model.kind}, which has no posteriors of classes")
    phones = class_phones(TransitionModel.load(folder / "final.mdl"), folder / "phones.txt")
    features = model.open(data)
    return {
        utt: [phones[int(model.log_posteriors(features[utt]).sum(axis=0).argmax())]]
        for utt in progress(features, f"classifying {data}")
    }
