"""path.sh, in a small copy of the toolkit whose only requirement is a wheel made here: no network is used."""

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pip
import pytest

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
UNREACHABLE = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}


def bash(command: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "KERNELAM_", "VIRTUAL_ENV", "CONDA_"))}
    return subprocess.run(
        ["bash", "--norc", "-c", command],
        cwd=cwd,
        env={**clean, **OFFLINE, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def wheel(folder: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"version = '{version}'\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


def make_toolkit(folder: Path, dependencies: str = '"tiny==1.0"') -> Path:
    (folder / "kernelam").mkdir(parents=True)
    for name in ("path.sh", "kernelam/requirements.py"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "pyproject.toml").write_text(f"[project]\ndependencies = [{dependencies}]\n")
    (folder / "requirements.txt").write_text("tiny==1.0  # the only one\n")
    return folder


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for version in ("1.0", "2.0"):
        wheel(folder, "tiny", version)
    wheel(folder, "more", "1.0")
    return folder


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python whose environments borrow the pip of this one: making them takes a fifth of a second."""
    site = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    borrow = f'echo {Path(pip.__file__).parents[1]} > "$4/{site}/pip.pth"'
    make = f'{sys.executable} -m venv --without-pip "$3" "$4" && {borrow}'
    return script(
        tmp_path_factory.mktemp("python") / "python3",
        f'if [ "$2" = venv ]; then {make}; else {sys.executable} "$@"; fi',
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheels: Path, python: Path) -> tuple[Path, str]:
    """A toolkit after its first use, over the ruins of an interrupted one, and what path.sh said."""
    toolkit = make_toolkit(tmp_path_factory.mktemp("a folder") / "toolkit")
    script(toolkit / ".venv/bin/python", "exit 1")
    env = {"PYTHON": str(python), "PIP_FIND_LINKS": str(wheels)}
    run = bash("set -euo pipefail; . toolkit/path.sh", cwd=toolkit.parent, **env)
    assert run.returncode == 0, run.stderr
    return toolkit, run.stderr


@pytest.fixture
def failing(tmp_path: Path) -> Callable[..., str]:
    """Source path.sh in a fresh toolkit: it must fail, and say so in one sentence, which is returned."""

    def run(**env: str) -> str:
        toolkit = make_toolkit(tmp_path / "toolkit")
        sourced = bash(f"set -e; . {toolkit}/path.sh; echo went on", **env)
        assert sourced.returncode == 1
        assert sourced.stdout == ""
        assert not (toolkit / ".venv/ready").exists()
        assert "Traceback" not in sourced.stderr
        return sourced.stderr.splitlines()[-1]

    return run


def test_first_use_says_what_it_does(installed: tuple[Path, str]) -> None:
    toolkit, said = installed
    assert f"making {toolkit}/.venv with Python 3." in said
    assert "installing requirements.txt" in said
    if sys.platform == "linux":
        assert "several GB of CUDA packages" in said
        assert said.index("several GB") < said.index("installing")


def test_environment(installed: tuple[Path, str]) -> None:
    toolkit, _ = installed
    show = 'python -c "import tiny; print(tiny.version)"; echo "$PATH"; echo $LC_ALL $GOMP_SPINCOUNT'
    run = bash(f"set -u; . path.sh; . path.sh; {show}; compgen -A function _k", cwd=toolkit, PATH="/usr/bin:/bin")
    assert run.stderr == ""
    assert run.stdout.splitlines() == ["1.0", f"{toolkit}/utils/bin:{toolkit}/.venv/bin:/usr/bin:/bin", "C 10000"]


def test_later_uses_are_fast(installed: tuple[Path, str]) -> None:
    toolkit, _ = installed
    times = []
    for _ in range(8):
        start = time.perf_counter()
        assert bash(f"set -e; . '{toolkit}/path.sh'").stderr == ""
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1


def test_from_a_folder_with_another_toolkit_and_through_a_link(installed: tuple[Path, str], tmp_path: Path) -> None:
    toolkit, _ = installed
    (tmp_path / "path.sh").write_text("echo the wrong one")
    (tmp_path / "linked.sh").symlink_to(toolkit / "path.sh")
    run = bash("set -euo pipefail; set -- data/train exp; . ./linked.sh; command -v python; echo $*", cwd=tmp_path)
    assert run.stdout.splitlines() == [f"{toolkit}/.venv/bin/python", "data/train exp"]


def test_changed_requirements_are_installed_and_so_is_the_way_back(installed: tuple[Path, str], wheels: Path) -> None:
    toolkit, _ = installed
    for version in ("2.0", "1.0"):
        (toolkit / "requirements.txt").write_text(f"tiny=={version}  # the only one\n")
        run = bash(f". '{toolkit}/path.sh' && python -c 'import tiny; print(tiny.version)'", PIP_FIND_LINKS=str(wheels))
        assert run.stdout == f"{version}\n", run.stderr


def test_failed_install_is_resumed(installed: tuple[Path, str], wheels: Path) -> None:
    toolkit, _ = installed
    (toolkit / "extra").mkdir()
    (toolkit / "extra/requirements.txt").write_text("more==1.0\n")
    source = f"set -e; . '{toolkit}/path.sh' extra/requirements.txt; python -c 'import more'"

    run = bash(source, **UNREACHABLE)
    assert run.returncode == 1
    assert "the package index cannot be reached" in run.stderr.splitlines()[-1]
    assert f"see {toolkit}/.venv-install.log" in run.stderr.splitlines()[-1]

    run = bash(source, **UNREACHABLE | {"PIP_INDEX_URL": "http://index.invalid/simple"})
    assert run.returncode == 1
    assert "unless PIP_TRUSTED_HOST names its host" in run.stderr.splitlines()[-1]

    run = bash(source)
    assert run.returncode == 1
    assert "the package index has no more==1.0 for " in run.stderr.splitlines()[-1]

    run = bash(
        f"({source}) & first=$!; ({source}) & second=$!; wait $first && wait $second", PIP_FIND_LINKS=str(wheels)
    )  # two at once
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("installing") == 1
    assert bash(source).stderr == ""


def test_no_such_requirements(installed: tuple[Path, str]) -> None:
    run = bash(f"set -e; . '{installed[0]}/path.sh' wrong/requirements.txt; echo went on")
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr == (
        f"path.sh: there is no file {installed[0]}/wrong/requirements.txt;"
        " requirement files are named from the toolkit's folder\n"
    )


def test_python_too_old(failing: Callable[..., str], tmp_path: Path) -> None:
    old = script(tmp_path / "old", '[ "$1" = --version ] && echo Python 3.9.2; exit 1')
    assert failing(PYTHON=str(old)).startswith(
        f"path.sh: Python 3.11 or later is needed, but {old} gives Python 3.9.2;"
    )


def test_no_python(failing: Callable[..., str], tmp_path: Path) -> None:
    assert "Python 3.11 or later is needed" in failing(PYTHON=str(tmp_path / "nowhere"))


def test_first_python_that_works_is_taken(failing: Callable[..., str], tmp_path: Path, python: Path) -> None:
    script(tmp_path / "bin/python3", "echo 'not installed here' >&2; exit 127")  # a shim without its Python
    (tmp_path / "bin/python3.13").symlink_to(python)
    said = failing(PYTHON="", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert "the package index has no tiny==1.0" in said
    assert (tmp_path / "toolkit/.venv/bin/python").exists()


def test_no_venv_module(failing: Callable[..., str], tmp_path: Path) -> None:
    bare = script(tmp_path / "bare", "case $2 in *ensurepip*) exit 1 ;; esac; exit 0")
    assert "lacks the modules venv and ensurepip" in failing(PYTHON=str(bare))


def test_disk_full(failing: Callable[..., str], tmp_path: Path) -> None:
    script(tmp_path / "bin/df", "echo header; echo /dev/x 9 9 3 99% /")
    said = failing(PYTHON=sys.executable, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert said.startswith(f"path.sh: the disk is full: {tmp_path}/toolkit has 3 MB free")


def test_disk_fills_up(failing: Callable[..., str], tmp_path: Path) -> None:
    full = script(tmp_path / "full", '[ "$2" != venv ] || { echo "[Errno 28] No space left on device"; exit 1; }')
    assert failing(PYTHON=str(full)).startswith(f"path.sh: cannot make {tmp_path}/toolkit/.venv: the disk is full")


def test_a_failure_leaves_an_interactive_shell_alive(tmp_path: Path) -> None:
    toolkit = make_toolkit(tmp_path / "toolkit")
    run = bash(f". {toolkit}/path.sh; echo status $?", PYTHON="/nowhere/python")
    assert run.stdout == "status 1\n"


def environment(folder: Path) -> Path:
    """Something that looks like an active environment, and counts how often its Python starts."""
    script(folder / "bin/python", f'echo >> {folder}/starts; exec {sys.executable} "$@"')
    return folder


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_active_environment_that_serves_is_used(tmp_path: Path, variable: str) -> None:
    toolkit = make_toolkit(tmp_path / "toolkit", '"pytest>=8,<99"')
    active = environment(tmp_path / "env")
    nested = f"bash -euc '. {toolkit}/path.sh; command -v python'"
    run = bash(
        f"set -eu; . {toolkit}/path.sh; wc -l < {active}/starts; {nested}; wc -l < {active}/starts",
        **{variable: str(active)},
    )
    before, python, after = run.stdout.split()
    assert run.stderr == ""
    assert python == f"{active}/bin/python"
    assert before == after  # the nested script did not ask again
    assert not (toolkit / ".venv").exists()


def test_active_environment_that_lacks_something_is_not(installed: tuple[Path, str], tmp_path: Path) -> None:
    toolkit, _ = installed
    active = environment(tmp_path / "env")
    run = bash(f". '{toolkit}/path.sh'; command -v python", VIRTUAL_ENV=str(active))
    assert run.stdout == f"{toolkit}/.venv/bin/python\n"
    assert run.stderr == f"path.sh: the active environment {active} lacks tiny==1.0; using {toolkit}/.venv\n"


def test_active_environment_with_an_old_python_is_not(installed: tuple[Path, str], tmp_path: Path) -> None:
    toolkit, _ = installed
    script(tmp_path / "bin/python", "exit 1")
    run = bash(f". '{toolkit}/path.sh'; command -v python", VIRTUAL_ENV=str(tmp_path))
    assert run.stdout == f"{toolkit}/.venv/bin/python\n"
    assert "lacks Python 3.11 or later; using" in run.stderr


def test_a_linked_environment_is_used_or_refused_but_never_changed(tmp_path: Path) -> None:
    toolkit = make_toolkit(tmp_path / "toolkit", '"pytest>=8,<99"')
    theirs = environment(tmp_path / "env")
    (toolkit / ".venv").symlink_to(theirs)
    run = bash(f". {toolkit}/path.sh; command -v python")
    assert (run.stdout, run.stderr) == (f"{toolkit}/.venv/bin/python\n", "")

    make_toolkit(tmp_path / "other")
    (tmp_path / "other/.venv").symlink_to(theirs)
    before = sorted(theirs.rglob("*"))
    run = bash(f"set -e; . {tmp_path}/other/path.sh; echo went on")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == (
        f"path.sh: {tmp_path}/other/.venv is a link to {theirs}, which lacks tiny==1.0;"
        " install it there, or remove the link\n"
    )
    assert sorted(theirs.rglob("*")) == before
