#!/usr/bin/env python
"""Data directories and dictionary of a language pack of IARPA Babel.

train and heldout are the conversations of the sub-train folder (the limited pack, whose sound is in the training
folder) or of the training folder (the full one), every tenth heldout. test is the eval folder where it is transcribed,
dev the dev folder; otherwise every fourth conversation of the dev folder is dev, on which weights are tuned, and the
others are test. The two sides of a conversation are speakers of their own, and always in the same set.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click
from babel_lexicon import Lexicon, Phones, code_points, write_dictionary
from babel_pieces import BEGIN, Pieces
from babel_transcripts import NOT_WORDS, Markup, turns

from kernelam.cli.mistakes import run
from kernelam.corpora import found_instead, seconds_of, some
from kernelam.errors import KernelamError
from kernelam.kaldi.datawrite import Spoken, write_data_dir
from kernelam.kaldi.tables import lines
from kernelam.progress import say, warn

NAME = re.compile(r"BABEL_(?:BP|OP\d)_(?P<code>\d{3})_(?P<id>\d+)_(?P<time>\d{8}_\d{6})_(?P<line>inLine|outLine)")
FOLDERS = {"audio": (".sph", ".wav"), "transcription": (".txt",)}
SIDES = {"inLine": "A", "outLine": "B"}
HELDOUT = 10  # one conversation of so many
TUNED = 4  # likewise, of the dev folder
SHORTEST = 0.1  # seconds of an utterance
DEPTH = 3  # folders between the one that is named and the pack


@dataclass(frozen=True)
class Recording:
    """One side of a conversation."""

    name: str
    sound: Path
    transcript: Path

    @property
    def _parts(self) -> re.Match[str]:
        match = NAME.fullmatch(self.name)
        assert match
        return match

    @property
    def caller(self) -> str:
        return self._parts["id"]

    def utterances(self, markup: Markup) -> Iterator[Spoken]:
        """Turns in which something is heard, spoken or not. The last time of a transcript may lie behind the sound."""
        speaker = f"{self.caller}_{SIDES[self._parts['line']]}"
        length, sound = seconds_of(self.sound)
        for turn in turns(self.transcript):
            words, end = markup.words(turn.text), min(turn.end, length)
            if words and turn.start >= length:
                warn(f"{self.transcript}, line {turn.line}, is left out: {self.sound} ends at {length:g} s, before it")
            elif words and end - turn.start >= SHORTEST:
                utt = f"{speaker}_{self._parts['time']}_{round(1000 * turn.start):07d}"
                yield Spoken(utt, speaker, " ".join(words), sound, "", self.name, (turn.start, end), channel="A")


def root_of(corpus: Path, code: str) -> Path:
    """The folder conversational of the pack: in `corpus`, or in a folder of it; of several, that of the language.

    A release of the eval folder alone is not meant.
    """
    if not corpus.is_dir():
        raise KernelamError(f"no such directory {corpus}")
    for depth in range(DEPTH + 1):
        found = sorted(path for path in corpus.glob("*/" * depth + "conversational") if path.is_dir())
        found = [path for path in found if (path / "dev").is_dir()] or found
        own = [path for path in found if re.search(rf"(?<!\d){code}(?!\d)", path.parent.name)] or found
        if own:
            return own[0].resolve()
    raise KernelamError(
        f"{corpus} is not a language pack of Babel: neither it nor a folder in it has a folder conversational;"
        f" {found_instead((path.name for path in corpus.iterdir()), 'conversational', f'IARPA_BABEL_OP1_{code}')}"
    )


def recordings(part: Path, code: str, audio: Path | None = None) -> list[Recording]:
    """Sides of conversations of training, dev, …; those without sound (in `audio`) or transcript are named."""
    found: dict[str, dict[str, Path]] = {}
    folders = {"audio": audio or part / "audio", "transcription": part / "transcription"}
    for folder, endings in FOLDERS.items():
        for path in sorted(folders[folder].glob("*")):
            if path.suffix.lower() in endings and (match := NAME.fullmatch(path.stem)):
                if match["code"] != code:
                    raise KernelamError(f"{path} is of the language {match['code']}, and {code} is wanted")
                found.setdefault(path.stem, {})[folder] = path.resolve()
    whole = [
        Recording(name, kinds["audio"], kinds["transcription"]) for name, kinds in found.items() if len(kinds) == 2
    ]
    if not whole:
        raise KernelamError(
            f"{part} has no conversation: a file such as BABEL_BP_{code}_10470_20111118_172644_inLine.sph in"
            f" {audio or 'audio'}, and one of the same name with .txt in transcription"
        )
    if audio:  # which has the sound of others too
        found = {name: kinds for name, kinds in found.items() if "transcription" in kinds}
    lacking = sorted(f"{folder}/{name}" for name, kinds in found.items() for folder in FOLDERS if folder not in kinds)
    if lacking:
        warn(f"{part}: {len(lacking)} of {len(found)} recordings are left out, for want of {some(lacking)}")
    return whole


def training_of(root: Path, code: str, pack: str, listed: Path | None) -> list[Recording]:
    """The recordings of the limited or the full pack, or those that a file lists."""
    if pack == "limited" and listed is None:
        for part in sorted(root.glob("sub-train*")):  # sub-train1 in releases of Cantonese
            return recordings(part, code, None if (part / "audio").is_dir() else root / "training/audio")
        raise KernelamError(
            f"{root} has no folder sub-train, which is the limited pack: name its recordings with --train-list, or take"
            " the full one with --pack full"
        )
    found = recordings(root / "training", code)
    if listed is None:
        return found
    wanted = {Path(line.strip()).stem for line in lines(listed) if line.strip()}
    if missing := sorted(wanted - {one.name for one in found}):
        warn(f"{len(missing)} of the {len(wanted)} recordings of {listed} are not there, first {missing[0]}")
    return [one for one in found if one.name in wanted]


def sets_of(root: Path, code: str, pack: str, listed: Path | None) -> dict[str, list[Recording]]:
    """train, heldout, dev and test, no caller in two of them."""
    result = {"dev": recordings(root / "dev", code)}
    if any((root / "eval/transcription").glob("*.txt")):
        result["test"] = recordings(root / "eval", code)
    else:
        callers = sorted({one.caller for one in result["dev"]})
        if len(callers) < 2:
            raise KernelamError(
                f"{root / 'dev'} has one conversation; to tune on one and test on another, two are needed"
            )
        result |= _apart(result["dev"], set(callers[::TUNED]), "test", "dev")
    tested = {one.caller for name in ("dev", "test") for one in result[name]}
    training = training_of(root, code, pack, listed)
    if shared := sorted({one.caller for one in training} & tested):
        warn(
            f"{len(shared)} callers of the training set are in dev or test too, and left out of it: {' '.join(shared)}"
        )
    training = [one for one in training if one.caller not in tested]
    callers = sorted({one.caller for one in training})
    if len(callers) < 2:
        raise KernelamError(f"{root} has {len(callers)} conversations to train on; heldout needs one besides")
    return _apart(training, set(callers[HELDOUT - 1 :: HELDOUT] or callers[-1:]), "train", "heldout") | result


def _apart(found: list[Recording], callers: set[str], others: str, own: str) -> dict[str, list[Recording]]:
    return {
        others: [one for one in found if one.caller not in callers],
        own: [one for one in found if one.caller in callers],
    }


def spoken(name: str, chosen: list[Recording], markup: Markup) -> list[Spoken]:
    """Utterances; to train on, those with a word in them."""
    every = (one for recording in chosen for one in recording.utterances(markup))
    training = name in ("train", "heldout")
    found = [one for one in every if not training or seen_in([one])]
    if not found:
        raise KernelamError(f"the {len(chosen)} recordings of {name} have no words, first {chosen[0].transcript}")
    return found


def seen_in(utterances: Iterable[Spoken]) -> set[str]:
    return {word for one in utterances for word in one.words.split()} - set(NOT_WORDS)


def report_unknown(name: str, utterances: Iterable[Spoken], lexicon: Lexicon) -> None:
    """How many words the lexicon lacks, and which characters: those of another script, say."""
    counts = Counter(word for one in utterances for word in one.words.split() if word not in NOT_WORDS)
    missing = {word: count for word, count in counts.items() if word not in lexicon.words}
    share = sum(missing.values()) / max(1, counts.total())
    say(f"{name}: {100 * share:.1f} % of {counts.total()} words are not in {lexicon.path}")
    strange = set("".join(missing)) - lexicon.characters
    if strange:
        first = next(word for word in missing if strange & set(word))
        warn(
            f"{name} has {len(strange)} characters that no word of {lexicon.path} has:"
            f" {code_points(strange)}; the first is in the word {first}"
        )


def words_of(lexicon: Lexicon, missing: Iterable[str], spelling: str) -> dict[str, list[Phones]]:
    """The words of the lexicon, and those it lacks; `spelling` is of none, of those, or of all words."""
    words = dict(lexicon.words)
    if spelling != "none":
        words |= {word: [lexicon.spelled(word)] for word in missing if word not in words}
    if spelling == "all":
        words = {word: [lexicon.spelled(word)] for word in words}
    return {word: found for word, found in words.items() if all(found)}


def units_of(lexicon: Lexicon, units: Iterable[str], spelling: str) -> dict[str, list[Phones]]:
    """Sentencepiece units: as the word that they are, if they are one, otherwise spelled."""
    found = {}
    for unit in units:
        word = unit.removeprefix(BEGIN)
        whole = lexicon.words.get(word) if unit != word and spelling != "all" else None
        found[unit] = whole or [lexicon.spelled(word)]
    return {unit: phones for unit, phones in found.items() if all(phones)}


@click.command()
@click.option("--code", required=True, help="Of the language, as it is in file names: 103 is Bengali.")
@click.option(
    "--tones", type=click.Choice(["keep", "drop", "none"]), default="keep", help="none: the language has none."
)
@click.option("--romanised", type=bool, default=True, help="The second column of the lexicon is no pronunciation.")
@click.option("--pack", type=click.Choice(["limited", "full"]), default="limited", help="What to train on.")
@click.option("--train-list", type=click.Path(path_type=Path), help="A file of the names of recordings to train on.")
@click.option(
    "--spelling", type=click.Choice(["none", "missing", "all"]), default="none", help="Which words are spelled."
)
@click.option("--pieces", type=click.IntRange(min=0), default=0, help="Sentencepiece units instead of words.")
@click.argument("corpus", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
def main(
    code: str,
    tones: str,
    romanised: bool,
    pack: str,
    train_list: Path | None,
    spelling: str,
    pieces: int,
    corpus: Path,
    data: Path,
) -> None:
    """Write DATA/{train,heldout,dev,test} and DATA/local/dict of the language pack in CORPUS."""
    root = root_of(corpus, code)
    chosen = sets_of(root, code, pack, train_list)
    lexicons = sorted((root / "reference_materials").glob("lexicon.sub-train*.txt")) if pack == "limited" else []
    lexicon = Lexicon([*lexicons, root / "reference_materials/lexicon.txt"][0], tones, romanised)
    markup = Markup()
    sets = {name: spoken(name, found, markup) for name, found in chosen.items()}
    for mark, count in sorted(markup.strange.items()):
        warn(f"the mark {mark}, {count} times in the transcripts, is not known, and taken for noise")
    for name, utterances in sets.items():
        report_unknown(name, utterances, lexicon)
    if pieces:
        model = Pieces.trained((one.words.split() for one in sets["train"]), pieces)
        for name, found in sets.items():
            sets[name] = [replace(one, words=" ".join(model.split(one.words.split()))) for one in found]
        words = units_of(lexicon, model.units | seen_in(sets["train"]), spelling)
        model.save(data / "local/pieces.model")
    else:
        words = words_of(lexicon, seen_in(sets["train"]), spelling)
    for name, found in sets.items():
        write_data_dir(data / name, found)
        hours = sum(one.seconds[1] - one.seconds[0] for one in found if one.seconds) / 3600
        speakers = len({one.speaker for one in found})
        say(f"{data / name}: {len(found)} utterances of {speakers} speakers, {hours:.2f} hours")
    write_dictionary(data / "local/dict", words)


if __name__ == "__main__":
    run(main)
