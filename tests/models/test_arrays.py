"""Files of arrays are those that safetensors itself writes, without a second copy of them in memory."""

import json
import tracemalloc

import pytest
import torch
from safetensors.torch import save

from kernelam.errors import KernelamError
from kernelam.models.arrays import KINDS, read_arrays, write_arrays


def test_files_are_those_of_safetensors(tmp_path):
    arrays = {f"of {kind}": torch.ones(3, dtype=dtype) for dtype, kind in KINDS.items()}
    arrays |= {"b": torch.randn(5, 3), "ü": torch.zeros(()), "A": torch.zeros(0, 2), "a": torch.arange(6).view(2, 3).T}
    about = {"name": "é", "numbers": [1, 2]}
    write_arrays(tmp_path / "file", arrays, about)
    plain = {name: array.contiguous() for name, array in arrays.items()}
    assert (tmp_path / "file").read_bytes() == save(plain, {"about": json.dumps(about, sort_keys=True)})
    again, told = read_arrays(tmp_path / "file")
    assert told == about
    assert all(torch.equal(array, again[name]) for name, array in arrays.items())


def test_arrays_are_written_one_after_the_other(tmp_path):
    arrays = {str(number): torch.zeros(1_000_000) for number in range(4)}
    tracemalloc.start()
    write_arrays(tmp_path / "file", arrays, {})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


def test_what_cannot_be_read_is_told_from_what_is_not_there(tmp_path):
    with pytest.raises(KernelamError, match=f"^no such file {tmp_path}/file$"):
        read_arrays(tmp_path / "file")
    with pytest.raises(KernelamError, match=f"^cannot read {tmp_path}$"):
        read_arrays(tmp_path)


def test_two_processes_may_write_the_same(tmp_path, monkeypatch):
    """The other one moves the file before this one does."""
    file, before = tmp_path / "file", tmp_path / "before"
    write_arrays(file, {}, {"by": 0})
    exists = type(file).exists

    def seen(path):
        found = exists(path)
        if path == file and found:
            file.replace(before)
        return found

    monkeypatch.setattr(type(file), "exists", seen)
    write_arrays(file, {}, {"by": 1}, before)
    assert read_arrays(file)[1] == {"by": 1}
    assert read_arrays(before)[1] == {"by": 0}
