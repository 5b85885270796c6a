"""model.json: what a model is, how it was trained, and where it comes from. Its presence says that training ended."""

import json
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.provenance import provenance


def write_description(folder: Path, about: dict[str, Any]) -> None:
    with replacing(folder / "model.json", "w") as stream:
        stream.write(json.dumps({**about, "provenance": provenance()}, indent=2) + "\n")


def describe(folder: str | Path) -> dict[str, Any]:
    """The contents of model.json."""
    path = Path(folder) / "model.json"
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}: {folder} holds no trained model") from None
    except json.JSONDecodeError as error:
        raise KernelamError(f"{path} is damaged: {error}") from None
