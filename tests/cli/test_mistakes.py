"""Mistakes on the command line are answered by a sentence."""

import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from kernelam.cli import kernelam as group
from kernelam.cli.mistakes import sentence

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("data split data x", "NJ takes a whole number of at least 1, not 'x'"),
        ("data split data 0", "NJ takes a whole number of at least 1, not '0'"),
        ("data split data 1.5", "NJ takes a whole number of at least 1, not '1.5'"),
        ("data split data", "takes the arguments DATA NJ, and NJ is missing"),
        ("data split data 1 2 3", "takes the arguments DATA NJ, and 2 3 is too much"),
        ("data split --per-utt=yes data 1", "option --per-utt takes no value"),
        ("data split --per-ut data 1", "unknown option --per-ut (did you mean --per-utt?)"),
        ("data tear data", "there is no command tear; there are combine, copy, fix, perturb-speed, split, subset"),
        ("doctor x", "takes no arguments, and x is too much"),
        ("decode --beam wide g m d o", "option --beam takes a number above 0, not 'wide'"),
        ("decode --beam -1 g m d o", "option --beam takes a number above 0, not '-1.0'"),
        ("decode --max-active 1e3 g m d o", "option --max-active takes a whole number of at least 1, not '1e3'"),
        ("decode --max-active 0 g m d o", "option --max-active takes a whole number of at least 1, not '0'"),
        ("decode --min-active -1 g m d o", "option --min-active takes a whole number of at least 0, not '-1'"),
        ("gmm init --delta-order -1 d l f", "option --delta-order takes a whole number of at least 0, not '-1'"),
        ("decode --no-such-thing 1", "unknown option --no-such-thing (--help lists them)"),
        ("decode --beam", "option --beam needs a value"),
        ("align --equal perhaps m d l o", "option --equal takes true or false, not 'perhaps'"),
        ("train dnn --schedule fast 1 2 3 4 5 6", "option --schedule takes decay or average or halving, not 'fast'"),
        ("report exp/mono", "option --title is missing"),
        ("once --out x", "takes the arguments COMMAND…, and COMMAND… is missing"),
    ],
)
def test_sentences(words: str, expected: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        group.main(words.split(), prog_name="kernelam", standalone_mode=False)
    assert sentence(caught.value) == expected


def test_a_value_with_quotes_and_line_ends() -> None:
    with pytest.raises(click.UsageError) as caught:
        group.main(["data", "split", "data", "it's\n' is not"], prog_name="kernelam", standalone_mode=False)
    assert sentence(caught.value).startswith("NJ takes a whole number of at least 1, not ")


OUT_OF_MEMORY = {
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 33554400 bytes. Error code 12": "33554400 bytes",
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has": "2.00 GiB",
}


@pytest.mark.parametrize("said", OUT_OF_MEMORY)
def test_memory_that_runs_out_is_no_internal_error(said: str) -> None:
    """What PyTorch says of it is a RuntimeError."""
    failing = f"def fail(**_): raise RuntimeError({said!r})\ncli.kernelam.main = fail"
    code = f"import kernelam.cli as cli\n{failing}\ncli.main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert run.stderr == f"kernelam: memory has run out: {OUT_OF_MEMORY[said]} more are not to be had\n"


def test_what_click_has_no_value_for_keeps_its_words() -> None:
    folder = click.Argument(["folder"], type=click.Path(file_okay=False))
    with pytest.raises(click.UsageError) as caught:
        click.Command("x", params=[folder]).main([__file__], standalone_mode=False)
    assert sentence(caught.value) == f"FOLDER: Directory '{__file__}' is a file"


@pytest.mark.parametrize("words", [(), ("data",)])
def test_without_a_command_the_usage_is_shown(kernelam: Run, words: tuple[str, ...]) -> None:
    run = kernelam(*words)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith(f"Usage: {' '.join(['kernelam', *words])} [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("data split data x", "kernelam data split: NJ takes"),
        ("decode --beam", "kernelam decode: option --beam needs"),
        ("nothing", "kernelam: there is no command nothing; there are align, "),
        ("--fast", "kernelam: unknown option --fast"),
        (
            "validate data",
            "kernelam validate: no such data directory or archive data",
        ),  # not "kernelam validate data: "
        ("data fix data", "kernelam data fix: no such data directory data"),
    ],
)
def test_it_says_which_command(kernelam: Run, tmp_path: object, words: str, expected: str) -> None:
    run = kernelam(*words.split(), cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith(expected)
    assert run.stderr.count("\n") == 1
