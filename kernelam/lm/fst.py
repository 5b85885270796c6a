"""The grammar transducer G of a back-off model, as Kaldi's `arpa2fst --disambig-symbol=#0` makes it.

A state is a history; it has an arc for each n-gram, `#0:<eps>` leads to the longest shorter history, and p(</s> | h)
is the final weight of h. A history that no n-gram continues is left out: what would enter it goes on, at the cost of
the backoff, to the next shorter one. The start is the history <s>. Weights are -ln p. Each #0 arc shortens the
history, so they form no cycle, and no state has two arcs with one input label.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.kaldi.fst import ARC, Fst
from kernelam.kaldi.tables import read_symbols
from kernelam.lm.arpa import ArpaModel, Ints, read_arpa
from kernelam.lm.text import BOS, EOS
from kernelam.progress import say

LN10 = math.log(10)


def write_grammar(arpa: str | Path, words: str | Path, fst: str | Path) -> None:
    """ARPA file and words.txt → G.fst."""
    symbols = read_symbols(words)
    if "#0" not in symbols:
        raise KernelamError(f"{words} has no #0, which the backoff arcs of {fst} need")
    model = read_arpa(arpa)
    for word in ("<eps>", "#0"):
        if word in model.index:
            raise KernelamError(f"{arpa} has {word} as a word; it is a symbol of the grammar")
    for word in (BOS, EOS):
        if word not in model.index:
            raise KernelamError(
                f"{arpa} has no {word} among its 1-grams: no sentence can {'begin' if word == BOS else 'end'}"
            )
    kept = _usable(model, symbols)
    if len(kept.words) == 2:
        raise KernelamError(f"{arpa} and {words} have no word in common")
    lost = sum(map(len, model.levels)) - sum(map(len, kept.levels))
    if lost:
        missing = len(model.words) - len(kept.words)
        say(f"warning: {lost} n-grams of {arpa} ({missing} of its words not in {words}) are left out of {fst}")
    to_fst(kept, symbols).save(fst)


def _usable(model: ArpaModel, symbols: dict[str, int]) -> ArpaModel:
    """The model without words that have no number, and without n-grams that have <s> inside or go on after </s>."""
    bos, eos = model.index[BOS], model.index[EOS]
    keep = [np.array([word in symbols or i in (bos, eos) for i, word in enumerate(model.words)])]
    for n in range(2, model.order + 1):
        keep.append((model.last(n) != bos) & (model.last(n - 1)[model.prefix(n)] != eos))
    return model.subset(keep)


class _Nodes:
    """All histories in one numbering: node 0 is the empty one, then the n-grams of each order below the highest."""

    def __init__(self, model: ArpaModel) -> None:
        self.model = model
        sizes = [1, *(len(level) for level in model.levels[:-1])]
        self.offset = np.concatenate(([0], np.cumsum(sizes)))
        self.start = 1 + model.index[BOS] if model.order > 1 else 0
        self.back = [np.zeros(1, np.int64)]  # by order: the longest proper suffix of each n-gram that is a node
        for n in range(1, model.order + 1):
            self.back.append(self._suffix(n))
        self._bypass()

    def source(self, n: int) -> Ints:
        """The nodes of the n-grams' histories."""
        return self.offset[n - 1] + self.model.prefix(n)

    def _suffix(self, n: int) -> Ints:
        """Extend the longest suffix of the prefix by the last word; where that is not listed, a shorter one."""
        word = self.model.last(n)
        result = np.zeros(len(word), np.int64)
        if n == 1:
            return result
        node = self.back[n - 1][self.model.prefix(n)]
        todo = np.ones(len(word), bool)
        for m in range(n - 1, 0, -1):
            here = np.flatnonzero(todo & (node >= self.offset[m - 1]))
            row = self.model.find(m, node[here] - self.offset[m - 1], word[here])
            hit, miss = here[row >= 0], here[row < 0]
            result[hit] = self.offset[m] + row[row >= 0]
            todo[hit] = False
            node[miss] = self.back[m - 1][node[miss] - self.offset[m - 1]]
        return result

    def _bypass(self) -> None:
        """Mark the nodes that are continued; for the others find where an arc goes on to, and what that costs."""
        size = int(self.offset[-1])
        self.alive = np.zeros(size, bool)
        self.alive[[0, self.start]] = True
        for n in range(1, self.model.order + 1):
            self.alive[self.source(n)] = True
        self.target, self.cost, self.backoff = np.arange(size), np.zeros(size), np.zeros(size)
        for n in range(1, self.model.order):
            here = np.arange(self.offset[n], self.offset[n + 1])
            self.backoff[here] = -LN10 * self.model.levels[n - 1].log10_backoff
            dead = ~self.alive[here]
            here, back = here[dead], self.back[n][dead]
            self.target[here] = self.target[back]
            self.cost[here] = self.backoff[here] + self.cost[back]


def to_fst(model: ArpaModel, symbols: dict[str, int]) -> Fst:
    """G of a model all of whose words but <s> and </s> are in `symbols`, its arcs sorted by input label."""
    nodes = _Nodes(model)
    label = np.array([symbols.get(word, 0) for word in model.words])
    final = np.full(len(nodes.alive), np.inf)
    parts: list[tuple[NDArray[Any], ...]] = []  # source, input, output, weight, node to enter
    for n in range(1, model.order + 1):
        source, word = nodes.source(n), model.last(n)
        weight = -LN10 * model.levels[n - 1].log10_prob
        end = word == model.index[EOS]
        final[source[end]] = weight[end]
        node = nodes.back[n] if n == model.order else nodes.offset[n] + np.arange(len(word))
        arc = ~end & (word != model.index[BOS])
        parts.append((source[arc], label[word[arc]], label[word[arc]], weight[arc], node[arc]))
        if n < model.order:
            alive = nodes.alive[node]
            node, back = node[alive], nodes.back[n][alive]
            disambig = np.full(len(node), symbols["#0"])
            parts.append((node, disambig, np.zeros_like(node), nodes.backoff[node], back))
    source, ilabel, olabel, weight, into = (np.concatenate(column) for column in zip(*parts, strict=True))
    state = np.cumsum(nodes.alive) - 1
    arcs = np.empty(len(source), ARC)
    arcs["ilabel"], arcs["olabel"] = ilabel, olabel
    arcs["weight"], arcs["nextstate"] = weight + nodes.cost[into], state[nodes.target[into]]
    order = np.argsort(ilabel, kind="stable")
    return Fst.of(int(state[nodes.start]), final[nodes.alive], state[source[order]], arcs[order])
