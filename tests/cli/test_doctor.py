import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelam import requirements
from kernelam.cli import doctor
from kernelam.errors import KernelamError


def test_all_is_there(kernelam: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    run = kernelam("doctor")
    assert run.returncode == 0, run.stderr
    rows = {line[:21].strip(): line[21:] for line in run.stdout.splitlines()}
    assert rows["torch"].startswith("2.13.0")
    assert rows["kaldifst"] == requirements.installed("kaldifst")
    assert "GB free" in rows["disk"]
    assert {"Python", "memory", "cores", "sctk", "sbatch", "recipes"} <= set(rows)
    assert run.stdout.splitlines()[-1].startswith("next: ")


def test_what_to_run_next(tmp_path: Path) -> None:
    for name, usage in {
        "digits": "./run.sh --corpus <dir> [options]",
        "mini": "./run.sh",
        "pictures": "./run.sh",
    }.items():
        (tmp_path / "egs" / name / "s5").mkdir(parents=True)
        (tmp_path / "egs" / name / "s5" / "run.sh").write_text(f"#!/bin/bash\n# What {name} is.\n# Usage: {usage}\n")

    def state(name: str) -> str:
        return next(recipe.state for recipe in doctor._recipes(tmp_path) if recipe.name == name)

    def ahead() -> str:
        return doctor._next(doctor._recipes(tmp_path))

    assert [recipe.title for recipe in doctor._recipes(tmp_path)] == [
        "What digits is.",
        "What mini is.",
        "What pictures is.",
    ]
    assert (state("digits"), state("mini")) == ("needs its corpus", "can run here")
    assert ahead() == "egs/mini/s5/run.sh"
    (tmp_path / "egs/digits/s5/exp").mkdir()
    assert state("digits").startswith("begun")
    assert ahead() == "egs/digits/s5/run.sh --corpus <dir>"
    (tmp_path / "egs/mini/s5/part").mkdir()
    (tmp_path / "egs/mini/s5/part/report.html").touch()
    (tmp_path / "egs/digits/s5/report.html").touch()
    assert (state("mini"), ahead()) == ("has run", "egs/pictures/s5/run.sh")
    (tmp_path / "egs/digits/s5/exp").rmdir()
    (tmp_path / "egs/digits/s5/report.html").unlink()
    (tmp_path / "egs/pictures/s5/SOUND.html").touch()
    assert ahead() == "egs/digits/s5/run.sh --corpus <dir>"
    (tmp_path / "local/digits").mkdir(parents=True)
    (tmp_path / "local/digits/make_lookalike.sh").touch()
    assert ahead() == "local/digits/make_lookalike.sh corpus && egs/digits/s5/run.sh --corpus corpus --size lookalike"
    (tmp_path / "egs/digits/s5/report.html").touch()
    assert ahead() == "all recipes have run here"


def test_recipes_need_what_they_refuse_to_run_without(root: Path) -> None:
    for recipe in doctor._recipes(root):
        script = root / f"egs/{recipe.name}/s5/run.sh"
        refuses = "\n[[ -n $corpus ]] || die" in script.read_text()
        assert ("--corpus <dir" in recipe.command) == refuses, recipe
        assert (recipe.state == "can run here") <= (not refuses), recipe


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "required", lambda: ["numpy>=2.0", "no-such-package>=1"])
    monkeypatch.setattr(doctor, "_torch", lambda: "not asked")
    run = CliRunner().invoke(doctor.command)
    assert isinstance(run.exception, KernelamError)
    assert str(run.exception).startswith("required but missing here: no-such-package>=1;")
    assert "MISSING" in run.output
