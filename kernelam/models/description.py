"""model.json: what a model is, how it was trained, and where it comes from. Its presence says that training ended."""

import json
from pathlib import Path
from typing import Any

from kernelam.files import replacing
from kernelam.provenance import provenance
from kernelam.records import read_record

CLASS_MEANS = "class_means.safetensors"  # beside it, what reports draw of the classes


def write_description(folder: Path, about: dict[str, Any]) -> None:
    with replacing(folder / "model.json", "w") as stream:
        stream.write(json.dumps({**about, "provenance": provenance()}, indent=2) + "\n")


def describe(folder: str | Path) -> dict[str, Any]:
    """The contents of model.json."""
    return read_record(Path(folder) / "model.json", f"{folder} holds no trained model")
