"""Change the labels of frames."""

from pathlib import Path

import click

from kernelam.cli.values import PATH


@click.group()
def command() -> None:
    """Change the labels of frames that alignments are."""


@command.command()
@click.argument("lang", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("out", type=PATH)
def monophones(lang: Path, ali: Path, out: Path) -> None:
    """Write the alignments of the directory ALI as those of monophones to the directory OUT.

    The phones of a line of LANG/phones/sets.int, such as the positions of one phone in a word, share their states.
    """
    from kernelam.hmm.monophones import convert_alignments
    from kernelam.progress import say

    say(f"{out}: {convert_alignments(lang, ali, out)} classes")
