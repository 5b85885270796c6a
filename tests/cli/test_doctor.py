import subprocess
from collections.abc import Callable

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
    assert {"Python", "memory", "cores", "sctk", "sbatch"} <= set(rows)


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "required", lambda: ["numpy>=2.0", "no-such-package>=1"])
    monkeypatch.setattr(doctor, "_torch", lambda: "not asked")
    run = CliRunner().invoke(doctor.command)
    assert isinstance(run.exception, KernelamError)
    assert str(run.exception).startswith("required but missing here: no-such-package>=1;")
    assert "MISSING" in run.output
