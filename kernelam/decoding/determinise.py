"""Determinisation: of the paths of a lattice with the same words, only the best stays.

Subset construction with weights and strings (Povey et al. 2012). A state of the result is a set of elements: a state of
the input, what the best path to it with the words so far costs more than the set's best, in graph and acoustic cost,
and its transition-ids after those common to all. Sets are followed in the order of the best path through them, so that
the first to reach a set is the best, and if room runs out what is finished is the result of a narrower beam. Only
elements on paths within the beam are kept.

Strings are chains of nodes back to the start, which extend in constant time. The hash of a string is the sum of the
mixed (position, id) of its items, so that the hash of what lies after a prefix is a difference.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.lattice import backward_costs, best_path, pruned
from kernelam.decoding.search import compiled
from kernelam.kaldi.lattice import Lattice, gathered

NODE = np.dtype([("hash", np.uint64), ("parent", np.int32), ("label", np.int32), ("depth", np.int32)], align=True)
ELEMENT = np.dtype([("graph", np.float64), ("acoustic", np.float64), ("state", np.int32), ("node", np.int32)])
# A set of elements: of the result when all word-less arcs are followed, or as the arcs of a word reach it
SUBSET = np.dtype(
    [
        *((name, np.int64) for name in ("begin", "end", "chain")),  # its elements, the next set of equal key
        *((name, np.float64) for name in ("forward", "graph", "acoustic")),
        *((name, np.int32) for name in ("prefix", "state", "to")),
        ("key", np.uint64),
    ],
    align=True,
)
ARC = np.dtype(
    [
        *((name, np.float64) for name in ("graph", "acoustic")),
        *((name, np.int32) for name in ("source", "target", "word", "since", "until", "since2", "until2")),
    ],
    align=True,
)
TASK = np.dtype([("begin", np.int64), ("end", np.int64), ("source", np.int32), ("word", np.int32)])
_BUCKETS = 1 << 16
_TOLERANCE = 1e-4


class Input(NamedTuple):
    """A lattice with scaled acoustic costs; `ahead` is the least cost from a state to the end."""

    first: NDArray[np.int64]
    word: NDArray[np.int32]
    graph: NDArray[np.float64]
    acoustic: NDArray[np.float64]
    next: NDArray[np.int32]
    final_graph: NDArray[np.float64]
    final_acoustic: NDArray[np.float64]
    begin: NDArray[np.int64]
    ids: NDArray[np.int32]
    ahead: NDArray[np.float64]
    matters: NDArray[np.bool_]  # by state: whether it is final or an arc with a word leaves it


class Store(NamedTuple):
    """Memory of a determinisation. Pages that are not used cost nothing."""

    nodes: NDArray[np.void]
    elements: NDArray[np.void]
    subsets: NDArray[np.void]  # of the result
    entries: NDArray[np.void]  # as the arcs of a word reach them
    arcs: NDArray[np.void]
    tasks: NDArray[np.void]
    used: NDArray[np.int64]  # how many of each


NODES, ELEMENTS, SUBSETS, ENTRIES, ARCS, TASKS = range(6)


class Scratch(NamedTuple):
    """By input state, while the arcs without words are followed: the best element found yet."""

    marked: NDArray[np.bool_]
    graph: NDArray[np.float64]
    acoustic: NDArray[np.float64]
    node: NDArray[np.int32]
    arc: NDArray[np.int64]  # by which it was reached from `node`; −1 if it is of the set itself


@compiled
def _mixed(value):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit numbers that looks random (splitmix64)."""
    value = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _extended(store, node, ids):  # type: ignore[no-untyped-def]
    """The node of the string of `node` with `ids` appended."""
    for label in ids:
        new, before = store.used[NODES], store.nodes[node]
        after = store.nodes[new]
        after.parent, after.label, after.depth = node, label, before.depth + 1
        after.hash = before.hash + _mixed((np.uint64(after.depth) << np.uint64(32)) + np.uint64(label))
        store.used[NODES] += 1
        node = new
    return node


