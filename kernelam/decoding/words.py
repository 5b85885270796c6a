"""Where words begin and end: lattices in which every word has exactly the frames of its phones.

In a lattice of Kaldi's a word stands somewhere near its transition-ids. Here words wait until their phones are complete
and phones until their word is known; then the two leave on an arc of their own. What is complete is told by the
positions of phones in words (word_boundary.int) or, for phones that have none, by the pronunciations
(align_lexicon.int), of which the longest that fits is taken.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.tables import lines

Ids = tuple[int, ...]
# phones that are complete, words that wait, whether nothing more comes → how many words (0 or 1) and phones leave
Rule = Callable[[Sequence[int], Ids, bool], tuple[int, int] | None]
_Waiting = tuple[int, Ids, Ids]  # a state of the lattice, −1 for its end; transition-ids and words that have not left
_Leaving = tuple[int, Ids, _Waiting]  # a word, its transition-ids, what waits then
_END: _Waiting = (-1, (), ())
_Arc = tuple[int, int, int, float, float, Ids]
_KINDS = ("nonword", "begin", "end", "internal", "singleton")


def read_rule(phones: str | Path) -> Rule:
    """The rule of a directory `phones` of a lang or graph directory."""
    if (Path(phones) / "word_boundary.int").exists():
        return boundary_rule(_read_boundaries(Path(phones) / "word_boundary.int"))
    return lexicon_rule(_read_lexicon(Path(phones) / "align_lexicon.int"))


def boundary_rule(kinds: Mapping[int, str]) -> Rule:
    """Words are told by the kinds of phones: nonword, begin, internal, end, singleton."""

    def rule(phones: Sequence[int], words: Ids, ended: bool) -> tuple[int, int] | None:
        if not phones:
            return None
        if kinds[phones[0]] == "nonword":
            return 0, 1
        if not words:
            return None
        for count, phone in enumerate(phones, 1):
            if kinds[phone] in ("end", "singleton"):
                return 1, count
        return None

    return rule


def lexicon_rule(pronunciations: Mapping[int, Sequence[Ids]]) -> Rule:
    """Words are told by their pronunciations; those of word 0 are silences."""
    first = {phones[0] for word, several in pronunciations.items() if word for phones in several}
    silences = {phones[0] for phones in pronunciations.get(0, ())}

    def rule(phones: Sequence[int], words: Ids, ended: bool) -> tuple[int, int] | None:
        if not phones:
            return None
        fitting = [
            len(several)
            for several in (pronunciations.get(words[0], ()) if words else ())
            if all(one == two for one, two in zip(several, phones, strict=False))
        ]
        if fitting and (max(fitting) <= len(phones) or ended):
            complete = [length for length in fitting if length <= len(phones)]
            return (1, max(complete)) if complete else None
        silent = phones[0] in silences and not fitting and (bool(words) or ended or phones[0] not in first)
        return (0, 1) if silent else None

    return rule


def _read_boundaries(path: Path) -> dict[int, str]:
    kinds = {}
    for row in lines(path):
        fields = row.split()
        if len(fields) != 2 or not fields[0].isdigit() or fields[1] not in _KINDS:
            raise KernelamError(f"{path}: {row!r} is not a phone and one of {', '.join(_KINDS)}")
        kinds[int(fields[0])] = fields[1]
    return kinds


def _read_lexicon(path: Path) -> dict[int, list[Ids]]:
    """Lines `word word phone …`; the second word, which would be written, is always the same as the first."""
    lexicon: dict[int, list[Ids]] = {}
    for row in lines(path):
        fields = row.split()
        if len(fields) < 3 or not all(field.isdigit() for field in fields):
            raise KernelamError(f"{path}: {row!r} is not a word twice and its phones, in numbers")
        lexicon.setdefault(int(fields[0]), []).append(tuple(int(field) for field in fields[2:]))
    return lexicon


class WordAligner:
    """Makes lattices in which each word has its own frames, from those of a model and a language."""

    def __init__(self, transitions: TransitionModel, rule: Rule) -> None:
        self._transitions, self._rule = transitions, rule
        self._state, self._phone = transitions.transition_state.tolist(), transitions.phone.tolist()
        self._loop, self._final = transitions.is_self_loop.tolist(), transitions.is_final.tolist()

    def align(self, lattice: Lattice, where: str) -> Lattice:
        """Arcs have a word and its frames, or no word and those of a silence; paths are the same."""
        self._transitions.check_ids(lattice.ids, where)
        start: _Waiting = (0, (), ())
        numbers, unseen = {start: 0}, [start]
        arcs: list[_Arc] = []
        ends: dict[int, tuple[float, float]] = {}
        while unseen:
            source = unseen.pop()
            for graph, acoustic, leaving in self._ready(lattice, source):
                if leaving is None:
                    ends[numbers[source]] = (graph, acoustic)
                    continue
                word, ids, target = leaving
                if target not in numbers:
                    numbers[target] = len(numbers)
                    unseen.append(target)
                arcs.append((numbers[source], numbers[target], word, graph, acoustic, ids))
        return _built(len(numbers), arcs, ends).checked(0, where)

    def _ready(self, lattice: Lattice, source: _Waiting) -> Iterator[tuple[float, float, _Leaving | None]]:
        """What can leave after `source` and some arcs of the lattice, with their costs; None at the end."""
        ways = [(0.0, 0.0, source)]
        while ways:
            graph, acoustic, waiting = ways.pop()
            state, ids, words = waiting
            leaving = self._leaving(waiting)
            if leaving or waiting == _END:
                yield graph, acoustic, leaving
                continue
            if np.isfinite(lattice.final_graph[state]):
                costs = graph + lattice.final_graph[state], acoustic + lattice.final_acoustic[state]
                ways.append((*costs, (-1, ids + _string(lattice, lattice.num_arcs + state), words)))
            for arc in range(lattice.first[state], lattice.first[state + 1]):
                target = (int(lattice.next[arc]), ids + _string(lattice, arc), words + _word(lattice, arc))
                ways.append((graph + lattice.graph[arc], acoustic + lattice.acoustic[arc], target))

    def _leaving(self, waiting: _Waiting) -> _Leaving | None:
        """The word (0 for a silence) and the transition-ids that can leave, and what waits then."""
        state, ids, words = waiting
        ended = state < 0
        lengths = self._lengths(ids, ended)
        phones = [self._phone[ids[end - 1]] for end in itertools.accumulate(lengths)]
        leaves = self._rule(phones, words, ended)
        if leaves is None and ended and waiting != _END:
            leaves = (min(len(words), 1), len(lengths) if len(words) < 2 else 0)  # a word that was cut off
        if leaves is None:
            return None
        frames = sum(lengths[: leaves[1]])
        return words[0] if leaves[0] else 0, ids[:frames], (state, ids[frames:], words[leaves[0] :])

    def _lengths(self, ids: Ids, ended: bool) -> list[int]:
        """Of the phones that are complete: a final transition was seen, and no self-loop of its state can follow."""
        lengths, begin = [], 0
        for number in range(1, len(ids)):
            before, after = ids[number - 1], ids[number]
            stays = self._loop[after] and self._state[after] == self._state[before]
            left = self._final[before] or (self._loop[before] and self._seen_final(ids, begin, number))
            if (left and not stays) or self._phone[after] != self._phone[before]:
                lengths.append(number - begin)
                begin = number
        return [*lengths, len(ids) - begin] if ended and begin < len(ids) else lengths

    def _seen_final(self, ids: Ids, begin: int, end: int) -> bool:
        """Whether the self-loops that end here come after the final transition of their state."""
        while end > begin and self._loop[ids[end - 1]]:
            end -= 1
        return end > begin and self._final[ids[end - 1]]


def _string(lattice: Lattice, number: int) -> Ids:
    return tuple(lattice.ids[lattice.begin[number] : lattice.begin[number + 1]].tolist())


def _word(lattice: Lattice, arc: int) -> Ids:
    return (int(lattice.word[arc]),) if lattice.word[arc] else ()


def _built(num_states: int, arcs: list[_Arc], ends: dict[int, tuple[float, float]]) -> Lattice:
    arcs.sort(key=lambda arc: arc[0])
    source, target, word, graph, acoustic, strings = zip(*arcs, strict=True) if arcs else [()] * 6
    final = np.array([ends.get(state, (np.inf, np.inf)) for state in range(num_states)], np.float32)
    return Lattice(
        np.searchsorted(source, np.arange(num_states + 1)),
        np.array(word, np.int32),
        np.array(graph, np.float32),
        np.array(acoustic, np.float32),
        np.array(target, np.int32),
        final[:, 0].copy(),
        final[:, 1].copy(),
        np.cumsum([0, *map(len, strings), *[0] * num_states]),
        np.array([label for string in strings for label in string], np.int32),
    )
