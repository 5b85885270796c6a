"""The lexicon as a transducer from phones to words: L, and L with disambiguation symbols."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kernelam.hmm.dictionary import Pronunciation
from kernelam.kaldi.fst import ARC, Fst


def mark_positions(entry: Pronunciation) -> Pronunciation:
    """Phones named by their position in the word: a → a_S; a b c → a_B b_I c_E."""
    first, *rest = entry.phones
    if not rest:
        return Pronunciation(entry.word, entry.probability, (f"{first}_S",))
    inner = [f"{phone}_I" for phone in rest[:-1]]
    return Pronunciation(entry.word, entry.probability, (f"{first}_B", *inner, f"{rest[-1]}_E"))


def disambiguate(lexicon: Sequence[Pronunciation]) -> tuple[list[Pronunciation], int]:
    """Append #1, #2, … to pronunciations that entries share or that begin another; and how many were needed."""
    shared = Counter(entry.phones for entry in lexicon)
    prefixes = {entry.phones[:i] for entry in lexicon for i in range(1, len(entry.phones))}
    used: Counter[tuple[str, ...]] = Counter()
    result = []
    for entry in lexicon:
        phones = entry.phones
        if shared[phones] > 1 or phones in prefixes:
            used[phones] += 1
            phones = (*phones, f"#{used[phones]}")
        result.append(Pronunciation(entry.word, entry.probability, phones))
    return result, max(used.values(), default=0)


def lexicon_fst(
    lexicon: Iterable[Pronunciation],
    phones: Mapping[str, int],
    words: Mapping[str, int],
    silence: str,
    sil_prob: float,
    sil_disambig: str | None = None,
) -> Fst:
    """Any sequence of words; after each, and at the start, `silence` with probability `sil_prob` (0: a plain loop)."""
    rows: list[tuple[int, int, int, float, int]] = []  # source, phone, word, cost, destination
    ends = [(0, 0.0)]
    count = 1
    if sil_prob:
        start, loop, pause, count = 0, 1, 2, 3
        ends = [(loop, -math.log1p(-sil_prob)), (pause, -math.log(sil_prob))]
        rows += [(start, 0, 0, cost, to) for to, cost in ends]
        if sil_disambig is None:
            rows.append((pause, phones[silence], 0, 0.0, loop))
        else:
            rows += [(pause, phones[silence], 0, 0.0, 3), (3, phones[sil_disambig], 0, 0.0, loop)]
            count = 4
    loop = ends[0][0]
    for entry in lexicon:
        here, word, cost = loop, words[entry.word], -math.log(entry.probability)
        for phone in entry.phones[:-1]:
            rows.append((here, phones[phone], word, cost, count))
            here, word, cost, count = count, 0, 0.0, count + 1
        rows += [(here, phones[entry.phones[-1]], word, cost + end, to) for to, end in ends]
    final = np.full(count, np.inf, np.float32)
    final[loop] = 0.0
    arcs = np.array([(phone, word, cost, to) for _, phone, word, cost, to in rows], ARC)
    return Fst.of(0, final, np.array([row[0] for row in rows]), arcs)


def sorted_by_words(fst: Fst, loop: tuple[int, int] | None = None) -> Fst:
    """Arcs in order of output labels, after a loop (phone, word) is added where a word may begin or end."""
    source, arcs = fst.source, fst.arcs
    if loop:
        states = np.union1d(source[arcs["olabel"] != 0], np.flatnonzero(np.isfinite(fst.final)))
        loops = np.zeros(len(states), ARC)
        loops["ilabel"], loops["olabel"], loops["nextstate"] = *loop, states
        source, arcs = np.concatenate([source, states]), np.concatenate([arcs, loops])
    order = np.lexsort((arcs["ilabel"], arcs["olabel"]))
    return Fst.of(fst.start, fst.final, source[order], arcs[order])
