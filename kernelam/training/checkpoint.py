"""The state of training after an epoch, in one file that is either whole or the previous one."""

import json
import time
from pathlib import Path
from typing import Any

from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.models.arrays import read_arrays, write_arrays
from kernelam.progress import say
from kernelam.records import read_record


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


class Clock:
    """The seconds of a run: of this process, and of those before it that were killed, up to their last `keep`."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = folder / "seconds.json", fingerprint
        self._start = time.monotonic() - self._kept()

    def _kept(self) -> float:
        try:
            record = read_record(self.path, "no time was kept")
            return float(record["seconds"]) if record["fingerprint"] == self.fingerprint else 0.0
        except (KernelamError, KeyError, TypeError, ValueError):
            return 0.0

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._start, 2)

    def keep(self) -> None:
        with replacing(self.path, "w") as stream:
            json.dump({"fingerprint": self.fingerprint, "seconds": self.seconds}, stream)
