#!/usr/bin/env python
"""Data directories, dictionary and phone times of TIMIT (LDC93S1).

train and heldout are the speakers of the train folder, every eighth of them heldout; dev and test are 50 and 24
speakers of the test folder, by the lists beside this file. The dialect sentences SA1 and SA2, which everybody says,
are left out. Words are phones: 48, or 49 with the glottal stop q, which is otherwise deleted.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from kernelam.cli.mistakes import run
from kernelam.corpora import found_instead, some
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.datawrite import Spoken, write_data_dir
from kernelam.kaldi.tables import lines, whole_number
from kernelam.progress import say, warn

HERE = Path(__file__).resolve().parent
RATE = 16000
FULL = {"train": 3696, "dev": 400, "test": 192}  # utterances of the whole corpus, heldout among those of train
HELDOUT = 8  # one speaker of so many
DEPTH = 3  # levels of folders that are searched for train and test
SILENCE, GLOTTAL_STOP = "sil", "q"


@dataclass(frozen=True)
class Recording:
    speaker: str
    name: str
    sound: Path
    phones: Path

    @property
    def utt(self) -> str:
        return f"{self.speaker}_{self.name}"


class PhoneMap:
    """The phones of the transcripts and of the models; q is deleted unless it is a unit."""

    def __init__(self, units: int) -> None:
        rows = [line.split() for line in lines(HERE / "phones.60-48-39.map")]
        self._unit = {row[0]: row[1] if len(row) > 1 else "" for row in rows}
        if units == 49:
            self._unit[GLOTTAL_STOP] = GLOTTAL_STOP
        self.units = sorted({unit for unit in self._unit.values() if unit})

    def segments(self, path: Path) -> list[tuple[int, int, str]]:
        """First sample, sample after the last, and unit of each phone of a .phn file."""
        result = []
        for number, line in enumerate(lines(path), 1):
            where = f"{path}, line {number}"
            try:
                first, last, name = line.split()
                begin, end, phone = whole_number(first), whole_number(last), name.lower()
            except ValueError:
                raise KernelamError(f"{where}: expected two sample numbers and a phone, found '{line}'") from None
            if phone not in self._unit:
                raise KernelamError(f"{where}: {phone} is no phone of TIMIT")
            if self._unit[phone]:
                result.append((begin, end, self._unit[phone]))
        if not result:
            raise KernelamError(f"{path} has no phones")
        return result


def children(folder: Path) -> dict[str, Path]:
    """By name in lower case."""
    return {path.name.lower(): path for path in sorted(folder.iterdir())} if folder.is_dir() else {}


def root_of(corpus: Path) -> Path:
    """The folder that has train and test: `corpus`, or one in it, as timit/TIMIT is in LDC93S1."""
    if not corpus.is_dir():
        raise KernelamError(f"no such directory {corpus}")
    level = [corpus]
    for _ in range(DEPTH):
        for candidate in level:
            parts = children(candidate)
            if {"train", "test"} <= parts.keys() and "dr1" in children(parts["train"]):
                return candidate
        level = [path for folder in level for path in children(folder).values() if path.is_dir()]
    raise KernelamError(
        f"{corpus} is not TIMIT: neither it nor a folder in it has folders train, with dr1 in it, and test;"
        f" {found_instead((path.name for path in corpus.iterdir()), 'timit', 'train')}"
    )


def recordings(part: Path) -> Iterator[Recording]:
    """Sentences other than SA1 and SA2 of all speakers of train or test; those without sound or phones are named."""
    lacking = []
    for region in (path for name, path in children(part).items() if name.startswith("dr") and path.is_dir()):
        for speaker, folder in children(region).items():
            if not folder.is_dir():
                continue
            files: dict[str, dict[str, Path]] = defaultdict(dict)
            for name, path in children(folder).items():
                stem, _, ending = name.partition(".")
                files[stem][ending] = path
            for stem, kinds in files.items():
                if stem.startswith("sa") or not stem.startswith(("si", "sx")):
                    continue
                sound = next((kinds[ending] for ending in ("wav", "wav.wav", "sph") if ending in kinds), None)
                if sound is None or "phn" not in kinds:
                    lacking.append(f"{folder / stem}.{'wav' if sound is None else 'phn'}")
                else:
                    yield Recording(speaker.upper(), stem.upper(), sound, kinds["phn"])
    if lacking:
        warn(f"{len(lacking)} sentences are left out, for want of {' '.join(lacking)}")


def sets_of(corpus: Path) -> dict[str, list[Recording]]:
    """train, heldout, dev and test."""
    parts = children(root_of(corpus))
    found = {name: list(recordings(parts[name])) for name in ("train", "test")}
    result = {"train": found["train"]}
    for name in ("dev", "test"):
        wanted = [line.strip().upper() for line in lines(HERE / f"{name}_spk.list")]
        result[name] = [one for one in found["test"] if one.speaker in wanted]
        if missing := sorted(set(wanted) - {one.speaker for one in result[name]}):
            warn(f"{len(missing)} of the {len(wanted)} {name} speakers are not there: {' '.join(missing)}")
    for name, count in FULL.items():
        if not result[name]:
            raise KernelamError(f"{corpus} has no sentence of the {name} set")
        if len(result[name]) != count:
            warn(f"{name} has {len(result[name])} of TIMIT's {count} sentences")
    speakers = sorted({one.speaker for one in result["train"]})
    apart = set(speakers[HELDOUT - 1 :: HELDOUT] or speakers[-1:])
    if len(speakers) < 2:
        raise KernelamError(f"{corpus} has one training speaker; heldout needs another")
    result["heldout"] = [one for one in result["train"] if one.speaker in apart]
    result["train"] = [one for one in result["train"] if one.speaker not in apart]
    return result


def in_order(segments: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Those phones that take time of their own; people marked them, and may have marked one within another."""
    result, before = [], 0
    for begin, end, unit in segments:
        if max(begin, before) < end:
            result.append((max(begin, before), end, unit))
            before = end
    return result


