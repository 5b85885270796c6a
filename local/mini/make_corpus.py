#!/usr/bin/env python
"""Make the synthetic mini corpus: wavs and phone times under CORPUS, Kaldi data directories and lexicon under DATA."""

import hashlib
import io
import json
import signal
import wave
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import espeak
import numpy as np
import sound
from grammar import Grammar, read_grammar
from lexicon import PhoneMap, Pronunciation, Pronunciations, Segment, dict_files
from plan import UTTERANCES, Sentences, Utterance, make_plan, read_speakers
from processes import each_alone

from kernelam.cli.mistakes import run
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.progress import progress, say

HERE = Path(__file__).resolve().parent
MANIFEST = "manifest.json"
BABBLE_VOICES, BABBLE_SENTENCES = 8, 6


@dataclass(frozen=True)
class Recording:
    wav: bytes  # 16-bit samples
    segments: list[Segment]
    times: list[tuple[float, float, str]]  # start and length in seconds, phone


class Studio:
    """What all recordings share: phone map, babble, channels. espeak runs only in processes of their own."""

    def __init__(self, seed: int, phones: PhoneMap, sentences: Sentences, voices: list[espeak.Voice], nj: int) -> None:
        self._seed, self._phones = seed, phones
        tasks = [(sentences.draw(), voice) for voice in voices[:BABBLE_VOICES] for _ in range(BABBLE_SENTENCES)]
        spoken = list(each_alone(_speech, tasks, nj))
        streams = [np.concatenate(spoken[i : i + BABBLE_SENTENCES]) for i in range(0, len(spoken), BABBLE_SENTENCES)]
        length = min(len(stream) for stream in streams)
        self._babble = np.sum([stream[:length] / np.sqrt(sound.power(stream)) for stream in streams], axis=0)

    def record(self, utterance: Utterance) -> Recording:
        speech = espeak.say(utterance.words, utterance.voice)
        segments = self._phones.segments(speech.phones, f"{utterance} ({utterance.text})")
        clean = sound.resampled(speech.samples, speech.rate)
        if not np.any(clean):
            raise KernelamError(f"espeak-ng gave silence for {utterance} ({utterance.text})")
        channel = sound.channel(sound.generator(self._seed, f"channel {utterance.speaker.name}"))
        rng = sound.generator(self._seed, f"sound {utterance.name}")
        samples, offset = sound.record(clean, channel, self._babble, rng)
        times = phone_times(segments, speech.rate, offset, len(samples) / sound.RATE)
        return Recording(samples.tobytes(), segments, times)


def _speech(task: tuple[tuple[str, ...], espeak.Voice]) -> np.ndarray:
    speech = espeak.say(*task)
    return sound.resampled(speech.samples, speech.rate)


def phone_times(segments: list[Segment], rate: int, offset: float, end: float) -> list[tuple[float, float, str]]:
    """Start, length and phone from the beginning of a recording, which is a pause, to its end.

    espeak starts an l at the end of a sentence where it stops, as part of the vowel: it gets half of the vowel.
    """
    starts = [0.0, *(offset + start / rate for _, start, _ in segments), end]
    for i in range(2, len(starts) - 1):
        if starts[i] == starts[i + 1]:
            starts[i] = (starts[i - 1] + starts[i]) / 2
    names = ["SIL", *(name for name, _, _ in segments)]
    return [(start, stop - start, name) for start, stop, name in zip(starts, starts[1:], names, strict=False)]


def prepare_studio(seed: int, nj: int) -> tuple[Grammar, PhoneMap, list[Utterance], Studio]:
    grammar = read_grammar(HERE / "grammar.txt")
    phones = PhoneMap(HERE / "phones.txt")
    speakers = read_speakers(HERE / "speakers.txt")
    sentences = Sentences(grammar, seed)
    utterances = make_plan(sentences, speakers, seed)
    voices = [speaker.voice for speaker in speakers if speaker.set == "train"]
    return grammar, phones, utterances, Studio(seed, phones, sentences, voices, nj)


