"""Interpolated modified Kneser-Ney estimation (Chen & Goodman 1999).

With a(g) the count of an n-gram g at the highest order N, or of one that begins with <s>, and below that the number
of different words that precede g in the text,

    p(w | h) = (a(h w) - D(a(h w))) / a(h ·) + γ(h) p(w | h without its first word),    γ(h) = Σ_w D(a(h w)) / a(h ·),

down to the uniform distribution over the V words and </s> (<s> is never predicted). D(1), D(2), D(3 and more) are
estimated for each order from n_k, the number of n-grams with a(g) = k:

    Y = n_1 / (n_1 + 2 n_2),    D(k) = k - (k + 1) Y n_{k+1} / n_k.

Where one of n_1 … n_4 is zero or a D(k) is not positive, the text is too small for this, and that order takes
D = 0.5, 1, 1.5 with a warning. All n-grams are kept, so γ is the exact backoff weight and every history sums to one.

The vocabulary: without a list, the words of the text. With one, its words, seen or not; any other word of the text
counts as the unknown word, an ordinary word in every formula above, V included (it also enters V when the list names
it). By default its n-grams are left out of the model at the end and nothing is rescaled: a decoder then cannot
output it, and each history sums to one less the unknown word's share. The silence words !SIL and <SIL> of a lexicon
take no part unless the text has them.

These are also the conventions of the Iban model that the tests compare with, to the last decimal: V is its 36,348
words, <UNK> and </s>; the <UNK> n-grams were counted, then removed. Given with it are perplexities of 54 (dev) and
127 (heldout), not how unknown words were scored: as removed, the model has 54.9 and 127.0; with <UNK> kept in
histories, 54.3 and 126.6.
"""

from array import array
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.lm.arpa import ArpaModel, Ints, Level
from kernelam.lm.text import BOS, EOS, RESERVED, sentences
from kernelam.progress import say

SILENCE = frozenset({"!SIL", "<SIL>"})
FALLBACK = np.array([0.0, 0.5, 1.0, 1.5])
Floats = NDArray[np.float64]


def estimate(
    text: str | Path,
    order: int,
    *,
    vocabulary: Collection[str] | None = None,
    unk: str = "<UNK>",
    keep_unk: bool = False,
    skip_first_field: bool = True,
) -> ArpaModel:
    """The model of `order` of the sentences of `text`. It is shorter where no sentence has an n-gram that long."""
    if unk in RESERVED or not unk or unk.split() != [unk]:
        raise KernelamError(f"the unknown word cannot be {unk!r}")
    words, tokens = _encode(text, vocabulary, unk, skip_first_field)
    counts = _count(tokens, len(words), order)
    if len(counts) < order:
        say(f"{text} has no {len(counts) + 1}-gram; the model is of order {len(counts)}")
    model = _interpolate(words, counts)
    if keep_unk or unk not in model.index:
        return model
    known = np.arange(len(words)) != model.index[unk]
    return model.subset([known, *(np.ones(len(level), bool) for level in model.levels[1:])])


class _Numbers(dict[bytes, int]):
    """Word → number in order of arrival. A closed one gives every other word the number of the unknown word."""

    def __init__(self, vocabulary: Collection[str] | None, unk: str) -> None:
        super().__init__((word.encode(), i) for i, word in enumerate(sorted({*(vocabulary or ()), unk} - RESERVED)))
        self.unknown = self[unk.encode()]
        self.closed = vocabulary is not None
        self.outside = 0

    def __missing__(self, word: bytes) -> int:
        if word.decode() in RESERVED:
            raise ValueError(f"{word.decode()} may not stand in a text")
        if self.closed:
            self.outside += 1
            return self.unknown
        self[word] = len(self)
        return self[word]


