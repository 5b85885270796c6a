"""utils/run_local.sh: Kaldi's run.pl, in bash."""

import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[2] / "utils/run_local.sh"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([RUNNER, *args], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return call


def test_log_is_framed_as_kaldi_frames_it(run: Run, tmp_path: Path) -> None:
    assert run("--num-threads", "2", "exp/log/x.log", "bash", "-c", "echo out; echo err >&2").returncode == 0
    log = (tmp_path / "exp/log/x.log").read_text()
    day = r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \S+ \d{4}"
    assert re.fullmatch(
        rf"# bash -c 'echo out; echo err >&2'\n# Started at {day}\n#\nout\nerr\n"
        rf"# Accounting: time=\d threads=2\n# Ended \(code 0\) at {day}, elapsed time \d seconds\n",
        log,
    )


@pytest.mark.parametrize("name", ["JOB", "SPLIT"])
def test_job_numbers_are_put_everywhere(run: Run, tmp_path: Path, name: str) -> None:
    assert run(f"{name}=2:4", f"log/{name}/x.{name}.log", "echo", f"a{name}b", f"{name} {name}").returncode == 0
    for job in (2, 3, 4):
        assert f"\na{job}b {job} {job}\n" in (tmp_path / f"log/{job}/x.{job}.log").read_text()
    assert len(list(tmp_path.glob("log/*"))) == 3


def test_one_job(run: Run, tmp_path: Path) -> None:
    assert run("JOB=3", "x.JOB.log", "echo", "job", "JOB").returncode == 0
    assert "\njob 3\n" in (tmp_path / "x.3.log").read_text()


def test_arguments_reach_the_command_unharmed(run: Run, tmp_path: Path) -> None:
    arguments = [
        "it's",
        'say "no"',
        "$HOME `id` $(id)",
        "ark:gunzip -c x|",
        "<s>",
        "a\nb",
        "\\",
        "",
        "*",
        "a;b",
        "~",
        "!x",
    ]
    show = "import sys; open('seen', 'w').write(repr(sys.argv[1:]))"
    assert run("x.log", sys.executable, "-c", show, *arguments).returncode == 0
    assert (tmp_path / "seen").read_text() == repr(arguments)
    assert (tmp_path / "x.log").read_text().startswith("# ")
    assert "\n# b'" in (tmp_path / "x.log").read_text()  # a command of two lines stays a comment


def test_operators(run: Run, tmp_path: Path) -> None:
    command = [
        "printf",
        "%s\\n",
        "b",
        "a",
        "|",
        "sort",
        ">",
        "out.JOB",
        "&&",
        "cat",
        "<",
        "out.JOB",
        ">>",
        "all",
        "2>&1",
    ]
    assert run("--max-jobs-run", "1", "JOB=1:2", "x.JOB.log", *command).returncode == 0
    assert (tmp_path / "all").read_text() == "a\nb\na\nb\n"


def test_a_failure_inside_a_pipe_is_a_failure(run: Run) -> None:
    assert run("x.log", "false", "|", "cat").returncode == 1


def test_failure_shows_the_first_log(run: Run, tmp_path: Path) -> None:
    done = run("JOB=1:12", "log/x.JOB.log", "bash", "-c", "echo sentence JOB >&2; ((JOB < 9)) || exit 3")
    assert done.returncode == 1
    first, second, *tail = done.stderr.splitlines()
    assert first == "run_local.sh: 4 of 12 jobs failed, logs are in log/x.*.log"
    assert second == "run_local.sh: last lines of log/x.9.log:"
    assert "    sentence 9" in tail
    assert "# Ended (code 3)" in (tmp_path / "log/x.12.log").read_text()


@pytest.mark.parametrize(
    "sentence", ["kernelam train dnn: option --layers takes …", "steps/score.sh: no such file a b"]
)
def test_failure_ends_with_the_sentence_of_the_job(run: Run, sentence: str) -> None:
    done = run("x.log", "bash", "-c", f"echo other.sh: began; echo '{sentence}'; exit 1")
    assert done.stderr.splitlines()[-1] == sentence
    killed = run("x.log", "bash", "-c", f"echo '{sentence}'; echo more; kill -9 $$")
    assert killed.stderr.splitlines()[-1] == "run_local.sh: it was killed, perhaps for want of memory"


def test_failure_of_one(run: Run) -> None:
    done = run("x.log", "no-such-program")
    assert done.returncode == 1
    assert done.stderr.startswith("run_local.sh: job failed, log is in x.log\n")
    assert "no-such-program: command not found" in done.stderr


def test_a_killed_job_may_have_lacked_memory(run: Run) -> None:
    assert "perhaps for want of memory" in run("x.log", "bash", "-c", "kill -9 $$").stderr


def test_options_of_other_runners_are_ignored(run: Run) -> None:
    options = ["--mem", "4G", "-l", "arch=*64 x", "-V", "-pe", "smp", "4", "--gpu", "0", "-q", "all.q"]
    assert run(*options, "JOB=1:2", "--max-jobs-run", "2", "x.JOB.log", "true").returncode == 0


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["x.log"], "takes a log file and a command"),
        (["JOB=1:2", "x.log", "true"], "2 jobs cannot share the log x.log; put JOB in its name"),
        (["JOB=0:2", "x.JOB.log", "true"], "bad range of jobs JOB=0:2"),
        (["JOB=3:2", "x.JOB.log", "true"], "bad range of jobs JOB=3:2"),
        (["--num-threads", "many", "x.log", "true"], "--num-threads, --max-jobs-run and --gpu take numbers"),
        (["/dev/null/x.log", "true"], "cannot write the log /dev/null/x.log"),
    ],
)
def test_bad_calls(run: Run, args: list[str], sentence: str) -> None:
    done = run(*args)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_logs_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.log").mkdir()
    done = run("x.log", "touch", "begun")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.endswith("run_local.sh: cannot write the log x.log\n")
    assert not (tmp_path / "begun").exists()


