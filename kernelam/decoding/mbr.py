"""Minimum Bayes risk: the word string of least expected edit distance to a lattice's paths (Xu et al. 2011).

The expected distance to a string R is found by a forward pass over the lattice that aligns every arc with R; a backward
pass gives gamma_q(w), the probability that the word w is what stands at position q of R. Each position then takes its
most probable word, until nothing changes. Between any two words of R is an empty position, where words can come in.
"""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.lattice import best_path, costs, pruned
from kernelam.decoding.oracle import arrivals
from kernelam.decoding.search import compiled, inner
from kernelam.kaldi.lattice import Lattice

_ITERATIONS = 100
_TIE = 1e-9  # expected distances are often equal but for rounding, which must not choose between them


class Spoken(NamedTuple):
    """A word, the frames where it begins and ends, and how probable it is; times are averages over the lattice."""

    word: int
    begin: float
    end: float
    confidence: float


class _Arcs(NamedTuple):
    """The arcs of a lattice with one final state, the last, sorted by the state they enter."""

    into: NDArray[np.int64]  # state s is entered by the arcs into[s] … into[s+1] − 1
    source: NDArray[np.int64]
    word: NDArray[np.int64]  # a number in a list of words, of which the first is 0 for none
    log_prob: NDArray[np.float64]
    time: NDArray[np.int64]  # by state: its frame


def minimum_bayes_risk(lattice: Lattice, lm_weight: float, penalty: float = 0.0, improve: bool = True) -> list[Spoken]:
    """The string of least risk; posteriors are those of acoustic costs over `lm_weight`.

    Without `improve` it is the string of the best path.
    """
    lattice = pruned(lattice, 1 / lm_weight, np.inf)
    words = np.union1d([0], lattice.word)
    arcs = _arcs(lattice, words, *costs(lattice, 1.0, 1 / lm_weight, penalty))
    path = lattice.word[best_path(lattice, lm_weight, penalty)]
    string = np.searchsorted(words, path[path > 0])
    for _ in range(_ITERATIONS):
        slots = np.zeros(2 * len(string) + 1, np.int64)
        slots[1::2] = string
        gamma, begin, end = _statistics(*arcs, slots, len(words))
        gain = gamma.max(axis=1) > gamma[np.arange(len(slots)), slots] + 1e-12
        better = np.where(gain, gamma.argmax(axis=1), slots)
        if not improve or (better == slots).all():
            break
        string = better[better > 0]
    taken = np.flatnonzero(slots)
    weight = gamma[taken, slots[taken]]
    times = np.stack([begin[taken, slots[taken]], end[taken, slots[taken]]], axis=1) / weight[:, None]
    _part(times)
    return [
        Spoken(int(words[slots[q]]), float(b), float(e), min(float(p), 1.0))
        for q, (b, e), p in zip(taken, times, weight, strict=True)
    ]


def _part(times: NDArray[np.float64]) -> None:
    """Averages of neighbours may overlap: the two then share the time that both have, each after its length."""
    limit = 0.0
    for one, two in itertools.pairwise(times):
        if one[1] > two[0]:
            left, right = max(limit, min(one[0], two[0])), max(one[1], two[1])
            lengths = one[1] - one[0], two[1] - two[0]
            middle = left + (right - left) * lengths[0] / sum(lengths) if lengths[0] > 0 else left
            one[:], two[:] = (left, middle), (middle, right)
        limit = one[1]


def _arcs(lattice: Lattice, words: NDArray, weight: NDArray[np.float64], ends: NDArray[np.float64]) -> _Arcs:
    """With an arc without a word from each final state to a new last one, unless the last is the only one."""
    last = np.flatnonzero(np.isfinite(ends))
    if last.tolist() == [lattice.num_states - 1] and lattice.begin[-1] == lattice.begin[-2]:
        last = last[:0]
    source = np.concatenate([lattice.source, last])
    target = np.concatenate([lattice.next, np.full(len(last), lattice.num_states)])
    word = np.concatenate([np.searchsorted(words, lattice.word), np.zeros(len(last), np.int64)])
    order = np.argsort(target, kind="stable")
    time = arrivals(lattice)
    time = np.append(time, (time + np.diff(lattice.begin)[lattice.num_arcs :])[last[:1]])
    into = np.searchsorted(target[order], np.arange(len(time) + 1))
    return _Arcs(into, source[order], word[order], -np.concatenate([weight, ends[last]])[order], time)


