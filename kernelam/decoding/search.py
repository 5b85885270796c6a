"""Token passing with lattices over a decoding graph, compiled by numba: the algorithm of Kaldi's LatticeFasterDecoder.

Every frame has tokens, one a graph state, with the cost of the best way to it; a link is an arc of the graph between
two tokens. They lie end to end in two arrays. Frame t has the tokens begin[t] … begin[t+1] − 1, the links of epsilon
arcs link_begin[2t] … link_begin[2t+1] − 1, and the links to frame t + 1 link_begin[2t+1] … link_begin[2t+2] − 1. What
lies outside the lattice beam is thrown out as the search goes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)
# What only compiled functions call needs no entry from Python, which takes half of the time to compile it.
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner: Callable[..., Any] = numba.njit(**_INNER)
inlined: Callable[..., Any] = numba.njit(forceinline=True, **_INNER)
TOKEN = np.dtype([("cost", np.float64), ("state", np.int32)], align=True)
LINK = np.dtype([("source", np.int32), ("target", np.int32), ("arc", np.int32), ("acoustic", np.float32)])


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
    tokens: NDArray[np.void]
    links: NDArray[np.void]


@inner
def _with_room(array, used, more):  # type: ignore[no-untyped-def]
    """`array`, or a larger copy if it has no room for `more` after the `used` first."""
    if used + more <= len(array):
        return array
    larger = np.empty(2 * (used + more), array.dtype)
    for i in range(used):
        larger[i] = array[i]
    return larger


@inner
def _token(tokens, where, state, count):  # type: ignore[no-untyped-def]
    """The token of `state` in the newest frame, made if there is none, and the number of tokens then."""
    if where[state] >= 0:
        return where[state], count
    where[state] = count
    tokens[count].state, tokens[count].cost = state, np.inf
    return count, count + 1


@inner
def _close(graph, where, limit, frame, tokens, begin):  # type: ignore[no-untyped-def]
    """Follow the epsilon arcs of the newest frame until no cost falls any more; return `tokens`, perhaps moved."""
    first, middle = graph.first, graph.middle
    height, count = 0, begin[frame + 1]
    stack = np.empty(2 * (count - begin[frame]), np.int32)
    for token in range(begin[frame], count):
        state = tokens[token].state
        if first[state] < middle[state]:
            stack[height] = token
            height += 1
    while height:
        height -= 1
        token = stack[height]
        state = tokens[token].state
        arcs = middle[state] - first[state]
        tokens, stack = _with_room(tokens, count, arcs), _with_room(stack, height, arcs)
        for arc in range(first[state], middle[state]):
            cost = tokens[token].cost + graph.weight[arc]
            if cost >= limit:
                continue
            after = graph.next[arc]
            target, count = _token(tokens, where, after, count)
            if cost < tokens[target].cost:
                tokens[target].cost = cost
                if first[after] < middle[after]:
                    stack[height] = target
                    height += 1
    begin[frame + 1] = count
    return tokens


@inner
def _link_epsilons(graph, where, limit, frame, tokens, begin, links, link_begin):  # type: ignore[no-untyped-def]
    """Add the links of epsilon arcs, when costs are settled; return `links`, perhaps moved. `where` is left empty."""
    count = link_begin[2 * frame]
    for source in range(begin[frame], begin[frame + 1]):
        state = tokens[source].state
        links = _with_room(links, count, graph.middle[state] - graph.first[state])
        for arc in range(graph.first[state], graph.middle[state]):
            if tokens[source].cost + graph.weight[arc] < limit:
                link = links[count]
                link.source, link.target, link.arc, link.acoustic = source, where[graph.next[arc]], arc, 0.0
                count += 1
    link_begin[2 * frame + 1] = count
    for token in range(begin[frame], begin[frame + 1]):
        where[tokens[token].state] = -1
    return links


@inner
def _nth(values, n):  # type: ignore[no-untyped-def]
    """The value that would be at `n` if `values` were sorted; they are rearranged (quickselect)."""
    low, high = 0, len(values) - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < n < i:
            break
        low, high = (low, j) if n <= j else (i, high)
    return values[n]


@inner
def _cutoff(costs, best, beams):  # type: ignore[no-untyped-def]
    """The cost up to which tokens are followed, and the beam that this amounts to. Few tokens are all followed."""
    limit = best + beams.beam
    if len(costs) > beams.max_active:
        worst = _nth(costs, beams.max_active)
        if worst < limit:
            return worst, worst - best + 0.5
    if len(costs) <= beams.min_active:
        return np.inf, np.inf
    least = _nth(costs, beams.min_active)
    return (least, least - best + 0.5) if least > limit else (limit, beams.beam)


@inner
def _emission_limits(graph, scores, beams, tokens):  # type: ignore[no-untyped-def]
    """The cost up to which the tokens of a frame are followed, the beam, and a first limit of costs in the next."""
    costs = np.empty(len(tokens))
    best = 0
    for token in range(len(tokens)):
        costs[token] = tokens[token].cost
        if costs[token] < costs[best]:
            best = token
    state, cost = tokens[best].state, costs[best]
    followed, width = _cutoff(costs, cost, beams)
    limit = np.inf
    for arc in range(graph.middle[state], graph.first[state + 1]):
        limit = min(limit, cost + graph.weight[arc] - scores[graph.pdf[arc]] + width)
    return followed, width, limit


@inner
def _emit(graph, where, scores, beams, frame, tokens, begin, links, link_begin):  # type: ignore[no-untyped-def]
    """Follow arcs to the next frame; return `tokens` and `links`, perhaps moved, and the limit of its costs."""
    followed, width, limit = _emission_limits(graph, scores, beams, tokens[begin[frame] : begin[frame + 1]])
    count, link_count = begin[frame + 1], link_begin[2 * frame + 1]
    for source in range(begin[frame], begin[frame + 1]):
        state, before = tokens[source].state, tokens[source].cost
        if before > followed:
            continue
        arcs = graph.first[state + 1] - graph.middle[state]
        tokens, links = _with_room(tokens, count, arcs), _with_room(links, link_count, arcs)
        for arc in range(graph.middle[state], graph.first[state + 1]):
            acoustic = -scores[graph.pdf[arc]]
            cost = before + graph.weight[arc] + acoustic
            if cost >= limit:
                continue
            limit = min(limit, cost + width)
            target, count = _token(tokens, where, graph.next[arc], count)
            tokens[target].cost = min(tokens[target].cost, cost)
            link = links[link_count]
            link.source, link.target, link.arc, link.acoustic = source, target, arc, acoustic
            link_count += 1
    begin[frame + 2], link_begin[2 * frame + 2] = count, link_count
    return tokens, links, limit


@inner
def _through(tokens, link, weight, extra):  # type: ignore[no-untyped-def]
    """How much worse the best path with this link is than the best path."""
    loss = tokens[link.source].cost + weight[link.arc] + link.acoustic - tokens[link.target].cost
    return extra[link.target] + max(0.0, loss)


@inner
def _relax(tokens, links, weight, extra):  # type: ignore[no-untyped-def]
    """Lower the extra costs of the sources of `links` to those through the links; whether any changed."""
    changed = False
    for number in range(len(links)):
        link = links[number]
        through = _through(tokens, link, weight, extra)
        if through < extra[link.source] - 1e-9:
            extra[link.source] = through
            changed = True
    return changed


@inner
def _numbers_after(extra, beam, last, begin):  # type: ignore[no-untyped-def]
    """New numbers of the tokens that stay, −1 for the others; `begin` becomes that of the new numbers."""
    number = np.full(begin[last + 1], -1, np.int32)
    count = low = 0
    for frame in range(last + 1):
        for token in range(low, begin[frame + 1]):
            if extra[token] <= beam:
                number[token] = count
                count += 1
        low = begin[frame + 1]
        begin[frame + 1] = count
    return number


@inner
def _prune(weight, beam, extra, last, tokens, begin, links, link_begin):  # type: ignore[no-untyped-def]
    """Throw out what lies more than `beam` from the best path up to the frame `last`.

    The extra cost of a token is how much worse the best path through it is than the best path. `extra` has it for the
    last frame, and infinity before.
    """
    for part in range(2 * last, -1, -1):
        among = links[link_begin[part] : link_begin[part + 1]]
        while _relax(tokens, among, weight, extra) and part % 2 == 0:  # epsilon links can follow each other
            pass
    number = _numbers_after(extra, beam, last, begin)
    count = low = 0
    for part in range(2 * last + 1):
        for at in range(low, link_begin[part + 1]):
            link = links[at]
            source, target = number[link.source], number[link.target]
            if source >= 0 and target >= 0 and _through(tokens, link, weight, extra) <= beam:
                links[count] = link
                links[count].source, links[count].target = source, target
                count += 1
        low = link_begin[part + 1]
        link_begin[part + 1] = count
    for token in range(len(number)):
        if number[token] >= 0:
            tokens[number[token]] = tokens[token]


@inner
def _extra_at_end(final, tokens, low):  # type: ignore[no-untyped-def]
    """Whether a token from `low` on is in a final state, and by token how much worse than the best it ends."""
    best_final = best = np.inf
    for token in range(low, len(tokens)):
        best = min(best, tokens[token].cost)
        best_final = min(best_final, tokens[token].cost + final[tokens[token].state])
    reached_final = best_final < np.inf
    extra = np.full(len(tokens), np.inf)
    for token in range(low, len(tokens)):
        at_end = final[tokens[token].state] - best_final if reached_final else -best
        extra[token] = tokens[token].cost + at_end
    return reached_final, extra


@compiled
def search(graph, scores, beams):  # type: ignore[no-untyped-def]
    """Found for `scores` (frames × pdfs, scaled log-likelihoods), with no tokens if no path survived."""
    num_frames = len(scores)
    tokens, links = np.empty(1 << 14, TOKEN), np.empty(1 << 15, LINK)
    begin, link_begin = np.zeros(num_frames + 2, np.int64), np.zeros(2 * num_frames + 2, np.int64)
    where = np.full(len(graph.final), -1, np.int32)  # graph state → token of the newest frame
    _, begin[1] = _token(tokens, where, graph.start, 0)
    tokens[0].cost = 0.0
    limit = beams.beam
    for frame in range(num_frames + 1):
        tokens = _close(graph, where, limit, frame, tokens, begin)
        links = _link_epsilons(graph, where, limit, frame, tokens, begin, links, link_begin)
        if begin[frame] == begin[frame + 1]:
            return Found(False, begin, tokens[:0], links[:0])
        if frame == num_frames:
            break
        if frame and frame % beams.prune_interval == 0:
            extra = np.full(begin[frame + 1], np.inf)
            extra[begin[frame] :] = 0.0  # any token of this frame may turn out to be on the best path
            _prune(graph.weight, beams.lattice_beam, extra, frame, tokens, begin, links, link_begin)
        tokens, links, limit = _emit(graph, where, scores[frame], beams, frame, tokens, begin, links, link_begin)
    reached_final, extra = _extra_at_end(graph.final, tokens[: begin[-1]], begin[-2])
    _prune(graph.weight, beams.lattice_beam, extra, num_frames, tokens, begin, links, link_begin)
    return Found(reached_final, begin, tokens[: begin[-1]].copy(), links[: link_begin[-1]].copy())
