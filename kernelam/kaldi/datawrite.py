"""Data directories of corpora in formats of their own."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.kaldi.datadir import check_speaker_order, publishing, write_utt2spk
from kernelam.kaldi.tables import write_table


@dataclass(frozen=True)
class Spoken:
    """An utterance: the words, who said them, and where: a sound file or command, or `seconds` of the `recording`."""

    utt: str
    speaker: str
    words: str
    sound: str
    gender: str = ""  # f or m
    recording: str = ""
    seconds: tuple[float, float] | None = None
    channel: str = ""  # A, B or 1


def write_data_dir(folder: str | Path, utterances: Iterable[Spoken]) -> None:
    """Make `folder` a data directory of `utterances`; tables of an earlier one, those of its features too, are gone."""
    tables: dict[str, dict[str, str]] = defaultdict(dict)
    utt2spk: dict[str, str] = {}
    for one in utterances:
        if one.utt in utt2spk:
            raise KernelamError(f"utterance {one.utt} of {folder} occurs twice")
        utt2spk[one.utt] = one.speaker
        tables["text"][one.utt] = one.words
        tables["wav.scp"][one.recording or one.utt] = one.sound
        if one.seconds is not None:
            tables["segments"][one.utt] = f"{one.recording} {one.seconds[0]:.3f} {one.seconds[1]:.3f}"
        if one.channel:
            tables["reco2file_and_channel"][one.recording or one.utt] = f"{one.recording or one.utt} {one.channel}"
        if one.gender:
            tables["spk2gender"][one.speaker] = one.gender
    if not utt2spk:
        raise KernelamError(f"{folder} would have no utterance")
    check_speaker_order(Path(folder) / "utt2spk", dict(sorted(utt2spk.items())))
    with publishing(folder) as made:
        write_utt2spk(made, utt2spk)
        for name, table in tables.items():
            write_table(made / name, table)
