"""Lattices in which one language model takes the place of another: graph costs − old + new, path by path."""

from pathlib import Path

import numpy as np

from kernelam.decoding.lattice import pruned
from kernelam.errors import KernelamError
from kernelam.kaldi.fst import Fst, load_fst
from kernelam.kaldi.lattice import Lattice, gathered
from kernelam.kaldi.tables import read_symbols

Step = tuple[int, float]
"""The state that a word leads to, and −log of its probability; NOWHERE where the model excludes it."""
NOWHERE: Step = (-1, np.inf)


class Grammar:
    """G.fst of a back-off model, read word by word: a word takes its own arc or, if it has none, first that of #0."""

    def __init__(self, fst: Fst, backoff: int) -> None:
        order = np.lexsort((fst.arcs["ilabel"], fst.source))
        self._label, self._weight, self._next = (fst.arcs[name][order] for name in ("ilabel", "weight", "nextstate"))
        self._offsets, self._final, self._backoff = fst.offsets, fst.final, backoff
        self.start = fst.start
        self._known: dict[tuple[int, int], Step] = {}

    @classmethod
    def of(cls, lang: Path) -> "Grammar":
        symbols = read_symbols(lang / "words.txt")
        if "#0" not in symbols:
            raise KernelamError(f"{lang}/words.txt has no #0, by which {lang}/G.fst backs off")
        return cls(load_fst(lang / "G.fst"), symbols["#0"])

    def step(self, state: int, word: int) -> Step:
        """What `word` does in `state`; 0, the empty word, stays there."""
        if not word:
            return state, 0.0
        found = self._known.get((state, word))
        if found is None:
            found = self._arc(state, word)
            if found == NOWHERE:
                lower, backoff = self._arc(state, self._backoff)
                target, cost = self.step(lower, word) if lower >= 0 else NOWHERE
                found = target, backoff + cost
            self._known[state, word] = found
        return found

    def end(self, state: int) -> float:
        """−log of the probability that a sentence ends in `state`."""
        total = 0.0
        while self._final[state] == np.inf:
            state, cost = self._arc(state, self._backoff)
            if state < 0:
                return np.inf
            total += cost
        return total + float(self._final[state])

    def _arc(self, state: int, label: int) -> Step:
        begin, end = self._offsets[state], self._offsets[state + 1]
        place = begin + np.searchsorted(self._label[begin:end], label)
        if place == end or self._label[place] != label:
            return NOWHERE
        return int(self._next[place]), float(self._weight[place])


def check_words(old: Path, new: Path) -> None:
    """Words have the same numbers in both, or a lattice of one means something else in the other."""
    before, after = (read_symbols(lang / "words.txt") for lang in (old, new))
    if before != after:
        odd = min(word for word in before.keys() | after.keys() if before.get(word) != after.get(word))
        raise KernelamError(f"{old}/words.txt and {new}/words.txt differ in {odd}: lattices cannot be rescored")


def rescored(utt: str, lattice: Lattice, old: Grammar, new: Grammar) -> Lattice:
    """`lattice` with the costs of `old`, whose grammar made it, exchanged for those of `new`.

    A state becomes as many as there are pairs of histories, one of each model, in it. Paths that a model excludes are
    left out.
    """
    rows: list[dict[tuple[int, int], int]] = [{} for _ in range(lattice.num_states)]  # by state: its pairs, numbered
    rows[0][old.start, new.start] = 0
    origin: list[int] = []
    ends: list[float] = []
    arcs: list[tuple[int, int, int, float]] = []  # state, arc of the lattice, row of the pair it leads to, change
    for state, pairs in enumerate(rows):
        for before, after in pairs:
            ends.append(new.end(after) - old.end(before) if np.isfinite(lattice.final_graph[state]) else np.inf)
            for arc in range(lattice.first[state], lattice.first[state + 1]):
                word = int(lattice.word[arc])
                (left, minus), (right, plus) = old.step(before, word), new.step(after, word)
                if left >= 0 and right >= 0:
                    there = rows[lattice.next[arc]]
                    arcs.append((len(origin), arc, there.setdefault((left, right), len(there)), plus - minus))
            origin.append(state)
    source, which, row, change = (np.array(column) for column in (zip(*arcs, strict=True) if arcs else [()] * 4))
    which, states = which.astype(np.int64), np.array(origin)
    first_row = np.concatenate([[0], np.cumsum([len(pairs) for pairs in rows])])
    begin, ids = gathered(lattice.begin, lattice.ids, np.concatenate([which, lattice.num_arcs + states]))
    final = lattice.final_graph[states] + np.where(np.isnan(ends), np.inf, ends)
    whole = Lattice(
        np.searchsorted(source, np.arange(len(states) + 1)),
        lattice.word[which],
        (lattice.graph[which] + change).astype(np.float32),
        lattice.acoustic[which],
        (first_row[lattice.next[which]] + row).astype(np.int32),
        final.astype(np.float32),
        np.where(np.isfinite(final), lattice.final_acoustic[states], np.inf).astype(np.float32),
        begin,
        ids,
        compact=lattice.compact,
    )
    return pruned(whole.checked(0, f"the lattice of {utt} with the new language model"), 1.0, np.inf)
