"""Alignment of texts with alternatives, by the rules of NIST's sclite with its options -F and -D.

{ a / b c / @ } is one of several strings, of which @ is empty; (uh) is a word that may as well be missing; wor- and
-ord are fragments, correct where the other side has a word that begins or ends so. Of all pairs of strings the cheapest
counts: a substitution costs 4, a word too many or too few 3, and 2 if it may be missing, which is then correct. Case
does not matter.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from kernelam.errors import KernelamError
from kernelam.scoring.alignment import ErrorCounts

EMPTY = "@"
_SUBSTITUTION, _ONE_SIDE, _OPTIONAL, _BOTH_EMPTY, _EMPTY_ALONE = 4000, 3000, 2000, 1000, 1
_Pair = tuple[str | None, str | None]
_Place = tuple[int, int]


class Network(NamedTuple):
    """Words as arcs, numbered from 1: those that stand before each, 0 for the beginning, and those at the end."""

    words: list[str]
    before: list[list[int]]
    ends: list[int]


def network(tokens: Sequence[str]) -> Network:
    """Of a text in words, { / } among them; braces that do not match are an error."""
    made = Network([""], [[]], [])
    symbols = list(_symbols(tokens))
    ends, rest = _sequence(made, symbols, [0], 0)
    if rest < len(symbols):
        raise KernelamError(f"a {symbols[rest]} without its {{ in '{' '.join(tokens)}'")
    made.ends.extend(ends)
    return made


def _symbols(tokens: Sequence[str]) -> Iterator[str]:
    """Braces and words; a / divides only between braces."""
    depth = 0
    for token in re.findall(r"[{}]|[^\s{}]+", " ".join(tokens)):
        depth += {"{": 1, "}": -1}.get(token, 0)
        yield from re.findall(r"/|[^/]+", token) if depth else [token]


def _sequence(made: Network, symbols: list[str], before: list[int], place: int) -> tuple[list[int], int]:
    """Add words and alternations up to the end, a / or a }; the arcs that end there, and where it is."""
    while place < len(symbols) and symbols[place] not in ("}", "/"):
        if symbols[place] != "{":
            made.words.append(symbols[place])
            made.before.append(before)
            before = [len(made.words) - 1]
        else:
            ends: list[int] = []
            while symbols[place] != "}":
                start = len(made.words)
                last, place = _sequence(made, symbols, before, place + 1)
                if place == len(symbols):
                    raise KernelamError(f"a {{ without its }} in '{' '.join(symbols)}'")
                if len(made.words) == start:  # nothing between the bars
                    made.words.append(EMPTY)
                    made.before.append(before)
                    last = [start]
                ends += last
            before = ends
        place += 1
    return before, place


def _optional(word: str) -> bool:
    return word.startswith("(") and word.endswith(")")


def same(one: str, two: str) -> bool:
    one, two = (word[1:-1] if _optional(word) else word for word in (one.lower(), two.lower()))
    for part, whole in ((one, two), (two, one)):
        if len(part) > 1 and part.startswith("-"):
            return whole.endswith(part[1:])
        if len(part) > 1 and part.endswith("-"):
            return whole.startswith(part[:-1])
    return one == two


def _alone(word: str) -> int:
    return _EMPTY_ALONE if word == EMPTY else _OPTIONAL if _optional(word) else _ONE_SIDE


def _against(one: str, two: str) -> int:
    if one == two == EMPTY:
        return _BOTH_EMPTY
    return 0 if same(one, two) else _SUBSTITUTION


def align_networks(ref: Sequence[str], hyp: Sequence[str]) -> list[_Pair]:
    """The pairs of the cheapest strings: the two words where they count as correct are the same.

    Among equal costs the two words stand against each other before the one of the hypothesis stands alone, and that
    before the one of the reference.
    """
    return list(_aligned(tuple(ref), tuple(hyp)))


@lru_cache(maxsize=1 << 16)
def _aligned(ref: tuple[str, ...], hyp: tuple[str, ...]) -> tuple[_Pair, ...]:
    one, two = network(ref), network(hyp)
    cost: list[list[int]] = [[0] * len(two.words) for _ in one.words]
    back: list[list[_Place]] = [[(0, 0)] * len(two.words) for _ in one.words]
    for a, word in enumerate(one.words):
        for b, other in enumerate(two.words):
            ways = []
            if a and b:
                cells = [(cost[p][q], (p, q)) for p in one.before[a] for q in two.before[b]]
                least = min(cells, key=_cost)
                ways.append((least[0] + _against(word, other), least[1]))
            if b:
                least = min(((cost[a][q], (a, q)) for q in two.before[b]), key=_cost)
                ways.append((least[0] + _alone(other), least[1]))
            if a:
                least = min(((cost[p][b], (p, b)) for p in one.before[a]), key=_cost)
                ways.append((least[0] + _alone(word), least[1]))
            if ways:
                cost[a][b], back[a][b] = min(ways, key=_cost)
    _, place = min(((cost[a][b], (a, b)) for a in one.ends for b in two.ends), key=_cost)
    return tuple(_trace(one, two, back, place))[::-1]


def _cost(way: tuple[int, _Place]) -> int:
    return way[0]


def _trace(one: Network, two: Network, back: list[list[_Place]], place: _Place) -> Iterator[_Pair]:
    while place != (0, 0):
        (a, b), place = place, back[place[0]][place[1]]
        if place[0] != a and place[1] != b:
            correct = same(one.words[a], two.words[b])
            if one.words[a] != EMPTY or two.words[b] != EMPTY:
                yield one.words[a], one.words[a] if correct else two.words[b]
            continue
        word = one.words[a] if place[0] != a else two.words[b]
        if word == EMPTY:
            continue
        if _optional(word):
            yield word, word
        else:
            yield (word, None) if place[0] != a else (None, word)


def count_networks(ref: Sequence[str], hyp: Sequence[str]) -> ErrorCounts:
    pairs = align_networks(ref, hyp)
    insertions, deletions = sum(r is None for r, _ in pairs), sum(h is None for _, h in pairs)
    correct = sum(r == h for r, h in pairs)
    return ErrorCounts(insertions, deletions, len(pairs) - insertions - deletions - correct, len(pairs) - insertions)
