"""Perplexity of a text, counted as SRILM counts it."""

from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.lm.arpa import ArpaModel, Ints
from kernelam.lm.text import BOS, EOS, sentences


@dataclass(frozen=True)
class Perplexity:
    """Sums over a text. `words` counts neither <s> nor </s>; out-of-vocabulary words add nothing to `log10_prob`."""

    sentences: int
    words: int
    oovs: int
    zeroprobs: int
    log10_prob: float

    @property
    def ppl(self) -> float:
        """10^(-log10_prob / events), each </s> being an event."""
        return self._of(self.words - self.oovs - self.zeroprobs + self.sentences)

    @property
    def ppl1(self) -> float:
        """The same without the </s> in the denominator."""
        return self._of(self.words - self.oovs - self.zeroprobs)

    def _of(self, events: int) -> float:
        return float(10 ** (-self.log10_prob / events)) if events > 0 else float("nan")

    def __str__(self) -> str:
        return (
            f"{self.sentences} sentences, {self.words} words, {self.oovs} OOVs\n{self.zeroprobs} zeroprobs,"
            f" logprob= {self.log10_prob:.6g} ppl= {self.ppl:.6g} ppl1= {self.ppl1:.6g}"
        )


def perplexity(model: ArpaModel, text: str | Path, *, unk: str = "<UNK>", skip_first_field: bool = True) -> Perplexity:
    """Score every word and every </s>. A word that the model lacks is an OOV, as is `unk` itself: it is not scored.

    In the histories of the words after it, it stands as `unk` if the model has that; else it cuts them short.
    """
    tokens, lines = encoded(model, text, unk, skip_first_field)
    unknown = model.index.get(unk, -1)
    scores = log10_probs(model, tokens)
    event = (tokens != unknown) & (tokens != model.index[BOS])
    zero = event & (scores <= -99)
    return Perplexity(
        sentences=lines,
        words=len(tokens) - 2 * lines,
        oovs=int(np.sum(tokens == unknown)),
        zeroprobs=int(np.sum(zero)),
        log10_prob=float(np.sum(scores[event & ~zero])),
    )


def encoded(model: ArpaModel, text: str | Path, unk: str, skip_first_field: bool) -> tuple[Ints, int]:
    """The sentences of `text`, <s> … </s> each, as numbers of words, that of `unk` or -1 for others; and how many."""
    model.check_ends("perplexity cannot be computed")
    index = {word.encode(): i for word, i in model.index.items()}
    for symbol in (BOS, EOS):
        del index[symbol.encode()]  # inside a text they are no words
    unknown = model.index.get(unk, -1)
    stream = array("q")
    lines = 0
    for _, sentence in sentences(text, skip_first_field):
        stream.append(model.index[BOS])
        stream.extend(index.get(word, unknown) for word in sentence)
        stream.append(model.index[EOS])
        lines += 1
    if not lines:
        raise KernelamError(f"{text} has no sentences")
    return np.array(stream, np.int64), lines


def log10_probs(model: ArpaModel, tokens: Ints) -> NDArray[np.float64]:
    """log10 p of each token after those before it; <s> starts a new history, -1 (unknown) interrupts one."""
    scores = model.levels[0].log10_prob[tokens]
    row = tokens  # of the n-gram that ends at each token, -1 where it is not listed
    first = tokens == model.index[BOS]
    for n in range(2, model.order + 1):
        context = np.concatenate(([-1], row[:-1]))
        context[first] = -1
        listed = model.find(n, context, tokens)
        scores = scores + model.levels[n - 2].log10_backoff[context] * (context >= 0)
        hit = listed >= 0
        scores[hit] = model.levels[n - 1].log10_prob[listed[hit]]
        row = listed
    return scores
