"""Phones of espeak, pronunciations of words, and Kaldi's dictionary directory."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from espeak import Phone

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines

SILENCE = "SIL"
NO_PHONE = "-"
RARE = 0.05  # a pronunciation is a variant if it is at least this share of the word's occurrences

Pronunciation = tuple[str, ...]
Segment = tuple[str, int, int]  # phone, start sample, index of the word


class PhoneMap:
    """phones.txt: espeak's mnemonic → our phone."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._names: dict[str, str] = {}
        for number, line in enumerate(lines(path), 1):
            fields = line.split()
            if not fields or fields[0] == "#":
                continue
            if len(fields) != 2 or fields[0] in self._names:
                raise KernelamError(f"{path}, line {number}: expected a new mnemonic and a phone, found '{line}'")
            self._names[fields[0]] = fields[1]

    def segments(self, phones: Iterable[Phone], what: str) -> list[Segment]:
        """Phones under our names; pauses in a row are one, and what is no phone of its own is left out."""
        result: list[Segment] = []
        for phone in phones:
            name = self._names.get(phone.mnemonic)
            if name is None:
                raise KernelamError(
                    f"{self._path} has no line for espeak's phoneme '{phone.mnemonic}', found in {what}"
                )
            if name == NO_PHONE or (name == SILENCE and result and result[-1][0] == SILENCE):
                continue
            result.append((name, phone.start, phone.word))
        return result

    def nonsilence(self) -> list[str]:
        return sorted(set(self._names.values()) - {SILENCE, NO_PHONE})


class Pronunciations:
    """How each word was said, counted."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[Pronunciation]] = defaultdict(Counter)
        self._fused: list[tuple[Sequence[str], Pronunciation]] = []

    def add(self, words: Sequence[str], segments: list[Segment]) -> None:
        """Count the words of a sentence. Words without phones of their own are fused with the one before."""
        phones: dict[int, list[str]] = defaultdict(list)
        for name, _, word in segments:
            if word >= 0:
                phones[word].append(name)
        starts = sorted(phones)
        for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
            pronunciation = tuple(phones[start])
            if end == start + 1:
                self._counts[words[start]][pronunciation] += 1
            else:
                self._fused.append((words[start:end], pronunciation))

    def unheard(self, vocabulary: Iterable[str]) -> list[str]:
        """The words that never had phones of their own."""
        return [word for word in vocabulary if word not in self._counts]

    def lexicon(self, isolated: dict[str, Pronunciation]) -> list[tuple[str, Pronunciation]]:
        """Every word with its pronunciations, the most frequent first; `isolated` are those of unheard words."""
        known = {word: Counter(found) for word, found in self._counts.items()}
        known |= {word: Counter([pronunciation]) for word, pronunciation in isolated.items()}
        counts = {word: Counter(found) for word, found in known.items()}
        for words, phones in self._fused:
            for word, part in divide(words, phones, known):
                counts[word][part] += 1
        result = []
        for word, found in sorted(counts.items()):
            kept = [p for p, count in found.items() if count >= RARE * found.total()]
            result += [(word, p) for p in sorted(kept, key=lambda p: (-found[p], p))]
        return result


def divide(
    words: Sequence[str], phones: Pronunciation, known: Mapping[str, Iterable[Pronunciation]]
) -> list[tuple[str, Pronunciation]]:
    """Take known pronunciations of the later words off the end; the first word keeps the rest.

    "for the", f er dh ax: dh ax is known, so "for" was f er. Nothing if that cannot be done.
    """
    parts: list[tuple[str, Pronunciation]] = []
    for word in reversed(words[1:]):
        tails = [p for p in known[word] if len(p) < len(phones) and phones[-len(p) :] == p]
        if not tails:
            return []
        parts.append((word, max(tails, key=len)))
        phones = phones[: -len(parts[-1][1])]
    return [*parts, (words[0], phones)]


def dict_files(lexicon: Iterable[Sequence[str]], nonsilence: list[str]) -> dict[str, list[str]]:
    """The files of Kaldi's data/local/dict, its habits included: silence SIL, spoken noise SPN, words !SIL, <UNK>."""
    return {
        "lexicon.txt": [f"!SIL {SILENCE}", "<UNK> SPN", *(" ".join(entry) for entry in lexicon)],
        "nonsilence_phones.txt": nonsilence,
        "silence_phones.txt": [SILENCE, "SPN"],
        "optional_silence.txt": [SILENCE],
        "extra_questions.txt": [f"{SILENCE} SPN", " ".join(nonsilence)],
    }