@compiled
def _common(nodes, one, two):  # type: ignore[no-untyped-def]
    """The longest common prefix of two strings."""
    while one != two and nodes[one].hash != nodes[two].hash:
        if nodes[one].depth >= nodes[two].depth:
            one = nodes[one].parent
        else:
            two = nodes[two].parent
    return one


@compiled
def _normalise(nodes, elements):  # type: ignore[no-untyped-def]
    """Take the costs of the best element from all; return them, and the common prefix."""
    best = 0
    for number in range(len(elements)):
        element = elements[number]
        if element.graph + element.acoustic < elements[best].graph + elements[best].acoustic:
            best = number
    graph, acoustic, prefix = elements[best].graph, elements[best].acoustic, elements[0].node
    for number in range(len(elements)):
        elements[number].graph -= graph
        elements[number].acoustic -= acoustic
        prefix = _common(nodes, prefix, elements[number].node)
    return graph, acoustic, prefix


@compiled
def _key(nodes, elements, prefix):  # type: ignore[no-untyped-def]
    key = np.uint64(len(elements))
    for number in range(len(elements)):
        element = elements[number]
        key = _mixed(key ^ np.uint64(element.state)) + nodes[element.node].hash - nodes[prefix].hash
    return _mixed(key)


@compiled
def _found(store, heads, subsets, key, begin, end, prefix):  # type: ignore[no-untyped-def]
    """The subset with the elements begin … end − 1, whose prefix is `prefix`; −1 if there is none."""
    nodes, elements = store.nodes, store.elements
    candidate = heads[key % np.uint64(_BUCKETS)]
    while candidate >= 0:
        subset = subsets[candidate]
        if subset.key == key and subset.end - subset.begin == end - begin:
            shift = nodes[subset.prefix].hash - nodes[prefix].hash
            same = True
            for number in range(end - begin):
                one, two = elements[subset.begin + number], elements[begin + number]
                same &= one.state == two.state and nodes[one.node].hash - nodes[two.node].hash == shift
                same &= abs(one.graph - two.graph) < _TOLERANCE and abs(one.acoustic - two.acoustic) < _TOLERANCE
            if same:
                return candidate
        candidate = subset.chain
    return np.int64(-1)


@compiled
def _remember(store, heads, subsets, kind, key, begin, end, prefix):  # type: ignore[no-untyped-def]
    """A new subset of these elements."""
    number = store.used[kind]
    store.used[kind] += 1
    subset, bucket = subsets[number], key % np.uint64(_BUCKETS)
    subset.begin, subset.end, subset.prefix, subset.key, subset.chain = begin, end, prefix, key, heads[bucket]
    heads[bucket] = number
    return number


@compiled
def _close(lattice, store, scratch, begin, end, slack):  # type: ignore[no-untyped-def]
    """Follow arcs without words from the elements begin … end − 1 while paths cost at most `slack`.

    The states that matter are appended to the elements, in order.
    """
    low, high = store.elements[begin].state, store.elements[end - 1].state
    for number in range(begin, end):
        element = store.elements[number]
        state = element.state
        if element.graph + element.acoustic + lattice.ahead[state] > slack:
            continue
        scratch.marked[state] = True
        scratch.graph[state], scratch.acoustic[state] = element.graph, element.acoustic
        scratch.node[state], scratch.arc[state] = element.node, -1
    state = low
    while state <= high:
        if scratch.marked[state]:
            scratch.marked[state] = False
            graph, acoustic, node, arc = (
                scratch.graph[state],
                scratch.acoustic[state],
                scratch.node[state],
                scratch.arc[state],
            )
            if arc >= 0:
                node = _extended(store, node, lattice.ids[lattice.begin[arc] : lattice.begin[arc + 1]])
            if lattice.matters[state]:
                element = store.elements[store.used[ELEMENTS]]
                element.state, element.node, element.graph, element.acoustic = state, node, graph, acoustic
                store.used[ELEMENTS] += 1
            for arc in range(lattice.first[state], lattice.first[state + 1]):
                if lattice.word[arc]:
                    continue
                after = lattice.next[arc]
                through_graph, through_acoustic = graph + lattice.graph[arc], acoustic + lattice.acoustic[arc]
                cost = through_graph + through_acoustic
                if cost + lattice.ahead[after] > slack:
                    continue
                if not scratch.marked[after] or cost < scratch.graph[after] + scratch.acoustic[after]:
                    scratch.marked[after] = True
                    scratch.graph[after], scratch.acoustic[after] = through_graph, through_acoustic
                    scratch.node[after], scratch.arc[after] = node, arc
                    high = max(high, after)
        state += 1


