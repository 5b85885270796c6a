"""Processes that share a model come to what one comes to, and one can go on where they were killed."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from test_combine_models import write_data, write_states

from kernelam import launch
from kernelam.cli.together import command
from kernelam.errors import KernelamError
from kernelam.kaldi.ark import read_ark
from kernelam.models.arrays import read_arrays
from kernelam.ranks import current, joined
from kernelam.training import checkpoint

PLACES = ("made/data", "made/data", "made/lang", "made/ali", "made/ali")
KERNEL = ("train", "kernel", "--num-features", "46", "--rates", "1", "--splice", "0", "--precondition", "4")
SELECTED = (*KERNEL, "--bottleneck", "3", "--selection", "4", "--max-epochs", "2")
DNN = ("train", "dnn", "--layers", "2", "--width", "8", "--rates", "0.1 0.2", "--splice", "0", "--max-epochs", "2")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    write_data(folder / "made", write_states(folder / "made/ali"))
    return folder


def together(
    work: Path, processes: int, *words: str, stderr: Any = subprocess.PIPE, before: str = ""
) -> "subprocess.Popen[str]":
    """`before` is a folder that Python looks in before those of kernelam."""
    env = {**os.environ, "PYTHONPATH": f"{before}:{Path(__file__).parents[2]}", "OMP_NUM_THREADS": str(processes)}
    command = [sys.executable, "-m", "kernelam", "together", str(processes), *words]
    return subprocess.Popen(command, cwd=work, env=env, text=True, stderr=stderr, start_new_session=True)


def run(work: Path, processes: int, *words: str) -> str:
    """What is said."""
    process = together(work, processes, *words)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    return said


def assert_same_models(one: Path, other: Path) -> None:
    (ours, about), (theirs, theirs_about) = (read_arrays(folder / "model.safetensors") for folder in (one, other))
    assert about == theirs_about
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.shape == theirs[name].shape
        assert np.allclose(array, theirs[name], rtol=1e-4, atol=1e-5), name


def test_two_processes_share_features_and_select_from_all_of_them(work):
    for processes in (1, 2):
        run(work, processes, *SELECTED, *PLACES, f"selected.{processes}")
    assert_same_models(work / "selected.1", work / "selected.2")
    stories = [(work / f"selected.{processes}/selection.json").read_bytes() for processes in (1, 2)]
    assert stories[0] == stories[1]
    for processes in (1, 2):
        run(work, processes, "forward", "selected.2", "made/data", f"likes.{processes}")
    likes = [dict(read_ark(work / f"likes.{processes}")) for processes in (1, 2)]
    assert likes[0].keys() == likes[1].keys()
    assert all(np.allclose(likes[0][utt], likes[1][utt], atol=1e-5) for utt in likes[0])


def test_four_processes_share_features_and_frames(work):
    run(work, 1, *KERNEL, "--max-epochs", "2", *PLACES, "grid.1")
    run(work, 4, *KERNEL, "--max-epochs", "2", "--frame-shards", "2", *PLACES, "grid.4")
    assert_same_models(work / "grid.1", work / "grid.4")


def test_the_step_starts_processes_that_share_features(work, root):
    run(work, 1, *KERNEL, "--max-epochs", "1", *PLACES, "step.1")
    words = ("--ranks", "2", *KERNEL[2:], "--max-epochs", "1", *PLACES, "step.2")
    done = subprocess.run([root / "steps/train_kernel.sh", *words], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "together 2" in (work / "step.2/log/train.log").read_text()
    assert_same_models(work / "step.1", work / "step.2")


def test_two_processes_share_the_frames_of_a_network(work):
    for processes in (1, 2):
        run(work, processes, *DNN, *PLACES, f"dnn.{processes}")
    assert_same_models(work / "dnn.1", work / "dnn.2")


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120.0
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children(process: "subprocess.Popen[str]") -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
    return [int(word) for word in listed.stdout.split()]


def test_a_lost_process_is_replaced_and_one_goes_on_where_two_were_killed(work):
    words = (*KERNEL, "--max-epochs", "400", *PLACES)
    run(work, 1, *words, "whole")
    process = together(work, 2, *words, "lost")
    wait_for(work / "lost/checkpoint.safetensors", process)
    os.kill(children(process)[-1], signal.SIGKILL)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    assert "was ended by SIGKILL: starting all 2 again" in said
    assert "going on after epoch" in said
    assert_same_models(work / "whole", work / "lost")

    process = together(work, 2, *words, "killed")
    wait_for(work / "killed/checkpoint.previous.safetensors", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    said = run(work, 1, *words, "killed")
    assert "going on after epoch" in said
    assert_same_models(work / "whole", work / "killed")


def test_processes_that_are_started_again_have_as_many_threads(monkeypatch):
    seen: list[str] = []
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "8")
    monkeypatch.setattr(logging, "disable", lambda level: None)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    started = lambda config, program: lambda *words: seen.append(os.environ["OMP_NUM_THREADS"])  # noqa: E731
    monkeypatch.setattr("torch.distributed.launcher.api.elastic_launch", started)
    assert [launch.launch(4, ["train"]), launch.launch(4, ["train"])] == [0, 0]
    assert seen == ["2", "2"]


@pytest.mark.parametrize(("word", "times"), [("train", 4), ("forward", 1)])
def test_what_was_written_to_a_pipe_is_not_written_again(monkeypatch, word, times):
    calls: list[int] = []

    def lose(processes: int, command: tuple[str, ...]) -> int:
        calls.append(processes)
        raise launch.Lost("it is lost")

    monkeypatch.setattr(launch, "launch", lose)
    with pytest.raises(launch.Lost):
        command.main(["2", word, "ark:-"], standalone_mode=False)
    assert len(calls) == times


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_processes_end_with_the_one_that_started_them(work, tmp_path, number):
    log = tmp_path / "log"
    with open(log, "w") as stream:
        process = together(work, 2, *KERNEL, "--max-epochs", "100000", *PLACES, f"ended.{number}", stderr=stream)
    wait_for(work / f"ended.{number}/checkpoint.safetensors", process)
    others = children(process)
    assert len(others) == 2
    process.send_signal(number)
    assert process.wait(timeout=20) == (1 if number != signal.SIGKILL else -number)
    deadline = time.monotonic() + 20.0
    while any(Path(f"/proc/{other}").exists() for other in others):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    if number != signal.SIGKILL:
        assert log.read_text().splitlines()[-1] == f"kernelam together: ended by {number.name}"
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--kernel", "linear"),
            "kernelam train kernel: several processes share random features: linear and posteriors",
        ),
        (("--optimiser", "sag", "--precondition", "0"), "--optimiser sag, with its table of all frames, is for one"),
        (("--num-features", "2"), "1 random frequencies are too few for 2 processes: start fewer of them"),
        (("--frame-shards", "3"), "2 processes do not make 3 equal groups that share frames"),
    ],
)
def test_what_cannot_be_shared_is_refused_in_one_sentence(work, words, sentence):
    process = together(work, 2, *KERNEL, *words, *PLACES, "refused")
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 1
    assert sentence in said.splitlines()[-1]
    assert len([line for line in said.splitlines() if line.startswith("kernelam")]) == 1
    assert "Traceback" not in said
    assert not (work / "refused/model.json").exists()


def test_what_one_process_alone_finds_wrong_is_told(work, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, kernelam.memory\nif os.environ.get('RANK') == '1': kernelam.memory.available = lambda device: 0\n"
    )
    process = together(work, 2, *KERNEL, *PLACES, "short", before=str(tmp_path))
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 1
    assert said.splitlines()[-1].endswith("take less (process 2 of 2)")
    assert "is gone" not in said


def test_other_commands_are_for_one_process(work):
    process = together(work, 2, "validate", "made/data")
    assert process.communicate(timeout=120)[1].splitlines() == [
        "kernelam: this command runs in one process; several can share only train kernel, train dnn and forward"
    ]
    assert process.returncode == 1


def apart(program: str, words: list[list[str]]) -> list[str]:
    """The last lines that processes say which were started as on as many machines, each with words of its own."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        told = {"TORCHELASTIC_RUN_ID": "apart", "MASTER_ADDR": "localhost", "MASTER_PORT": str(free.getsockname()[1])}
    env = {**os.environ, **told, "PYTHONPATH": str(Path(__file__).parents[2]), "WORLD_SIZE": str(len(words))}
    env |= {"OMP_NUM_THREADS": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, *own],
            env={**env, "RANK": str(rank)},
            text=True,
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
        )
        for rank, own in enumerate(words)
    ]
    return [process.communicate(timeout=60)[0].splitlines()[-1] for process in processes]


