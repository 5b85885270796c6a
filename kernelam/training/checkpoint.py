"""The state of training after an epoch, in one file; beside it is the one before, for when it is damaged."""

import hashlib
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelam import records
from kernelam.errors import KernelamError
from kernelam.models.arrays import read_arrays, write_arrays
from kernelam.progress import say
from kernelam.ranks import current, is_first


def write(path: Path, tensors: dict[str, Tensor], about: dict[str, Any], fingerprint: str) -> None:
    """Of processes that train together, the first writes, and none goes on before."""
    if is_first():
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        told = {**about, "fingerprint": fingerprint}
        told["digest"] = _digest(plain, told)
        write_arrays(path, plain, told, previous(path))
    current().wait()


def remove(path: Path) -> None:
    for place in (path, previous(path)):
        place.unlink(missing_ok=True)


def previous(path: Path) -> Path:
    return path.with_stem(f"{path.stem}.previous")


def read(path: Path, fingerprint: str, copied: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """What `write` wrote last, or before that if the last is damaged; if it is of the run that `fingerprint` names. All
    processes that train together find the same. For `copied` see `read_arrays`."""
    found = None
    for place in (path, previous(path)):
        if place.exists():
            try:
                found = found or verified(place, copied)
            except KernelamError as error:
                say(f"{error}: it is not used")
    current().check(records.digest(found and found[1]), path)
    if found is None:
        return None
    tensors, about = found
    if about.get("fingerprint") != fingerprint:
        say(f"{path} belongs to a run with other data or settings: starting afresh")
        return None
    return tensors, about


def verified(path: Path, copied: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write` wrote last, of whatever run; refused if it is damaged."""
    tensors, about = read_arrays(path, copied)
    if about.pop("digest", None) != _digest(tensors, about):
        raise KernelamError(f"{path} is damaged: its digest is not the one it was written with")
    return tensors, about


def _digest(tensors: dict[str, Tensor], about: dict[str, Any]) -> str:
    digest = hashlib.sha256(records.digest(about).encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {list(tensors[name].shape)}\n".encode())
        digest.update(tensors[name].flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


class Clock:
    """The seconds of a run: of this process, and of those before it that were killed, up to their last `keep`."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = folder / "seconds.json", fingerprint
        self._start = time.monotonic() - self._kept()

    def _kept(self) -> float:
        record = records.recall(self.path)
        return record["seconds"] if record and record["fingerprint"] == self.fingerprint else 0.0

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._start, 2)

    def keep(self) -> None:
        if is_first():
            records.keep(self.path, {"fingerprint": self.fingerprint, "seconds": self.seconds})
