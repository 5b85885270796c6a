"""Entropy pruning of back-off models (Stolcke 1998).

Without the n-gram h w, its word is predicted by the backoff α'(h) p(w | h'), h' being h without its first word, and all
that backs off from h changes with α. What that costs, with p(h) the probability of the history,

    D = −p(h) { p(w | h) [log α'(h) + log p(w | h') − log p(w | h)]  +  b(h) [log α'(h) − log α(h)] },

where b(h) is the mass that backs off. An n-gram goes if perplexity rises by less than a share, e^D − 1 < threshold, and
no longer n-gram that stays begins with it. Those of the highest order are judged first, each as if it alone went.
"""

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.lm.arpa import ArpaModel, Level
from kernelam.lm.text import BOS, EOS

Floats = NDArray[np.float64]
LN10 = np.log(10.0)
ROUNDING = 1e-12


def pruned(model: ArpaModel, threshold: float) -> ArpaModel:
    """`model` without the n-grams, of two words and more, whose loss raises perplexity by a share below `threshold`."""
    if not 0 <= threshold < np.inf:
        raise KernelamError(f"the pruning threshold is at least 0, not {threshold}")
    model.check_ends("it cannot be pruned")
    keep = [np.ones(len(level), bool) for level in model.levels]
    for n in range(model.order, 1, -1):
        goes = np.expm1(_losses(model, n)) < threshold
        if n < model.order:
            goes[model.prefix(n + 1)[keep[n]]] = False
        keep[n - 1] = ~goes
    return renormalised(model.subset(keep)) if not all(mask.all() for mask in keep) else model


def _losses(model: ArpaModel, n: int) -> Floats:
    """D of each n-gram."""
    prefix, level = model.prefix(n), model.levels[n - 1]
    log_p, log_lower = LN10 * level.log10_prob, LN10 * lower(model, n)
    p, p_lower = np.exp(log_p), np.exp(log_lower)
    size = len(model.levels[n - 2])
    mass = 1 - np.bincount(prefix, p, size)[prefix]
    lower_mass = 1 - np.bincount(prefix, p_lower, size)[prefix]
    log_alpha = LN10 * model.levels[n - 2].log10_backoff[prefix]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_new = np.log(np.maximum(mass, 0) + p) - np.log(np.maximum(lower_mass, 0) + p_lower)
        backed = np.where(mass > 0, mass * (log_new - log_alpha), 0.0)
    history = np.exp(LN10 * _histories(model, n - 1))[prefix]
    return np.maximum(-history * (p * (log_new + log_lower - log_p) + backed), 0.0)


def _histories(model: ArpaModel, n: int) -> Floats:
    """log10 of the probability of each n-gram as a history, word after word; <s> is as frequent as </s>."""
    first = model.levels[0].log10_prob.copy()
    first[model.index[BOS]] = first[model.index[EOS]]
    total = first
    for m in range(2, n + 1):
        total = total[model.prefix(m)] + model.levels[m - 1].log10_prob
    return total


def lower(model: ArpaModel, n: int) -> Floats:
    """By n-gram: log10 of the probability of its last word after its history without the first word."""
    return model.log10_probs(model.columns(n)[1:])


def renormalised(model: ArpaModel) -> ArpaModel:
    """`model` with backoffs by which the words after every history sum to one."""
    made = ArpaModel(model.words, list(model.levels))
    for n, level in enumerate(model.levels, 1):
        ratio = np.zeros(len(level))
        if n < model.order:
            prefix = made.prefix(n + 1)
            left = 1 - np.bincount(prefix, 10 ** made.levels[n].log10_prob, len(level))
            lower_left = 1 - np.bincount(prefix, 10 ** lower(made, n + 1), len(level))
            possible = (left > ROUNDING) & (lower_left > ROUNDING)  # else all words are listed, and none backs off
            ratio = np.log10(left / np.where(possible, lower_left, 1), where=possible, out=np.full(len(level), -99.0))
        made.levels[n - 1] = Level(level.key, level.log10_prob, ratio)
    return made
