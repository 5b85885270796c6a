"""kernelam data: directories from directories. Options are those of Kaldi's utils/*_data*.sh, flags without a value."""

import click

from kernelam.cli.values import POSITIVE, Number
from kernelam.errors import KernelamError
from kernelam.progress import say


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Copy, combine, fix, split, subset data directories."""


@command.command()
@click.argument("data")
def fix(data: str) -> None:
    """Keep the utterances that all files of DATA know, sort, rebuild spk2utt; old files go to DATA/.backup."""
    from kernelam.kaldi import datachange

    kept, out_of = datachange.fix(data)
    say(f"{data}: kept {kept} utterances out of {out_of}")


@command.command()
@click.option("--per-utt", is_flag=True, help="Split by utterance, not by speaker.")
@click.option("--dest", help="Make the split in this folder, not in DATA.")
@click.argument("data")
@click.argument("nj", type=POSITIVE)
def split(per_utt: bool, dest: str | None, data: str, nj: int) -> None:
    """Split DATA for NJ jobs: DATA/split<NJ>/1 and so on."""
    from kernelam.kaldi import dataselect

    dataselect.split(data, nj, per_utt=per_utt, dest=dest)


@command.command()
@click.option("--speakers", is_flag=True, help="Whole speakers, until there are NUM utterances.")
@click.option("--first", is_flag=True, help="The first NUM.")
@click.option("--last", is_flag=True, help="The last NUM.")
@click.option("--shortest", is_flag=True, help="The shortest NUM.")
@click.option("--per-spk", is_flag=True, help="Up to NUM of each speaker.")
@click.option("--utt-list", help="The utterances that this file lists; no NUM then.")
@click.option("--spk-list", help="The speakers that this file lists; no NUM then.")
@click.argument("arguments", nargs=-1, metavar="SOURCE [NUM] DEST")
def subset(utt_list: str | None, spk_list: str | None, arguments: tuple[str, ...], **flags: bool) -> None:
    """Write a part of SOURCE to DEST: NUM utterances spread evenly, or as an option says."""
    from kernelam.kaldi import dataselect

    how = [flag.replace("_", "-") for flag, given in flags.items() if given]
    keep = utt_list or spk_list
    if len(how) + bool(utt_list) + bool(spk_list) > 1:
        raise KernelamError(
            "give only one of --speakers, --first, --last, --shortest, --per-spk, --utt-list and --spk-list"
        )
    if len(arguments) != (2 if keep else 3):
        raise KernelamError("the arguments are SOURCE NUM DEST, or with --utt-list or --spk-list SOURCE DEST")
    source, dest = arguments[0], arguments[-1]
    if keep:
        dataselect.subset(source, dest, how="utt-list" if utt_list else "spk-list", keep=keep)
        return
    if not arguments[1].isdecimal():
        raise KernelamError(f"the number of utterances must be a whole number, not '{arguments[1]}'")
    dataselect.subset(source, dest, int(arguments[1]), *how)


@command.command()
@click.option("--utt-prefix", default="", help="In front of each utterance id.")
@click.option("--utt-suffix", default="", help="Behind each utterance id.")
@click.option("--spk-prefix", default="", help="In front of each speaker id.")
@click.option("--spk-suffix", default="", help="Behind each speaker id.")
@click.argument("source")
@click.argument("dest")
def copy(utt_prefix: str, utt_suffix: str, spk_prefix: str, spk_suffix: str, source: str, dest: str) -> None:
    """Copy SOURCE to DEST, with other utterance and speaker ids if asked."""
    from kernelam.kaldi import datachange

    datachange.copy(
        source, dest, utt_prefix=utt_prefix, utt_suffix=utt_suffix, spk_prefix=spk_prefix, spk_suffix=spk_suffix
    )


@command.command()
@click.argument("factor", type=Number(0.1, 10))
@click.argument("source")
@click.argument("dest")
def perturb_speed(factor: float, source: str, dest: str) -> None:
    """Make DEST, the speech of SOURCE played FACTOR times as fast."""
    from kernelam.kaldi import dataspeed

    dataspeed.perturb_speed(source, dest, factor)


@command.command()
@click.argument("dest")
@click.argument("sources", nargs=-1, required=True)
def combine(dest: str, sources: tuple[str, ...]) -> None:
    """Join the directories SOURCES to DEST."""
    from kernelam.kaldi import datachange

    datachange.combine(dest, sources)
