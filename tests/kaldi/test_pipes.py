"""Commands in scp files, where they are forbidden."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.frontend.audio import utterances
from kernelam.frontend.pipeline import Pipeline
from kernelam.kaldi.ark import ArkWriter, MatrixScp

Kernelam = Callable[..., CompletedProcess[str]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Of one utterance; what its commands do would be seen in `ran`."""
    folder = tmp_path / "data"
    with ArkWriter(tmp_path / "feats.ark", folder / "feats.scp") as writer:
        writer.write("u", np.ones((3, 2), np.float32))
    command = f"touch {tmp_path}/ran; cat {tmp_path}/feats.ark |"
    tables = {"wav.scp": command, "cmvn.scp": command, "commands.scp": command, "utt2spk": "u", "spk2utt": "u"}
    for name, value in tables.items():
        (folder / name).write_text(f"u {value}\n")
    return folder


@pytest.mark.parametrize(
    "read", [utterances, Pipeline(norm_means=True).open, lambda folder: MatrixScp(folder / "commands.scp")]
)
def test_forbidden(data: Path, read: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELAM_NO_PIPES", "1")
    with pytest.raises(
        KernelamError, match=r"data/(wav|cmvn|commands)\.scp, u: touch .* is a command, and .* forbidden"
    ):
        print(dict(found) if hasattr(found := read(data), "keys") else list(found))
    assert not (data.parent / "ran").exists()


def test_allowed_again(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELAM_NO_PIPES", "0")
    with pytest.raises(KernelamError):  # the key that stands before the matrix
        MatrixScp(data / "commands.scp")["u"]
    assert (data.parent / "ran").exists()


@pytest.mark.parametrize("flags", [["--no-pipes"], ["--debug", "--no-pipes"], ["--no-pipes", "--debug"]])
def test_command_line(data: Path, kernelam: Kernelam, flags: list[str], tmp_path: Path) -> None:
    run = kernelam(*flags, "features", "mfcc", data, tmp_path / "part")
    assert run.returncode == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith(f"kernelam features mfcc: {data}/wav.scp, u: touch ")
    assert ("Traceback" in run.stderr) == ("--debug" in flags)
    assert not (tmp_path / "ran").exists()