@compiled
def _posteriors(into, source, log_prob):  # type: ignore[no-untyped-def]
    """By arc: its share of the probability of reaching the state that it enters."""
    num_states = len(into) - 1
    alpha, share = np.full(num_states, -np.inf), np.zeros(len(source))
    alpha[0] = 0.0
    for state in range(1, num_states):
        begin, end, most = into[state], into[state + 1], -np.inf
        for arc in range(begin, end):
            most = max(most, alpha[source[arc]] + log_prob[arc])
        total = 0.0
        for arc in range(begin, end):
            share[arc] = np.exp(alpha[source[arc]] + log_prob[arc] - most)
            total += share[arc]
        alpha[state] = most + np.log(total)
        for arc in range(begin, end):
            share[arc] /= total
    return share


@inner
def _align(word, slots, before, after, choice):  # type: ignore[no-untyped-def]
    """Expected distances behind an arc from those before it, and which step gave them.

    Steps: 0 the arc's word is in no position (a little dearer than a substitution, so that ties are broken), 1 it is
    in this one, 2 this position has no word.
    """
    extra = 1.0 + 1e-5 if word else 0.0
    after[0], choice[0] = before[0] + extra, 0
    for q in range(1, len(before)):
        slot = slots[q - 1]
        inside = before[q - 1] + (1.0 if word != slot else 0.0)
        outside = before[q] + extra
        empty = after[q - 1] + (1.0 if slot else 0.0)
        after[q], choice[q] = inside, 1
        if outside < after[q] - _TIE:
            after[q], choice[q] = outside, 0
        if empty < after[q] - _TIE:
            after[q], choice[q] = empty, 2


@compiled
def _statistics(into, source, word, log_prob, time, slots, num_words):  # type: ignore[no-untyped-def]
    """By position and word: its probability there, and that times the frames where it begins and ends."""
    num_states, size = len(time), len(slots) + 1
    share = _posteriors(into, source, log_prob)
    forward, backward = np.zeros((num_states, size)), np.zeros((num_states, size))
    after, choice = np.empty(size), np.empty(size, np.int64)
    sums = np.zeros((3, size - 1, num_words))
    gamma, begin, end = sums[0], sums[1], sums[2]
    for q in range(1, size):
        forward[0, q] = forward[0, q - 1] + (1.0 if slots[q - 1] else 0.0)
    for state in range(1, num_states):
        for arc in range(into[state], into[state + 1]):
            _align(word[arc], slots, forward[source[arc]], after, choice)
            for q in range(size):
                forward[state, q] += share[arc] * after[q]
    backward[-1, -1] = 1.0
    for state in range(num_states - 1, -1, -1):
        for arc in range(into[state], into[state + 1]):
            _align(word[arc], slots, forward[source[arc]], after, choice)
            rest = 0.0
            for q in range(size - 1, -1, -1):
                here = share[arc] * backward[state, q] + rest
                rest = 0.0
                if choice[q] == 0:
                    backward[source[arc], q] += here
                elif choice[q] == 1:
                    backward[source[arc], q - 1] += here
                    gamma[q - 1, word[arc]] += here
                    begin[q - 1, word[arc]] += here * time[source[arc]]
                    end[q - 1, word[arc]] += here * time[state]
                else:
                    rest = here
                    gamma[q - 1, 0] += here
    rest = 0.0
    for q in range(size - 1, 0, -1):  # what is left of the string before the first arc
        rest += backward[0, q]
        gamma[q - 1, 0] += rest
    return sums