@compiled
def _plan(lattice, store, queue, number, slack):  # type: ignore[no-untyped-def]
    """Queue a task for each word that leaves the subset `number`, with the elements it leads to, if within `slack`."""
    subset = store.subsets[number]
    count = 0
    for position in range(subset.begin, subset.end):
        state = store.elements[position].state
        count += lattice.first[state + 1] - lattice.first[state]
    order, come = np.empty(count, np.int64), np.empty((count, 2), np.int64)
    count = 0
    for position in range(subset.begin, subset.end):
        state = store.elements[position].state
        for arc in range(lattice.first[state], lattice.first[state + 1]):
            if lattice.word[arc]:
                order[count] = (np.int64(lattice.word[arc]) << 32) + lattice.next[arc]
                come[count, 0], come[count, 1] = position, arc
                count += 1
    order = order[:count]
    sorted_ = np.argsort(order)
    at = 0
    while at < count:
        word = order[sorted_[at]] >> 32
        begin, least = store.used[ELEMENTS], np.inf
        while at < count and order[sorted_[at]] >> 32 == word:
            target, best, choice = order[sorted_[at]], np.inf, 0
            while at < count and order[sorted_[at]] == target:
                position, arc = come[sorted_[at]]
                before = store.elements[position]
                cost = before.graph + before.acoustic + lattice.graph[arc] + lattice.acoustic[arc]
                if cost < best:
                    best, choice = cost, sorted_[at]
                at += 1
            position, arc = come[choice]
            before, element = store.elements[position], store.elements[store.used[ELEMENTS]]
            element.state = lattice.next[arc]
            element.graph, element.acoustic = before.graph + lattice.graph[arc], before.acoustic + lattice.acoustic[arc]
            element.node = _extended(store, before.node, lattice.ids[lattice.begin[arc] : lattice.begin[arc + 1]])
            store.used[ELEMENTS] += 1
            least = min(least, best + lattice.ahead[element.state])
        if least <= slack:
            task = store.tasks[store.used[TASKS]]
            task.source, task.word, task.begin, task.end = number, word, begin, store.used[ELEMENTS]
            heapq.heappush(queue, (subset.forward + least, store.used[TASKS]))
            store.used[TASKS] += 1
        else:
            store.used[ELEMENTS] = begin


@compiled
def _reach(lattice, store, scratch, queue, heads, begin, end, forward, limit):  # type: ignore[no-untyped-def]
    """The subset that the elements begin … end − 1 lead to, made and planned if new; −1 if none is within `limit`.

    Its forward cost, if new, is that of its best element; then the costs and the prefix taken out.
    """
    start = store.used[ELEMENTS]
    _close(lattice, store, scratch, begin, end, limit - forward)
    stop = store.used[ELEMENTS]
    if start == stop:
        return np.int64(-1), 0.0, 0.0, 0
    graph, acoustic, prefix = 0.0, 0.0, 0
    if store.used[SUBSETS]:  # what the start had in common would have no arc to stand on
        graph, acoustic, prefix = _normalise(store.nodes, store.elements[start:stop])
    key = _key(store.nodes, store.elements[start:stop], prefix)
    number = _found(store, heads, store.subsets, key, start, stop, prefix)
    if number >= 0:
        store.used[ELEMENTS] = start
    else:
        number = _remember(store, heads, store.subsets, SUBSETS, key, start, stop, prefix)
        store.subsets[number].forward = forward + graph + acoustic
        _plan(lattice, store, queue, number, limit - forward - graph - acoustic)
    return number, graph, acoustic, prefix


