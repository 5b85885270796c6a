"""steps/train_ridge.sh with a stand-in for kernelam."""

import shutil
import subprocess
from pathlib import Path

import pytest

KERNELAM = """#!/usr/bin/env bash
printf '<%s>' "$@" >> calls; echo >> calls
case " $* " in
    *' prepare '*) printf '%s\\n' 'warning: a class' 'one-vs-one, 3 systems: 1 GiB of disk' 'the rest' >&2 ;;
    *' sums '*) ;;
    *) printf '%s\\n' 'ridge 0.1: 3 systems in 1 s' 'the rest' >&2 ;;
esac
"""


@pytest.fixture
def step(root: Path, tmp_path: Path) -> list[str]:
    """The step of a copy of the toolkit, and its arguments."""
    toolkit = tmp_path / "the toolkit"
    for name in ("steps", "utils"):
        shutil.copytree(root / name, toolkit / name, symlinks=True)
    (toolkit / "path.sh").write_text(f"PATH='{toolkit}/utils/bin':'{toolkit}/utils':$PATH\n")
    (toolkit / "utils/bin/kernelam").write_text(KERNELAM)
    for file in ("data/feats.scp", "lang/phones.txt", "ali/final.mdl", "ali/tree"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    return [str(toolkit / "steps/train_ridge.sh"), "--nj", "2", "data", "data", "lang", "ali", "ali", "exp"]


@pytest.mark.parametrize("name", ["exp", "ridge=1"])
def test_prepared_then_summed_by_jobs_then_solved(step: list[str], tmp_path: Path, name: str) -> None:
    done = subprocess.run([*step[:-1], name], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, *jobs, last = (tmp_path / "calls").read_text().splitlines()
    places = f"<data><data><lang><ali><ali><{name}>"
    assert first.endswith(f"<--part><prepare>{places}")
    ends = [f"<--part><sums><--job><{job}><--jobs><2>{places}" for job in (1, 2)]
    common = last.removesuffix(places)
    assert sorted(jobs) == [common + end for end in ends]
    assert "<--scheme><one-vs-one><--solver><gmres><--tolerance><1e-3>" in common
    shown = done.stderr.splitlines()[1:-1]
    assert shown == ["warning: a class", "one-vs-one, 3 systems: 1 GiB of disk", "ridge 0.1: 3 systems in 1 s"]


def test_a_file_that_is_not_there(step: list[str], tmp_path: Path) -> None:
    (tmp_path / "ali/tree").unlink()
    done = subprocess.run(step, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "no such file ali/tree" in done.stderr
    assert not (tmp_path / "exp").exists()
