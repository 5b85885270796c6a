"""What scores frames. Every model is an AcousticModel."""

from pathlib import Path

from kernelam.models.base import AcousticModel
from kernelam.models.description import describe


def load_model(place: str | Path, device: str = "cpu") -> AcousticModel:
    """The model of a directory, ours or a Kaldi GMM (`final.mdl`), or of an `.mdl` file. A GMM needs no torch."""
    place = Path(place)
    ours = (place / "model.json").exists() and describe(place)["kind"] != "gmm"
    if ours or (place / "model.safetensors").exists():
        from kernelam.models.directory import load_posterior_model

        return load_posterior_model(place, device)
    from kernelam.models.gmm import GmmModel

    return GmmModel.read(place / "final.mdl" if place.is_dir() else place)
