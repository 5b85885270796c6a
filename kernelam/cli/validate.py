"""kernelam validate: is it what it should be? Flags without a value, as those of Kaldi's validate_data_dir.sh."""

from pathlib import Path

import click

from kernelam.errors import KernelamError
from kernelam.progress import say


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--no-feats", is_flag=True, help="feats.scp may be missing.")
@click.option("--no-text", is_flag=True, help="text may be missing.")
@click.option("--no-wav", is_flag=True, help="wav.scp may be missing.")
@click.option("--no-spk-sort", is_flag=True, help="utt2spk need not be sorted by speaker.")
@click.argument("target", metavar="DATA_DIR")
def command(target: str, no_feats: bool, no_text: bool, no_wav: bool, no_spk_sort: bool) -> None:
    """Check a data directory; stop with status 1 at the first thing that is wrong."""
    if not Path(target).is_dir():
        raise KernelamError(f"no such data directory {target}")
    _data_dir(target, feats=not no_feats, text=not no_text, wav=not no_wav, spk_sort=not no_spk_sort)


def _data_dir(path: str, **required: bool) -> None:
    from kernelam.kaldi.datadir import DataDir

    data = DataDir(path)
    data.validate(**required)
    if len(data.spks) == 1:
        say(f"{path}: warning: only one speaker, so what is estimated by speaker is shared by all utterances")
    say(f"{path}: valid, {len(data.utts)} utterances of {len(data.spks)} speakers")
