"""Labels of frames: change them, and look at how good they are."""

from pathlib import Path

import click

from kernelam.cli.values import PATH


@click.group()
def command() -> None:
    """Convert alignments, measure how good they are, draw them."""


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


@command.command()
@click.option("--reference", type=PATH, help="Other alignments, or a CTM file of phones: do the boundaries agree?")
@click.option("--phones", "by_phone", is_flag=True, help="Tell the durations of each phone.")
@click.argument("lang", type=PATH)
@click.argument("ali", type=PATH)
def quality(reference: Path | None, by_phone: bool, lang: Path, ali: Path) -> None:
    """Say how much of the alignments in the directory ALI is silence, how long phones are, and whether a reference
    agrees. The phones of silence are those of LANG."""
    from kernelam.hmm.lang import Lang
    from kernelam.report.tables import Table
    from kernelam.scoring.boundaries import distances, durations, plain_name, read_segments, silence_share

    segments, language = read_segments(ali), Lang(lang)
    numbers = language.phone_list("silence")
    silence = {plain_name(name) for name, number in language.phones.items() if number in numbers}
    share, inner = silence_share(segments, silence)
    frames = sum(phones[-1].end for phones in segments.values())
    rows = [
        ["utterances", str(len(segments))],
        ["frames", f"{frames:.0f}"],
        ["silence", f"{100 * share:.1f} %"],
        ["silence inside utterances", f"{100 * inner:.1f} %"],
    ]
    if reference:
        away = distances(segments, read_segments(reference))
        rows.append([f"boundaries also in {reference}", str(len(away))])
        rows += [
            [f"within {limit} frame{'s' * (limit > 1)}", f"{100 * (away <= limit + 1e-6).mean():.1f} %"]
            for limit in (1, 2, 3, 5)
        ]
        rows.append(["mean distance", f"{away.mean():.2f} frames"])
    click.echo(Table([str(ali), ""], rows).markdown)
    if by_phone:
        found = [
            [
                name,
                str(one.count),
                *(f"{value:.1f}" for value in (one.mean, one.low, one.high)),
                f"{100 * one.shortest:.0f}",
            ]
            for name, one in durations(segments).items()
        ]
        header = ["phone", "times", "frames, mean", "5th percentile", "95th percentile", "as short as any, %"]
        click.echo("\n" + Table(header, found).markdown)


@command.command()
@click.option("--model", type=PATH, help="A model whose posteriors of phones are shown, frame by frame.")
@click.option(
    "--transform-dir", type=PATH, help="Directory with the speakers' fMLLR transforms, if the model takes them."
)
@click.argument("data", type=PATH)
@click.argument("lang", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("utterance")
@click.argument("out", type=PATH)
def picture(
    model: Path | None, transform_dir: Path | None, data: Path, lang: Path, ali: Path, utterance: str, out: Path
) -> None:
    """Draw UTTERANCE of DATA as aligned in ALI into OUT, an SVG file: waveform, spectrogram, phones, words."""
    from kernelam.files import replacing
    from kernelam.report.utterance import Place, picture

    drawn = picture(Place(data, lang, ali), utterance, model, transform_dir)
    with replacing(out, "w") as stream:
        stream.write(drawn)
