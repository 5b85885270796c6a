r"""Back-off n-gram models and the ARPA format.

    \data\
    ngram 1=3
    …
    \1-grams:
    log10 p(w)      w       log10 backoff(w)
    …
    \2-grams:
    log10 p(w|v)    v w
    …
    \end\

p(w | h) is the n-gram's own value where h w is listed, else backoff(h) p(w | h without its first word); a backoff that
is not given is 1.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.lm.text import BOS, EOS, byte_lines, decode

LARGEST = 300  # what 10 can be raised to
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Level:
    """The n-grams of one order, ascending in key = row of the prefix in the level below · words + last word."""

    key: Ints
    log10_prob: NDArray[np.float64]
    log10_backoff: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.key)


@dataclass
class ArpaModel:
    """A trie in arrays: words[i] is the word of row i of levels[0]; levels[n - 1] has the n-grams."""

    words: list[str]
    levels: list[Level]
    index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.index = {word: i for i, word in enumerate(self.words)}

    @property
    def order(self) -> int:
        return len(self.levels)

    def check_ends(self, what: str) -> None:
        """`what` cannot be done with a model in which no sentence begins or ends."""
        for symbol in (BOS, EOS):
            if symbol not in self.index:
                raise KernelamError(f"the model has no {symbol}: {what}")

    def prefix(self, n: int) -> Ints:
        """Rows, one level down, of the n-grams' prefixes; level 0 has one row, the empty history."""
        return self.levels[n - 1].key // len(self.words)

    def last(self, n: int) -> Ints:
        """The last words of the n-grams."""
        return self.levels[n - 1].key % len(self.words)

    def find(self, n: int, prefix: Ints, word: Ints) -> Ints:
        """Rows of the n-grams (prefix, word); -1 where there is none, or where either is -1."""
        key = np.where((prefix >= 0) & (word >= 0), prefix * len(self.words) + word, -1)
        listed = self.levels[n - 1].key
        if not len(listed):
            return np.full_like(key, -1)
        row = np.minimum(np.searchsorted(listed, key), len(listed) - 1)
        return np.where(listed[row] == key, row, -1)

    def columns(self, n: int, rows: Ints | None = None) -> list[Ints]:
        """The first words of the n-grams, or of those in `rows`; the second words; …"""
        rows = np.arange(len(self.levels[n - 1])) if rows is None else rows
        columns: list[Ints] = []
        for m in range(n, 0, -1):
            rows, last = np.divmod(self.levels[m - 1].key[rows], len(self.words))
            columns.insert(0, last)
        return columns

    def rows(self, columns: Sequence[Ints]) -> Ints:
        """Rows of the n-grams with these first, second, … words; -1 where there is none."""
        found = np.zeros(len(columns[0]), np.int64)
        for n, column in enumerate(columns, 1):
            found = self.find(n, found, column)
        return found

    def log10_probs(self, columns: Sequence[Ints]) -> NDArray[np.float64]:
        """log10 p(word | history) of the words of the last column after those of the columns before, row by row.

        A word that the model lacks is -1: of probability 0 itself, and no history goes back beyond it.
        """
        word = columns[-1]
        total = np.where(word >= 0, self.levels[0].log10_prob[word], -np.inf)
        for length in range(1, min(len(columns), self.order)):
            history = self.rows(columns[-1 - length : -1])
            listed = self.find(length + 1, history, word)
            backoff = np.where(history >= 0, self.levels[length - 1].log10_backoff[history], 0.0)
            total = np.where(listed >= 0, self.levels[length].log10_prob[listed], total + backoff)
        return total

    def log10_prob(self, history: Sequence[str], word: str) -> float:
        """log10 p(word | history); -inf for a word that the model does not have."""
        return float(self.log10_probs([np.array([self.index.get(w, -1)]) for w in (*history, word)])[0])

    def ngrams(self, n: int) -> Iterator[tuple[tuple[str, ...], float, float]]:
        """Words, log10 probability and log10 backoff of every n-gram."""
        level, block = self.levels[n - 1], 1 << 16
        for start in range(0, len(level), block):
            rows = np.arange(start, min(start + block, len(level)))
            prob, backoff = level.log10_prob[rows].tolist(), level.log10_backoff[rows].tolist()
            columns = ([self.words[i] for i in column.tolist()] for column in self.columns(n, rows))
            yield from zip(zip(*columns, strict=True), prob, backoff, strict=True)

    def subset(self, keep: Sequence[Mask]) -> "ArpaModel":
        """The n-grams marked in `keep` (a mask a level) whose words and prefixes are marked too, as they are."""
        words = [word for word, kept in zip(self.words, keep[0], strict=True) if kept]
        levels, kept = [], np.ones(1, bool)
        word_row = np.cumsum(keep[0]) - 1
        for n, (level, mask) in enumerate(zip(self.levels, keep, strict=True), 1):
            prefix, last = self.prefix(n), self.last(n)
            prefix_row = np.cumsum(kept) - 1
            kept = mask & kept[prefix] & keep[0][last]
            key = prefix_row[prefix[kept]] * len(words) + word_row[last[kept]]
            levels.append(Level(key, level.log10_prob[kept], level.log10_backoff[kept]))
        return ArpaModel(words, _used(levels))


