"""Where words begin and end: lattices in which every word has exactly the frames of its phones.

In a lattice of Kaldi's a word stands somewhere near its transition-ids. Here words wait until their phones are complete
and phones until their word is known; then the two leave on an arc of their own. What is complete is told by the
positions of phones in words (word_boundary.int) or, for phones that have none, by the pronunciations
(align_lexicon.int): a word waits until what follows leaves only one of them.
"""

import functools
import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.tables import lines, whole_number

Ids = tuple[int, ...]
# phones that are complete, words that wait, whether nothing more comes → how many words (0 or 1) and phones leave
Rule = Callable[[Sequence[int], Ids, bool], tuple[int, int] | None]
_Waiting = tuple[int, Ids, Ids]  # a state, or the number of states for the end; transition-ids and words that wait
_Point = tuple[Ids, Ids, Ids]  # phones and words that are left, a pronunciation that has begun
_Arc = tuple[int, int, int, float, float, Ids]
_Step = tuple[int, Ids, Ids, float, float]  # where an arc of the lattice leads, its transition-ids, its word, its costs
_MOST_WAYS = 50_000  # followed at once until a word can leave; those of real lattices are below a thousand
_KINDS = ("nonword", "begin", "end", "internal", "singleton")


def read_rule(phones: str | Path) -> Rule:
    """The rule of a directory `phones` of a lang or graph directory."""
    if (Path(phones) / "word_boundary.int").exists():
        return boundary_rule(_read_boundaries(Path(phones) / "word_boundary.int"))
    return lexicon_rule(_read_lexicon(Path(phones) / "align_lexicon.int"))


def boundary_rule(kinds: Mapping[int, str]) -> Rule:
    """Words are told by the kinds of phones: nonword, begin, internal, end, singleton."""

    def rule(phones: Sequence[int], words: Ids, ended: bool) -> tuple[int, int] | None:
        for count, phone in enumerate(phones, 1):
            if phone not in kinds:
                raise KernelamError(f"phone {phone} is not in word_boundary.int, which is of another model")
            if count == 1 and kinds[phone] == "nonword":
                return 0, 1
            if kinds[phone] in ("end", "singleton"):
                return (1, count) if words else None
        return None

    return rule


def lexicon_rule(pronunciations: Mapping[int, Sequence[Ids]]) -> Rule:
    """Words are told by their pronunciations; those of word 0 are silences.

    A beginning is taken when every point that any reading of what is known ends at is reached from it too. Of several
    such, a word comes before a silence and the longest pronunciation before others.
    """
    silences = {phones[0] for phones in pronunciations.get(0, ())}
    first = {phones[0] for word, several in pronunciations.items() if word for phones in several}

    @functools.lru_cache(maxsize=1 << 16)
    def ways(phones: Ids, words: Ids, ended: bool) -> dict[tuple[int, int], set[_Point]]:
        """By words and phones that can leave first: where readings end. Phones are 0 if more must come before."""
        found: dict[tuple[int, int], set[_Point]] = {}
        if not words and phones[0] in first and not ended:
            found[1, 0] = {(phones, words, ())}
        if phones[0] in silences:
            found[0, 1] = points(phones[1:], words, ended)
        for spoken in pronunciations.get(words[0], ()) if words else ():
            if phones[: len(spoken)] == spoken:
                found[1, len(spoken)] = points(phones[len(spoken) :], words[1:], ended)
            elif phones == spoken[: len(phones)] and not ended:
                found.setdefault((1, 0), set()).add((phones, words, spoken))
        return {way: ends for way, ends in found.items() if ends}

    def points(phones: Ids, words: Ids, ended: bool) -> set[_Point]:
        if phones:
            return set().union(*ways(phones, words, ended).values())
        return set() if ended and words else {((), words, ())}

    def rule(phones: Sequence[int], words: Ids, ended: bool) -> tuple[int, int] | None:
        if not phones:
            return None
        found = ways(tuple(phones), words, ended)
        if not found and not ended:
            given = f"phones {' '.join(map(str, phones))} and words {' '.join(map(str, words)) or '(none)'}"
            raise KernelamError(f"{given} do not fit each other by align_lexicon.int, which is of another graph")
        every = set().union(*found.values())
        return max((way for way, ends in found.items() if way[1] and ends == every), default=None)

    return rule


def _read_boundaries(path: Path) -> dict[int, str]:
    kinds = {}
    for row in lines(path):
        try:
            phone, kind = row.split()
            kinds[whole_number(phone)] = _KINDS[_KINDS.index(kind)]
        except ValueError:
            raise KernelamError(f"{path}: {row!r} is not a phone and one of {', '.join(_KINDS)}") from None
    return kinds


def _read_lexicon(path: Path) -> dict[int, list[Ids]]:
    """Lines `word word phone …`; the second word, which would be written, is always the same as the first."""
    lexicon: dict[int, list[Ids]] = {}
    for row in lines(path):
        try:
            word, _, first, *others = map(whole_number, row.split())
        except ValueError:
            raise KernelamError(f"{path}: {row!r} is not a word twice and its phones, in numbers") from None
        lexicon.setdefault(word, []).append((first, *others))
    return lexicon


