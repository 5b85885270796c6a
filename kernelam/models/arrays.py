"""Named tensors in one safetensors file, with a description in its header. No pickle is ever loaded."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import replacing


def write_arrays(path: Path, tensors: dict[str, Tensor], about: dict[str, Any], before: Path | None = None) -> None:
    """Write `tensors` with `about` in the header, whole or not at all; equal contents are equal bytes. What `path` was
    until then becomes the file `before`."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as stream:
        stream.write(save(plain, {"about": json.dumps(about, sort_keys=True)}))
        stream.flush()
        if before and path.exists():
            path.replace(before)


def read_arrays(path: Path, copied: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_arrays` wrote. The tensors are copies, since products depend on how memory is aligned, and views into
    a file are aligned anyhow; or such views, which take no memory before they are looked at."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if copied:
                tensors = {name: torch.clone(tensor) for name, tensor in tensors.items()}
            about = json.loads(file.metadata()["about"])
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}") from None
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise KernelamError(f"{path} is damaged: {error}") from None
    if not isinstance(about, dict):
        raise KernelamError(f"{path} is damaged: its header holds no JSON object")
    return tensors, about
