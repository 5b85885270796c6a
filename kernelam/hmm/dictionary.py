"""Kaldi's dictionary directory: lexicon.txt or lexiconp.txt, silence_phones.txt, nonsilence_phones.txt,
optional_silence.txt and, if there is one, extra_questions.txt."""

import re
from dataclasses import dataclass
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines

_RESERVED_WORDS = {"<eps>", "<s>", "</s>", "#0"}
_POSITION = re.compile(r"_[BEIS]$")


@dataclass(frozen=True)
class Pronunciation:
    word: str
    probability: float
    phones: tuple[str, ...]


@dataclass(frozen=True)
class Dictionary:
    """Each row of `silence` and `nonsilence` is a set of phones that share a tree root (usually one phone)."""

    silence: list[list[str]]
    nonsilence: list[list[str]]
    optional_silence: str
    extra_questions: list[list[str]]
    lexicon: list[Pronunciation]

    @classmethod
    def load(cls, directory: str | Path) -> "Dictionary":
        """Read and check; every fault is a sentence with file and line."""
        directory = Path(directory)
        if not directory.is_dir():
            raise KernelamError(f"no such dictionary directory {directory}")
        seen: dict[str, str] = {}
        silence = _phone_sets(directory / "silence_phones.txt", seen)
        nonsilence = _phone_sets(directory / "nonsilence_phones.txt", seen)
        optional = _optional_silence(directory / "optional_silence.txt", silence)
        questions = _questions(directory / "extra_questions.txt", seen)
        return cls(silence, nonsilence, optional, questions, _lexicon(directory, seen))


def _phone_sets(path: Path, seen: dict[str, str]) -> list[list[str]]:
    sets = []
    for number, line in enumerate(lines(path), 1):
        where = f"{path}, line {number}"
        phones = line.split()
        if not phones:
            raise KernelamError(f"{where}: no phone in this line")
        for phone in phones:
            if phone in seen:
                raise KernelamError(f"{where}: phone {phone} occurs twice, first in {seen[phone]}")
            if phone == "<eps>" or phone.startswith("#") or _POSITION.search(phone):
                raise KernelamError(f"{where}: {phone} cannot be a phone: <eps>, #… and …_B _E _I _S are reserved")
            seen[phone] = where
        sets.append(phones)
    if not sets:
        raise KernelamError(f"{path} is empty; it needs at least one phone")
    return sets


def _optional_silence(path: Path, silence: list[list[str]]) -> str:
    words = [word for line in lines(path) for word in line.split()]
    if len(words) != 1:
        raise KernelamError(f"{path} must hold one phone, not {len(words)}")
    if not any(words[0] in phones for phones in silence):
        raise KernelamError(f"{path}: {words[0]} is not in {path.with_name('silence_phones.txt')}")
    return words[0]


def _questions(path: Path, known: dict[str, str]) -> list[list[str]]:
    if not path.exists():
        return []
    rows = [line.split() for line in lines(path)]
    for number, phones in enumerate(rows, 1):
        for phone in phones:
            if phone not in known:
                raise KernelamError(
                    f"{path}, line {number}: {phone} is not in silence_phones.txt or nonsilence_phones.txt"
                )
    return rows


def _lexicon(directory: Path, phones: dict[str, str]) -> list[Pronunciation]:
    path = directory / "lexiconp.txt"
    with_probabilities = path.exists()
    if not with_probabilities:
        path = directory / "lexicon.txt"
    lexicon: list[Pronunciation] = []
    seen: dict[tuple[str, tuple[str, ...]], int] = {}
    for number, line in enumerate(lines(path), 1):
        entry = _entry(line.split(), with_probabilities, f"{path}, line {number}", phones)
        first = seen.setdefault((entry.word, entry.phones), number)
        if first != number:
            raise KernelamError(f"{path}, line {number}: {entry.word} has this pronunciation already in line {first}")
        lexicon.append(entry)
    if not lexicon:
        raise KernelamError(f"{path} is empty")
    return lexicon


def _entry(fields: list[str], with_probability: bool, where: str, phones: dict[str, str]) -> Pronunciation:
    if not fields:
        raise KernelamError(f"{where}: empty line")
    word, *rest = fields
    if word in _RESERVED_WORDS:
        raise KernelamError(f"{where}: {word} is reserved and cannot be a word")
    probability = _probability(rest.pop(0) if rest else "", where) if with_probability else 1.0
    if not rest:
        raise KernelamError(f"{where}: {word} has no phones")
    for phone in rest:
        if phone not in phones:
            raise KernelamError(
                f"{where}: {phone} in the pronunciation of {word} is not in silence_phones.txt or nonsilence_phones.txt"
            )
    return Pronunciation(word, probability, tuple(rest))


def _probability(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise KernelamError(f"{where}: {text!r} is not a pronunciation probability (0 < p ≤ 1)")
    return value
