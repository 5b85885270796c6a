#!/usr/bin/env python
"""Synthetic speech in the folders, file formats and names of the Iban radio news corpus (OpenSLR 24).

Sentences are drawn from the lines of sentences.txt, each with one of the words between slashes. espeak-ng has no voice
for Iban; that of Malay, in the variants of the mini corpus, reads it. Words are pronounced as they are spelt.
"""

import io
import re
from dataclasses import replace
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
from kernelam.kaldi.tables import lines
from kernelam.progress import progress, say

HERE = Path(__file__).resolve().parent
TRAINED = ("ibf_002", "ibf_003", "ibm_001", "ibm_002", "ibf_006", "ibf_008", "ibf_014", "ibm_003")
TESTED = ("ibf_001", "ibm_005")
LETTERS = {"ng": "NG", "ny": "NJ", "c": "tS", "j": "dZ", "y": "j", "e": "@"}
NEWSPAPER = 400  # sentences of it
ELSEWHERE = "/home/sarah/kaldi/iban"


def recorded(task: tuple[list[str], espeak.Voice, str]) -> bytes:
    """The .wav file of a sentence."""
    words, voice, name = task
    speech = espeak.say(words, voice)
    signal, _ = sound.near(sound.resampled(speech.samples, speech.rate), name)
    whole = io.BytesIO()
    soundfile.write(whole, signal, sound.RATE, "PCM_16", format="WAV")
    return whole.getvalue()


def pronounced(word: str) -> str:
    return " ".join(LETTERS.get(part, part) for part in re.findall("ng|ny|.", word))


def drawn(patterns: list[list[list[str]]], rng: np.random.Generator) -> list[str]:
    return [str(rng.choice(slot)) for slot in patterns[rng.integers(len(patterns))]]


@click.command()
@click.option("--nj", type=click.IntRange(min=1), default=2, help="Processes at once.")
@click.option("--utterances", type=click.IntRange(2, 999), default=25, help="Of each speaker.")
@click.argument("corpus", type=click.Path(path_type=Path))
def main(nj: int, utterances: int, corpus: Path) -> None:
    """Write CORPUS/{data,lang,LM}."""
    patterns = [[slot.split("/") for slot in line.split()] for line in lines(HERE / "sentences.txt")]
    cast = read_speakers(HERE.parent / "mini/speakers.txt")
    tasks, tables = [], {name: {"text": "", "utt2spk": "", "spk2utt": "", "wav.scp": ""} for name in ("train", "dev")}
    for part, speakers in {"train": TRAINED, "dev": TESTED}.items():
        voices = [one.voice for one in cast if (one.set in ("train", "heldout")) == (part == "train")]
        for number, speaker in enumerate(sorted(speakers)):
            utts = [f"{speaker}_{place:03}" for place in range(1, utterances + 1)]
            tables[part]["spk2utt"] += f"{speaker} {' '.join(utts)}\n"
            for utt in utts:
                words = drawn(patterns, sound.generator(1, utt))
                tasks.append((words, replace(voices[number % len(voices)], language="ms"), utt))
                tables[part]["text"] += f"{utt}  {' '.join(words)}  \n"  # with the corpus's own spaces and tabs
                tables[part]["utt2spk"] += f"{utt}\t{speaker}\n"
                tables[part]["wav.scp"] += f"{utt}\t{ELSEWHERE}/data/wav/{speaker}/{utt}.wav\n"
    files = {f"data/{part}/{name}": text for part, own in tables.items() for name, text in own.items()}
    rng = sound.generator(1, "newspaper")
    files["LM/iban-bp-2012.txt"] = "".join(" ".join(drawn(patterns, rng)) + "\n" for _ in range(NEWSPAPER))
    vocabulary = sorted({word for pattern in patterns for slot in pattern for word in slot})
    marks = "<sil>\tSIL\n<UNK>\tSIL\n"
    files["lang/dict/lexicon.txt"] = marks + "".join(f"{word}\t{pronounced(word)}\n" for word in vocabulary)
    for name, text in files.items():
        with replacing(corpus / name, "w") as stream:
            stream.write(text)
    made = each_alone(recorded, tasks, nj)
    for (_, _, utt), content in zip(tasks, progress(made, "speech", len(tasks)), strict=True):
        with replacing(corpus / "data/wav" / utt.rpartition("_")[0] / f"{utt}.wav") as stream:
            stream.write(content)
    say(f"{corpus}: {len(tasks)} utterances of {len(TRAINED + TESTED)} speakers")


if __name__ == "__main__":
    run(main)