READ = """
import sys
from pathlib import Path
from kernelam.ranks import joined
from kernelam.training import checkpoint
with joined("cpu"):
    print(checkpoint.read(Path(sys.argv[1]), "run") is not None)
"""


def test_processes_go_on_from_one_checkpoint(tmp_path):
    for folder in ("one", "other"):
        checkpoint.write(tmp_path / folder / "file", {"theta": torch.zeros(3)}, {"epoch": 1}, "run")
    one, other, absent = ([str(tmp_path / folder / "file")] for folder in ("one", "other", "absent"))
    assert apart(READ, [one, other]) == ["True", "True"]
    said = apart(READ, [one, absent])
    assert said[0] == "True"
    assert f"this process finds something else in {absent[0]} than the first one" in said[1]


@pytest.mark.parametrize(("gpus", "sentence"), [(2, None), (1, "2 processes share this machine, which has 1 GPUs")])
def test_every_process_has_a_gpu_and_waits_without_it(monkeypatch, gpus, sentence):
    """nccl can send nothing that is in the memory of the CPU, as models are that are written."""
    names = ("TORCHELASTIC_RUN_ID", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK", "LOCAL_RANK")
    for name, value in zip(names, ("test", "2", "2", "0", "0"), strict=True):
        monkeypatch.setenv(name, value)
    groups: list[str] = []
    chosen: list[str] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(dist, "init_process_group", groups.append)
    monkeypatch.setattr(dist, "new_group", lambda ranks=None, **options: options.get("backend", "nccl"))
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    waited: list[str] = []
    monkeypatch.setattr(dist, "barrier", waited.append)
    with pytest.raises(KernelamError, match=sentence) if sentence else nullcontext(), joined("cuda") as device:
        assert device == "cuda:0"
        current().wait()
        assert (groups, chosen, waited) == (["nccl"], ["cuda:0"], ["gloo"])
    with pytest.raises(KernelamError, match="say --device cuda, not cuda:1"), joined("cuda:1"):
        pass


def test_of_a_damaged_checkpoint_the_one_before_is_used(tmp_path, capsys):
    path = tmp_path / "checkpoint.safetensors"
    for epoch in (1, 2, 3):
        checkpoint.write(path, {"theta": torch.full((5, 3), float(epoch))}, {"epoch": epoch}, "run")
    data = bytearray(path.read_bytes())
    data[-7] ^= 1  # a number that is as good as any other
    path.write_bytes(data)
    found = checkpoint.read(path, "run")
    assert found is not None
    assert found[1]["epoch"] == 2
    assert bool((found[0]["theta"] == 2.0).all())
    assert "is damaged: its digest is not the one it was written with" in capsys.readouterr().err
    checkpoint.previous(path).write_bytes(b"")
    assert checkpoint.read(path, "run") is None


def test_the_bench_of_processes_compares_steps_losses_and_traffic(kernelam, tmp_path):
    done = kernelam("bench", "ranks", "--quick", "--json", tmp_path / "bench.json")
    assert done.returncode == 0, done.stderr
    assert "2 processes, a core each" in done.stdout
    whole, narrow = json.loads((tmp_path / "bench.json").read_text())
    for row in (whole, narrow):
        assert row["several"]["reduced"] == row["summed"]
        assert row["loss"] < 1e-5
        assert row["one"]["reduced"] == 0
    assert (whole["summed"], narrow["summed"]) == (4 * 256 * 24, 4 * 256 * 8)
    assert whole["flops"] == 2 * 256 * (20 * 2000 + 2 * 2000 * 24)
