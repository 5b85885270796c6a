""".ci/run, over a stand-in for tests/run.sh."""

import os
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).resolve().parents[2] / ".ci/run"
STAND_IN = """#!/usr/bin/env bash
echo "KERNELAM_CI=$KERNELAM_CI KERNELAM_CORPORA=${KERNELAM_CORPORA:-} $2"
echo '<skipped type="pytest.skip" message="%s">' > "${1#--junitxml=}"
exit %d
"""


@pytest.mark.parametrize(
    ("skip", "status", "expected"),
    [
        ("KERNELAM_CORPORA is not set", 0, 0),
        ("KERNELAM_CORPORA is not set", 1, 1),
        ("needs the program sctk", 0, 1),
    ],
)
def test_skips(tmp_path: Path, skip: str, status: int, expected: int) -> None:
    files = {"clone/.ci/run": CI.read_text(), "clone/tests/run.sh": STAND_IN % (skip, status)}
    files |= {f"bin/{name}": "#!/bin/sh\n" for name in ("shellcheck", "sctk", "chromium", "munged", "slurmctld")}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "shared/corpora").mkdir(parents=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("KERNELAM_")}
    env["PATH"] = f"{tmp_path}/bin:{env['PATH']}"
    run = subprocess.run([tmp_path / "clone/.ci/run", "-x"], env=env, capture_output=True, text=True, timeout=60)
    assert run.returncode == expected, run.stderr
    assert f"KERNELAM_CI=1 KERNELAM_CORPORA={tmp_path}/shared/corpora -x\n" in run.stdout
    assert ("skipped for want of a program" in run.stderr) == skip.startswith("needs")
