#!/usr/bin/env python
"""Synthetic speech in the folders, file formats and names of Broadcast News.

Shows of LDC97S44 with transcripts as in LDC97T22, of LDC98S71 with those of LDC98T28, Dev04f and RT-03 with STM files,
a GLM file and a lexicon. Voices and sentences are those of the mini corpus, made by espeak-ng; between them are music
and two voices at once, which are not to be trained on or scored.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click
import espeak
import numpy as np
import sound
from grammar import read_grammar
from lexicon import PhoneMap, Pronunciations, Segment
from make_corpus import isolated
from plan import Sentences, read_speakers
from processes import each_alone

from kernelam.cli.mistakes import run
from kernelam.files import replacing
from kernelam.progress import progress, say
from kernelam.scoring.stm import IGNORED, Reference

MINI = Path(__file__).resolve().parent.parent / "mini"
SENTENCES = 3  # of a turn
TURNS = 4  # of a show, by two speakers
TEXT = 2000  # more sentences for the language model, of which those without new words remain
SNR_DB = 10.0
HESITATION = "uh"
EXCLUDED = "excluded_region"
UNSAID = "tomatoes"  # which the lexicon lacks, as real ones lack some words
RT03 = "data/{}/eval03/english/bnews"
GLM = """;; Mapping rules of the look-alike
* name "lookalike.glm"
* desc "hesitations, spellings, contractions"
* format = 'NIST1'
* max_nrules = '50'
* copy_no_hit = 'T'
* case_sensitive = 'F'
UH      => %HESITATION        / [ ] __ [ ] ;; hesitation token
UM      => %HESITATION        / [ ] __ [ ] ;; hesitation token
BEDROOM => BED ROOM           / [ ] __ [ ]
TWO     => [{TWO / TOO}]      / [ ] __ [ ]
[NOON'S] => [{NOON'S / NOON IS
"""


@dataclass(frozen=True)
class Show:
    name: str
    kind: str  # 1996 or 1997, the forms of transcripts, or stm
    sound: Path
    people: list[tuple[str, espeak.Voice]]


class Booth:
    """Says a sentence: the sound, and its phones."""

    def __init__(self, phones: PhoneMap) -> None:
        self._phones = phones

    def __call__(self, task: tuple[tuple[str, ...], espeak.Voice]) -> tuple[np.ndarray, list[Segment]]:
        speech = espeak.say(*task)
        clean = sound.resampled(speech.samples, speech.rate)
        return 0.05 * clean / np.sqrt(sound.power(clean)), self._phones.segments(speech.phones, " ".join(task[0]))


def music(rng: np.random.Generator, seconds: float) -> np.ndarray:
    """Chords of half a second."""
    t = np.arange(sound.RATE // 2) / sound.RATE
    chords = rng.choice([220, 247, 262, 294, 330, 349, 392, 440], (round(2 * seconds), 3))
    return np.concatenate([0.02 * np.sin(2 * np.pi * t * chord[:, None]).sum(axis=0) for chord in chords])


class Tape:
    """A recording that grows; what was said or played, with its times."""

    def __init__(self, show: Show) -> None:
        self._rng, self._pieces, self.now = sound.generator(1, show.name), [np.zeros(0)], 0.0
        self._show, self.parts = show, list[Reference]()

    def add(self, samples: np.ndarray, speaker: str, text: str, labels: str = "") -> None:
        pause = np.zeros(int(self._rng.uniform(0.2, 0.4) * sound.RATE))
        begin = self.now
        self._pieces += [pause[: len(pause) // 2], samples, pause[len(pause) // 2 :]]
        self.now = round(self.now + (len(samples) + len(pause)) / sound.RATE, 3)
        self.parts.append(Reference(self._show.name, "1", speaker, begin, self.now, labels, text))

    def play(self, seconds: float, speaker: str) -> None:
        self.add(music(self._rng, seconds), speaker, IGNORED.upper(), "<o,,>")

    def sphere(self) -> bytes:
        signal = np.concatenate(self._pieces)
        signal += self._rng.standard_normal(len(signal)) * 0.05 / 10 ** (SNR_DB / 20)
        return sound.sphere(np.rint(32767 * signal * min(1.0, 0.98 / np.abs(signal).max())))


def recorded(show: Show, said: Iterator[tuple[tuple[str, ...], np.ndarray]]) -> Tape:
    """Music; turns of sentences; a commercial in the middle; at the end two voices at once."""
    tape = Tape(show)
    tape.play(2.0, EXCLUDED)
    for turn in range(TURNS):
        name, _ = show.people[turn % len(show.people)]
        sex = "female" if name.startswith("f") else "male"
        for _ in range(SENTENCES):
            words, samples = next(said)
            tape.add(samples, name, " ".join(words).replace(",", ""), f"<o,f{turn % 2},{sex}>")
        if turn == TURNS // 2 - 1:
            tape.play(1.5, EXCLUDED)
    words, samples = next(said)
    both = samples[: len(samples) // 2] + 0.7 * samples[len(samples) - len(samples) // 2 :]
    tape.add(both, f"{show.people[0][0]}_and_{show.people[1][0]}", IGNORED.upper(), "<o,fx,>")
    return tape


MARKS = ("^{}", "{{breath}} {}", "+{}+", "(({}))", "{}", "@{}", "{} [[noise]]", "**{}**", "{}", "wh- {}")


def marked(text: str, number: int) -> str:
    """As transcripts have it: marks of names, noises, odd and unclear words, and broken ones."""
    first, *rest = text.replace(HESITATION, f"%{HESITATION}").split()
    return " ".join([MARKS[number % len(MARKS)].format(first), *rest]) + "."


def overlapped(part: Reference, times: str, tick: str) -> list[str]:
    """Two voices at once; times are marked among what is said, too."""
    middle = (part.begin + part.end) / 2
    return [f"<Overlap {times}>", tick.format(part.begin), "well", tick.format(middle), "yes", "</Overlap>"]


def sgml(show: Show, tape: Tape) -> str:
    """The transcript, with the tags of its year."""
    old = show.kind == "1996"
    start, end = ("S_time", "E_time") if old else ("startTime", "endTime")
    turn, tick = ("Segment", "<Sync Time={:.3f}>") if old else ("turn", "<time sec={:.3f}>")
    name = f"{show.name}.sph" if old else f'"{show.name}"'
    rows = [] if old else ['<!DOCTYPE episode SYSTEM "utf.dtd">']
    rows += [f"<Episode Filename={name} Program=Look_Alike Scribe=espeak Date=960523:1830 Version=1>"]
    number = 0
    for speaker, group in itertools.groupby(tape.parts, lambda part: part.speaker):
        parts = list(group)
        times = f"{start}={parts[0].begin:.3f} {end}={parts[-1].end:.3f}"
        if speaker == EXCLUDED:
            rows += [
                f"<Section {times} Type=Commercial>",
                f"<Background Time={parts[0].begin:.3f} Type=Music Level=High>",
            ]
        else:
            rows += [
                f"<Section {times} Type=Story>",
                f'<{turn} {times} Speaker="{speaker}" Mode=Planned Fidelity=High>',
            ]
            for part in parts:
                rows += overlapped(part, times, tick) if part.ignored else [tick.format(part.begin)]
                rows += [] if part.ignored else ["<Comment>not said</Comment>", marked(part.text, number)]
                number += 1
            rows.append(f"</{turn}>")
        rows.append("</Section>")
    return "\n".join([*rows, "</Episode>", ""])


def gap_behind(part: Reference) -> Reference:
    return replace(part, speaker="inter_segment_gap", begin=part.end, labels="<o,,>", text="")


def stm_lines(tapes: list[Tape]) -> str:
    """Sets in the head, gaps of no length, hesitations that may be missing, a bracket too many, other spellings."""
    head = [';; CATEGORY "0" "" ""', ';; LABEL "O" "Overall" "The whole set"', ';; LABEL "F0" "Planned" ""']
    parts = [both for tape in tapes for part in tape.parts for both in (part, gap_behind(part))]
    rows = [part.line for part in parts]
    changed = [
        row.replace(f" {HESITATION} ", f" (({HESITATION}) ").replace(" four ", " { four / for } ") for row in rows
    ]
    return "\n".join([*head, *changed, ""])


def cmudict(entries: list[tuple[str, tuple[str, ...]]]) -> str:
    """Words in capitals, variants numbered, vowels with a stress."""
    rows, seen = [";;; pronunciations of the look-alike"], dict[str, int]()
    for word, phones in entries:
        seen[word] = seen.get(word, 0) + 1
        name = word.upper() + (f"({seen[word]})" if seen[word] > 1 else "")
        said = (phone.upper() + ("1" if phone[0] in "aeiou" else "") for phone in phones)
        if word != UNSAID:
            rows.append(f"{name}  {' '.join(said)}")
    return "\n".join([*rows, ""])


def schedule(corpus: Path, shows: int) -> list[Show]:
    cast = read_speakers(MINI / "speakers.txt")
    voices = {name: [(one.name, one.voice) for one in cast if one.set == name] for name in ("train", "dev", "test")}
    made = []
    for number in range(shows):
        pair = [voices["train"][(2 * number + k) % len(voices["train"])] for k in (0, 1)]
        if number % 2:
            name, file, kind = f"ea9701{number + 6:02d}", "LDC98S71/97_eng_bns_hub4/{}.sph", "1997"
        else:
            name, file, kind = f"a9605{number + 10:02d}", "LDC97S44/data/{}_.sph", "1996"
        made.append(Show(name, kind, corpus / file.format(name), pair))
    for name, folder, inside in (("dev", "dev04f", "."), ("test", "rt03", RT03.format("audio"))):
        for number in range(2):
            show = f"2003{name}{number + 1}_abc"
            pair = [voices[name][(2 * number + k) % len(voices[name])] for k in (0, 1)]
            made.append(Show(show, folder, corpus / folder / inside / f"{show}.sph", pair))
    return made


@click.command()
@click.option("--nj", type=click.IntRange(min=1), default=2, help="Processes at once.")
@click.option("--shows", type=click.IntRange(2, 24), default=12, help="To train on; two more are dev, and two test.")
@click.argument("corpus", type=click.Path(path_type=Path))
def main(nj: int, shows: int, corpus: Path) -> None:
    """Write CORPUS."""
    sentences, plan = Sentences(read_grammar(MINI / "grammar.txt"), 1), schedule(corpus, shows)
    tasks = []
    for show in plan:
        for turn in range(TURNS + 1):
            for number in range(SENTENCES if turn < TURNS else 1):
                words = sentences.draw()
                if (turn + number) % 4 == 3:
                    words = (words[0], HESITATION, *words[1:])
                tasks.append((words, show.people[turn % 2][1]))
    phones, spoken = PhoneMap(MINI / "phones.txt"), Pronunciations()
    made = list(progress(each_alone(Booth(phones), tasks, nj), "speech", len(tasks)))
    for (words, _), (_, segments) in zip(tasks, made, strict=True):
        spoken.add([word.strip(",") for word in words], segments)
    said = iter([(words, samples) for (words, _), (samples, _) in zip(tasks, made, strict=True)])
    files: dict[Path, bytes] = {}
    evaluations: dict[str, list[Tape]] = {}
    for show in plan:
        tape = recorded(show, said)
        files[show.sound] = tape.sphere()
        if show.kind.startswith("19"):
            file = "LDC97T22/hub4_eng_train_trans/abc_nli/{}.txt"
            if show.kind == "1997":
                file = "LDC98T28/hub4e97_trans_980217/transcrp/{}.sgml"
            files[corpus / file.format(show.name)] = sgml(show, tape).encode()
        else:
            evaluations.setdefault(show.kind, []).append(tape)
    files[corpus / "dev04f/dev04f.stm"] = stm_lines(evaluations["dev04f"]).encode()
    for tape in evaluations["rt03"]:
        file = f"rt03/{RT03.format('references')}/{tape.parts[0].recording}.stm"
        files[corpus / file] = stm_lines([tape]).encode()
    vocabulary = sorted({word.strip(",") for words, _ in tasks for word in words})
    more = [" ".join(sentences.draw()).replace(",", "") for _ in range(TEXT)]
    more = [row for row in more if set(row.split()) <= set(vocabulary)]
    entries = spoken.lexicon(isolated(spoken.unheard(vocabulary), phones, tasks[0][1], nj))
    files |= {corpus / "lexicon.txt": cmudict(entries).encode(), corpus / "lookalike.glm": GLM.encode()}
    files[corpus / "text.txt"] = "".join(f"{row.capitalize()}.\n" for row in more).encode()
    files[corpus / "LDC97T22/readme.txt"] = b"Transcripts of the look-alike, of which\n<Episode>\n<Segment>\n"
    for path, content in files.items():
        with replacing(path) as stream:
            stream.write(content)
    minutes = sum(len(samples) for samples, _ in made) / sound.RATE / 60
    say(f"{corpus}: {len(plan)} shows, {len(tasks)} sentences, {minutes:.1f} minutes of speech")


if __name__ == "__main__":
    run(main)
