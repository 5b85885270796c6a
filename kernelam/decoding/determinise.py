"""Determinisation: of the paths of a lattice with the same words, only the best stays.

Subset construction with weights and strings (Povey et al. 2012). A state of the result is a set of elements: a state of
the input, what the best path to it with the words so far costs more than the set's best, in graph and acoustic cost,
and its transition-ids after those common to all. Sets are followed in the order of the best path through them, so that
the first to reach a set is the best, and if room runs out what is finished is the result of a narrower beam. Only
elements on paths within the beam are kept.

Strings are chains of nodes back to the start, which extend in constant time. The hash of a string is the sum of the
mixed (position, id) of its items, so that the hash of what lies after a prefix is a difference.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.lattice import backward_costs, best_path, pruned
from kernelam.decoding.search import compiled, inlined, inner
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
TASK = np.dtype(
    [("cost", np.float64), ("begin", np.int64), ("end", np.int64), ("source", np.int32), ("word", np.int32)]
)
_BUCKETS = 1 << 16
_TOLERANCE = 1e-4


class Input(NamedTuple):
    """A lattice with scaled acoustic costs; `ahead` is the least cost from a state to the end."""

    first: NDArray[np.int64]
    word: NDArray[np.int32]  # a number in `words`, of which the first is 0 for none
    graph: NDArray[np.float64]
    acoustic: NDArray[np.float64]
    next: NDArray[np.int32]
    final_graph: NDArray[np.float64]
    final_acoustic: NDArray[np.float64]
    begin: NDArray[np.int64]
    ids: NDArray[np.int32]
    ahead: NDArray[np.float64]
    matters: NDArray[np.bool_]  # by state: whether it is final or an arc with a word leaves it
    words: NDArray[np.int32]


class Store(NamedTuple):
    """Memory of a determinisation. Pages that are not used cost nothing."""

    nodes: NDArray[np.void]
    elements: NDArray[np.void]
    subsets: NDArray[np.void]  # of the result
    entries: NDArray[np.void]  # as the arcs of a word reach them
    arcs: NDArray[np.void]
    tasks: NDArray[np.void]
    queue: NDArray[np.int32]  # a heap of tasks, the least cost first
    used: NDArray[np.int64]  # how many of each


NODES, ELEMENTS, SUBSETS, ENTRIES, ARCS, TASKS, QUEUE = range(7)


class Scratch(NamedTuple):
    """What is known of a set that is being made."""

    marked: NDArray[np.bool_]  # by input state: whether it is in the set,
    graph: NDArray[np.float64]  # its costs,
    acoustic: NDArray[np.float64]
    node: NDArray[np.int32]  # the string of the state it was reached from,
    arc: NDArray[np.int64]  # and by which arc; −1 if the string is its own
    last: NDArray[np.int64]  # by word: the last of its arcs; −1 if there is none
    before: NDArray[np.int64]  # by arc: the arc of the same word before it,
    origin: NDArray[np.int64]  # and the element it leaves
    words: NDArray[np.int32]


@inlined
def _mixed(value):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit numbers that looks random (splitmix64)."""
    value = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@inlined
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


@inner
def _common(nodes, one, two):  # type: ignore[no-untyped-def]
    """The longest common prefix of two strings."""
    while one != two and nodes[one].hash != nodes[two].hash:
        if nodes[one].depth >= nodes[two].depth:
            one = nodes[one].parent
        else:
            two = nodes[two].parent
    return one


@inner
def _normalise(nodes, elements):  # type: ignore[no-untyped-def]
    """Take the costs of the best element from all; return them, and the common prefix."""
    best = 0
    for number in range(len(elements)):
        element = elements[number]
        if element.graph + element.acoustic < elements[best].graph + elements[best].acoustic:
            best = number
    graph, acoustic, prefix = elements[best].graph, elements[best].acoustic, np.int64(elements[0].node)
    for number in range(len(elements)):
        elements[number].graph -= graph
        elements[number].acoustic -= acoustic
        prefix = _common(nodes, prefix, elements[number].node)
    return graph, acoustic, prefix


@inner
def _key(nodes, elements, prefix):  # type: ignore[no-untyped-def]
    key = np.uint64(len(elements))
    for number in range(len(elements)):
        element = elements[number]
        key = _mixed(key ^ np.uint64(element.state)) + nodes[element.node].hash - nodes[prefix].hash
    return _mixed(key)


@inner
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


@inner
def _remember(store, heads, subsets, kind, key, begin, end, prefix):  # type: ignore[no-untyped-def]
    """A new subset of these elements."""
    number = store.used[kind]
    store.used[kind] += 1
    subset, bucket = subsets[number], key % np.uint64(_BUCKETS)
    subset.begin, subset.end, subset.prefix, subset.key, subset.chain = begin, end, prefix, key, heads[bucket]
    heads[bucket] = number
    return number


@inlined
def _offer(scratch, state, graph, acoustic, node, arc):  # type: ignore[no-untyped-def]
    """A way to a state, which is kept if it is the best yet."""
    if not scratch.marked[state] or graph + acoustic < scratch.graph[state] + scratch.acoustic[state]:
        scratch.marked[state] = True
        scratch.graph[state], scratch.acoustic[state] = graph, acoustic
        scratch.node[state], scratch.arc[state] = node, arc