def write_wav(path: Path, samples: bytes) -> None:
    whole = io.BytesIO()
    with wave.open(whole, "wb") as wav:
        wav.setparams((1, 2, sound.RATE, len(samples) // 2, "NONE", ""))
        wav.writeframes(samples)
    with replacing(path) as stream:
        stream.write(whole.getbuffer())


def isolated(words: list[str], phones: PhoneMap, voice: espeak.Voice, nj: int) -> dict[str, Pronunciation]:
    """Each word said alone."""

    def pronounce(word: str) -> Pronunciation:
        segments = phones.segments(espeak.say([word], voice).phones, f"the word {word}")
        return tuple(name for name, _, index in segments if index >= 0)

    return dict(zip(words, each_alone(pronounce, words, nj), strict=True))


def fingerprint(seed: int) -> str:
    """Digest of all that the corpus depends on: these files, the seed, the synthesiser, the numeric libraries."""
    digest = hashlib.sha256(f"{seed} {np.__version__}".encode())
    for path in [*sorted(HERE.glob("*.py")), *sorted(HERE.glob("*.txt")), espeak.paths()[0]]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_manifest(corpus: Path, wanted: str) -> dict[str, Any] | None:
    """The manifest of a corpus that is whole and made of what `wanted` is the fingerprint of, or None."""
    try:
        manifest = json.loads((corpus / MANIFEST).read_text(encoding="utf-8"))
        if manifest["fingerprint"] != wanted:
            return None
        for name, digest in manifest["files"].items():
            if hashlib.sha256((corpus / name).read_bytes()).hexdigest() != digest:
                return None
    except (OSError, ValueError, KeyError):
        return None
    return manifest


def make_corpus(corpus: Path, seed: int, nj: int, made_of: str) -> dict[str, Any]:
    """Write wavs and phones.ctm of every set, and last the manifest, which makes the corpus count as made."""
    for stale in [corpus / MANIFEST, *corpus.glob("*/.*.partial")]:
        stale.unlink(missing_ok=True)
    grammar, phones, utterances, studio = prepare_studio(seed, nj)
    pronunciations = Pronunciations()
    ctm: dict[str, list[str]] = defaultdict(list)
    entries = []
    recordings = each_alone(studio.record, utterances, nj)
    for utterance, made in zip(utterances, progress(recordings, "corpus", len(utterances)), strict=True):
        set_ = utterance.speaker.set
        write_wav(corpus / set_ / f"{utterance.name}.wav", made.wav)
        ctm[set_] += [f"{utterance.name} 1 {start:.4f} {length:.4f} {phone}\n" for start, length, phone in made.times]
        if set_ == "train":
            pronunciations.add(utterance.text.split(), made.segments)
        duration = len(made.wav) / 2 / sound.RATE
        entries.append([utterance.name, set_, utterance.speaker.name, f"{duration:.4f}", utterance.text])
    for set_ in UTTERANCES:
        with replacing(corpus / set_ / "phones.ctm", "w") as stream:
            stream.writelines(ctm[set_])
    unheard = pronunciations.unheard(grammar.vocabulary())
    lexicon = pronunciations.lexicon(isolated(unheard, phones, utterances[0].speaker.voice, nj))
    names = [f"{set_}/{name}.wav" for name, set_, *_ in entries] + [f"{set_}/phones.ctm" for set_ in UTTERANCES]
    manifest = {
        "fingerprint": made_of,
        "utterances": entries,
        "phones": phones.nonsilence(),
        "lexicon": [[word, *pronunciation] for word, pronunciation in lexicon],
        "files": {name: hashlib.sha256((corpus / name).read_bytes()).hexdigest() for name in names},
    }
    with replacing(corpus / MANIFEST, "w") as stream:
        json.dump(manifest, stream, indent=0)
    return manifest


def data_files(manifest: dict[str, Any], corpus: Path) -> dict[str, list[str]]:
    """The lines of Kaldi's data directories of the four sets and of the dictionary directory."""
    files = {f"local/dict/{name}": lines for name, lines in dict_files(manifest["lexicon"], manifest["phones"]).items()}
    for set_ in UTTERANCES:
        tables: dict[str, dict[str, str]] = defaultdict(dict)
        members: dict[str, list[str]] = defaultdict(list)
        for name, of, speaker, _, text in manifest["utterances"]:
            if of != set_:
                continue
            tables["wav.scp"][name] = str(corpus / set_ / f"{name}.wav")
            tables["text"][name] = text
            tables["utt2spk"][name] = speaker
            tables["spk2gender"][speaker] = speaker[0]
            members[speaker].append(name)
        tables["spk2utt"] = {speaker: " ".join(sorted(names)) for speaker, names in members.items()}
        for file, table in tables.items():
            files[f"{set_}/{file}"] = [f"{key} {table[key]}" for key in sorted(table)]
    return files


def write_together(folder: Path, files: dict[str, list[str]]) -> None:
    """All files or, when the disk is full, none."""
    with ExitStack() as stack:
        for name, lines in files.items():
            stream = stack.enter_context(replacing(folder / name, "w"))
            stream.writelines(f"{line}\n" for line in lines)
            stream.flush()


def summary(manifest: dict[str, Any]) -> list[str]:
    """Speakers, minutes, words of each set; an out-of-vocabulary word is an error."""
    known = {entry[0] for entry in manifest["lexicon"]}
    result = [
        f"lexicon: {len(known)} words, {len(manifest['lexicon'])} pronunciations, {len(manifest['phones'])} phones"
    ]
    for set_ in UTTERANCES:
        entries = [entry for entry in manifest["utterances"] if entry[1] == set_]
        words = [word for entry in entries for word in entry[4].split()]
        if unknown := sorted(set(words) - known):
            raise KernelamError(f"the word {unknown[0]} of the set {set_} is not in the lexicon")
        minutes = sum(float(entry[3]) for entry in entries) / 60
        speakers = len({entry[2] for entry in entries})
        result.append(
            f"{set_}: {speakers} speakers, {len(entries)} utterances, {minutes:.1f} minutes,"
            f" {len(words)} words ({len(set(words))} different)"
        )
    return result


@click.command(help=__doc__)
@click.option("--nj", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at once.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed: other sentences, noises, channels.")
@click.argument("corpus", type=click.Path(file_okay=False, path_type=Path))
@click.argument("data", type=click.Path(file_okay=False, path_type=Path))
def main(nj: int, seed: int, corpus: Path, data: Path) -> None:
    made_of = fingerprint(seed)
    manifest = read_manifest(corpus, made_of)
    if manifest is None:
        for set_ in UTTERANCES:  # of another corpus in the same place, whose sound is about to change
            (data / set_ / "wav.scp").unlink(missing_ok=True)
        manifest = make_corpus(corpus, seed, nj, made_of)
    else:
        say(f"{corpus} is current")
    lines = summary(manifest)
    write_together(data, data_files(manifest, corpus))
    for line in lines:
        say(line)


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file-size limit shall be an error, not a death
    run(main)
