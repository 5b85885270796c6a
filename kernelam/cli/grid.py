"""Run a declared set of experiments."""

import shlex
import sys
from pathlib import Path

import click

from kernelam.cli.values import PATH, POSITIVE
from kernelam.errors import KernelamError


@click.command()
@click.option("--cmd", default="run_local.sh", help="Where cells run, each a job.")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A variable of the declaration.")
@click.option("--output", type=PATH, default=Path("RESULTS.md"), help="The page of results, with a .html beside it.")
@click.option("--cell", type=POSITIVE, help="Run this cell alone, here; no page is written.")
@click.argument("declaration", type=PATH)
def command(cmd: str, given: tuple[str, ...], output: Path, cell: int | None, declaration: Path) -> None:
    """Train, decode, score and report every combination of the options that DECLARATION, a TOML file, names.

    What is done and current is skipped; a cell that fails is shown as failed, and the rest reported.
    """
    from kernelam.grid import Grid

    variables = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise KernelamError(f"--set takes NAME=VALUE, not {item}")
        variables[name] = value
    grid = Grid.read(declaration, variables)
    if cell is not None:
        if cell > len(grid.cells):
            raise KernelamError(f"{declaration} has {len(grid.cells)} cells, no number {cell}")
        grid.run_cell(grid.cells[cell - 1])
        return
    settings = [word for item in given for word in ("--set", item)]
    grid.run(shlex.split(cmd), ["kernelam", "grid", *settings, str(declaration), "--cell"])
    from kernelam.report.page import write_page
    from kernelam.report.results import write_results

    done = [one.folder for one in grid.cells if grid.done(one)]
    failures = grid.failures()
    if done:
        baseline = grid.folder / grid.baseline
        baseline = baseline if baseline in done else done[0]
        sets = (grid.tuned.name, grid.tested.name)
        page = output.with_suffix(".html")
        write_page(page, write_results(output, grid.title, done, baseline, sets, failures))
        click.echo(f"{output}, {page}: {len(done)} of {len(grid.cells)} cells")
    for name, lines in failures.items():
        click.echo(f"{name} failed: {lines[-1] if lines else 'its log is empty'}", err=True)
    if failures:
        sys.exit(1)
