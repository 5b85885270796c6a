"""Run a declared set of experiments."""

from pathlib import Path

import click

from kernelam.cli.cells import run_cells, running, tell, telling, variables
from kernelam.cli.values import PATH, page_beside


@click.command(cls=telling("kernelam.grid"))
@running
@click.option(
    "--output",
    type=PATH,
    help="The tables, a name in .md, with page and .json beside; by default RESULTS.md in the folder of the cells.",
)
def command(cmd: str, given: tuple[str, ...], output: Path | None, cell: int | None, declaration: Path) -> None:
    """Train, decode, score and report every combination of the options that DECLARATION, a TOML file, names.

    What is done and up to date is skipped; a cell that fails is shown as failed, and the rest are reported.
    """
    from kernelam.grid import Grid
    from kernelam.records import check_place
    from kernelam.report.kept import HEAD

    grid = Grid.read(declaration, variables(given))
    output = output or grid.folder / "RESULTS.md"
    page = page_beside(output)
    check_place(output.with_suffix(".json"), HEAD, "results")
    if not run_cells(grid, ["grid"], cmd, given, cell, declaration):
        return
    from kernelam.report.page import write_report
    from kernelam.report.results import read_results

    done = [one.folder for one in grid.cells if grid.done(one)]
    failures = grid.failures()
    if done:
        baseline = grid.folder / grid.baseline
        remark = f"{len(failures)} of {len(grid.cells)} cells failed: {', '.join(failures)}." if failures else ""
        if baseline not in done:
            baseline = done[0]
            remark += f" As {grid.baseline}, the baseline, is one of them, {baseline.name} takes its place."
        write_report(output, page, read_results(grid.title, done, baseline, grid.sets, failures, remark=remark))
        click.echo(f"{output}, {page}: {len(done)} of {len(grid.cells)} cells")
    tell(failures)