def _encode(
    text: str | Path, vocabulary: Collection[str] | None, unk: str, skip_first_field: bool
) -> tuple[list[str], Ints]:
    """The words of the model, <s> first, then in C order, </s> last; and the text in their numbers, <s> … </s> each."""
    numbers = _Numbers(vocabulary, unk)
    stream = array("i")
    total = 0
    for number, sentence in sentences(text, skip_first_field):
        stream.append(-1)
        try:
            stream.extend(map(numbers.__getitem__, sentence))
        except ValueError as error:
            raise KernelamError(f"{text}, line {number}: {error}") from None
        stream.append(-2)
        total += len(sentence)
    if not total:
        raise KernelamError(f"{text} has no sentences")
    if numbers.outside:
        share = 100 * numbers.outside / total
        say(f"{text}: {numbers.outside} of {total} words ({share:.2f} %) are outside the vocabulary and count as {unk}")

    tokens = np.frombuffer(stream, np.intc).astype(np.int64)
    seen = np.bincount(tokens[tokens >= 0], minlength=len(numbers)) > 0
    optional = SILENCE if vocabulary is not None and unk in vocabulary else {*SILENCE, unk}
    inside = sorted(word for word, i in numbers.items() if seen[i] or word.decode() not in optional)
    place = np.zeros(len(numbers) + 2, np.int64)  # its last two elements are those of -2 and -1
    place[[numbers[word] for word in inside]] = np.arange(1, len(inside) + 1)
    place[-2] = len(inside) + 1
    return [BOS, *(word.decode() for word in inside), EOS], place[tokens]


@dataclass
class _Counts:
    """The n-grams of one order as Level has them, how often each occurs, and the row of each one's suffix below."""

    key: Ints
    count: Ints
    suffix: Ints


def _count(tokens: Ints, words: int, order: int) -> list[_Counts]:
    """Count the n-grams of all orders; `tokens` are whole sentences, 0 … words - 1."""
    result = [_Counts(np.arange(words), np.bincount(tokens, minlength=words), np.zeros(words, np.int64))]
    start = np.arange(len(tokens))  # where the n-grams begin; none crosses a </s>
    row_at = tokens  # the row of the n-gram that begins at each token
    for n in range(2, order + 1):
        start = start[tokens[start + n - 2] != words - 1]
        if not len(start):
            break
        keys = row_at[start] * words + tokens[start + n - 1]
        key, first, row, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        result.append(_Counts(key, count, row_at[start[first] + 1]))
        row_at = np.full(len(tokens), -1)
        row_at[start] = row
    return result


def _discounts(a: Ints, n: int) -> Floats:
    """D(0) = 0, D(1), D(2), D(3 and more)."""
    _, n1, n2, n3, n4 = (int(x) for x in np.bincount(np.minimum(a, 5), minlength=6)[:5])
    if min(n1, n2, n3, n4) > 0:
        y = n1 / (n1 + 2 * n2)
        d = np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3])
        if d[1:].min() > 0:
            return d
    say(
        f"warning: {n}-grams seen once, twice, three, four times: {n1}, {n2}, {n3}, {n4}; too few to estimate"
        " discounts, so 0.5, 1 and 1.5 are taken"
    )
    return FALLBACK


def _interpolate(words: list[str], counts: list[_Counts]) -> ArpaModel:
    """Probabilities and backoffs, from the uniform distribution up."""
    prob = np.full(1, 1.0 / (len(words) - 1))
    begins = np.zeros(1, bool)
    backoff: list[Floats] = []  # of the histories of length 0, 1, …
    probs: list[Floats] = []
    for n, level in enumerate(counts, 1):
        prefix, last = np.divmod(level.key, len(words))
        begins = begins[prefix] if n > 1 else last == 0
        a = level.count
        if n < len(counts):
            a = np.where(begins, a, np.bincount(counts[n].suffix, minlength=len(a)))
        if n == 1:
            a = np.where(begins, 0, a)
        d = _discounts(a, n)[np.minimum(a, 3)]
        total = np.bincount(prefix, weights=a)
        gamma = np.bincount(prefix, weights=d) / np.maximum(total, 1)
        prob = (a - d) / total[prefix] + gamma[prefix] * prob[level.suffix]
        backoff.append(gamma)
        probs.append(prob)
    backoff.append(np.zeros(0))
    levels = []
    for n, level in enumerate(counts, 1):
        gamma = np.zeros(len(level.key))
        gamma[: len(backoff[n])] = backoff[n]
        log_backoff = np.log10(gamma, where=gamma > 0, out=np.zeros_like(gamma))
        levels.append(Level(level.key, np.minimum(np.log10(probs[n - 1]), 0.0), log_backoff))
    levels[0].log10_prob[0] = -99.0  # <s> is never predicted
    return ArpaModel(words, levels)
