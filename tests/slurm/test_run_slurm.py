"""utils/run_slurm.sh with a real Slurm of one node."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from one_node import PROGRAMS, slurm

RUNNER = Path(__file__).resolve().parents[2] / "utils/run_slurm.sh"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def environment(need_program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    for program in PROGRAMS:
        need_program(program)
    with slurm(tmp_path_factory.mktemp("slurm")) as variables:
        yield {**os.environ, **variables, "KERNELAM_SLURM_INTERVAL": "1"}


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    def call(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [RUNNER, *args], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )

    return call


def queue(environment: dict[str, str]) -> list[str]:
    listed = subprocess.run(["squeue", "-h", "-r", "-o", "%F_%K"], env=environment, capture_output=True, text=True)
    return listed.stdout.split()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def begun(folder: Path) -> list[str]:
    return (folder / "began").read_text().split() if (folder / "began").exists() else []


def test_an_array_with_logs_in_place(run: Run, tmp_path: Path) -> None:
    command = ("echo", "it's JOB", "$HOME", "|", "sed", "s/it/that/", ">", "out.JOB")
    done = run("--mem", "100M", "--num-threads", "2", "--max-jobs-run", "2", "JOB=2:4", "log/x.JOB.log", *command)
    assert done.returncode == 0, done.stderr
    for job in (2, 3, 4):
        assert (tmp_path / f"out.{job}").read_text() == f"that's {job} $HOME\n"
        log = (tmp_path / f"log/x.{job}.log").read_text()
        assert "# Accounting: time=" in log
        assert "threads=2" in log
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == ["x.2.log", "x.3.log", "x.4.log"]


def test_a_job_that_fails_once_is_tried_again(run: Run, tmp_path: Path) -> None:
    once = "test -e done.JOB && exit; touch done.JOB; echo first >&2; test JOB != 2"
    done = run("JOB=1:3", "x.JOB.log", "bash", "-c", once)
    assert done.returncode == 0, done.stderr
    assert "job 2 failed, and is submitted again (log of this try: x.2.log.try1)" in done.stderr
    assert "first" in (tmp_path / "x.2.log.try1").read_text()
    assert "(code 0)" in (tmp_path / "x.2.log").read_text()
    assert not (tmp_path / "x.1.log.try1").exists()


def test_a_job_that_always_fails_is_reported(run: Run, tmp_path: Path) -> None:
    done = run("--retries", "1", "JOB=1:2", "x.JOB.log", "bash", "-c", "echo try >> tries.JOB; exit $((JOB - 1))")
    assert done.returncode == 1
    assert "1 of 2 jobs failed, logs are in x.*.log" in done.stderr
    assert "(code 1)" in done.stderr
    assert (tmp_path / "tries.2").read_text() == "try\ntry\n"
    assert (tmp_path / "tries.1").read_text() == "try\n"


def test_a_cancelled_job_is_tried_again_and_then_reported(environment, tmp_path: Path) -> None:
    command = ["JOB=1:2", "x.JOB.log", "bash", "-c", "echo JOB >> began; sleep $((60 * (JOB - 1)))"]
    with subprocess.Popen([RUNNER, *command], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as call:
        for tries in (1, 2):
            wait_for(lambda tries=tries: begun(tmp_path).count("2") == tries)
            subprocess.run(["scancel", *[one for one in queue(environment) if one.endswith("_2")]], env=environment)
        assert call.stderr is not None
        said = call.stderr.read()
    assert call.returncode == 1
    assert "job 2 was lost, cancelled or killed, and is submitted again" in said
    assert "1 of 2 jobs failed" in said
    assert "run_slurm.sh: the job was lost, cancelled or killed" in (tmp_path / "x.2.log").read_text()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_in_the_queue(environment, tmp_path: Path, how: signal.Signals) -> None:
    command = [RUNNER, "JOB=1:3", "x.JOB.log", "sleep", "60"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as call:
        wait_for(lambda: len(queue(environment)) == 3)
        call.send_signal(how)
    wait_for(lambda: not queue(environment) and not list(tmp_path.glob(".slurm.*")))
    assert call.returncode != 0


def test_what_slurm_refuses_is_a_sentence(run: Run, tmp_path: Path) -> None:
    done = run("--partition", "nosuch", "x.log", "true")
    assert done.returncode == 1
    assert "sbatch refuses: " in done.stderr
    assert "nvalid partition" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_slurm_it_says_so(tmp_path: Path) -> None:
    for name in ("env", "bash", "dirname", "readlink"):
        program = shutil.which(name)
        assert program
        (tmp_path / name).symlink_to(program)
    env = {"PATH": str(tmp_path)}
    done = subprocess.run([RUNNER, "x.log", "true"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "there is no sbatch here: Slurm is not installed" in done.stderr
    assert not (tmp_path / "x.log").exists()
