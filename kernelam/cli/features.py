"""kernelam features: sound to features, in parts that are then merged, and CMVN statistics."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from kernelam.cli.values import NOT_NEGATIVE, PATH, POSITIVE, Number


@click.group()
def command() -> None:
    """Sound to features: mfcc, fbank, cmvn; and features of features: cepstra, processed."""


def _part(kind: str) -> Callable[..., None]:
    def make(data: Path, part: Path, config: Path | None, compress: bool, resample: bool) -> None:
        from kernelam.frontend.features import Extractor
        from kernelam.frontend.parts import make_part

        make_part(data, part, Extractor(kind, config), compress=compress, resample=resample)

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
                click.Option(["--resample"], type=bool, default=False, help="Sound of another rate; else an error."),
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


@command.command()
@click.option("--num-ceps", type=POSITIVE, default=13)
@click.option("--cepstral-lifter", type=NOT_NEGATIVE, default=22.0)
@click.option("--compress", type=bool, default=True, help="One byte a number instead of four.")
@click.argument("source", type=PATH)
@click.argument("data", type=PATH)
@click.argument("ark", type=PATH)
def cepstra(num_ceps: int, cepstral_lifter: float, compress: bool, source: Path, data: Path, ark: Path) -> None:
    """Write the cepstra of the filterbanks of SOURCE into the archive ARK and DATA's feats.scp."""
    from kernelam.frontend.derived import Cepstra, write_features

    write_features(Cepstra(source, num_ceps, cepstral_lifter), data, ark, compress=compress)


@command.command()
@click.option("--transform-dir", type=PATH, help="Directory with the speakers' fMLLR transforms, trans.*.")
@click.argument("model", type=PATH)
@click.argument("source", type=PATH)
@click.argument("data", type=PATH)
@click.argument("ark", type=PATH)
def processed(transform_dir: Path | None, model: Path, source: Path, data: Path, ark: Path) -> None:
    """Write the features of SOURCE as the GMM directory MODEL takes them into the archive ARK and DATA's feats.scp."""
    from kernelam.frontend.derived import write_features
    from kernelam.frontend.pipeline import Pipeline

    pipeline = replace(Pipeline.of_directory(model), fmllr=transform_dir is not None)
    write_features(pipeline.open(source, transform_dir), data, ark, compress=False)


@command.command()
@click.argument("factor", type=Number(0.1, 10))
@click.argument("file")
def speed(factor: float, file: str) -> None:
    """The sound FILE, or - for standard input, played FACTOR times as fast, as WAV on standard output."""
    import sys

    from kernelam.frontend.audio import played

    place, where = (sys.stdin.buffer.read(), "standard input") if file == "-" else (file, file)
    sys.stdout.buffer.write(played(place, where, factor))