def write_set(folder: Path, chosen: list[Recording], phones: PhoneMap) -> None:
    """A data directory, and the phones with their times as phones.ctm."""
    utterances, times, odd = [], [], []
    for one in sorted(chosen, key=lambda one: one.utt):
        segments = phones.segments(one.phones)
        words = " ".join(unit for _, _, unit in segments)
        utterances.append(Spoken(one.utt, one.speaker, words, str(one.sound.resolve()), one.speaker[0].lower()))
        marked = in_order(segments)
        times += [f"{one.utt} 1 {b / RATE:.4f} {(e - b) / RATE:.4f} {unit}\n" for b, e, unit in marked]
        odd += [str(one.phones)] * (marked != segments)
    if odd:
        warn(f"{len(odd)} files have phones that begin before others end, which phones.ctm has cut: {some(odd)}")
    write_data_dir(folder, utterances)
    with replacing(folder / "phones.ctm", "w") as stream:
        stream.writelines(times)
    say(f"{folder}: {len(utterances)} sentences of {len({one.speaker for one in chosen})} speakers")


def write_dictionary(folder: Path, phones: PhoneMap) -> None:
    files = {
        "lexicon.txt": [f"{unit} {unit}" for unit in phones.units],
        "silence_phones.txt": [SILENCE],
        "optional_silence.txt": [SILENCE],
        "nonsilence_phones.txt": [unit for unit in phones.units if unit != SILENCE],
    }
    for name, rows in files.items():
        with replacing(folder / name, "w") as stream:
            stream.writelines(f"{row}\n" for row in rows)


@click.command()
@click.option("--units", type=click.Choice(["48", "49"]), default="48", help="49: the glottal stop q is one.")
@click.argument("corpus", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
def main(units: str, corpus: Path, data: Path) -> None:
    """Write DATA/{train,heldout,dev,test} and DATA/local/dict of the TIMIT in CORPUS."""
    phones = PhoneMap(int(units))
    for name, chosen in sets_of(corpus).items():
        write_set(data / name, chosen, phones)
    write_dictionary(data / "local/dict", phones)


if __name__ == "__main__":
    run(main)