@inlined
def _taken(lattice, store, scratch, state):  # type: ignore[no-untyped-def]
    """Make the next element of the best way to a state, and return it; it does not count yet."""
    element, arc = store.elements[store.used[ELEMENTS]], scratch.arc[state]
    scratch.marked[state] = False
    element.state, element.node = state, scratch.node[state]
    element.graph, element.acoustic = scratch.graph[state], scratch.acoustic[state]
    if arc >= 0:
        element.node = _extended(store, element.node, lattice.ids[lattice.begin[arc] : lattice.begin[arc + 1]])
    return element


@inner
def _close(lattice, store, scratch, begin, end, slack):  # type: ignore[no-untyped-def]
    """Follow arcs without words from the elements begin … end − 1 while paths cost at most `slack`.

    The states that matter are appended to the elements, in order.
    """
    for number in range(begin, end):
        element = store.elements[number]
        if element.graph + element.acoustic + lattice.ahead[element.state] <= slack:
            _offer(scratch, element.state, element.graph, element.acoustic, element.node, -1)
    state, last = store.elements[begin].state, store.elements[end - 1].state
    while state <= last:
        if scratch.marked[state]:
            element = _taken(lattice, store, scratch, state)
            graph, acoustic, node = element.graph, element.acoustic, element.node
            store.used[ELEMENTS] += lattice.matters[state]
            for arc in range(lattice.first[state], lattice.first[state + 1]):
                after = lattice.next[arc]
                to_graph, to_acoustic = graph + lattice.graph[arc], acoustic + lattice.acoustic[arc]
                if not lattice.word[arc] and to_graph + to_acoustic + lattice.ahead[after] <= slack:
                    _offer(scratch, after, to_graph, to_acoustic, node, arc)
                    last = max(last, after)
        state += 1


@inner
def _gather(lattice, store, scratch, subset):  # type: ignore[no-untyped-def]
    """Chain the arcs that leave the subset by their words; return how many words there are."""
    count = 0
    for position in range(subset.begin, subset.end):
        state = store.elements[position].state
        for arc in range(lattice.first[state], lattice.first[state + 1]):
            word = lattice.word[arc]
            if word:
                if scratch.last[word] < 0:
                    scratch.words[count] = word
                    count += 1
                scratch.before[arc], scratch.origin[arc], scratch.last[word] = scratch.last[word], position, arc
    return count


@inner
def _plan(lattice, store, scratch, number, slack):  # type: ignore[no-untyped-def]
    """Queue a task for each word that leaves the subset `number`, with the elements it leads to, if within `slack`."""
    subset = store.subsets[number]
    for word in scratch.words[: _gather(lattice, store, scratch, subset)]:
        arc, least, low, high = scratch.last[word], np.inf, len(lattice.ahead), -1
        scratch.last[word] = -1
        while arc >= 0:
            origin, state = store.elements[scratch.origin[arc]], lattice.next[arc]
            graph, acoustic = origin.graph + lattice.graph[arc], origin.acoustic + lattice.acoustic[arc]
            _offer(scratch, state, graph, acoustic, origin.node, arc)
            least = min(least, graph + acoustic + lattice.ahead[state])
            low, high, arc = min(low, state), max(high, state), scratch.before[arc]
        begin = store.used[ELEMENTS]
        for state in range(low, high + 1):
            if scratch.marked[state] and least <= slack:
                _taken(lattice, store, scratch, state)
                store.used[ELEMENTS] += 1
            scratch.marked[state] = False
        if least <= slack:
            task = store.tasks[store.used[TASKS]]
            task.source, task.word, task.begin, task.end = number, word, begin, store.used[ELEMENTS]
            task.cost = subset.forward + least
            _push(store, store.used[TASKS])
            store.used[TASKS] += 1


