"""The dictionary: pronunciations in CMUdict's layout for the words of the training text."""

import re
from collections import Counter
from pathlib import Path

from hub4_sgml import text_of
from lexicon import dict_files

from kernelam.corpora import some
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.progress import say, warn

UNKNOWN = "<UNK>"
Pronunciations = dict[str, list[str]]


def read_lexicon(path: Path) -> Pronunciations:
    """CMUdict's layout: WORD  P H ON1 E S, variants as WORD(2); comments begin with ;;; or #. Stress is left out."""
    found: Pronunciations = {}
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip() or line.startswith((";;;", "#")):
            continue
        word, *phones = line.partition(" #")[0].split()
        if not phones:
            raise KernelamError(f"{path}, line {number}: expected a word and its phones, found '{line}'")
        said = found.setdefault(re.sub(r"\(\d+\)$", "", word).lower(), [])
        pronunciation = " ".join(phone.rstrip("012") for phone in phones).upper()
        if pronunciation not in said:
            said.append(pronunciation)
    if not found:
        raise KernelamError(f"{path} has no words")
    return found


def write_dictionary(folder: Path, counts: Counter[str], lexicon: Pronunciations) -> None:
    """Kaldi's files for the words that have a pronunciation; missing.txt counts the others."""
    missing = {word: count for word, count in counts.items() if word not in lexicon}
    entries = [(word, said) for word in sorted(counts.keys() & lexicon.keys()) for said in lexicon[word]]
    phones = sorted({phone for _, said in entries for phone in said.split()})
    tables = dict_files(entries, phones)
    tables["missing.txt"] = [
        f"{word} {count}" for word, count in sorted(missing.items(), key=lambda item: (-item[1], item[0]))
    ]
    for name, rows in tables.items():
        with replacing(folder / name, "w") as stream:
            stream.writelines(f"{row}\n" for row in rows)
    say(f"{folder}: {len(counts) - len(missing)} words, {len(entries)} pronunciations, {len(phones)} phones")
    if missing:
        share = 100 * sum(missing.values()) / counts.total()
        named = some(row.split()[0] for row in tables["missing.txt"])
        warn(f"{len(missing)} words, {share:.1f} % of the text, have no pronunciation and are {UNKNOWN}: {named}")
