from collections.abc import Callable
from pathlib import Path

import click
import pytest

from kernelam.cli.mistakes import sentence
from kernelam.cli.values import ABOVE_ZERO, Number, check_output, numbers
from kernelam.errors import KernelamError


def test_numbers() -> None:
    assert numbers(int, "1 2,3", "--list") == [1, 2, 3]
    assert numbers(float, "0.5, -1", "--list") == [0.5, -1.0]
    for text in ("1 x", "nan", "0.1 inf", ""):
        expected = f"option --list takes numbers with spaces or commas between them, not '{text}'"
        with pytest.raises(KernelamError, match=expected):
            numbers(float, text, "--list")
    with pytest.raises(KernelamError, match=r"option --list takes whole numbers .*, not ' ,'"):
        numbers(int, " ,", "--list")


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (ABOVE_ZERO, "nan", "option --scale takes a number above 0, not 'nan'"),
        (ABOVE_ZERO, "0", "option --scale takes a number above 0, not '0.0'"),
        (Number(), "", "option --scale takes a number, not ''"),
        (Number(), "nan", "option --scale takes a number, not 'nan'"),
        (Number(0, 1), "1.5", "option --scale takes a number of at least 0 and of at most 1, not '1.5'"),
    ],
)
def test_what_is_no_number(kind: click.ParamType, text: str, expected: str) -> None:
    command = click.Command("x", params=[click.Option(["--scale"], type=kind)])
    command.main(["--scale", "0.5"], standalone_mode=False)
    with pytest.raises(click.UsageError) as caught:
        command.main(["--scale", text], standalone_mode=False)
    assert sentence(caught.value) == expected


def test_files_and_their_folders(tmp_path: Path) -> None:
    check_output("a.ark")
    check_output(tmp_path / "a.ark")
    (tmp_path / "a.ark").touch()
    check_output(tmp_path / "a.ark")
    with pytest.raises(KernelamError, match=r"cannot write (.*)/none/a.ark: there is no folder \1/none"):
        check_output(tmp_path / "none/a.ark")
    for name in (tmp_path, Path(), "/dev/null"):
        with pytest.raises(KernelamError, match=f"cannot write {name}: it is there and is no file"):
            check_output(name)


@pytest.mark.parametrize(
    "name", ["-", "ark:-", "ark:a.ark", "scp:a.scp", "ark,t:-", "ark,scp:a,b", "| gzip > a", "a|b"]
)
def test_what_is_no_name_of_a_file(name: str) -> None:
    for output in (name, Path(name)):
        with pytest.raises(KernelamError) as caught:
            check_output(output)
        assert str(caught.value) == f"{name}: write to a FILE; other ways are not supported"


@pytest.mark.parametrize(
    "words",
    ["forward model data ark:none/a.ark", "align model data lang none/a.ark", "decode graph model data none/a.ark"],
)
def test_commands_look_at_the_folder_of_their_archive_first(kernelam: Callable, tmp_path: Path, words: str) -> None:
    run = kernelam(*words.split(), cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr == f"kernelam {words.split()[0]}: cannot write none/a.ark: there is no folder none\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "ways"),
    [
        ("forward model data scp:a", "ark:-, ark:FILE, ark,t:FILE (text), ark,scp:ARK,SCP or FILE"),
        ("align model data lang ark,t:-", "a FILE"),
        ("decode graph model data ark,t:-", "a FILE"),
    ],
)
def test_commands_make_no_files_of_other_ways(kernelam: Callable, tmp_path: Path, words: str, ways: str) -> None:
    run = kernelam(*words.split(), cwd=tmp_path)
    assert run.returncode == 1
    assert (
        run.stderr
        == f"kernelam {words.split()[0]}: {words.split()[-1]}: write to {ways}; other ways are not supported\n"
    )
    assert list(tmp_path.iterdir()) == []
