"""Data directories of corpora in formats of their own."""

import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelam.errors import KernelamError
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


def write_data_dir(folder: str | Path, utterances: Iterable[Spoken]) -> None:
    """Make the directory `folder` of `utterances`; one that is there, whatever is in it, makes place for it."""
    tables: dict[str, dict[str, str]] = defaultdict(dict)
    members: dict[str, list[str]] = defaultdict(list)
    for one in utterances:
        if one.utt in tables["text"]:
            raise KernelamError(f"utterance {one.utt} of {folder} occurs twice")
        tables["text"][one.utt] = one.words
        tables["utt2spk"][one.utt] = one.speaker
        tables["wav.scp"][one.recording or one.utt] = one.sound
        if one.seconds is not None:
            tables["segments"][one.utt] = f"{one.recording} {one.seconds[0]:.3f} {one.seconds[1]:.3f}"
        if one.gender:
            tables["spk2gender"][one.speaker] = one.gender
        members[one.speaker].append(one.utt)
    if not members:
        raise KernelamError(f"{folder} would have no utterance")
    tables["spk2utt"] = {speaker: " ".join(sorted(utts)) for speaker, utts in members.items()}
    final = Path(folder)
    made = final.with_name(f".{final.name}.partial")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for name, table in tables.items():
        write_table(made / name, table)
    shutil.rmtree(final, ignore_errors=True)
    made.rename(final)
