"""What the commands that run declared experiments share."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import click

from kernelam.cli.values import PATH, POSITIVE
from kernelam.errors import KernelamError
from kernelam.experiments import Experiments, cause
from kernelam.files import alone_in


def telling(module: str) -> type[click.Command]:
    """A command whose help ends with what a module tells of its declarations; it is imported only then."""

    class Telling(click.Command):
        def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            formatter.write(f"\n{import_module(module).__doc__}")

    return Telling


def running(function: Callable[..., None]) -> Callable[..., None]:
    """The argument and options of a command that runs cells."""
    for option in (
        click.option("--cmd", default="run_local.sh", help="Where cells run, each a job."),
        click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A variable of the declaration."),
        click.option("--cell", type=POSITIVE, help="Run this cell alone, here; no page is written."),
        click.argument("declaration", type=PATH),
    ):
        function = option(function)
    return function


def variables(given: Sequence[str]) -> dict[str, str]:
    pairs = [item.partition("=") for item in given]
    for (name, equals, _), item in zip(pairs, given, strict=True):
        if not equals or not name:
            raise KernelamError(f"--set takes NAME=VALUE, not {item}")
    return {name: value for name, _, value in pairs}


def run_cells(
    experiments: Experiments, command: Sequence[str], cmd: str, given: Sequence[str], cell: int | None, path: Path
) -> bool:
    """Run the cell asked for, or all as jobs that call `command` for one each; whether it was all."""
    experiments.check()
    if cell is not None:
        if cell > len(experiments.cells):
            raise KernelamError(f"{path} has {len(experiments.cells)} cells, no number {cell}")
        chosen = experiments.cells[cell - 1]
        if experiments.wanted(chosen):
            experiments.run_cell(chosen)
        return False
    try:
        runner = shlex.split(cmd)
    except ValueError as error:
        raise KernelamError(f"--cmd {cmd} is no command: {error}") from None
    if not runner:
        raise KernelamError("--cmd is empty: name what runs jobs, such as run_local.sh")
    click.get_current_context().with_resource(alone_in(experiments.folder))  # until what came of them is reported
    settings = [word for item in given for word in ("--set", item)]
    experiments.run(runner, ["kernelam", *command, *settings, str(path), "--cell"])
    return True


def tell(failures: Mapping[str, list[str]]) -> None:
    """Say which cells failed; then so did the command."""
    for name, lines in failures.items():
        click.echo(f"{name} failed: {cause(lines)}", err=True)
    if failures:
        sys.exit(1)
