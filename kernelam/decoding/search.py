"""Token passing with lattices over a decoding graph, compiled by numba: the algorithm of Kaldi's LatticeFasterDecoder.

Every frame has tokens, one a graph state, with the cost of the best way to it; a link is an arc of the graph between
two tokens. Tokens and links of all frames lie end to end in arrays. The links from frame t are first those of epsilon
arcs, within the frame, then those to frame t + 1. What lies outside the lattice beam is thrown out as the search goes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)


class SearchGraph(NamedTuple):
    """State s has the epsilon arcs first[s] … middle[s] − 1 and the emitting ones middle[s] … first[s+1] − 1."""

    start: int
    first: NDArray[np.int64]
    middle: NDArray[np.int64]
    pdf: NDArray[np.int32]  # of the input label of each arc; −1 for epsilon
    weight: NDArray[np.float32]
    next: NDArray[np.int32]
    final: NDArray[np.float32]


class Beams(NamedTuple):
    """The limits of a search. The counts are of tokens that are followed from one frame to the next."""

    beam: float = 13.0
    lattice_beam: float = 8.0
    max_active: int = 7000
    min_active: int = 200
    prune_interval: int = 25


class Found(NamedTuple):
    """Tokens and links that survive. `begin` is the first token of each frame, with the number of tokens at the end."""

    reached_final: bool
    begin: NDArray[np.int64]
    state: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    arc: NDArray[np.int32]


@compiled
def _grown(array, used):  # type: ignore[no-untyped-def]
    """`array`, or a copy of twice its length if it is full."""
    if used < len(array):
        return array
    larger = np.empty(2 * len(array), array.dtype)
    larger[:used] = array
    return larger


@compiled
def _cutoff(costs, beam, max_active, min_active):  # type: ignore[no-untyped-def]
    """The cost up to which tokens are followed, and the beam that this amounts to. Few tokens are all followed."""
    best = costs.min()
    limit = best + beam
    if len(costs) > max_active:
        worst = np.partition(costs, max_active)[max_active]
        if worst < limit:
            return worst, worst - best + 0.5
    if len(costs) <= min_active:
        return np.inf, np.inf
    least = np.partition(costs, min_active)[min_active]
    return (least, least - best + 0.5) if least > limit else (limit, beam)


@compiled
def _relax(cost, extra, source, target, arc, step, weight, low, high):  # type: ignore[no-untyped-def]
    """Lower the extra costs of the sources of links low … high − 1 to those of their targets; whether any changed."""
    changed = False
    for link in range(low, high):
        loss = cost[source[link]] + weight[arc[link]] + step[link] - cost[target[link]]
        through = extra[target[link]] + max(0.0, loss)
        if through < extra[source[link]] - 1e-9:
            extra[source[link]] = through
            changed = True
    return changed


@compiled
def _prune(tokens, links, begin, link_begin, link_middle, weight, last, extra, beam, keep_last):  # type: ignore[no-untyped-def]
    """Throw out what lies more than `beam` from the best way through; return the numbers of tokens and links left.

    The extra cost of a token is how much worse the best path through it is than the best path. `extra` has it for the
    last frame. All tokens of that frame are kept if `keep_last`.
    """
    state, cost = tokens
    source, target, arc, step = links
    for frame in range(last, -1, -1):
        if frame < last:
            extra[begin[frame] : begin[frame + 1]] = np.inf
        low, middle, high = link_begin[frame], link_middle[frame], link_begin[frame + 1]
        _relax(cost, extra, source, target, arc, step, weight, middle, high)
        while _relax(cost, extra, source, target, arc, step, weight, low, middle):
            pass
    number = np.full(begin[last + 1], -1, np.int32)
    kept = kept_links = 0
    for frame in range(last + 1):
        low, high = begin[frame], begin[frame + 1]
        begin[frame] = kept
        for token in range(low, high):
            if extra[token] <= beam or (keep_last and frame == last):
                number[token] = kept
                state[kept] = state[token]
                kept += 1
    # costs are needed at their old places until all links are judged
    for frame in range(last + 1):
        low, middle, high = link_begin[frame], link_middle[frame], link_begin[frame + 1]
        link_begin[frame] = kept_links
        for link in range(low, high):
            if link == middle:
                link_middle[frame] = kept_links
            s, t = source[link], target[link]
            through = extra[t] + max(0.0, cost[s] + weight[arc[link]] + step[link] - cost[t])
            if number[s] >= 0 and number[t] >= 0 and through <= beam:
                source[kept_links], target[kept_links] = number[s], number[t]
                arc[kept_links], step[kept_links] = arc[link], step[link]
                kept_links += 1
        if middle == high:
            link_middle[frame] = kept_links
    for token in range(len(number)):
        if number[token] >= 0:
            cost[number[token]] = cost[token]
    begin[last + 1] = kept
    link_begin[last + 1] = kept_links
    return kept, kept_links


@compiled
def search(start, first, middle, pdf, weight, next_state, final, scores, beams):  # type: ignore[no-untyped-def]
    """Found, as a plain tuple, for `scores` (frames × pdfs, scaled log-likelihoods); no tokens if no path survived."""
    beam, lattice_beam, max_active, min_active, prune_interval = beams
    num_frames = len(scores)
    where = np.full(len(final), -1, np.int32)  # graph state → token of the newest frame
    state, cost = np.empty(1 << 14, np.int32), np.empty(1 << 14, np.float64)
    source, target, arc = np.empty(1 << 15, np.int32), np.empty(1 << 15, np.int32), np.empty(1 << 15, np.int32)
    step = np.empty(1 << 15, np.float32)  # acoustic cost of a link
    begin, link_begin = np.zeros(num_frames + 2, np.int64), np.zeros(num_frames + 2, np.int64)
    link_middle = np.zeros(num_frames + 1, np.int64)
    stack = np.empty(1 << 12, np.int32)
    state[0], cost[0], where[start] = start, 0.0, 0
    tokens, links, limit = 1, 0, beam
    for frame in range(num_frames + 1):
        # the epsilon closure of the newest frame: costs first, links when they are settled
        height = 0
        for token in range(begin[frame], tokens):
            if first[state[token]] < middle[state[token]]:
                stack = _grown(stack, height)
                stack[height] = token
                height += 1
        while height:
            height -= 1
            token = stack[height]
            for a in range(first[state[token]], middle[state[token]]):
                total = cost[token] + weight[a]
                if total >= limit:
                    continue
                other = where[next_state[a]]
                if other < 0:
                    state, cost = _grown(state, tokens), _grown(cost, tokens)
                    other = tokens
                    tokens += 1
                    state[other], where[next_state[a]] = next_state[a], other
                elif total >= cost[other]:
                    continue
                cost[other] = total
                if first[state[other]] < middle[state[other]]:
                    stack = _grown(stack, height)
                    stack[height] = other
                    height += 1
        begin[frame + 1] = tokens
        link_begin[frame] = links
        for token in range(begin[frame], tokens):
            for a in range(first[state[token]], middle[state[token]]):
                if cost[token] + weight[a] < limit:
                    source, target = _grown(source, links), _grown(target, links)
                    arc, step = _grown(arc, links), _grown(step, links)
                    source[links], target[links], arc[links], step[links] = token, where[next_state[a]], a, 0.0
                    links += 1
        link_middle[frame] = links
        link_begin[frame + 1] = links
        for token in range(begin[frame], tokens):
            where[state[token]] = -1
        if begin[frame] == tokens:
            return False, begin[:0], state[:0], source[:0], target[:0], arc[:0]
        if frame == num_frames:
            break
        if frame and frame % prune_interval == 0:
            tokens, links = _prune(
                (state, cost), (source, target, arc, step), begin, link_begin, link_middle, weight, frame,
                np.zeros(tokens), lattice_beam, True,
            )  # fmt: skip
        # emitting arcs, from the tokens that are good enough
        costs = cost[begin[frame] : tokens]
        followed, width = _cutoff(costs, beam, max_active, min_active)
        best = begin[frame] + np.argmin(costs)
        limit = np.inf
        for a in range(middle[state[best]], first[state[best] + 1]):
            limit = min(limit, cost[best] + weight[a] - scores[frame, pdf[a]] + width)
        for token in range(begin[frame], begin[frame + 1]):
            if cost[token] > followed:
                continue
            for a in range(middle[state[token]], first[state[token] + 1]):
                acoustic = -scores[frame, pdf[a]]
                total = cost[token] + weight[a] + acoustic
                if total >= limit:
                    continue
                limit = min(limit, total + width)
                other = where[next_state[a]]
                if other < 0:
                    state, cost = _grown(state, tokens), _grown(cost, tokens)
                    other = tokens
                    tokens += 1
                    state[other], where[next_state[a]], cost[other] = next_state[a], other, total
                elif total < cost[other]:
                    cost[other] = total
                source, target = _grown(source, links), _grown(target, links)
                arc, step = _grown(arc, links), _grown(step, links)
                source[links], target[links], arc[links], step[links] = token, other, a, acoustic
                links += 1
        link_begin[frame + 1] = links
    # the end: final costs, if any token is in a final state
    low = begin[num_frames]
    ends = np.empty(tokens - low)
    for token in range(low, tokens):
        ends[token - low] = cost[token] + final[state[token]]
    reached = bool(np.isfinite(ends).any())
    extra = np.full(tokens, np.inf)
    extra[low:] = ends - ends.min() if reached else cost[low:tokens] - cost[low:tokens].min()
    tokens, links = _prune(
        (state, cost), (source, target, arc, step), begin, link_begin, link_middle, weight, num_frames, extra,
        lattice_beam, False,
    )  # fmt: skip
    return reached, begin, state[:tokens].copy(), source[:links].copy(), target[:links].copy(), arc[:links].copy()
