"""Which features tell classes apart: ranked by mutual information, cut off by nearest neighbours (cho2009, part 3.1).

The error of k nearest neighbours on the first w features is found for all k and w in one pass: the distances of w
features are those of w − 1 and one more term, and the neighbours then, their distances brought up to date, bound those
now, so that few others are ever looked at twice.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError

BINS = 20
NEIGHBOURS = 15
WIDTHS = (10, 300)  # the fewest and the most features that are tried
BLOCK = 64  # validation examples that a thread takes at once

compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)


def discretise(x: Tensor, bins: int = BINS) -> Tensor:
    """The bin of each number among those of its column: equally many in each, but equal numbers are in one.

    A histogram estimates too much information by about (bins − 1)(classes − 1) / 2n: as all columns fill their bins,
    that does not change their order.
    """
    shares = torch.arange(1, bins, device=x.device, dtype=torch.float64) / bins
    ordered = x.T.contiguous().sort(dim=1).values
    edges = ordered[:, (shares * len(x)).long()]
    return torch.searchsorted(edges.contiguous(), x.T.contiguous(), right=True).T


def mutual_information(bins: Tensor, labels: Tensor) -> Tensor:
    """Σ p(b, y) log(p(b, y) / p(b) p(y)) of each column of bins with the labels, in nats."""
    classes, size = int(labels.max()) + 1, int(bins.max()) + 1
    found = torch.empty(bins.shape[1], dtype=torch.float64)
    for place, column in enumerate(bins.T):
        joint = torch.bincount(column * classes + labels, minlength=size * classes).double().view(size, classes)
        joint /= len(labels)
        apart = joint.sum(dim=1, keepdim=True) * joint.sum(dim=0, keepdim=True)
        found[place] = torch.special.xlogy(joint, joint / apart.clamp_min(torch.finfo(torch.float64).tiny)).sum()
    return found


def ranking(x: Tensor, labels: Tensor) -> Tensor:
    """Columns by their mutual information with the labels, the largest first; of equal ones, as they come."""
    return mutual_information(discretise(x), labels).sort(descending=True, stable=True).indices


@compiled
def _count_errors(  # type: ignore[no-untyped-def]
    columns, labels, rows, truth, first, most, classes, errors
):
    """Add to errors[w − first, k − 1] what the rows have of them."""
    size, width = columns.shape[1], columns.shape[0]
    distance = np.empty(size)
    near, far = np.empty(most, np.int64), np.empty(most)
    votes = np.empty(classes, np.int64)
    for row in range(len(rows)):
        distance[:] = 0.0
        for place in range(most):
            near[place] = place
        for w in range(width):
            value, column = np.float64(rows[row, w]), columns[w]
            for t in range(size):
                difference = value - column[t]
                distance[t] += difference * difference
            if w + 1 < first:
                continue
            _sort_again(distance, near, far)
            _find_nearer(distance, near, far)
            votes[:] = 0
            winner = labels[near[0]]
            for k in range(most):
                label = labels[near[k]]
                votes[label] += 1
                if votes[label] > votes[winner] or (votes[label] == votes[winner] and label < winner):
                    winner = label
                errors[w + 1 - first, k] += winner != truth[row]


@compiled
def _sort_again(distance, near, far):  # type: ignore[no-untyped-def]
    """Put neighbours in the order of their distances, and of their numbers where these are equal."""
    for place in range(len(near)):
        own, d, at = near[place], distance[near[place]], place
        while at > 0 and (far[at - 1] > d or (far[at - 1] == d and near[at - 1] > own)):
            near[at], far[at] = near[at - 1], far[at - 1]
            at -= 1
        near[at], far[at] = own, d


@compiled
def _find_nearer(distance, near, far):  # type: ignore[no-untyped-def]
    """Take in all that are nearer than the last neighbour."""
    last = len(near) - 1
    for t in range(len(distance)):
        d = distance[t]
        if d > far[last] or (d == far[last] and t >= near[last]):
            continue
        at = last
        while at > 0 and (far[at - 1] > d or (far[at - 1] == d and near[at - 1] > t)):
            at -= 1
        if at > 0 and near[at - 1] == t:
            continue  # it is one of them
        for place in range(last, at, -1):
            near[place], far[place] = near[place - 1], far[place - 1]
        near[at], far[at] = t, d


def neighbour_errors(
    x: Tensor, labels: Tensor, x_new: Tensor, labels_new: Tensor, first: int = 1, most: int = NEIGHBOURS
) -> np.ndarray:
    """The share of new examples that the majority of their k nearest in x, by the first w columns, is wrong about.

    Row w − first is of w columns, column k − 1 of k ≤ `most`. Of labels with equally many votes, the least is taken.
    """
    if most > len(x):
        raise KernelamError(f"there are {len(x)} examples, fewer than the {most} neighbours to be found among them")
    width = x.shape[1]
    if not 1 <= first <= width:
        raise KernelamError(f"nearest neighbours by {first} features are looked for where there are {width}")
    columns = np.ascontiguousarray(x.cpu().numpy().T)
    old, new = (np.ascontiguousarray(one.cpu().numpy()) for one in (labels, labels_new))
    classes = int(max(old.max(), new.max())) + 1

    def count(start: int) -> np.ndarray:
        errors = np.zeros((width - first + 1, most), np.int64)
        rows = x_new[start : start + BLOCK].cpu().numpy()
        _count_errors(columns, old, rows, new[start : start + BLOCK], first, most, classes, errors)
        return errors

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        counts = list(pool.map(count, range(0, len(x_new), BLOCK)))
    return np.sum(counts, axis=0) / len(x_new)


@dataclass(frozen=True)
class Width:
    """How many of the ranked features are kept, and the number of neighbours and the error that it was chosen by."""

    features: int
    neighbours: int
    error: float


def choose_width(x: Tensor, labels: Tensor, x_new: Tensor, labels_new: Tensor) -> Width:
    """Of columns that are ranked, as many as give the fewest errors on the new examples; of several, the fewest."""
    low, high = (min(width, x.shape[1]) for width in WIDTHS)
    most = min(NEIGHBOURS, len(x))
    errors = neighbour_errors(x[:, :high], labels, x_new[:, :high], labels_new, low, most)
    w, k = np.unravel_index(int(errors.argmin()), errors.shape)
    return Width(int(w) + low, int(k) + 1, float(errors[w, k]))
