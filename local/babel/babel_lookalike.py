#!/usr/bin/env python
"""Synthetic speech in the folders, file formats and names of a Babel language pack.

The voices are espeak-ng's of the language, in the variants of the mini corpus. A recording is one side of a telephone
call: turns with silence between them, and now and then one of the things that transcripts have marks for.
"""

import io
from dataclasses import dataclass, replace
from pathlib import Path

import click
import espeak
import numpy as np
import sound
import soundfile
from plan import read_speakers
from processes import each_alone

from kernelam.cli.mistakes import run
from kernelam.files import replacing
from kernelam.frontend.audio import resampled
from kernelam.kaldi.tables import lines
from kernelam.progress import progress, say

HERE = Path(__file__).resolve().parent
RATE = 8000
TURNS = 10  # of a side
SNR_DB = 25.0
BEHIND = 0.7  # seconds by which the last time of a transcript lies behind the sound
NOISES = ("<breath>", "<cough>", "<laugh>", "<lipsmack>", "<click>", "<int>")


@dataclass(frozen=True)
class Language:
    program: str  # the part of the programme that its pack is of, and its number
    voice: str
    hesitation: str  # what is said for <hes>


LANGUAGES = {"bengali": Language("OP1_103", "bn", "এঁ"), "cantonese": Language("BP_101", "yue", "呃")}


@dataclass(frozen=True)
class Said:
    """What the transcript has, and what is heard: words, or, if there are none, noise."""

    written: str
    spoken: str


class Talk:
    """Sentences of lines such as `I/you eat/drink`, of which each has one of the words between slashes."""

    def __init__(self, path: Path, language: Language) -> None:
        self._patterns = [[slot.split("/") for slot in line.split()] for line in lines(path)]
        self._language = language

    def turn(self, rng: np.random.Generator) -> list[Said]:
        pattern = self._patterns[rng.integers(len(self._patterns))]
        words = [str(rng.choice(slot)) for slot in pattern]
        said = [Said(word, word) for word in words]
        place = int(rng.integers(len(said)))
        word = words[place]
        odd = {
            0: [Said("<hes>", self._language.hesitation), said[place]],
            1: [said[place], Said(str(rng.choice(NOISES)), "")],
            2: [Said(f"*{word}*", word)],
            3: [Said(f"{word[:1]}-", word[:1]), said[place]],
            4: [Said(str(rng.choice(["(())", "<foreign>"])), word)],
        }
        return [*said[:place], *odd.get(int(rng.integers(20)), [said[place]]), *said[place + 1 :]]


