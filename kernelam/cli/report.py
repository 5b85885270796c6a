"""Tables of results of a set of experiments."""

from pathlib import Path

import click

from kernelam.cli.values import PATH


@click.command()
@click.option("--title", required=True)
@click.option("--baseline", type=PATH, required=True, help="The experiment that the others are compared with.")
@click.option("--output", type=PATH, default=Path("RESULTS.md"))
@click.option("--tuned", default="dev", help="The set on which the weights were tuned.")
@click.option("--tested", default="test", help="The set that is reported.")
@click.argument("folders", type=PATH, nargs=-1, required=True)
def command(title: str, baseline: Path, output: Path, tuned: str, tested: str, folders: tuple[Path, ...]) -> None:
    """Write the results page of model directories with scored decode_<tuned> and decode_<tested>."""
    from kernelam.report.results import write_results

    write_results(output, title, list(folders), baseline, (tuned, tested))
