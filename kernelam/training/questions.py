"""Questions about phones, made by clustering them: each set that a tree of clusters has at one of its nodes."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelam.randomness import stream
from kernelam.training.context_stats import VARIANCE_FLOOR, ContextStats, GaussianStats

TRIES = 10  # starting points of each division of a cluster in two
ROUNDS = 20  # in which items change sides, at most


def phone_questions(
    stats: ContextStats, sets: Sequence[Sequence[int]], classes: Collection[int] = (1,), seed: int = 1
) -> list[frozenset[int]]:
    """The sets of phones of a top-down clustering of `sets` by the frames of these pdf classes, the middle state of
    three: every cluster but that of all, down to the sets themselves."""
    chosen = stats[np.isin(stats.pdf_class, list(classes))]
    owner = np.zeros(1 + max(max(phones) for phones in sets), np.int64)
    for number, phones in enumerate(sets):
        owner[list(phones)] = number
    known = np.isin(chosen.phone, [phone for phones in sets for phone in phones])
    chosen = chosen[known]
    items = chosen.gaussians.grouped(owner[chosen.phone], len(sets))
    questions, waiting = [], [np.arange(len(sets))]
    while waiting:
        cluster = waiting.pop()
        questions.append(frozenset(phone for number in cluster.tolist() for phone in sets[number]))
        if len(cluster) > 1:
            second = divide(items[cluster], seed + len(questions))
            waiting += [cluster[second], cluster[~second]]
    return list(dict.fromkeys(questions[1:]))


def divide(items: GaussianStats, seed: int) -> NDArray[np.bool_]:
    """Which items are in the second of two clusters, each with one Gaussian, that make the items most likely: the best
    of k-means from several starts. Neither is empty."""
    rng, size = stream(seed, "questions"), len(items.count)
    best, found = -np.inf, np.arange(size) >= size // 2
    for _ in range(TRIES if size > 2 else 1):
        second = np.zeros(size, bool)
        second[rng.choice(size, size // 2, replace=False)] = True
        for _ in range(ROUNDS):
            clusters = items.joined(np.stack([~second, second]))
            moved = _likelihoods(items, clusters)
            new = moved[:, 1] > moved[:, 0]
            if new.all() or not new.any() or (new == second).all():
                break
            second = new
        value = items.joined(np.stack([~second, second])).log_likelihood.sum()
        if value > best:
            best, found = value, second
    return found


def _likelihoods(items: GaussianStats, clusters: GaussianStats) -> NDArray[np.float64]:
    """Of each item under the Gaussian of each cluster."""
    means, variances = clusters.moments
    inverse = 1.0 / np.maximum(variances, VARIANCE_FLOOR)
    constant = (means**2 * inverse - np.log(inverse)).sum(axis=1)
    return items.sums @ (means * inverse).T - 0.5 * (items.squares @ inverse.T + items.count[:, None] * constant)