class WordAligner:
    """Makes lattices in which each word has its own frames, from those of a model and a language."""

    def __init__(self, transitions: TransitionModel, rule: Rule) -> None:
        self._transitions, self._rule = transitions, rule
        self._state, self._phone = transitions.transition_state.tolist(), transitions.phone.tolist()
        self._loop, self._final = transitions.is_self_loop.tolist(), transitions.is_final.tolist()

    @classmethod
    def of(cls, model: Path, lang: Path) -> "WordAligner":
        """Of a final.mdl, or the directory of one, and a lang or graph directory."""
        transitions = TransitionModel.load(model / "final.mdl" if model.is_dir() else model)
        return cls(transitions, read_rule(lang / "phones"))

    def align(self, lattice: Lattice, where: str) -> Lattice:
        """Arcs have a word and its frames, or no word and those of a silence; paths are the same.

        Of several ways from one state to another with the same word, the cheapest is kept.
        """
        self._transitions.check_range(lattice.ids, where)
        try:
            aligned = self._aligned(_steps(lattice))
        except KernelamError as error:
            raise KernelamError(f"{where}: {error}") from None
        return aligned.checked(0, where)

    def _aligned(self, steps: list[list[_Step]]) -> Lattice:
        start, end = (0, (), ()), (len(steps), (), ())
        numbers: dict[_Waiting, int] = {start: 0}
        unseen: list[_Waiting] = [start]
        arcs: list[_Arc] = []
        ends: dict[int, tuple[float, float]] = {}
        while unseen:
            source = unseen.pop()
            for (word, target), (graph, acoustic, ids) in self._ready(steps, source).items():
                if target == end and not word and not ids:
                    ends[numbers[source]] = (graph, acoustic)
                    continue
                if target not in numbers:
                    numbers[target] = len(numbers)
                    unseen.append(target)
                arcs.append((numbers[source], numbers[target], word, graph, acoustic, ids))
        return _built(len(numbers), arcs, ends)

    def _ready(
        self, steps: list[list[_Step]], source: _Waiting
    ) -> dict[tuple[int, _Waiting], tuple[float, float, Ids]]:
        """The words that can leave after `source` and some arcs of the lattice, what waits then, costs and frames."""
        ways = {source: (0.0, 0.0)}
        queue = [source]
        ready: dict[tuple[int, _Waiting], tuple[float, float, Ids]] = {}
        while ways:
            if len(ways) > _MOST_WAYS:
                raise KernelamError("no word of it ends: the model and the lang directory are not those of its graph")
            waiting = heapq.heappop(queue)  # states are in topological order: its costs change no more
            graph, acoustic = ways.pop(waiting)
            state, ids, words = waiting
            leaving = self._leaving(ids, words, state == len(steps))
            if leaving:
                count, frames = leaving
                key = words[0] if count else 0, (state, ids[frames:], words[count:])
                if key not in ready or graph + acoustic < sum(ready[key][:2]):
                    ready[key] = graph, acoustic, ids[:frames]
                continue
            for target, more_ids, more_words, more_graph, more_acoustic in steps[state]:
                after = target, ids + more_ids, words + more_words
                costs = graph + more_graph, acoustic + more_acoustic
                if after not in ways:
                    heapq.heappush(queue, after)
                elif sum(costs) >= sum(ways[after]):
                    continue
                ways[after] = costs
        return ready

    def _leaving(self, ids: Ids, words: Ids, ended: bool) -> tuple[int, int] | None:
        """How many words (0 or 1) and transition-ids can leave; at the end something always can, if only nothing."""
        lengths = self._lengths(ids, ended)
        phones = [self._phone[ids[end - 1]] for end in itertools.accumulate(lengths)]
        leaves = self._rule(phones, words, ended)
        if leaves is None and ended:
            leaves = (min(len(words), 1), len(lengths) if len(words) < 2 else 0)  # a word that was cut off
        return leaves and (leaves[0], sum(lengths[: leaves[1]]))

    def _lengths(self, ids: Ids, ended: bool) -> list[int]:
        """Of the phones that are complete: a final transition was seen, and no self-loop of its state can follow."""
        lengths, begin, final, before = [], 0, False, 0
        for number, label in enumerate(ids):
            if number and self._loop[label] and self._state[label] == self._state[before]:
                continue
            if number and (final or self._phone[label] != self._phone[before]):
                lengths.append(number - begin)
                begin, final = number, False
            final, before = final or self._final[label], label
        return [*lengths, len(ids) - begin] if ended and begin < len(ids) else lengths


def _steps(lattice: Lattice) -> list[list[_Step]]:
    """By state: its arcs, and its end as one to a state behind the last."""
    begin, ids = lattice.begin.tolist(), lattice.ids.tolist()
    strings = [tuple(ids[one:two]) for one, two in itertools.pairwise(begin)]
    words: list[Ids] = [(word,) if word else () for word in lattice.word.tolist()]
    lists = (
        lattice.next.tolist(),
        strings[: lattice.num_arcs],
        words,
        lattice.graph.tolist(),
        lattice.acoustic.tolist(),
    )
    arcs = list(zip(*lists, strict=True))
    steps: list[list[_Step]] = [arcs[one:two] for one, two in itertools.pairwise(lattice.first.tolist())]
    for state in np.flatnonzero(np.isfinite(lattice.final_graph)).tolist():
        costs = float(lattice.final_graph[state]), float(lattice.final_acoustic[state])
        steps[state].append((len(steps), strings[lattice.num_arcs + state], (), *costs))
    return steps


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
