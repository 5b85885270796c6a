"""A corpus of tones: words of three tones each, spoken by five voices, as data directories and a dictionary."""

from pathlib import Path

import numpy as np
import soundfile

TONES = {"A": (300, 900), "B": (500, 1400), "C": (700, 2300), "D": (1100, 3000)}
WORDS = {"abc": "A B C", "cab": "C A B", "dab": "D A B", "bad": "B A D", "add": "A D"}
PITCH = {"a": 1.0, "b": 1.2, "c": 1.05, "d": 1.1, "e": 1.15}  # those who train speak lower and higher than the others
SETS = {"train": (36, "ab"), "heldout": (8, "c"), "dev": (8, "d"), "test": (10, "e")}
RATE = 16000


def speak(words: list[str], rng: np.random.Generator, pitch: float) -> np.ndarray:
    pieces = [np.zeros(int(0.1 * RATE))]
    for word in words:
        for phone in WORDS[word].split():
            t = np.arange(int(rng.uniform(0.07, 0.12) * RATE)) / RATE
            pieces.append(sum(np.sin(2 * np.pi * pitch * f * t) for f in TONES[phone]) * np.hanning(len(t)))
        pieces.append(np.zeros(int(rng.uniform(0.0, 0.1) * RATE)))
    clean = np.concatenate([*pieces, np.zeros(int(0.1 * RATE))])
    return 0.1 * clean + 0.02 * rng.standard_normal(len(clean))


def write_corpus(folder: Path) -> None:
    rng = np.random.default_rng(1)
    for name, (count, voices) in SETS.items():
        data = folder / "data" / name
        data.mkdir(parents=True)
        (folder / "wav").mkdir(exist_ok=True)
        tables: dict[str, list[str]] = {"wav.scp": [], "text": [], "utt2spk": [], "spk2utt": []}
        for number in range(count):
            speaker = voices[number * len(voices) // count]
            utt = f"{speaker}-{name}{number:03}"
            words = [str(word) for word in rng.choice(list(WORDS), size=rng.integers(2, 6))]
            sound = speak(words, rng, PITCH[speaker])
            soundfile.write(folder / f"wav/{utt}.wav", sound, RATE, subtype="PCM_16")
            tables["wav.scp"].append(f"{utt} cat wav/{utt}.wav |" if number % 2 else f"{utt} wav/{utt}.wav")
            tables["text"].append(f"{utt} {' '.join(words)}")
            tables["utt2spk"].append(f"{utt} {speaker}")
        for speaker in voices:
            own = [line.split()[0] for line in tables["utt2spk"] if line.endswith(f" {speaker}")]
            tables["spk2utt"].append(" ".join([speaker, *own]))
        for file, lines in tables.items():
            (data / file).write_text("".join(f"{line}\n" for line in lines))
    words = folder / "data/local/dict"
    words.mkdir(parents=True)
    (words / "lexicon.txt").write_text("".join(f"{w} {p}\n" for w, p in WORDS.items()) + "<UNK> SPN\n!SIL SIL\n")
    (words / "nonsilence_phones.txt").write_text("".join(f"{phone}\n" for phone in TONES))
    (words / "silence_phones.txt").write_text("SIL\nSPN\n")
    (words / "optional_silence.txt").write_text("SIL\n")
