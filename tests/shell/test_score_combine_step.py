"""steps/score_combine.sh with a stand-in for kernelam."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

KERNELAM = """#!/usr/bin/env bash
printf '<%s>' "$@" > calls
echo 'warning: an utterance is not everywhere' >&2
mkdir -p "${@: -1}/scoring_kaldi"
echo "the best" > "${@: -1}/scoring_kaldi/best_wer"
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    """The step of a copy of the toolkit, in a folder with data, a graph, and scored decode directories a, `my b`, c."""
    toolkit = tmp_path / "the toolkit"
    for name in ("steps", "utils"):
        shutil.copytree(root / name, toolkit / name, symlinks=True)
    (toolkit / "path.sh").write_text(f"PATH='{toolkit}/utils/bin':'{toolkit}/utils':$PATH\n")
    (toolkit / "utils/bin/kernelam").write_text(KERNELAM)
    scored = [f"{name}/{file}" for name in ("a", "my b", "c") for file in ("num_jobs", "scoring_kaldi/best_wer")]
    for file in ("data/text", "graph/words.txt", *scored):
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / file).touch()

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        command = [toolkit / "steps/score_combine.sh", *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return call


@pytest.mark.parametrize("systems", [["a", "my b"], ["a", "my b", "c"]])
def test_any_number_of_systems(run: Run, tmp_path: Path, systems: list[str]) -> None:
    done = run("data", "graph", *systems, "exp/all/decode")
    assert done.returncode == 0, done.stderr
    names = "".join(f"<{name}>" for name in ("data", "graph/words.txt", *systems, "exp/all/decode"))
    assert (tmp_path / "calls").read_text() == f"<score><combine><--units><words>{names}"
    assert done.stdout == "the best\n"
    assert "warning: an utterance is not everywhere" in done.stderr.splitlines()


def test_weights_of_another(run: Run, tmp_path: Path) -> None:
    (tmp_path / "dev/scoring_kaldi").mkdir(parents=True)
    (tmp_path / "dev/scoring_kaldi/result.json").touch()
    shutil.rmtree(tmp_path / "a/scoring_kaldi")  # which is then not needed
    done = run("--tuned-on", "dev", "--units", "characters", "data", "graph", "a", "c", "test")
    assert done.returncode == 0, done.stderr
    assert "<--units><characters><--tuned-on><dev><data>" in (tmp_path / "calls").read_text()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["data", "graph", "exp"], "takes 4 arguments, got 3"),
        (["none", "graph", "a", "c", "exp"], "no such file none/text"),
        (["data", "graph", "a", "none", "exp"], "no such file none/num_jobs"),
        (["data", "graph", "a", "my b", "c"], "c is a decode directory: name another one last, for the combination"),
        (["--tuned-on", "a", "data", "graph", "a", "c", "exp"], "no such file a/scoring_kaldi/result.json"),
        (["--units", "none", "data", "graph", "a", "c", "exp"], "no such file none"),
    ],
)
def test_mistakes(run: Run, tmp_path: Path, args: list[str], sentence: str) -> None:
    done = run(*args)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert not (tmp_path / "calls").exists()
    assert not (tmp_path / "exp").exists()
