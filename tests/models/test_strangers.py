"""Models and archives that somebody else made lead to nothing outside their folder, and take no memory for nothing."""

import hashlib
import json
import os
import re
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.kaldi.ark import MatrixScp, read_ark
from kernelam.kernels import SparseGaussian
from kernelam.models import load_model
from kernelam.models.arrays import read_arrays, write_arrays
from kernelam.models.directory import is_whole, save_model
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax

Change = Callable[[dict[str, Any], dict[str, torch.Tensor]], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inputs = Inputs((1, 1), np.zeros(3, np.float32), np.ones(3, np.float32))
    kernel = SparseGaussian(1.5, 2)
    features = kernel.feature_map(9, 8, 1, "independent")
    model = KernelSoftmax(kernel, features, 2, Pipeline(), inputs, np.arange(1.0, 6.0), torch.device("cpu"))
    model.initialise(seed=1)
    save_model(tmp_path / "exp", model, {"fingerprint": "f"})
    return tmp_path / "exp"


def test_a_file_that_was_not_saved_with_a_model_is_seen(folder: Path) -> None:
    """The model is refused with it, so that training again must not take it for whole."""
    assert is_whole(folder, "f")
    (folder / "final.mat").write_text("of alignments that were written here")
    assert not is_whole(folder, "f")
    with pytest.raises(KernelamError, match=r"final\.mat is not the file that .* train again"):
        load_model(folder)


def change(folder: Path, how: Change) -> None:
    """Make it another model, with the digest in model.json that its file has."""
    path = folder / "model.safetensors"
    arrays, about = read_arrays(path)
    how(about, arrays)
    write_arrays(path, arrays, about)
    told = json.loads((folder / "model.json").read_text())
    told["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "model.json").write_text(json.dumps(told))


@pytest.mark.parametrize("name", ["../secret", "{outside}", "/dev/zero", "a/../../secret"])
def test_files_elsewhere_are_not_looked_at(folder: Path, name: str) -> None:
    outside = folder.parent / "secret"
    outside.write_text("s")
    assert is_whole(folder, "f")
    told = json.loads((folder / "model.json").read_text())
    told["files"][name.format(outside=outside)] = hashlib.sha256(b"s").hexdigest()
    (folder / "model.json").write_text(json.dumps(told))
    assert not is_whole(folder, "f")


@pytest.mark.parametrize("name", ["../final.mat", "/etc/passwd", "a/final.mat", ".."])
def test_a_matrix_elsewhere_is_refused(folder: Path, name: str) -> None:
    change(folder, lambda about, _: about["input"]["pipeline"].update(lda=name))
    with pytest.raises(KernelamError, match=r"exp holds no whole model: .* is no name of a file in"):
        load_model(folder)


def replaced(name: str, value: Any) -> Change:
    return lambda _, arrays: arrays.update({name: value})


CHANGES: dict[str, Change] = {
    "coordinates beyond the inputs": replaced("index", torch.full((2, 8), 9, dtype=torch.int32)),
    "coordinates below zero": replaced("index", torch.full((2, 8), -1, dtype=torch.int32)),
    "too few values": replaced("value", torch.ones(2, 7)),
    "too few phases": replaced("b", torch.ones(7)),
    "an array of no use": replaced("../../escape", torch.ones(8)),
    "no number": replaced("V", torch.full((2, 5), torch.nan)),
    "other classes": replaced("V", torch.ones(2, 6)),
    "another rank": lambda about, _: about["config"].update(bottleneck=3),
    "too much context": lambda about, _: about["input"].update(context=[10**9, 1]),
    "a name for a number": lambda about, _: about["config"]["kernel"].update(sigma="wide"),
    "kernels without end": lambda about, _: about["config"].update(kernel=nested(400)),
    "too many deltas": lambda about, _: about["input"]["pipeline"].update(deltas=10**9),
}


def nested(depth: int) -> dict[str, Any]:
    kernel: dict[str, Any] = {"name": "linear"}
    for _ in range(depth):
        kernel = {"name": "sum", "weights": [1.0], "kernels": [kernel]}
    return kernel


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_no_model_is_refused(folder: Path, name: str) -> None:
    change(folder, CHANGES[name])
    with pytest.raises(KernelamError, match=r"exp holds no whole model: |exp/model.safetensors is damaged: ") as error:
        load_model(folder)
    assert not re.search(r"[A-Z]\w*Error|: ;", str(error.value))
    assert sorted(path.name for path in folder.parent.iterdir()) == ["exp"]


@pytest.mark.parametrize("kind", [b"FM ", b"DM ", b"CM ", b"CM3 "])
def test_sizes_that_a_header_promises_take_no_memory(tmp_path: Path, kind: bytes) -> None:
    size = struct.pack("<bibi", 4, 2**31 - 1, 4, 2**31 - 1)
    if kind.startswith(b"C"):
        size = struct.pack("<ffii", 0.0, 1.0, 2**31 - 1, 2**31 - 1)
    path = tmp_path / "feats.ark"
    path.write_bytes(b"utt \0B" + kind + size + bytes(100))
    (tmp_path / "feats.scp").write_text(f"utt {path}:4\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(KernelamError, match=r"feats\.(ark|scp), utt"):
        list(read_ark(path))
    with pytest.raises(KernelamError, match=r"feats\.scp, utt"):
        MatrixScp(tmp_path / "feats.scp")["utt"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # kB


def test_a_named_pipe_in_an_scp_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "feats.scp").write_text(f"utt {tmp_path}/pipe\n")
    with pytest.raises(KernelamError, match=r"feats\.scp, utt: .*pipe is a named pipe, not a file"):
        MatrixScp(tmp_path / "feats.scp")["utt"]
