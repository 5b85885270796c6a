"""The state of training after an epoch, in one file that is either whole or the previous one."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from kernelam.files import replacing
from kernelam.progress import say


def write(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write `tensors` with `about` in the header; equal contents are equal bytes."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as stream:
        stream.write(save(plain, {"about": json.dumps(about, sort_keys=True)}))


def read(path: Path, fingerprint: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """What `write` wrote, if it is there, whole, and of the run that `fingerprint` names."""
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["about"])
            if about["fingerprint"] != fingerprint:
                say(f"{path} belongs to a run with other data or settings: starting afresh")
                return None
            # Copies: results depend on the alignment of memory, and a view into a file has any.
            return {name: torch.clone(file.get_tensor(name)) for name in file.keys()}, about  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        say(f"{path} is damaged ({error}): starting afresh")
        return None
