"""Combine trained models into one."""

from pathlib import Path

import click

from kernelam.cli.values import PATH, numbers


@click.command()
@click.option("--weights", default="", help="One for each model, e.g. '0.4 0.6'; without, they are fitted.")
@click.option("--blocks", type=bool, default=False, help="Average blocks of random features into one kernel model.")
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.argument("data", type=PATH)
@click.argument("lang", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("models", type=PATH, nargs=-1, required=True)
@click.argument("folder", type=PATH)
def command(
    weights: str, blocks: bool, device: str, data: Path, lang: Path, ali: Path, models: tuple[Path, ...], folder: Path
) -> None:
    """Add the logits of MODELS, with weights of maximum likelihood on the frames of DATA and their labels in ALI."""
    from kernelam.errors import KernelamError
    from kernelam.training.combination import CombinationInput, combine

    if weights and blocks:
        raise KernelamError("--weights and --blocks exclude each other: blocks have equal weights")
    given = CombinationInput(data, lang, ali, models, folder)
    combine(given, numbers(float, weights, "--weights") if weights else None, device, blocks)