def _used(levels: list[Level]) -> list[Level]:
    """Without the highest orders if they have no n-gram."""
    while len(levels) > 1 and not len(levels[-1]):
        levels = levels[:-1]
    return levels


def write_arpa(path: str | Path, model: ArpaModel) -> None:
    """Write `model` with six decimals; a backoff of 1 (0.000000) is left out."""
    with replacing(path, "w") as stream:
        stream.write("\\data\\\n")
        stream.writelines(f"ngram {n}={len(level)}\n" for n, level in enumerate(model.levels, 1))
        for n in range(1, model.order + 1):
            stream.write(f"\n\\{n}-grams:\n")
            for words, prob, backoff in model.ngrams(n):
                tail = f"\t{backoff:.6f}" if n < model.order and abs(backoff) >= 5e-7 else ""
                stream.write(f"{prob:.6f}\t{' '.join(words)}{tail}\n")
        stream.write("\n\\end\\\n")


def read_arpa(path: str | Path) -> ArpaModel:
    """Read an ARPA file (.gz or plain) and check all of it; the first thing wrong is a KernelamError with its line."""
    source = byte_lines(path)
    counts, line = _read_header(path, source)
    index: dict[bytes, int] = {}
    words: list[str] = []
    model = ArpaModel(words, [])
    for n, count in enumerate(counts, 1):
        _expect(path, line, b"\\%d-grams:" % n)
        section = _Section(path, n, n == len(counts))
        line = section.read(source, index)
        if len(section.numbers) != count:
            raise KernelamError(f"{path}: the header counts {count} {n}-grams, the section has {len(section.numbers)}")
        if n == 1:
            words += [decode(word, path, number) for word, number in zip(index, section.numbers, strict=True)]
            model.__post_init__()
        section.add_to(model)
    _expect(path, line, b"\\end\\")
    return ArpaModel(words, _used(model.levels))


Source = Iterator[tuple[int, list[bytes]]]
Line = tuple[int, list[bytes]] | None  # None is the end of the file


def _read_header(path: str | Path, source: Source) -> tuple[list[int], Line]:
    """The counts after the \\data\\ line, and the line after them."""
    if not any(fields == [b"\\data\\"] for _, fields in source):
        raise KernelamError(f"{path} is not an ARPA file: it has no \\data\\ line")
    counts: list[int] = []
    line: Line = None
    for number, fields in source:
        line = number, fields
        if fields[0].startswith(b"\\"):
            break
        match = re.fullmatch(rb"ngram (\d{1,3}) ?= ?(\d{1,15})", b" ".join(fields))
        if match is None or int(match[1]) != len(counts) + 1:
            raise KernelamError(f"{path}, line {number}: expected 'ngram {len(counts) + 1}=<count>'")
        counts.append(int(match[2]))
        line = None
    if not counts:
        raise KernelamError(f"{path}: no 'ngram 1=<count>' follows \\data\\")
    return counts, line