def test_a_log_that_stays_empty(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk that is full."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    command = [RUNNER, "x.log", "bash", "-c", "exit 1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert done.returncode == 1
    assert "job failed, log is in x.log" in done.stderr
    assert "run_local.sh: it is empty: perhaps the disk is full" in done.stderr


def test_threads(run: Run, tmp_path: Path) -> None:
    run("--num-threads", "3", "x.log", "env")
    log = (tmp_path / "x.log").read_text()
    assert all(f"{name}_NUM_THREADS=3" in log for name in ("OMP", "MKL", "OPENBLAS"))


def test_no_more_jobs_at_once_than_asked(run: Run, tmp_path: Path) -> None:
    count = "touch on.JOB; sleep 0.2; set -- on.*; echo $#; sleep 0.2; rm on.JOB"
    assert run("--max-jobs-run", "2", "JOB=1:6", "x.JOB.log", "bash", "-c", count).returncode == 0
    seen = [int(log.read_text().splitlines()[3]) for log in tmp_path.glob("x.*.log")]
    assert max(seen) == 2


def alive(mark: Path) -> bool:
    """Does the process that wrote its number into `mark` still run? A zombie does not."""
    pid = mark.read_text().strip()
    if Path("/proc/self/stat").exists():
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return subprocess.run(["ps", "-p", pid], capture_output=True).returncode == 0


def until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def heed_signals() -> None:
    """Bash cannot trap what was ignored before, as by nohup."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_jobs_end_with_the_runner(tmp_path: Path, number: signal.Signals, status: int) -> None:
    job = ["bash", "-c", "echo $$ > m.JOB.part; mv m.JOB.part m.JOB; exec sleep 60", "|", "cat"]
    runner = subprocess.Popen(
        [RUNNER, "--max-jobs-run", "2", "JOB=1:3", "x.JOB.log", *job],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
        preexec_fn=heed_signals,
    )
    marks = [tmp_path / "m.1", tmp_path / "m.2"]
    assert until(lambda: all(mark.exists() for mark in marks))
    assert all(map(alive, marks))
    runner.send_signal(number)
    assert runner.wait(20) == status
    assert until(lambda: not any(map(alive, marks)))
    assert not (tmp_path / "m.3").exists()


def test_first_job_gets_the_terminal(tmp_path: Path) -> None:
    """Its descriptor is handed on through KERNELAM_PROGRESS_FD; what the job prints is still in its log."""
    show = "import os; n = os.environ['KERNELAM_PROGRESS_FD']; n and os.write(int(n), b'bar JOB'); print('n', n)"
    master, slave = pty.openpty()
    command = [RUNNER, "JOB=1:2", "x.JOB.log", sys.executable, "-c", show]
    done = subprocess.run(command, cwd=tmp_path, stderr=slave, timeout=60)
    os.close(slave)
    assert done.returncode == 0
    assert os.read(master, 100) == b"bar 1"
    os.close(master)
    assert "\nn 3\n" in (tmp_path / "x.1.log").read_text()
    assert "\nn \n" in (tmp_path / "x.2.log").read_text()
