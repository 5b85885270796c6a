"""steps/combine.sh with a stand-in for kernelam."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

KERNELAM = """#!/usr/bin/env bash
printf '<%s>' "$@" > calls
printf '%s\\n' 'warning: other counts' 'weight 0.5000, heldout CE 1.0: a' 'combination, heldout CE 0.9' 'the rest' >&2
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    """The step of a copy of the toolkit, in a folder with data, lang and ali."""
    toolkit = tmp_path / "the toolkit"
    for name in ("steps", "utils"):
        shutil.copytree(root / name, toolkit / name, symlinks=True)
    (toolkit / "path.sh").write_text(f"PATH='{toolkit}/utils/bin':'{toolkit}/utils':$PATH\n")
    (toolkit / "utils/bin/kernelam").write_text(KERNELAM)
    for file in ("data/feats.scp", "lang/phones.txt", "ali/final.mdl", "ali/tree"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        command = [toolkit / "steps/combine.sh", *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return call


@pytest.mark.parametrize("models", [["exp/a", "exp/b"], ["exp/a", "exp/my b", "exp/c", "exp/d"]])
def test_any_number_of_models(run: Run, tmp_path: Path, models: list[str]) -> None:
    done = run("--weights", "0.4 0.6", "data", "lang", "ali", *models, "exp/all")
    assert done.returncode == 0, done.stderr
    names = "".join(f"<{name}>" for name in ("data", "lang", "ali", *models, "exp/all"))
    assert (tmp_path / "calls").read_text() == f"<combine><--weights><0.4 0.6><--device><cpu>{names}"
    assert "the rest" in (tmp_path / "exp/all/log/combine.log").read_text()
    shown = done.stderr.splitlines()[1:-1]
    assert shown == ["warning: other counts", "weight 0.5000, heldout CE 1.0: a", "combination, heldout CE 0.9"]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["data", "lang", "ali", "exp/a", "exp"], "takes 6 arguments, got 5"),
        (["none", "lang", "ali", "exp/a", "exp/b", "exp"], "no such file none/feats.scp"),
        (["data", "lang", "none", "exp/a", "exp/b", "exp"], "no such file none/final.mdl"),
        (["--device", "tpu", "data", "lang", "ali", "exp/a", "exp/b", "exp"], "--device takes cpu or cuda, not 'tpu'"),
    ],
)
def test_mistakes(run: Run, tmp_path: Path, args: list[str], sentence: str) -> None:
    done = run(*args)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert not (tmp_path / "calls").exists()
    assert not (tmp_path / "exp").exists()
