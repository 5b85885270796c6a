"""model.json: what a model is, how it was trained, and where it comes from. Its presence says that training ended."""

import json
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.provenance import provenance
from kernelam.records import digest, read_record

CLASS_MEANS = "class_means.safetensors"  # beside it, what reports draw of the classes


def write_description(folder: Path, about: dict[str, Any]) -> None:
    with replacing(folder / "model.json", "w") as stream:
        stream.write(json.dumps({**about, "provenance": provenance()}, indent=2) + "\n")


def describe(folder: str | Path) -> dict[str, Any]:
    """The contents of model.json."""
    return read_record(Path(folder) / "model.json", f"{folder} holds no trained model")


def fingerprint(about: dict[str, Any]) -> str:
    """What sets a model apart from others; of a GMM, which has no such sign, all that is told of it."""
    return str(about.get("fingerprint") or digest(about))


def check_decoded(folder: Path, decoded: Path) -> None:
    """Refuse lattices of a model that another one has since taken the place of."""
    there = all((place / "model.json").exists() for place in (folder, decoded))
    if there and fingerprint(describe(folder)) != fingerprint(describe(decoded)):
        raise KernelamError(
            f"{decoded} was decoded with another model than the one that is now in {folder}; decode it again with"
            " steps/decode.sh"
        )


def decoded_by(decoded: Path) -> str | None:
    """The fingerprint of the model whose lattices these are, which is still there; None where nothing tells it."""
    check_decoded(decoded.parent, decoded)
    told = [place for place in (decoded, decoded.parent) if (place / "model.json").exists()]
    return fingerprint(describe(told[0])) if told else None
