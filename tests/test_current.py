"""`kernelam once`: what is redone, and what is not."""

import contextlib
import json
from pathlib import Path

import pytest

from kernelam import current
from kernelam.current import run_once
from kernelam.errors import KernelamError

COUNT = 'echo run >> runs; cat "$0" > out; echo made >> out'


@pytest.fixture
def once(kernelam, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_text("1\n")

    def run(*extra: str, script: str = COUNT, status: int = 0) -> int:
        done = kernelam("once", "--in", "in", "--out", "out", "--", "bash", "-c", script, "in/a", *extra, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        runs = tmp_path / "runs"
        return len(runs.read_text().split()) if runs.exists() else 0

    run.folder = tmp_path
    return run


def test_a_second_call_does_nothing(once):
    assert (once(), once()) == (1, 1)


def test_a_changed_input_or_command_runs_it_again(once):
    assert once() == 1
    (once.folder / "in/a").write_text("2\n")
    assert once() == 2
    (once.folder / "in/b").write_text("")
    assert once() == 3
    assert once("word") == 4


def test_time_stamps_logs_and_splits_do_not_count(once):
    assert once() == 1
    (once.folder / "in/a").write_text("1\n")
    for name in ("log", "split4", "split2utt", ".hidden"):
        (once.folder / "in" / name).mkdir()
        (once.folder / "in" / name / "x").write_text("x")
    assert once() == 1


def test_where_jobs_run_does_not_count(once):
    assert once("--nj", "1", "--cmd", "run.pl") == 1
    assert once("--nj", "2") == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("other")])
def test_an_output_that_is_lost_or_changed_is_made_again(once, damage):
    assert once() == 1
    damage(once.folder / "out")
    assert once() == 2
    assert once() == 2


def test_a_failure_is_remembered_as_nothing(once):
    assert once(script=COUNT + "; exit 3", status=1) == 1
    assert once() == 2


def test_force_and_missing_things(kernelam, once, tmp_path):
    assert once() == 1
    words = ["--", "bash", "-c", COUNT, "in/a"]
    assert kernelam("once", "--force", "--in", "in", "--out", "out", *words, cwd=tmp_path).returncode == 0
    assert once() == 2
    done = kernelam("once", "--in", "nowhere", "--out", "out", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "nowhere, which bash reads, is not there: run the stage that makes it" in done.stderr
    done = kernelam("once", "--out", "never", *words, cwd=tmp_path)
    assert "did not make never" in done.stderr


@pytest.mark.parametrize("script", ["exit 3", "echo new > made/one; exit 3", "interrupted"])
def test_what_is_forced_and_fails_leaves_what_was_there(once, script, monkeypatch):
    make = "mkdir -p made; for x in one two; do [[ -e made/$x ]] || echo $RANDOM > made/$x; done"
    places = [Path("in")], [Path("made")]

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def contents() -> dict[str, str]:
        return {path.name: path.read_text() for path in Path("made").iterdir()}

    with contextlib.chdir(once.folder):
        run_once(*places, ["bash", "-c", make], force=False)
        before = contents()
        with monkeypatch.context() as patched:
            if script == "interrupted":
                patched.setattr(current.subprocess, "run", interrupted)
            with pytest.raises((KernelamError, KeyboardInterrupt)):
                run_once(*places, ["bash", "-c", script], force=True)
        assert contents() == before
        run_once(*places, ["bash", "-c", make], force=True)
        assert contents().keys() == before.keys()
        assert contents() != before


def test_a_record_that_names_no_output_or_another_file_is_not_believed(once):
    assert once() == 1
    (record,) = (path for path in (once.folder / ".once").glob("*.json") if path.name != "digests.json")
    told = json.loads(record.read_text())
    record.write_text(json.dumps({**told, "outputs": {}}))
    assert once() == 2
    (once.folder / "dear").write_text("kept")
    record.write_text(json.dumps({**told, "outputs": {"out": "", "dear": "", "out/../dear": ""}}))
    with contextlib.chdir(once.folder):
        run_once([Path("in")], [Path("out")], ["touch", "out"], force=True)
    assert (once.folder / "dear").read_text() == "kept"
