#!/usr/bin/env python
"""Data directories, dictionary and text of the Iban radio news corpus (OpenSLR 24).

The corpus has two sets: train, whose speakers ibf_008 and ibm_003 are heldout here and ibf_006 and ibf_014 dev, and one
that it calls dev or test, which is test here.
"""

from collections.abc import Iterator
from pathlib import Path

import click
from lexicon import dict_files

from kernelam.cli.mistakes import run
from kernelam.corpora import found_instead, some
from kernelam.errors import KernelamError
from kernelam.files import write_texts
from kernelam.kaldi.datawrite import Spoken, write_data_dir
from kernelam.kaldi.tables import lines, read_table
from kernelam.progress import say, warn

APART = {"heldout": ("ibf_008", "ibm_003"), "dev": ("ibf_006", "ibf_014")}
TEXT = "LM/iban-bp-2012.txt"
SILENCE = "SIL"  # the pronunciation of entries that are no words, <sil> and <UNK>; they have ours instead


def root_of(corpus: Path) -> Path:
    """The folder that has data, lang and LM: `corpus`, or one in it."""
    if not corpus.is_dir():
        raise KernelamError(f"no such directory {corpus}")
    inside = sorted(corpus.iterdir())
    for candidate in (corpus, *(path for path in inside if path.is_dir())):
        if (candidate / "data/train/text").exists():
            return candidate.resolve()
    found = found_instead((path.name for path in inside), "iban", "data")
    raise KernelamError(f"{corpus} is not the Iban corpus: neither it nor a folder in it has data/train/text; {found}")


def first_of(root: Path, *names: str) -> Path:
    for name in names:
        if (root / name).exists():
            return root / name
    raise KernelamError(f"{root} has no {' or '.join(names)}")


def utterances(root: Path, part: Path) -> Iterator[Spoken]:
    """Of a set of the corpus; those without sound are named. Paths in its own wav.scp are those of another machine."""
    text, utt2spk = (read_table(part / name, sort=False) for name in ("text", "utt2spk"))
    lacking = []
    for utt, words in text.items():
        if utt not in utt2spk:
            raise KernelamError(f"{part / 'utt2spk'} does not have the utterance {utt} of {part / 'text'}")
        speaker = utt2spk[utt]
        places = (root / "data/wav" / speaker / f"{utt}.wav", part / speaker / f"{utt}.wav", part / f"wav/{utt}.wav")
        sound = next((place for place in places if place.exists()), None)
        if sound is None:
            lacking.append(utt)
        else:
            gender = speaker[2:3] if speaker[2:3] in ("f", "m") else ""
            yield Spoken(utt, speaker, " ".join(words.split()), str(sound), gender)
    if lacking:
        warn(f"{part}: {len(lacking)} of {len(text)} utterances have no sound and are left out: {some(lacking)}")


def sets_of(root: Path) -> dict[str, list[Spoken]]:
    """train, heldout, dev and test, no speaker in two of them."""
    training = list(utterances(root, root / "data/train"))
    result = {"test": list(utterances(root, first_of(root, "data/dev", "data/test")))}
    for name, speakers in APART.items():
        result[name] = [one for one in training if one.speaker in speakers]
        if not result[name]:
            raise KernelamError(f"{root}/data/train has nothing of {' and '.join(speakers)}, who are the {name} set")
    apart = {one.speaker for own in result.values() for one in own}
    result["train"] = [one for one in training if one.speaker not in apart]
    return result


def lexicon(path: Path) -> list[str]:
    """Entries `word phone …` of the corpus, without the marks for silence and noise."""
    entries = set()
    for number, line in enumerate(lines(path), 1):
        word, *phones = line.split() or [""]
        if word and not phones:
            raise KernelamError(f"{path}, line {number}: {word} has no phones")
        if word and phones != [SILENCE]:
            entries.add(" ".join([word, *phones]))
    return sorted(entries)


@click.command()
@click.argument("corpus", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
def main(corpus: Path, data: Path) -> None:
    """Write DATA/{train,heldout,dev,test}, DATA/local/dict and DATA/local/text of the Iban corpus in CORPUS."""
    root = root_of(corpus)
    sets = sets_of(root)
    entries = lexicon(first_of(root, "lang/dict/lexicon.txt", "lang/lexicon.txt"))
    text = "".join(f"{line}\n" for line in lines(first_of(root, TEXT)))
    for name, chosen in sets.items():
        write_data_dir(data / name, chosen)
        say(f"{data / name}: {len(chosen)} utterances of {len({one.speaker for one in chosen})} speakers")
    phones = sorted({phone for entry in entries for phone in entry.split()[1:]})
    files = dict_files([entry.split() for entry in entries], phones)
    made = {data / "local/dict" / name: "".join(f"{row}\n" for row in rows) for name, rows in files.items()}
    write_texts({**made, data / "local/text": text})


if __name__ == "__main__":
    run(main)
