"""Progress, as it is seen: a bar on a terminal, plain lines in a log."""

import os
import pty
import subprocess
import sys
import termios
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile

from kernelam.progress import progress

UTTERANCES = 40


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    soundfile.write(tmp_path / "noise.wav", np.random.default_rng(1).standard_normal(8000) / 10, 16000)
    utts = [f"a-{number:02}" for number in range(UTTERANCES)]
    for name, value in {"wav.scp": "noise.wav", "utt2spk": "a"}.items():
        (folder / name).write_text("".join(f"{utt} {value}\n" for utt in utts))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    monkeypatch.delenv("KERNELAM_PROGRESS_FD", raising=False)
    return folder


FEATURES = [sys.executable, "-m", "kernelam", "features", "fbank", "data", "part"]


def on_a_terminal(command: list[str], folder: Path, size: tuple[int, int] = (24, 80)) -> str:
    """What `command` writes to standard error when that is a terminal."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, size)
    seen = bytearray()

    def watch() -> None:
        try:
            while chunk := os.read(master, 4096):
                seen.extend(chunk)
        except OSError:  # the terminal is gone
            pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    run = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=slave, timeout=60)
    os.close(slave)
    watcher.join()
    os.close(master)
    assert run.returncode == 0
    return seen.decode()


@pytest.mark.parametrize("size", [(24, 80), (0, 0)])
def test_a_bar_on_a_terminal(data: Path, size: tuple[int, int]) -> None:
    """A terminal of no rows and columns is one that does not know its size."""
    seen = on_a_terminal(FEATURES, data.parent, size)
    assert "\rfeatures:   0%|" in seen
    assert f"/{UTTERANCES} [" in seen
    assert seen.endswith("\r")  # and it is gone at the end


def test_none_elsewhere(data: Path) -> None:
    run = subprocess.run(FEATURES, cwd=data.parent, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0
    assert run.stderr == ""


@pytest.mark.parametrize("watched", [True, False])
def test_the_bar_of_a_job_is_not_in_its_log(data: Path, root: Path, watched: bool) -> None:
    command = [str(root / "utils/run_local.sh"), "x.log", *FEATURES]
    if watched:
        assert f"/{UTTERANCES} [" in on_a_terminal(command, data.parent)
    else:
        run = subprocess.run(command, cwd=data.parent, capture_output=True, text=True, timeout=60)
        assert run.returncode == 0
        assert run.stderr == ""
    log = (data.parent / "x.log").read_text()
    assert "\r" not in log
    assert "%|" not in log
    assert "# Ended (code 0)" in log


def test_plain_lines_in_a_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELAM_PROGRESS_FD", raising=False)
    assert list(progress(["a", "b"], "reading", every=0.0)) == ["a", "b"]
    assert list(progress(iter("c"), "counting", every=0.0)) == ["c"]
    assert capsys.readouterr().err == "reading: 1 of 2 in 0 s\nreading: 2 of 2 in 0 s\ncounting: 1 in 0 s\n"