@compiled
def _follow(lattice, store, scratch, queue, heads, entry_heads, task, limit):  # type: ignore[no-untyped-def]
    """Add the arc of a task."""
    source = store.subsets[task.source]
    graph, acoustic, prefix = _normalise(store.nodes, store.elements[task.begin : task.end])
    key = _key(store.nodes, store.elements[task.begin : task.end], prefix)
    known = _found(store, entry_heads, store.entries, key, task.begin, task.end, prefix)
    arc = store.arcs[store.used[ARCS]]
    arc.source, arc.word, arc.since, arc.until = task.source, task.word, source.prefix, prefix
    if known < 0:
        forward = source.forward + graph + acoustic
        reached = _reach(lattice, store, scratch, queue, heads, task.begin, task.end, forward, limit)
        known = _remember(store, entry_heads, store.entries, ENTRIES, key, task.begin, task.end, prefix)
        store.entries[known].state, store.entries[known].graph = reached[0], reached[1]
        store.entries[known].acoustic, store.entries[known].to = reached[2], reached[3]
    entry = store.entries[known]
    if entry.state >= 0:
        arc.target, arc.graph, arc.acoustic = entry.state, graph + entry.graph, acoustic + entry.acoustic
        arc.since2, arc.until2 = entry.prefix, entry.to
        store.used[ARCS] += 1


@compiled
def _run(lattice, store, limit, room):  # type: ignore[no-untyped-def]
    """Determinise; return the cost up to which all paths are there: `limit` unless more than `room` was needed."""
    num_states = len(lattice.ahead)
    scratch = Scratch(
        np.zeros(num_states, np.bool_),
        np.empty(num_states),
        np.empty(num_states),
        np.empty(num_states, np.int32),
        np.empty(num_states, np.int64),
    )
    heads, entry_heads = np.full(_BUCKETS, -1, np.int64), np.full(_BUCKETS, -1, np.int64)
    store.nodes[0].hash, store.nodes[0].parent, store.nodes[0].depth, store.nodes[0].label = 0, 0, 0, 0
    start = store.elements[0]
    start.state, start.node, start.graph, start.acoustic = 0, 0, 0.0, 0.0
    store.used[:] = 0
    store.used[NODES], store.used[ELEMENTS] = 1, 1
    queue = [(0.0, np.int64(0))]
    queue.clear()
    _reach(lattice, store, scratch, queue, heads, 0, 1, 0.0, limit)
    while len(queue):
        cost, task = heapq.heappop(queue)
        if store.used.max() > room:
            return cost
        _follow(lattice, store, scratch, queue, heads, entry_heads, store.tasks[task], limit)
    return limit


@compiled
def _ends(lattice, store):  # type: ignore[no-untyped-def]
    """By state of the result: graph and acoustic cost of its end, the node of the string, and the input's state."""
    count = store.used[SUBSETS]
    graph, acoustic = np.full(count, np.inf), np.full(count, np.inf)
    node, state = np.zeros(count, np.int32), np.zeros(count, np.int64)
    for number in range(count):
        subset = store.subsets[number]
        node[number] = subset.prefix
        for position in range(subset.begin, subset.end):
            element = store.elements[position]
            end_graph = element.graph + lattice.final_graph[element.state]
            end_acoustic = element.acoustic + lattice.final_acoustic[element.state]
            if end_graph + end_acoustic < graph[number] + acoustic[number]:
                graph[number], acoustic[number] = end_graph, end_acoustic
                node[number], state[number] = element.node, element.state
    return graph, acoustic, node, state


@compiled
def _spell(nodes, since, until, begin, ids):  # type: ignore[no-untyped-def]
    """Write the string between two nodes of a chain to the end of each place: ids[… begin[i]]."""
    for number in range(len(since)):
        node, at = until[number], begin[number]
        while nodes[node].depth > nodes[since[number]].depth:
            at -= 1
            ids[at] = nodes[node].label
            node = nodes[node].parent


_ROOM = 1 << 22


