"""Run a command unless its outputs are up to date."""

from pathlib import Path

import click

from kernelam.cli.values import PATH


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--in", "inputs", type=PATH, multiple=True, help="A file or folder that the command reads.")
@click.option("--out", "outputs", type=PATH, multiple=True, required=True, help="A file or folder that it makes.")
@click.option("--force", is_flag=True, help="Run it anyway.")
@click.argument("words", metavar="COMMAND…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(inputs: tuple[Path, ...], outputs: tuple[Path, ...], force: bool, words: tuple[str, ...]) -> None:
    """Run COMMAND unless its outputs are those that it made from these very inputs."""
    from kernelam.current import run_once

    run_once(inputs, outputs, words, force)