@inner
def _push(store, task):  # type: ignore[no-untyped-def]
    queue, tasks, place = store.queue, store.tasks, store.used[QUEUE]
    store.used[QUEUE] += 1
    while place and tasks[queue[(place - 1) // 2]].cost > tasks[task].cost:
        queue[place] = queue[(place - 1) // 2]
        place = (place - 1) // 2
    queue[place] = task


@inner
def _pop(store):  # type: ignore[no-untyped-def]
    queue, tasks = store.queue, store.tasks
    store.used[QUEUE] -= 1
    count, first = store.used[QUEUE], queue[0]
    place, task = 0, queue[count]
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and tasks[queue[child + 1]].cost < tasks[queue[child]].cost:
            child += 1
        if tasks[queue[child]].cost >= tasks[task].cost:
            break
        queue[place] = queue[child]
        place = child
    queue[place] = task
    return first


@inner
def _reach(lattice, store, scratch, heads, begin, end, forward, limit):  # type: ignore[no-untyped-def]
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
        _plan(lattice, store, scratch, number, limit - forward - graph - acoustic)
    return number, graph, acoustic, prefix


@inner
def _follow(lattice, store, scratch, heads, entry_heads, task, limit):  # type: ignore[no-untyped-def]
    """Add the arc of a task."""
    source = store.subsets[task.source]
    graph, acoustic, prefix = _normalise(store.nodes, store.elements[task.begin : task.end])
    key = _key(store.nodes, store.elements[task.begin : task.end], prefix)
    known = _found(store, entry_heads, store.entries, key, task.begin, task.end, prefix)
    arc = store.arcs[store.used[ARCS]]
    arc.source, arc.word, arc.since, arc.until = task.source, task.word, source.prefix, prefix
    if known < 0:
        forward = source.forward + graph + acoustic
        reached = _reach(lattice, store, scratch, heads, task.begin, task.end, forward, limit)
        known = _remember(store, entry_heads, store.entries, ENTRIES, key, task.begin, task.end, prefix)
        store.entries[known].state, store.entries[known].graph = reached[0], reached[1]
        store.entries[known].acoustic, store.entries[known].to = reached[2], reached[3]
    entry = store.entries[known]
    if entry.state >= 0:
        arc.target, arc.graph, arc.acoustic = entry.state, graph + entry.graph, acoustic + entry.acoustic
        arc.since2, arc.until2 = entry.prefix, entry.to
        store.used[ARCS] += 1


@compiled
def _run(lattice, store, scratch, limit, room):  # type: ignore[no-untyped-def]
    """Determinise; return the cost up to which all paths are there: no bound unless more than `room` was needed."""
    heads, entry_heads = np.full(_BUCKETS, -1), np.full(_BUCKETS, -1)
    store.nodes[0].hash, store.nodes[0].depth = 0, 0
    start = store.elements[0]
    start.state, start.node, start.graph, start.acoustic = 0, 0, 0.0, 0.0
    store.used[NODES] = store.used[ELEMENTS] = 1
    _reach(lattice, store, scratch, heads, np.int64(0), np.int64(1), 0.0, limit)
    while store.used[QUEUE]:
        task = store.tasks[_pop(store)]
        if max(store.used[NODES], store.used[ELEMENTS]) > room:
            return task.cost
        _follow(lattice, store, scratch, heads, entry_heads, task, limit)
    return np.inf


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


_ROOM = 1 << 21


def determinise(lattice: Lattice, acoustic_scale: float, beam: float, room: int = _ROOM) -> tuple[Lattice, float]:
    """A lattice of all word strings within `beam` of the best, each once, and that beam.

    The beam is narrower where more than `room` elements of sets or nodes of strings would have been needed; each takes
    24 bytes.
    """
    paths = _input(lattice, acoustic_scale)
    size = room + 2 * (lattice.num_states + lattice.num_arcs + len(lattice.ids)) + 1
    nodes, elements, subsets, entries, arcs, tasks = (
        np.empty(size, kind) for kind in (NODE, ELEMENT, SUBSET, SUBSET, ARC, TASK)
    )
    queue, used = np.empty(size, np.int32), np.zeros(7, np.int64)
    store = Store(nodes, elements, subsets, entries, arcs, tasks, queue, used)
    best = paths.ahead[0]
    rounding = 1e-9 * (1.0 + abs(best))
    reached = _run(paths, store, _scratch(paths), best + beam + rounding, room) - best
    if reached <= rounding:  # not even the best path is sure to be there
        return determinise(_only_best(lattice, acoustic_scale), acoustic_scale, 0.0, size)[0], 0.0
    beam = min(beam, reached)
    return pruned(_result(paths, store, acoustic_scale), acoustic_scale, beam), beam


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
    words = np.union1d([0], lattice.word).astype(np.int32)
    word = np.searchsorted(words, lattice.word).astype(np.int32)
    return Input(
        *(lattice.first, word, graph, acoustic, lattice.next, final_graph, final_acoustic),
        *(lattice.begin, lattice.ids),
        backward_costs(lattice.first, lattice.next, graph + acoustic, final_graph + final_acoustic),
        *(matters, words),
    )


def _scratch(paths: Input) -> Scratch:
    states, arcs, words = len(paths.ahead), len(paths.word), len(paths.words)
    return Scratch(
        np.zeros(states, bool),
        *(np.empty(states), np.empty(states), np.empty(states, np.int32), np.empty(states, np.int64)),
        *(np.full(words, -1), np.empty(arcs, np.int64), np.empty(arcs, np.int64), np.empty(words, np.int32)),
    )


def _result(paths: Input, store: Store, acoustic_scale: float) -> Lattice:
    arcs = store.arcs[: store.used[ARCS]]
    arcs = arcs[np.lexsort((arcs["word"], arcs["source"]))]
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
        paths.words[arcs["word"]],
        arcs["graph"].astype(np.float32),
        (arcs["acoustic"] / acoustic_scale).astype(np.float32),
        arcs["target"].copy(),
        final_graph.astype(np.float32),
        (final_acoustic / acoustic_scale).astype(np.float32),
        *(begin, ids),
    )
    return lattice.checked(0, "a determinised lattice")
