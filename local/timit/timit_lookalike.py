#!/usr/bin/env python
"""Synthetic speech in the folders, file formats and names of TIMIT.

Voices and sentences are those of the mini corpus, made by espeak-ng; phones have TIMIT's names, closures before stops
and a glottal stop before a vowel that begins a sentence. Speakers of dev and test have the names of TIMIT's own.
"""

from collections.abc import Iterator
from pathlib import Path

import click
import espeak
import numpy as np
import sound
from grammar import read_grammar
from lexicon import PhoneMap
from plan import Sentences, read_speakers
from processes import each_alone

from kernelam.cli.mistakes import run
from kernelam.files import replacing
from kernelam.progress import progress, say

HERE = Path(__file__).resolve().parent
MINI = HERE.parent / "mini"
CLOSURES = {"b": "bcl", "d": "dcl", "g": "gcl", "p": "pcl", "t": "tcl", "k": "kcl", "ch": "tcl", "jh": "dcl"}
PAIRS = {"aar": "aa r", "aor": "ao r", "ehr": "eh r", "ihr": "ih r", "uhr": "uh r"}
VOWELS = frozenset(["aa", "ae", "ah", "ao", "aw", "ax", "ay", "eh", "er", "ey", "ih", "iy", "ow", "oy", "uh", "uw"])
EVERYBODY = ("sa1", "sa2")
OWN = ("si649", "si1027", "si1657", "sx37", "sx127", "sx217", "sx307", "sx397")
Label = tuple[int, int, str]  # first sample, sample after the last, phone or word


def phones_of(segments: list[tuple[str, int, int]], end: int) -> list[Label]:
    """TIMIT's phones of the mini corpus's, which begin at their samples."""
    result: list[Label] = []
    for (name, start, _), stop in zip(segments, [*(start for _, start, _ in segments[1:]), end], strict=True):
        parts = PAIRS.get(name, f"{CLOSURES[name]} {name}" if name in CLOSURES else name).split()
        if name in VOWELS and (not result or result[-1][2] in ("h#", "pau")):
            parts.insert(0, "q")
        edges = np.linspace(start, stop, len(parts) + 1).astype(int).tolist()
        names = ["pau"] if name == "SIL" else parts
        result += [(a, b, part) for a, b, part in zip(edges[:-1], edges[1:], names, strict=True) if a < b]
    return result


def words_of(segments: list[tuple[str, int, int]], words: tuple[str, ...], end: int) -> Iterator[Label]:
    """Words with phones of their own, from their first phone to what follows the last."""
    stops = [*(start for _, start, _ in segments[1:]), end]
    for number, word in enumerate(words):
        own = [place for place, (_, _, of) in enumerate(segments) if of == number]
        if own:
            yield segments[own[0]][1], stops[own[-1]], word.strip(",")


class Booth:
    """Records a sentence: the .WAV, .PHN, .WRD and .TXT files of it."""

    def __init__(self, phones: PhoneMap) -> None:
        self._phones = phones

    def __call__(self, task: tuple[str, tuple[str, ...], espeak.Voice]) -> dict[str, bytes]:
        name, words, voice = task
        speech = espeak.say(words, voice)
        clean = sound.resampled(speech.samples, speech.rate)
        signal, pause = sound.near(clean, name)
        scale, end = sound.RATE / speech.rate, pause + len(clean)
        named = self._phones.segments(speech.phones, name)
        segments = [(phone, pause + int(start * scale), word) for phone, start, word in named]
        while segments and segments[-1][0] == "SIL":
            end = segments.pop()[1]
        length = len(signal)
        spoken = phones_of(segments, end)
        phones = [(0, spoken[0][0], "h#"), *spoken, (end, length, "h#")]
        text = " ".join(word.strip(",") for word in words)
        return {
            "WAV": sound.sphere(np.rint(signal * 32767)),
            "PHN": _lines(phones),
            "WRD": _lines(list(words_of(segments, words, end))),
            "TXT": _lines([(0, length, f"{text.capitalize()}.")]),
        }


def _lines(labels: list[Label]) -> bytes:
    return "".join(f"{begin} {end} {name}\n" for begin, end, name in labels).encode()


@click.command()
@click.option("--nj", type=click.IntRange(min=1), default=2, help="Processes at once.")
@click.option("--speakers", type=click.IntRange(2, 64), default=16, help="Of the train folder; test has a fourth more.")
@click.argument("corpus", type=click.Path(path_type=Path))
def main(nj: int, speakers: int, corpus: Path) -> None:
    """Write CORPUS/timit/TIMIT."""
    cast = read_speakers(MINI / "speakers.txt")
    voices = {name: [one.voice for one in cast if one.set == name] for name in ("train", "dev", "test")}
    sentences = Sentences(read_grammar(MINI / "grammar.txt"), 1)
    everybody = {name: sentences.draw() for name in EVERYBODY}
    people: list[tuple[str, str, espeak.Voice]] = []
    for number in range(speakers):
        who = f"{'FM'[number % 2]}TR{chr(65 + number // 10)}{number % 10}"
        people.append(("TRAIN", who, voices["train"][number % len(voices["train"])]))
    for name in ("dev", "test"):
        listed = (HERE / f"{name}_spk.list").read_text().upper().split()[: max(2, speakers // 8)]
        people += [("TEST", who, voices[name][number % len(voices[name])]) for number, who in enumerate(listed)]
    tasks, places = [], []
    for number, (part, who, voice) in enumerate(people):
        for name in (*EVERYBODY, *OWN):
            words = everybody.get(name) or sentences.draw()
            tasks.append((f"{who} {name}", words, voice))
            places.append(corpus / "timit/TIMIT" / part / f"DR{number % 8 + 1}" / who / name.upper())
    made = each_alone(Booth(PhoneMap(MINI / "phones.txt")), tasks, nj)
    for place, files in zip(places, progress(made, "speech", len(tasks)), strict=True):
        for ending, content in files.items():
            with replacing(place.with_suffix(f".{ending}")) as stream:
                stream.write(content)
    say(f"{corpus}/timit/TIMIT: {len(tasks)} sentences of {len(people)} speakers")


if __name__ == "__main__":
    run(main)
