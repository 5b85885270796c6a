"""How probable each state is at each frame, by a lattice."""

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.lattice import costs, pruned
from kernelam.decoding.oracle import arrivals
from kernelam.decoding.search import compiled
from kernelam.kaldi.lattice import Lattice

LEAST = 1e-3  # a state less probable than this counts as impossible


def state_posteriors(
    lattice: Lattice, acoustic_scale: float
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Frames, transition-ids and their probabilities, by the paths of the lattice with acoustic costs so scaled."""
    lattice = pruned(lattice, acoustic_scale, np.inf)
    arcs, ends = costs(lattice, 1.0, acoustic_scale)
    probable = np.concatenate(_arc_posteriors(lattice.first, lattice.next, -arcs, -ends))
    lengths = np.diff(lattice.begin)
    time = arrivals(lattice)
    start = np.concatenate([time[lattice.source], time])
    frames = np.repeat(start - lattice.begin[:-1], lengths) + np.arange(lattice.begin[-1])
    weight = np.repeat(probable, lengths)
    order = np.lexsort((lattice.ids, frames))
    frames, ids = frames[order], lattice.ids[order]
    starts = np.flatnonzero(np.diff(frames, prepend=-1) | np.diff(ids, prepend=-1))
    summed = np.add.reduceat(weight[order], starts) if len(starts) else weight
    keep = summed >= LEAST
    return frames[starts][keep], ids[starts][keep], summed[keep]


@compiled
def _arc_posteriors(first, next_state, log_prob, final):  # type: ignore[no-untyped-def]
    """By arc, and by state that ends a path: the probability of the paths through it."""
    num_states = len(final)
    alpha, beta = np.full(num_states, -np.inf), final.copy()
    alpha[0] = 0.0
    for state in range(num_states):
        for arc in range(first[state], first[state + 1]):
            to = next_state[arc]
            alpha[to] = np.logaddexp(alpha[to], alpha[state] + log_prob[arc])
    for state in range(num_states - 1, -1, -1):
        for arc in range(first[state], first[state + 1]):
            beta[state] = np.logaddexp(beta[state], log_prob[arc] + beta[next_state[arc]])
    arcs = np.zeros(len(next_state))
    for state in range(num_states):
        for arc in range(first[state], first[state + 1]):
            arcs[arc] = np.exp(alpha[state] + log_prob[arc] + beta[next_state[arc]] - beta[0])
    return arcs, np.exp(alpha + final - beta[0])