def heard(task: tuple[list[Said], espeak.Voice, str]) -> np.ndarray:
    """A turn at RATE: its words, and noises behind them."""
    said, voice, name = task
    speech = espeak.say([one.spoken for one in said if one.spoken], voice)
    clean = resampled(speech.samples.astype(np.float32), speech.rate, RATE) / 32768
    rng = sound.generator(1, name)
    bursts = [0.05 * rng.standard_normal(RATE // 4) for one in said if not one.spoken]
    return np.concatenate([clean, *bursts])


@dataclass
class Side:
    """A recording as it grows."""

    name: str
    signal: list[np.ndarray]
    text: list[str]

    def add(self, part: np.ndarray, text: str) -> None:
        self.text += [f"[{sum(map(len, self.signal)) / RATE:.3f}]", text]
        self.signal.append(part)

    def files(self) -> tuple[bytes, str]:
        """The .sph file, in µ-law, and the .txt file."""
        clean = np.concatenate(self.signal)
        rng = sound.generator(1, f"line {self.name}")
        noisy = clean + rng.standard_normal(len(clean)) * np.sqrt(sound.power(clean) / 10 ** (SNR_DB / 10))
        whole = io.BytesIO()
        soundfile.write(whole, noisy * (0.5 / np.abs(noisy).max()), RATE, "ULAW", format="NIST")
        return whole.getvalue(), "\n".join([*self.text, f"[{len(clean) / RATE + BEHIND:.3f}]", ""])


def write_pack(root: Path, sides: dict[str, list[Side]], lexicon: list[list[str]]) -> None:
    """Sound, transcripts and their romanisation of each part; the lexicon of all words, and of those of sub-train.

    The sound of sub-train is in the folder of training only.
    """
    roman = {row[0]: row[1] for row in lexicon}
    for part, own in sides.items():
        for side in own:
            content, text = side.files()
            romanised = "\n".join(" ".join(roman.get(word, word) for word in line.split()) for line in text.split("\n"))
            for folder, ending, file in (
                ("audio", "sph", content),
                ("transcription", "txt", text.encode()),
                ("transcript_roman", "txt", romanised.encode()),
            ):
                if (part, folder) == ("sub-train", "audio"):
                    continue
                with replacing(root / part / folder / f"{side.name}.{ending}") as stream:
                    stream.write(file)
    seen = {word for side in sides["sub-train"] for line in side.text for word in line.split()}
    named = sorted({side.name for own in sides.values() for side in own})
    for name, rows in {
        "lexicon.txt": lexicon,
        "lexicon.sub-train.txt": [row for row in lexicon if row[0] in seen],
        "demographics.tsv": [["outputFn", "dialect", "gen"], *([f"{one}.sph", "NA", "NA"] for one in named)],
    }.items():
        with replacing(root / "reference_materials" / name, "w") as stream:
            stream.writelines("\t".join(row) + "\n" for row in rows)


@click.command()
@click.option("--nj", type=click.IntRange(min=1), default=2, help="Processes at once.")
@click.option("--language", type=click.Choice(list(LANGUAGES)), default="bengali")
@click.option("--conversations", type=click.IntRange(3, 12), default=8, help="To train on; half as many are to test.")
@click.argument("corpus", type=click.Path(path_type=Path))
def main(nj: int, language: str, conversations: int, corpus: Path) -> None:
    """Write CORPUS/IARPA_BABEL_…."""
    own = LANGUAGES[language]
    talk = Talk(HERE / f"{language}.sentences", own)
    cast = read_speakers(HERE.parent / "mini/speakers.txt")
    tasks, turns_of = [], []
    parts = {"training": range(conversations), "dev": range(conversations, conversations + max(2, conversations // 2))}
    for part, numbers in parts.items():
        voices = [one.voice for one in cast if (one.set in ("train", "heldout")) == (part == "training")]
        for number in numbers:
            for place, line in enumerate(("inLine", "outLine")):
                voice = replace(voices[(2 * number + place) % len(voices)], language=own.voice)
                second = 40 + number + (place if number % 2 else 0)  # sides that began a second apart occur
                name = f"BABEL_{own.program}_{10033 + 1187 * number}_201111{10 + number}_1726{second}_{line}"
                rng = sound.generator(1, f"talk {name}")
                for turn in range(TURNS):
                    tasks.append((talk.turn(rng), voice, f"{name} {turn}"))
                    turns_of.append((part, name))
    sides: dict[str, dict[str, Side]] = {part: {} for part in parts}
    made = each_alone(heard, tasks, nj)
    for (part, name), (said, _, _), speech in zip(turns_of, tasks, progress(made, "speech", len(tasks)), strict=True):
        side = sides[part].setdefault(name, Side(name, [], []))
        pause = sound.generator(1, f"pause {name} {len(side.text)}").uniform(0.2, 1.5)
        if pause > 0.5:
            side.add(np.zeros(int(pause * RATE)), "<no-speech>")
        side.add(np.pad(speech, RATE // 10), " ".join(one.written for one in said))
    every = {part: list(own.values()) for part, own in sides.items()}
    every["sub-train"] = every["training"][:-2]  # all but the last conversation
    lexicon = [line.split("\t") for line in lines(HERE / f"{language}.lexicon")]
    root = corpus / f"IARPA_BABEL_{own.program}/conversational"
    write_pack(root, every, lexicon)
    say(f"{root.parent}: {len(tasks)} turns of {len(every['training']) + len(every['dev'])} speakers")


if __name__ == "__main__":
    run(main)
