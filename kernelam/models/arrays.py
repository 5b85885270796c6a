"""Named tensors in one safetensors file, with a description in its header. No pickle is ever loaded."""

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import replacing

KINDS = {
    **{torch.int64: "I64", torch.float64: "F64", torch.float32: "F32", torch.int32: "I32", torch.bfloat16: "BF16"},
    **{torch.float16: "F16", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"},
}
"""What safetensors calls types of numbers, in the order in which it writes arrays of them."""


def write_arrays(path: Path, tensors: dict[str, Tensor], about: dict[str, Any], before: Path | None = None) -> None:
    """Write `tensors` with `about` in the header, whole or not at all; equal contents are equal bytes. What `path` was
    until then becomes the file `before`."""
    with replacing(path) as stream:
        for piece in _pieces(tensors, {"about": json.dumps(about, sort_keys=True)}):
            stream.write(piece)
        stream.flush()
        if before:
            with suppress(FileNotFoundError):  # or another process that writes the same has moved it
                path.replace(before)


def _pieces(tensors: dict[str, Tensor], metadata: dict[str, str]) -> Iterator[bytes | memoryview]:
    """What safetensors' own `save` makes of them, one after the other: at once, all would be in memory twice."""
    kinds = list(KINDS)
    names = sorted(tensors, key=lambda name: (kinds.index(tensors[name].dtype), name))
    header: dict[str, Any] = {"__metadata__": metadata}
    for name, end in zip(names, accumulate(tensors[name].nbytes for name in names), strict=True):
        tensor = tensors[name]
        place = [end - tensor.nbytes, end]
        header[name] = {"dtype": KINDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": place}
    told = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    told = told.ljust(-(-len(told) // 8) * 8)
    yield len(told).to_bytes(8, "little") + told
    for name in names:
        yield tensors[name].detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def read_arrays(path: Path, copied: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_arrays` wrote. The tensors are copies, since products depend on how memory is aligned, and views into
    a file are aligned anyhow; or such views, which take no memory before they are looked at."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if copied:
                tensors = {name: torch.clone(tensor) for name, tensor in tensors.items()}
            about = json.loads(file.metadata()["about"])
    except OSError:  # safetensors calls a file that it may not open one that is not there
        raise KernelamError(f"{'cannot read' if path.exists() else 'no such file'} {path}") from None
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise KernelamError(f"{path} is damaged: {error}") from None
    if not isinstance(about, dict):
        raise KernelamError(f"{path} is damaged: its header holds no JSON object")
    return tensors, about