def _expect(path: str | Path, line: Line, marker: bytes) -> None:
    if line is None:
        raise KernelamError(f"{path} ends before {marker.decode()}: it is cut short")
    if line[1] != [marker]:
        raise KernelamError(f"{path}, line {line[0]}: expected {marker.decode()}")


class _Section:
    """The lines of one order."""

    def __init__(self, path: str | Path, n: int, highest: bool) -> None:
        self.path, self.n, self.highest = path, n, highest
        self.numbers, self.ids = array("q"), array("q")
        self.prob, self.backoff = array("d"), array("d")

    def read(self, source: Source, index: dict[bytes, int]) -> Line:
        """Take lines up to the next marker, which is returned. The 1-grams fill `index`, the others look up in it."""
        n, lookup = self.n, index.__getitem__
        for number, fields in source:
            if fields[0].startswith(b"\\"):
                return number, fields
            extra = len(fields) - n - 1
            if extra != 0 and (extra != 1 or self.highest):
                words = "1 word" if n == 1 else f"{n} words"
                backoff = "" if self.highest else " and perhaps a backoff"
                raise self.error(number, f"expected a log10 probability, {words}{backoff}")
            self.numbers.append(number)
            self.prob.append(self.value(number, fields[0]))
            self.backoff.append(self.value(number, fields.pop()) if extra else 0.0)
            if n == 1 and index.setdefault(fields[1], len(index)) < len(self.ids):
                raise self.error(number, f"{self.text(fields[1])} is listed twice")
            try:
                self.ids.extend(map(lookup, fields[1:]))
            except KeyError as error:
                raise self.error(number, f"{self.text(error.args[0])} is not among the 1-grams") from None
        return None

    def value(self, number: int, text: bytes) -> float:
        try:
            if b"_" not in text:  # which Python would take
                return float(text)
        except ValueError:
            pass
        raise self.error(number, f"{self.text(text)} is not a number")

    def text(self, word: bytes) -> str:
        return word.decode(errors="replace")

    def error(self, number: int, what: str) -> KernelamError:
        return KernelamError(f"{self.path}, line {number}: {what}")

    def check(self, bad: NDArray[Any], what: str) -> None:
        """Raise `what` for the first line that is marked in `bad`."""
        if bad.any():
            raise self.error(self.numbers[int(np.flatnonzero(bad)[0])], what)

    def add_to(self, model: ArpaModel) -> None:
        """Check the values, find the prefixes, sort, append the level."""
        prob, backoff = np.array(self.prob), np.array(self.backoff)
        in_range = (abs(prob) <= LARGEST) & (prob <= 0)
        self.check(~in_range, f"the log10 probability is not a finite number below or at 0 and from -{LARGEST}")
        self.check(~(abs(backoff) <= LARGEST), f"the log10 backoff is not finite, or beyond ±{LARGEST}")
        ids = np.array(self.ids, np.int64).reshape(-1, self.n)
        row = model.rows(list(ids.T[:-1])) if self.n > 1 else np.zeros(len(ids), np.int64)
        self.check(row < 0, f"the first {self.n - 1} words are not among the {self.n - 1}-grams")
        key = row * len(model.words) + ids[:, -1]
        order = np.argsort(key, kind="stable")
        again = np.zeros(len(key), bool)
        again[order[1:]] = np.diff(key[order]) == 0
        self.check(again, "this n-gram is listed twice")
        model.levels.append(Level(key[order], prob[order], backoff[order]))
