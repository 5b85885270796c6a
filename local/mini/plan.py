"""Who says what: the speakers of each set and their sentences."""

from dataclasses import dataclass, replace
from pathlib import Path

from espeak import Voice
from grammar import Grammar
from sound import generator

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines

UTTERANCES = {"train": 52, "heldout": 40, "dev": 38, "test": 40}  # sets, and utterances of each of their speakers
LENGTHS = range(4, 11)  # words in a sentence


@dataclass(frozen=True)
class Speaker:
    set: str
    name: str
    voice: Voice


@dataclass(frozen=True)
class Utterance:
    name: str
    speaker: Speaker
    words: tuple[str, ...]  # a comma behind a word is a pause
    voice: Voice

    @property
    def text(self) -> str:
        return " ".join(self.words).replace(",", "")

    def __str__(self) -> str:
        return f"utterance {self.name}"


def read_speakers(path: str | Path) -> list[Speaker]:
    """Lines `set speaker variant pitch rate range`, no speaker or variant in two sets, each set with a speaker."""
    speakers: dict[str, Speaker] = {}
    variants: dict[str, str] = {}
    for number, line in enumerate(lines(path), 1):
        where = f"{path}, line {number}"
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 6 or not all(field.isascii() and field.isdigit() for field in fields[3:]):
            raise KernelamError(f"{where}: expected 'set speaker variant pitch rate range', found '{line}'")
        set_, name, variant = fields[:3]
        if set_ not in UTTERANCES:
            raise KernelamError(f"{where}: {set_} is not one of the sets {' '.join(UTTERANCES)}")
        if name[0] not in "fm" or name in speakers:
            raise KernelamError(f"{where}: {name} should begin with f or m and occur once")
        if variants.setdefault(variant, set_) != set_:
            raise KernelamError(f"{where}: the variant {variant} is already in {variants[variant]}")
        speakers[name] = Speaker(set_, name, Voice(variant, *map(int, fields[3:])))
    for set_ in UTTERANCES:
        if not any(speaker.set == set_ for speaker in speakers.values()):
            raise KernelamError(f"{path} has no speaker of the set {set_}")
    return list(speakers.values())


class Sentences:
    """Sentences of a grammar, none of them twice."""

    def __init__(self, grammar: Grammar, seed: int) -> None:
        self._grammar, self._rng = grammar, generator(seed, "sentences")
        self._seen: set[str] = set()

    def draw(self) -> tuple[str, ...]:
        """Words; where the grammar has a comma, half of the sentences keep it, behind the word."""
        for _ in range(10_000):
            symbols = self._grammar.sample(self._rng)
            words = [symbol for symbol in symbols if symbol != ","]
            text = " ".join(words)
            repeats = any(a == b for a, b in zip(words, words[2:], strict=False))  # "rice and rice"
            if len(words) in LENGTHS and text not in self._seen and not repeats:
                self._seen.add(text)
                if self._rng.random() < 0.5:
                    return tuple(words)
                return tuple(" ".join(symbols).replace(" ,", ",").split())
        raise KernelamError(f"the grammar has too few sentences: no new one after {len(self._seen)}")


def make_plan(sentences: Sentences, speakers: list[Speaker], seed: int) -> list[Utterance]:
    """All utterances in C order of their names, each a little faster or slower than its speaker's habit."""
    plan = []
    for speaker in sorted(speakers, key=lambda speaker: speaker.name):
        for number in range(1, UTTERANCES[speaker.set] + 1):
            name = f"{speaker.name}-{number:03d}"
            rng = generator(seed, f"manner {name}")
            rate = round(speaker.voice.rate * rng.uniform(0.93, 1.07))
            pitch = speaker.voice.pitch + int(rng.integers(-5, 6))
            voice = replace(speaker.voice, rate=rate, pitch=pitch, gap=int(rng.integers(0, 4)))
            plan.append(Utterance(name, speaker, sentences.draw(), voice))
    return plan
