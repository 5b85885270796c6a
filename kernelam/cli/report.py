"""Tables of results of a set of experiments."""

from pathlib import Path

import click

PATH = click.Path(path_type=Path)


@click.command()
@click.option("--title", required=True)
@click.option("--baseline", type=PATH, required=True, help="The experiment that the others are compared with.")
@click.option("--output", type=PATH, default=Path("RESULTS.md"))
@click.argument("folders", type=PATH, nargs=-1, required=True)
def command(title: str, baseline: Path, output: Path, folders: tuple[Path, ...]) -> None:
    """Write the results page of model directories with scored decode_dev and decode_test."""
    from kernelam.report.results import write_results

    write_results(output, title, list(folders), baseline)
