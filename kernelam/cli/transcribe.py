"""Words of sound files."""

import subprocess
import sys
from pathlib import Path

import click

from kernelam.cli.values import PATH

SCRIPT = Path(__file__).resolve().parents[2] / "steps/transcribe.sh"


@click.command()
@click.option("--tuned-on", type=PATH, help="A scored decode directory whose LM weight and word penalty are used.")
@click.option("--times", is_flag=True, help="Lines `file 1 begin duration word confidence` instead of `file words`.")
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.argument("model", type=PATH)
@click.argument("graph", type=PATH)
@click.argument("files", type=PATH, nargs=-1, required=True)
def command(tuned_on: Path | None, times: bool, device: str, model: Path, graph: Path, files: tuple[Path, ...]) -> None:
    """What is said in the sound FILES, by MODEL and GRAPH of a recipe: steps/transcribe.sh, which has more options."""
    options = ["--device", device, "--times", str(times).lower()]
    if tuned_on is not None:
        options += ["--tuned-on", str(tuned_on)]
    arguments = map(str, (model, graph, *files))
    sys.exit(subprocess.run([str(SCRIPT), *options, *arguments]).returncode)
