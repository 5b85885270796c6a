"""Options, usage and errors, in a step (utils/script.sh) and in a Kaldi user's script (utils/parse_options.sh)."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]

STEP = """#!/usr/bin/env bash
# Do something to a data directory.
# e.g.: step.sh --num-jets 3 data/train exp
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

num_jets=1        # how many
name="a b"        # what it is called
fast=false        # hurry
stage=0           # first stage
parse_options "$@"
usage 2 3
set -- "${args[@]}"
need "$1"
echo "$num_jets|$name|$fast|$stage|$*"
"""
KALDI = """#!/usr/bin/env bash
# A user's own script.
num_jets=1
name="a b"
fast=false
stage=0
. parse_options.sh || exit 1;
[ $# -eq 2 ] || exit 9
echo "$num_jets|$name|$fast|$stage|$*"
"""


@pytest.fixture(params=["step", "kaldi"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Call the script from a folder with another toolkit's path.sh, steps and utils."""
    toolkit, elsewhere = tmp_path / "toolkit", tmp_path / "elsewhere"
    for folder in (toolkit / "steps", elsewhere / "utils", elsewhere / "data"):
        folder.mkdir(parents=True)
    (toolkit / "utils").symlink_to(ROOT / "utils")
    for name in ("path.sh", "utils/parse_options.sh", "utils/script.sh"):
        (elsewhere / name).write_text("echo the wrong toolkit; exit 8\n")
    script = toolkit / "steps/step.sh"
    script.write_text(STEP if request.param == "step" else KALDI)
    script.write_text(script.read_text().replace('"$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/..', f'"{ROOT}'))

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PATH": f"{ROOT}/utils:{os.environ['PATH']}"}
        command = ["bash", str(script), *args]
        return subprocess.run(command, cwd=elsewhere, env=env, capture_output=True, text=True, timeout=60)

    return call


def fails(run: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert run.returncode == 1
    assert run.stdout == ""
    assert sentence in run.stderr


def test_defaults(run: Run) -> None:
    assert run("data", "exp").stdout == "1|a b|false|0|data exp\n"


def test_options_set_variables(run: Run) -> None:
    options = ["--num-jets", "3", "--name", "it's $HOME *", "--fast", "true", "--stage", "-1"]
    assert run(*options, "data", "e f").stdout == "3|it's $HOME *|true|-1|data e f\n"


def test_options_end_at_the_first_argument(run: Run) -> None:
    assert run("--fast", "true", "data", "--fast").stdout == "1|a b|true|0|data --fast\n"


def test_a_value_may_look_like_an_option_of_another_program(run: Run) -> None:
    assert run("--name", "--norm-vars=true", "data", "exp").stdout == "1|--norm-vars=true|false|0|data exp\n"


def test_command_line_wins_over_the_configuration_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "elsewhere/my.conf").write_text("num_jets=7  # seven\nname='from file'\n")
    assert run("--num-jets", "8", "--config", "my.conf", "data", "exp").stdout == "8|from file|false|0|data exp\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--num-jet", "3"], "step.sh: unknown option --num-jet"),
        (["--root", "/"], "step.sh: unknown option --root"),
        (["--num-jets=3"], "step.sh: options are of the form --name value, got --num-jets=3"),
        (["--fast", "yes"], "step.sh: option --fast takes true or false, not 'yes'"),
        (["--stage", "two"], "step.sh: option --stage takes a whole number, not 'two'"),
        (["--num-jets", "x[0]"], "step.sh: option --num-jets takes a whole number, not 'x[0]'"),
        (["--num-jets", "--fast", "true"], "step.sh: option --num-jets needs a value, got --fast"),
        (["--config", "none.conf"], "step.sh: no such file none.conf"),
    ],
)
def test_bad_options(run: Run, options: list[str], sentence: str) -> None:
    fails(run(*options, "data", "exp"), sentence)


@pytest.mark.parametrize("option", ["--num-jets", "--config"])
def test_value_missing(run: Run, option: str) -> None:
    fails(run(option), f"step.sh: option {option} needs a value")


def test_help(run: Run) -> None:
    shown = run("--fast", "true", "--help")
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert shown.stdout.startswith(("Do something to a data directory.\ne.g.: step.sh", "A user's own script.\n"))
    assert "--num-jets 1" in shown.stdout


@pytest.mark.parametrize("run", ["step"], indirect=True)
def test_what_steps_have_beside(run: Run) -> None:
    assert run("data", "exp").stderr.endswith("/steps/step.sh data exp\n")
    assert "  --num-jets 1                     how many\n" in run("--help").stdout
    fails(run("one"), "takes 2 to 3 arguments, got 1\nDo something to a data directory.\n")
    fails(run("1", "2", "3", "4"), "takes 2 to 3 arguments, got 4")
    fails(run("none", "exp"), "step.sh: no such file none")


@pytest.mark.parametrize("value", ["x", "0", "-1"])
def test_a_number_of_blocks_that_is_none_is_a_sentence(root, value):
    words = [root / "steps/train_kernel.sh", "--blocks", value, *"abcdef"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f"option --blocks takes a whole number of at least 1, not '{value}'" in ended.stderr
