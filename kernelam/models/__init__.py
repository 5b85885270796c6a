"""What scores frames. Every model is an AcousticModel."""

from dataclasses import replace
from pathlib import Path

from kernelam.models.base import AcousticModel
from kernelam.models.description import describe


def load_model(place: str | Path, device: str = "cpu", transform_dir: Path | None = None) -> AcousticModel:
    """The model of a directory, ours or a Kaldi GMM (`final.mdl`), or of an `.mdl` file. A GMM needs no torch.

    `transform_dir` has the fMLLR transforms of the speakers it is to score.
    """
    place = Path(place)
    model = _load(place, device)
    model.transform_dir = transform_dir
    if transform_dir and model.kind == "gmm":  # as in Kaldi, whose GMM directories need not show how they were trained
        model.pipeline = replace(model.pipeline, fmllr=True)
    return model


def is_posterior(folder: Path) -> bool:
    """Whether a directory is of a posterior model, or what is left of it: then its final.mdl only has transitions."""
    if (folder / "model.safetensors").exists():
        return True
    return (folder / "model.json").exists() and describe(folder).get("kind") != "gmm"


def _load(place: Path, device: str) -> AcousticModel:
    if is_posterior(place):
        from kernelam.models.directory import load_posterior_model

        return load_posterior_model(place, device)
    from kernelam.models.gmm import GmmModel

    return GmmModel.read(place / "final.mdl" if place.is_dir() else place)
