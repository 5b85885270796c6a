"""Scripts of steps/ and utils/ in a copy of the toolkit under a folder with a space, with a stand-in for kernelam."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    str(script.relative_to(ROOT))
    for script in [*ROOT.glob("steps/*.sh"), *ROOT.glob("utils/*.sh")]
    if '/script.sh"\n\n' in script.read_text()
)
PATH_SH = """echo setting up >&2
PATH=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/utils/bin:$PATH
"""
KERNELAM = f"""#!/usr/bin/env bash
printf '<%s>' "$@" | tee -a calls
case "$1 $2" in
    "data split") PYTHONPATH='{ROOT}' exec '{sys.executable}' -m kernelam "$@" ;;
    align* | decode*)
        while [[ -e block ]]; do touch begun; sleep 0.05; done
        [[ -z ${{WRITE:-}} ]] || echo "$WRITE" > "${{@: -1}}"
        exit "${{FAIL:-0}}"
        ;;
esac
"""
INPUTS = (
    "feats.scp",
    "utt2spk",
    "text",
    "L.fst",
    "phones.txt",
    "words.txt",
    "final.mdl",
    "tree",
    "HCLG.fst",
    "cmvn.scp",
)
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a folder") / "the toolkit"
    for name in ("steps", "utils"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    (folder / "path.sh").write_text(PATH_SH)
    (folder / "utils/bin/kernelam").write_text(KERNELAM)
    return folder


@pytest.fixture
def run(toolkit: Path, tmp_path: Path) -> Run:
    """Call a script in a folder where `data` has every file that a script needs."""
    (tmp_path / "data").mkdir()
    for name in INPUTS:
        (tmp_path / "data" / name).write_text("a a\n")

    def call(script: str, *args: str) -> subprocess.CompletedProcess[str]:
        command = [toolkit / script, *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return call


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_and_mistakes_are_answered_before_set_up(run: Run, script: str) -> None:
    shown = run(script, "--help")
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert f"Usage: {script}" in shown.stdout
    for args, sentence in (["--no-such-thing", "1"], "unknown option --no-such-thing"), ([], "arguments, got 0\n"):
        failed = run(script, *args)
        assert failed.returncode == 1
        assert sentence in failed.stderr
        assert "setting up" not in failed.stderr


@pytest.mark.parametrize("cmd", [(), ("--cmd", "run_local.sh --mem 4G")])
def test_jobs_of_a_toolkit_under_a_folder_with_a_space(run: Run, tmp_path: Path, cmd: tuple[str, ...]) -> None:
    done = run("steps/compute_cmvn_stats.sh", *cmd, "data", "my log", "my cmvn")
    assert done.returncode == 0, done.stderr
    assert "setting up" in done.stderr
    assert "<features><cmvn><data><my cmvn/cmvn_data.ark>" in (tmp_path / "my log/cmvn_data.log").read_text()


def test_options_that_kernelam_parses(run: Run) -> None:
    done = run("utils/subset_data_dir.sh", "--per-spk", "data", "5", "a part")
    assert done.stdout == "<data><subset><--per-spk><data><5><a part>"


@pytest.mark.parametrize("kind", ["kernel", "dnn"])
def test_training(run: Run, tmp_path: Path, kind: str) -> None:
    script = f"steps/train_{kind}.sh"
    shown = run(script, "--help").stdout
    for option in ("--rates", "--max-epochs 0", "--cmd run_local.sh"):
        assert f"  {option} " in shown
    done = run(script, "--rates", "1 2", "--max-epochs", "3", *["data"] * 5, "exp")
    assert done.returncode == 0, done.stderr
    call = (tmp_path / "calls").read_text()
    assert call.startswith(f"<train><{kind}><--")
    assert "<--rates><1 2>" in call
    assert "<--max-epochs><3>" in call
    assert call.endswith("<data><data><data><data><data><exp>")


def test_networks_of_adamw_have_rates_of_their_own(run: Run, tmp_path: Path) -> None:
    """Those that kernelam has for it, where none are given: a hundredth of those of sgd."""
    assert run("steps/train_dnn.sh", "--optimiser", "adamw", *["data"] * 5, "exp").returncode == 0
    assert "<--rates><><--search" in (tmp_path / "calls").read_text()


@pytest.mark.parametrize("blocks", [1, 2])
def test_what_earlier_runs_of_a_training_told_is_kept(run: Run, tmp_path: Path, blocks: int) -> None:
    logs = [tmp_path / f"exp/log/{name}" for name in (["train.log"] if blocks == 1 else ["train.1.log", "train.2.log"])]
    for rates in "123":
        assert (
            run("steps/train_kernel.sh", "--rates", rates, "--blocks", str(blocks), *["data"] * 5, "exp").returncode
            == 0
        )
    for log in logs:
        earlier = log.with_name(f"{log.name}.bak").read_text()
        assert [f"<--rates><{rates}>" in log.read_text() for rates in "123"] == [False, False, True]
        assert [f"<--rates><{rates}>" in earlier for rates in "123"] == [True, True, False]


@pytest.mark.parametrize(
    ("script", "args", "old"),
    [
        ("steps/align_si.sh", ["data", "data", "data", "exp"], ["num_jobs", "ali.1.gz", "ali.9.gz"]),
        ("steps/decode.sh", ["data", "data", "data/exp"], ["num_jobs", "lat.9.gz", "wer_7_0.0", "scoring_kaldi"]),
    ],
)
def test_what_an_earlier_run_made_stays_until_jobs_end_well(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, args: list[str], old: list[str]
) -> None:
    folder = tmp_path / args[-1]
    folder.mkdir()
    for name in old:
        (folder / name).write_text("9\n")
    monkeypatch.setenv("FAIL", "1")
    failed = run(script, "--nj", "1", *args)
    assert failed.returncode == 1
    assert "job failed" in failed.stderr
    assert all((folder / name).read_text() == "9\n" for name in old)
    monkeypatch.delenv("FAIL")
    run(script, "--nj", "1", *args)
    assert (folder / "num_jobs").read_text() == "1\n"
    assert not [name for name in old if name != "num_jobs" and (folder / name).exists()]
    assert not (folder / ".new").exists()


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("script", "args"),
    [
        ("steps/align.sh", "--nj 3 four data data exp/x"),
        ("steps/decode.sh", "--nj 3 --skip-scoring true data four exp/x"),
        ("steps/train_mono.sh", "--nj 3 --num-iters 1 four data exp/x"),
    ],
)
def test_a_split_is_made_in_the_output_folder(run: Run, tmp_path: Path, script: str, args: str) -> None:
    for name in ("four/utt2spk", "four/text", "four/feats.scp", "data/topo", "exp/final.mdl", "exp/x/0.mdl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("".join(f"a-{number} a\n" for number in range(4)))
    (tmp_path / "exp/x/split9utt/9").mkdir(parents=True)
    before = listing(tmp_path / "four")
    done = run(script, *args.split())
    assert done.returncode == 0, done.stderr
    assert listing(tmp_path / "four") == before
    assert sorted(path.name for path in (tmp_path / "exp/x").glob("split*")) == ["split3utt"]
    calls = (tmp_path / "calls").read_text()
    for job in (1, 2, 3):
        assert f"<exp/x/split3utt/{job}>" in calls
    parts = [(tmp_path / f"exp/x/split3utt/{job}/text").read_bytes() for job in (1, 2, 3)]
    assert b"".join(parts) == before["text"]


@pytest.mark.parametrize("kind", ["mfcc", "fbank"])
def test_features(run: Run, tmp_path: Path, kind: str) -> None:
    """Splits are with the logs, parts with the features; neither needs a place in the data directory."""
    data, out = tmp_path / "data", tmp_path / "50%d off"
    for name in ("utt2spk", "text", "wav.scp", "cmvn.scp", "feats.scp"):
        (data / name).write_text("a a\nb b\n")
    expected = listing(data)
    expected[".backup/feats.scp"] = expected.pop("feats.scp")
    assert "  --write-utt2num-frames true " in run(f"steps/make_{kind}.sh", "--help").stdout
    args = ["--nj", "9", "--compress", "false", f"--{kind}-config", "data/text", "data", f"{out}/log", str(out)]
    done = run(f"steps/make_{kind}.sh", *args)
    assert done.returncode == 0, done.stderr
    assert listing(data) == expected
    calls = (tmp_path / "calls").read_text()
    name, options = f"raw_{kind}_data", "<--config><data/text><--compress><false><--resample><false>"
    for job in (1, 2):
        assert f"<features><{kind}>{options}<{out}/log/{name}/split2utt/{job}><{out}/{name}.parts/{job}>" in calls
    assert calls.endswith(f"<data><{out}/{name}.ark><{out}/{name}.parts/1><{out}/{name}.parts/2>")


def test_scoring_under_a_folder_with_a_per_cent_sign(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "50%d off/decode"
    folder.mkdir(parents=True)
    (folder / "num_jobs").write_text("2\n")
    done = run("steps/score.sh", "data", "data", str(folder))
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text()
    assert "<score><write>" in calls
    assert calls.endswith(f"<data><{folder}><{folder}/paths.1><{folder}/paths.2>")
    (folder / "num_jobs").write_text("two\n")
    done = run("steps/score.sh", "data", "data", str(folder))
    assert done.returncode == 1
    assert f"{folder}/num_jobs does not hold a number of jobs" in done.stderr


def test_alignment_keeps_all_transforms_and_nothing_of_an_earlier_model(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sat").mkdir()
    (tmp_path / "exp").mkdir()
    for job in (1, 2, 3, 4):  # the fourth is older
        (tmp_path / f"sat/trans.{job}").write_text(f"{job}")
    for name in ("final.mat", "splice_opts", "trans.7"):
        (tmp_path / "exp" / name).write_text("of a model with LDA")
    for name in ("utt2spk", "text", "feats.scp"):
        (tmp_path / "data" / name).write_text("a-1 a\na-2 a\n")
    args = ["--nj", "2", "--transform-dir", "sat", "data", "data", "data"]
    done = run("steps/align.sh", *args, "exp")
    assert done.returncode == 1
    assert "no such file sat/num_jobs" in done.stderr
    (tmp_path / "sat/num_jobs").write_text("3\n")
    done = run("steps/align.sh", *args, "exp")
    assert done.returncode == 0, done.stderr
    kept = {path.name: path.read_text() for path in (tmp_path / "exp").glob("trans.*")}
    assert kept == {"trans.1": "123", "trans.2": ""}
    assert not (tmp_path / "exp/final.mat").exists()
    assert not (tmp_path / "exp/splice_opts").exists()
    done = run("steps/align.sh", *args, "sat")
    assert done.returncode == 1
    assert "sat is the directory of the transforms" in done.stderr
    assert (tmp_path / "sat/trans.3").read_text() == "3"


@pytest.mark.parametrize(
    ("script", "args", "file", "said"),
    [
        ("steps/align.sh", "data data data exp", "model.json", "exp has a model"),
        ("steps/train_mono.sh", "data data exp", "model.safetensors", "exp has a model"),
        (
            "steps/train_deltas.sh",
            "10 20 data data data exp",
            "model.safetensors",
            "exp has a model",
        ),
        ("steps/train_kernel.sh", "data data data data data exp", "utt2spk", "exp is a data directory"),
        ("steps/align.sh", "data data data exp", "utt2spk", "exp is a data directory"),
    ],
)
def test_models_and_data_are_not_written_over(
    run: Run, tmp_path: Path, script: str, args: str, file: str, said: str
) -> None:
    for name in ("utt2spk", "text", "feats.scp", "num_jobs", "topo"):
        (tmp_path / "data" / name).write_text("a-1 a\na-2 a\n")
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / file).write_text("{}")
    done = run(script, *args.split())
    assert done.returncode == 1
    assert said in done.stderr
    assert [path.name for path in (tmp_path / "exp").iterdir()] == [file]


def test_scales_of_alignment_are_kaldi_options(run: Run, tmp_path: Path) -> None:
    scales = "--transition-scale=0.5 --acoustic-scale=0.2 --self-loop-scale=0.3"
    run(
        "steps/align.sh",
        "--nj",
        "1",
        "--scale-opts",
        scales,
        "--beam",
        "8",
        "--boost-silence",
        "1.5",
        *["data"] * 3,
        "exp",
    )
    call = (tmp_path / "calls").read_text()
    assert "<--transition-scale=0.5><--acoustic-scale=0.2><--self-loop-scale=0.3><--boost-silence><1.5>" in call


def alone(toolkit: Path, folder: Path, work: str) -> subprocess.Popen[str]:
    """A script that is alone in `folder` while it does `work`."""
    script = f"set -euo pipefail; . '{toolkit}/utils/script.sh'; alone_in '{folder}'; {work}"
    return subprocess.Popen(["bash", "-c", script], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def appears(path: Path) -> bool:
    for _ in range(400):
        if path.exists():
            return True
        time.sleep(0.05)
    return False


def test_one_script_at_a_time_in_a_folder(toolkit: Path, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    link = tmp_path / "same"
    link.symlink_to("x")
    first = alone(
        toolkit, tmp_path / "x", f"cd {tmp_path}; touch in; until [[ -e go ]]; do sleep 0.05; done; touch one"
    )
    assert appears(tmp_path / "in")
    second = alone(toolkit, link, f"cd {tmp_path}; [[ -e one ]] && echo second")
    assert second.stderr is not None
    assert "waiting for it to end" in "".join(second.stderr.readline() for _ in range(2))
    assert second.poll() is None
    (tmp_path / "go").touch()
    assert second.communicate(timeout=20)[0] == "second\n"
    assert first.wait(20) == 0


def test_a_script_that_is_killed_holds_nothing(toolkit: Path, tmp_path: Path) -> None:
    first = alone(toolkit, tmp_path, f"cd '{tmp_path}'; sleep 60 & echo $! > part; mv part job; wait")
    assert appears(tmp_path / "job")
    waits = alone(toolkit, tmp_path, "echo second")
    first.kill()
    first.wait()
    with pytest.raises(subprocess.TimeoutExpired):  # what it started still works there
        waits.wait(0.3)
    os.kill(int((tmp_path / "job").read_text()), signal.SIGKILL)
    assert waits.communicate(timeout=20)[0] == "second\n"


def test_a_script_that_another_calls_is_not_kept_waiting(toolkit: Path, tmp_path: Path) -> None:
    inner = f"bash -c \". '{toolkit}/utils/script.sh'; alone_in '{tmp_path}/.'; echo inner\""
    assert alone(toolkit, tmp_path, inner).communicate(timeout=20)[0] == "inner\n"


def test_a_step_that_is_killed_and_called_again(toolkit: Path, run: Run, tmp_path: Path) -> None:
    """Its jobs live on; the second call waits for them and begins anew."""
    (tmp_path / "block").touch()
    command = [toolkit / "steps/decode.sh", "--nj", "1", "--skip-scoring", "true", "data", "data", "data/exp"]

    def start(number: int) -> subprocess.Popen[str]:
        env = {**os.environ, "WRITE": f"{number}"}
        return subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)

    first = start(1)
    assert appears(tmp_path / "begun")
    first.kill()
    first.wait()
    second = start(2)
    assert second.stderr is not None
    assert any("waiting for it to end" in line for line in iter(second.stderr.readline, ""))
    (tmp_path / "block").unlink()
    assert second.wait(20) == 0
    assert (tmp_path / "data/exp/lat.1.gz").read_text() == "2\n"
    assert (tmp_path / "data/exp/num_jobs").read_text() == "1\n"
    assert not (tmp_path / "data/exp/.new").exists()


def test_a_training_that_fails_leaves_how_the_features_of_the_model_were_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data/feature_opts").write_text("new\n")
    (tmp_path / "exp").mkdir()
    kept = tmp_path / "exp/feature_opts"
    kept.write_text("old\n")
    for name in ("dnn", "kernel", "multilayer", "pursuit", "ridge", "svm"):
        assert run(f"steps/train_{name}.sh", "--cmd", "false", *["data"] * 5, "exp").returncode == 1
        assert kept.read_text() == "old\n"
    assert run("steps/train_dnn.sh", *["data"] * 5, "exp").returncode == 0
    assert kept.read_text() == "new\n"
