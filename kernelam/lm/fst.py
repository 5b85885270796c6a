"""The grammar transducer G of a back-off model, as Kaldi's `arpa2fst --disambig-symbol=#0` makes it.

A state is a history; it has an arc for each n-gram, `#0:<eps>` leads to the longest shorter history, and p(</s> | h)
is the final weight of h. A history that no n-gram continues is left out: what would enter it goes on, at the cost of
the backoff, to the next shorter one. The start is the history <s>. Weights are -ln p. Each #0 arc shortens the
history, so they form no cycle, and no state has two arcs with one input label.
"""

import math
from pathlib import Path

import kaldifst
import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.lm.arpa import ArpaModel, Ints, read_arpa
from kernelam.lm.text import BOS, EOS, byte_lines, decode
from kernelam.progress import say

Floats = NDArray[np.float64]


def read_symbols(path: str | Path) -> dict[str, int]:
    """words.txt: word → number, each once."""
    symbols: dict[str, int] = {}
    taken: set[int] = set()
    for number, fields in byte_lines(path):
        if len(fields) != 2 or not fields[1].isdigit() or len(fields[1]) > 9:
            raise KernelamError(f"{path}, line {number}: expected a word and its number")
        word, value = decode(fields[0], path, number), int(fields[1])
        if word in symbols or value in taken:
            raise KernelamError(f"{path}, line {number}: {word} {value} repeats a word or a number")
        symbols[word] = value
        taken.add(value)
    return symbols


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
    grammar = to_fst(kept, symbols)
    with replacing(fst) as stream:
        if not grammar.write(stream.name):
            raise KernelamError(f"cannot write {fst}")


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
        self.back = [np.zeros(1, np.int64)]  # by order: the longest proper suffix of each n-gram that is a node
        for n in range(1, model.order + 1):
            self.back.append(self._suffix(n))

    def _suffix(self, n: int) -> Ints:
        """Extend the longest suffix of the prefix by the last word; where that is not listed, a shorter one."""
        word = self.model.last(n)
        result = np.zeros(len(word), np.int64)
        if n == 1:
            return result
        node = self.back[n - 1][self.model.prefix(n)]
        open_ = np.ones(len(word), bool)
        for m in range(n - 1, 0, -1):
            here = np.flatnonzero(open_ & (node >= self.offset[m - 1]))
            row = self.model.find(m, node[here] - self.offset[m - 1], word[here])
            hit = row >= 0
            result[here[hit]] = self.offset[m] + row[hit]
            open_[here[hit]] = False
            miss = here[~hit]
            node[miss] = self.back[m - 1][node[miss] - self.offset[m - 1]]
        return result


def to_fst(model: ArpaModel, symbols: dict[str, int]) -> kaldifst.StdVectorFst:
    """G of a model all of whose words but <s> and </s> are in `symbols`; write_grammar checks the rest."""
    nodes = _Nodes(model)
    bos, eos = model.index[BOS], model.index[EOS]
    size = int(nodes.offset[model.order])
    start = int(nodes.offset[1]) + bos if model.order > 1 else 0
    alive = np.zeros(size, bool)
    alive[[0, start]] = True
    for n in range(1, model.order + 1):
        alive[nodes.offset[n - 1] + model.prefix(n)] = True
    target, cost = np.arange(size), np.zeros(size)  # where an arc into a node really leads, and what that adds
    backoff = np.zeros(size)
    for n in range(1, model.order):
        here = np.arange(nodes.offset[n], nodes.offset[n + 1])
        backoff[here] = -math.log(10) * model.levels[n - 1].log10_backoff
        dead, back = ~alive[here], nodes.back[n]
        target[here[dead]] = target[back[dead]]
        cost[here[dead]] = backoff[here[dead]] + cost[back[dead]]

    label = np.array([symbols.get(word, 0) for word in model.words])
    final = np.full(size, np.inf)
    parts: list[tuple[Ints, Ints, Ints, Floats, Ints]] = []  # source, input, output, weight, destination
    for n in range(1, model.order + 1):
        source, word = nodes.offset[n - 1] + model.prefix(n), model.last(n)
        weight = -math.log(10) * model.levels[n - 1].log10_prob
        own = nodes.offset[n] + np.arange(len(word)) if n < model.order else nodes.back[n]
        end, plain = word == eos, (word != eos) & (word != bos)
        final[source[end]] = weight[end]
        into = own[plain]
        parts.append((source[plain], label[word[plain]], label[word[plain]], weight[plain] + cost[into], target[into]))
        if n < model.order:
            own, back = own[alive[own]], nodes.back[n][alive[own]]
            disambig = np.full(len(own), symbols["#0"])
            parts.append((own, disambig, np.zeros_like(own), backoff[own] + cost[back], target[back]))
    state = np.cumsum(alive) - 1
    source, ilabel, olabel, weight, into = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((ilabel, source))
    arcs = (column[order].tolist() for column in (state[source], ilabel, olabel, weight, state[into]))
    return _assemble(int(state[start]), final[alive].tolist(), zip(*arcs, strict=True))


def _assemble(start: int, final: list[float], arcs: "zip[tuple[int, int, int, float, int]]") -> kaldifst.StdVectorFst:
    fst = kaldifst.StdVectorFst()
    for weight in final:
        state = fst.add_state()
        if weight < math.inf:
            fst.set_final(state, weight)
    fst.start = start
    for source, ilabel, olabel, weight, into in arcs:
        fst.add_arc(source, kaldifst.StdArc(ilabel, olabel, weight, into))
    return fst
