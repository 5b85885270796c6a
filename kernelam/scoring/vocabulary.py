"""Words of lattices by their numbers."""

from collections.abc import Iterable
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import read_symbols


class Vocabulary:
    """A words.txt; where a decode directory has one of its own, what has the same number in both."""

    def __init__(self, words: Path, directory: Path) -> None:
        own = directory / "words.txt"
        known = read_symbols(words).items() & read_symbols(own if own.exists() else words).items()
        self.words = words
        self.symbols = {number: word for word, number in known}

    def spell(self, numbers: Iterable[int], lattices: Path, utt: str) -> list[str]:
        """The words of these numbers, found in the lattice of `utt` in `lattices`."""
        numbers = list(numbers)
        if unknown := [number for number in numbers if number not in self.symbols]:
            raise KernelamError(
                f"{lattices}, utterance {utt}: word {unknown[0]} is not in {self.words}, or is another one there:"
                " the lattices are of another graph"
            )
        return [self.symbols[number] for number in numbers]
