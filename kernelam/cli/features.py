"""kernelam features: sound to features, in parts that are then merged, and CMVN statistics."""

from collections.abc import Callable
from pathlib import Path

import click

from kernelam.cli.values import PATH


@click.group()
def command() -> None:
    """Sound to features: mfcc, fbank, cmvn."""


def _part(kind: str) -> Callable[..., None]:
    def make(data: Path, part: Path, config: Path | None, compress: bool) -> None:
        from kernelam.frontend.features import Extractor
        from kernelam.frontend.parts import make_part

        make_part(data, part, Extractor(kind, config), compress=compress)

    return make


for _kind in ("mfcc", "fbank"):
    command.add_command(
        click.Command(
            _kind,
            callback=_part(_kind),
            params=[
                click.Argument(["data"], type=PATH),
                click.Argument(["part"], type=PATH),
                click.Option(["--config"], type=PATH, help="A file of Kaldi's options, one --name=value a line."),
                click.Option(["--compress"], type=bool, default=True, help="One byte a number instead of four."),
            ],
            help=f"Write the {_kind} features of DATA into the folder PART.",
        )
    )


@command.command()
@click.argument("data", type=PATH)
@click.argument("ark", type=PATH)
@click.argument("parts", type=PATH, nargs=-1, required=True)
@click.option("--write-utt2num-frames", type=bool, default=True)
def merge(data: Path, ark: Path, parts: tuple[Path, ...], write_utt2num_frames: bool) -> None:
    """Merge the folders PARTS into the archive ARK and DATA's feats.scp, utt2num_frames, utt2dur, frame_shift."""
    from kernelam.frontend.parts import merge_parts

    merge_parts(data, ark, parts, utt2num_frames=write_utt2num_frames)


@command.command()
@click.argument("data", type=PATH)
@click.argument("ark", type=PATH)
def cmvn(data: Path, ark: Path) -> None:
    """Write the CMVN statistics of DATA's speakers into the archive ARK and DATA's cmvn.scp."""
    from kernelam.frontend.cmvn import write_cmvn

    write_cmvn(data, ark)
