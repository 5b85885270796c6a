"""One lattice of those that several systems made of an utterance: p(path) = Σ_i w_i p_i(path).

The systems may differ in everything but their words. Costs in the union are pushed: an arc has the probability that a
path takes it when it is in the state that the arc leaves. So the paths of each system have the sum one, and single
precision does for any length. Transition-ids remain those of their systems; what is common is words and times.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.lattice import Costs, costs, pruned
from kernelam.decoding.oracle import depth
from kernelam.decoding.search import compiled
from kernelam.errors import KernelamError
from kernelam.kaldi.lattice import Lattice


def union(lattices: Sequence[Lattice], scales: Sequence[tuple[float, float]], weights: Sequence[float]) -> Lattice:
    """A new start state with an arc of the probability weights[i] to lattice i.

    There a path has a probability in proportion to exp(−graph − acoustic / lm_weight − penalty · words), scales[i]
    being (lm_weight, penalty). The union has all that as graph costs: its own LM weight is 1 and its penalty 0.
    """
    if not all(weight > 0 for weight in weights) or abs(sum(weights) - 1) > 1e-6:
        raise KernelamError(f"the weights of systems are above 0 and sum to 1, not {' '.join(map(str, weights))}")
    lattices = [pruned(lattice, 1.0, np.inf) for lattice in lattices]
    pushed = [_pushed(lattice, *scale) for lattice, scale in zip(lattices, scales, strict=True)]
    *starts, num_states = np.cumsum([1, *(lattice.num_states for lattice in lattices)]).tolist()
    entries = len(lattices)
    source = _joined(np.zeros(entries), [one.source + start for one, start in zip(lattices, starts, strict=True)])
    target = _joined(starts, [one.next + start for one, start in zip(lattices, starts, strict=True)])
    word = _joined(np.zeros(entries), [one.word for one in lattices])
    graph = _joined(-np.log(weights), [arcs for arcs, _ in pushed])
    final = _joined([np.inf], [ends for _, ends in pushed])
    lengths = _joined(np.zeros(entries), [one.lengths for one in lattices])
    end_lengths = _joined([0], [np.diff(one.begin)[one.num_arcs :] for one in lattices])
    on_arcs, on_ends = zip(*(np.split(one.ids, [one.begin[one.num_arcs]]) for one in lattices), strict=True)
    return Lattice(
        np.searchsorted(source, np.arange(num_states + 1)),
        word.astype(np.int32),
        graph.astype(np.float32),
        np.zeros(len(graph), np.float32),
        target.astype(np.int32),
        final.astype(np.float32),
        np.where(np.isfinite(final), 0, np.inf).astype(np.float32),
        np.cumsum(_joined([0], [lengths, end_lengths]), dtype=np.int64),
        np.concatenate([*on_arcs, *on_ends]),
    )


def _joined(head: Iterable[float], tails: Sequence[NDArray]) -> NDArray:
    return np.concatenate([np.asarray(head, tails[0].dtype), *tails])


def _pushed(lattice: Lattice, lm_weight: float, penalty: float) -> tuple[Costs, Costs]:
    """By arc and by state that ends a path: −log of its probability in the state; all states can reach an end."""
    arcs, ends = costs(lattice, 1.0, 1 / lm_weight, penalty)
    total = _totals(lattice.first, lattice.next, arcs, ends)
    return arcs + total[lattice.next] - total[lattice.source], ends - total


@compiled
def _totals(first, next_state, weight, final):  # type: ignore[no-untyped-def]
    """By state: −log of the sum of exp(−cost) over all ways from it to the end."""
    total = final.copy()
    for state in range(len(final) - 1, -1, -1):
        least = final[state]
        for arc in range(first[state], first[state + 1]):
            least = min(least, weight[arc] + total[next_state[arc]])
        share = np.exp(least - final[state])
        for arc in range(first[state], first[state + 1]):
            share += np.exp(least - weight[arc] - total[next_state[arc]])
        total[state] = least - np.log(share)
    return total


def side_by_side(archives: Mapping[str, Iterator[tuple[str, Lattice]]]) -> Iterator[tuple[str, dict[str, Lattice]]]:
    """Utterance and, by the name of the archive, its lattices, of as many frames each; some archives may lack it.

    The archives are read in step: where they have one order, no more than one lattice of each is in memory.
    """
    waiting: dict[str, dict[str, Lattice]] = {}
    for entries in zip_longest(*archives.values()):
        for name, entry in zip(archives, entries, strict=True):
            if entry is None:
                continue
            utt, lattice = entry
            found = waiting.setdefault(utt, {})
            found[name] = lattice
            if len(found) == len(archives):
                yield utt, _same_length(utt, waiting.pop(utt))
    for utt, found in waiting.items():
        yield utt, _same_length(utt, found)


def _same_length(utt: str, found: dict[str, Lattice]) -> dict[str, Lattice]:
    (first, frames), *others = ((name, depth(lattice)[1]) for name, lattice in found.items())
    for name, count in others:
        if count != frames:
            raise KernelamError(
                f"utterance {utt} has {frames} frames in {first} and {count} in {name}:"
                " decode the same features, or others of the same frame shift"
            )
    return found