def determinise(lattice: Lattice, acoustic_scale: float, beam: float, room: int = _ROOM) -> tuple[Lattice, float]:
    """A lattice of all word strings within `beam` of the best, each once, and that beam.

    The beam is narrower where more than `room` sets, elements of sets or nodes of strings would have been needed.
    """
    paths = _input(lattice, acoustic_scale)
    size = room + 2 * (lattice.num_states + lattice.num_arcs + len(lattice.ids)) + 1
    kinds = (NODE, ELEMENT, SUBSET, SUBSET, ARC, TASK)
    nodes, elements, subsets, entries, arcs, tasks = (np.empty(size, kind) for kind in kinds)
    store = Store(nodes, elements, subsets, entries, arcs, tasks, np.zeros(len(kinds), np.int64))
    best = paths.ahead[0]
    reached = _run(paths, store, best + beam, room)
    if reached - best < min(beam, 1e-6):  # not even the best path is sure to be there
        return determinise(_only_best(lattice, acoustic_scale), acoustic_scale, 0.0)[0], 0.0
    result = _result(paths, store, acoustic_scale)
    return pruned(result, acoustic_scale, reached - best), reached - best


def _only_best(lattice: Lattice, acoustic_scale: float) -> Lattice:
    path = best_path(lattice, 1 / acoustic_scale)
    keep = np.zeros(lattice.num_arcs, bool)
    keep[path] = True
    return lattice.selected(np.append(lattice.source[path], lattice.next[path[-1:]]), keep)


def _input(lattice: Lattice, acoustic_scale: float) -> Input:
    graph, acoustic, final_graph, final_acoustic = (
        array.astype(np.float64)
        for array in (lattice.graph, lattice.acoustic, lattice.final_graph, lattice.final_acoustic)
    )
    acoustic *= acoustic_scale
    final_acoustic *= acoustic_scale
    matters = np.isfinite(final_graph)
    matters[lattice.source[lattice.word != 0]] = True
    return Input(
        *(lattice.first, lattice.word, graph, acoustic, lattice.next, final_graph, final_acoustic),
        *(lattice.begin, lattice.ids),
        backward_costs(lattice.first, lattice.next, graph + acoustic, final_graph + final_acoustic),
        matters,
    )


def _result(paths: Input, store: Store, acoustic_scale: float) -> Lattice:
    arcs = store.arcs[: store.used[ARCS]]
    arcs = arcs[np.argsort(arcs["source"], kind="stable")]
    final_graph, final_acoustic, final_node, final_state = _ends(paths, store)
    prefix = store.subsets["prefix"][: len(final_node)].copy()
    depth = store.nodes["depth"]
    one, two, end = (
        depth[until] - depth[since]
        for since, until in ((arcs["since"], arcs["until"]), (arcs["since2"], arcs["until2"]), (prefix, final_node))
    )
    last_begin, last_ids = gathered(paths.begin, paths.ids, len(paths.word) + final_state)
    last = np.diff(last_begin)
    begin = np.concatenate([[0], np.cumsum(np.concatenate([one + two, end + last]), dtype=np.int64)])
    ids = np.empty(begin[-1], np.int32)
    _spell(store.nodes, arcs["since"], arcs["until"], begin[: len(arcs)] + one, ids)
    _spell(store.nodes, arcs["since2"], arcs["until2"], begin[1 : len(arcs) + 1], ids)
    _spell(store.nodes, prefix, final_node, begin[len(arcs) + 1 :] - last, ids)
    ids[np.repeat(begin[len(arcs) + 1 :] - last_begin[1:], last) + np.arange(len(last_ids))] = last_ids
    lattice = Lattice(
        np.searchsorted(arcs["source"], np.arange(len(final_node) + 1)),
        arcs["word"].copy(),
        arcs["graph"].astype(np.float32),
        (arcs["acoustic"] / acoustic_scale).astype(np.float32),
        arcs["target"].copy(),
        final_graph.astype(np.float32),
        (final_acoustic / acoustic_scale).astype(np.float32),
        *(begin, ids),
    )
    return lattice.checked(0, "a determinised lattice")
