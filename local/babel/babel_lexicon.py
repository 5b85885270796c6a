"""The lexicon of a Babel pack: a word, its romanisation and its pronunciations, in columns.

A pronunciation is phones in X-SAMPA, and marks: . and # end a syllable, _1 is its tone, " and % are stress.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from babel_transcripts import HESITATION, NOISE, UNKNOWN, VOCAL_NOISE

from kernelam.errors import KernelamError
from kernelam.files import write_texts
from kernelam.kaldi.tables import lines
from kernelam.progress import warn

Phones = tuple[str, ...]
SILENCE = "SIL"
SPECIAL = {HESITATION: "HES", NOISE: "NSN", UNKNOWN: "SPN", VOCAL_NOISE: "VNS"}
GRAPHEME = "g:"  # what the phone of a letter begins with
_VOWELS = frozenset("aeiouyAEIOUYQVM@{}&1236789")
_TONE = re.compile(r"_\d")


class Lexicon:
    """Pronunciations by word.

    `tones` are kept on the vowels of their syllable, dropped, or, with none, an error: the language has none.
    """

    def __init__(self, path: Path, tones: str = "keep", romanised: bool = True) -> None:
        self.path = path
        self.words: dict[str, list[Phones]] = {}
        self._tones = tones
        self._syllables: dict[str, Counter[Phones]] = defaultdict(Counter)
        self._odd: list[str] = []
        for number, line in enumerate(lines(path), 1):
            if line.strip():
                self._add(line.removeprefix("\ufeff").split("\t"), 2 if romanised else 1, f"{path}, line {number}")
        columns = "a word, its romanisation and pronunciations" if romanised else "a word and pronunciations"
        if not self.words:
            raise KernelamError(f"{path} has no line of {columns}, tabs between them")
        if self._odd:
            warn(f"{len(self._odd)} lines are left out, not {columns}, tabs between them: {'; '.join(self._odd[:10])}")
        self.characters = frozenset("".join(self.words))

    def _add(self, columns: list[str], first: int, where: str) -> None:
        word = unicodedata.normalize("NFC", columns[0].strip())
        found = [text for text in columns[first:] if text.strip()]
        if word.startswith("<") and word.endswith(">"):
            return
        if len(word.split()) != 1 or not found:
            self._odd.append(f"{where}, '{columns[0]}'")
            return
        own = self.words.setdefault(word, [])
        for text in found:
            syllables = [self._syllable(part.split(), where) for part in re.split(r"(?:^|\s)[.#](?=\s|$)", text)]
            syllables = [syllable for syllable in syllables if syllable]
            phones = tuple(phone for syllable in syllables for phone in syllable)
            if not phones:
                raise KernelamError(f"{where}: {word} has a pronunciation without phones")
            if len(syllables) == len(word) and all(map(is_ideograph, word)):
                for character, syllable in zip(word, syllables, strict=True):
                    self._syllables[character][syllable] += 1
            if phones not in own:
                own.append(phones)

    def _syllable(self, tokens: list[str], where: str) -> Phones:
        tone, phones = "", []
        for token in tokens:
            if not token.startswith("_"):
                phones.append(token.strip('"%').replace("_", "-"))  # _B, _E, _I and _S are places in a word
            elif self._tones == "none" or not _TONE.fullmatch(token):
                raise KernelamError(f"{where}: {token} is no tone of this language; is it the lexicon of another?")
            elif self._tones == "keep":
                tone = token
        phones = [phone for phone in phones if phone]
        bearers = [phone for phone in phones if phone[0] in _VOWELS] or phones
        return tuple(phone + tone if phone in bearers else phone for phone in phones)

    def spelled(self, text: str) -> Phones:
        """Letters as phones of their own; an ideograph as the syllable that it most often is in the lexicon."""
        phones: list[str] = []
        for character in text:
            if character in self._syllables:
                phones += self._syllables[character].most_common(1)[0][0]
            elif unicodedata.category(character)[0] in "LMN" and unicodedata.combining(character) != 9:  # a virama
                phones.append(GRAPHEME + character)
        return tuple(phones)


def is_ideograph(character: str) -> bool:
    return unicodedata.name(character, "").startswith("CJK")


def code_points(characters: Iterable[str]) -> str:
    """The first of them by number and sight: U+0995 ক."""
    some = sorted(characters)
    return ", ".join(f"U+{ord(one):04X} {one}" for one in some[:10]) + (", …" if len(some) > 10 else "")


def write_dictionary(folder: Path, words: Mapping[str, Iterable[Phones]]) -> None:
    """Kaldi's dictionary directory; phones that differ in their tone share a root, and questions ask for tones."""
    entries = {word: list(phones) for word, phones in words.items()}
    entries |= {word: [(phone,)] for word, phone in SPECIAL.items()}
    spoken = {phone for word, found in words.items() for phones in found for phone in phones}
    bases, toned = defaultdict(list), defaultdict(list)
    for phone in sorted(spoken):
        base, mark, tone = phone.rpartition("_")
        bases[base if mark else phone].append(phone)
        if mark:
            toned[tone].append(phone)
    files = {
        "lexicon.txt": sorted(f"{word} {' '.join(phones)}" for word, found in entries.items() for phones in found),
        "silence_phones.txt": [SILENCE, *sorted(SPECIAL.values())],
        "optional_silence.txt": [SILENCE],
        "nonsilence_phones.txt": [" ".join(phones) for _, phones in sorted(bases.items())],
        "extra_questions.txt": [" ".join(phones) for _, phones in sorted(toned.items())],
    }
    write_texts({folder / name: "".join(f"{row}\n" for row in rows) for name, rows in files.items()})
