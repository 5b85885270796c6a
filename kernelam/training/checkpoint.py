"""The state of training after an epoch, in one file that is either whole or the previous one."""

from pathlib import Path
from typing import Any

from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.models.arrays import read_arrays, write_arrays
from kernelam.progress import say


def write(path: Path, tensors: dict[str, Tensor], about: dict[str, Any], fingerprint: str) -> None:
    write_arrays(path, tensors, {**about, "fingerprint": fingerprint})


def read(path: Path, fingerprint: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """What `write` wrote, if it is there, whole, and of the run that `fingerprint` names."""
    if not path.exists():
        return None
    try:
        tensors, about = read_arrays(path)
    except KernelamError as error:
        say(f"{error}: starting afresh")
        return None
    if about.get("fingerprint") != fingerprint:
        say(f"{path} belongs to a run with other data or settings: starting afresh")
        return None
    return tensors, about
