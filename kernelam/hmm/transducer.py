"""H, the transducer from transition-ids to phones in context, and the self-loops that are added at the very end."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel, TransitionState
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.fst import ARC, Fst

Hmm = tuple[int, tuple[int | None, ...]]  # a phone and the pdfs of its pdf classes: all that its HMM depends on
Row = tuple[int, int, int, float, int]  # source, input label, output label, cost, destination


class HTransducer:
    """Makes H for the windows of phones in a graph, with costs -transition_scale · log p(transition | no self-loop)."""

    def __init__(self, tree: ContextTree, transitions: TransitionModel, transition_scale: float = 1.0) -> None:
        self.tree, self.transitions, self.scale = tree, transitions, transition_scale
        self._hmms: dict[tuple[int, ...], Hmm] = {}
        self._classes: dict[int, range] = {}
        self._arcs: dict[Hmm, list[tuple[int, int, float, int]]] = {}
        self._costs = (-transition_scale * transitions.log_prob_ignoring_self_loops.astype(np.float64)).tolist()

    def hmm(self, window: Sequence[int]) -> Hmm:
        """What distinguishes the HMM of a window: windows with equal answers may share a label."""
        key = tuple(window)
        if key not in self._hmms:
            phone = key[self.tree.central]
            if phone not in self._classes:
                self._classes[phone] = self._pdf_classes(phone)
            self._hmms[key] = phone, tuple([self.tree.pdf(key, pdf_class) for pdf_class in self._classes[phone]])
        return self._hmms[key]

    def _pdf_classes(self, phone: int) -> range:
        if phone not in self.transitions.topology.phone_entry:
            raise KernelamError(f"phone {phone} of the lexicon is not in the model's topology: it is of another lang")
        return range(self.transitions.topology.num_pdf_classes(phone))

    def fst(self, windows: Sequence[Sequence[int]]) -> tuple[Fst, list[int]]:
        """H with `windows[i]` as output label i, and the input labels it gives to disambiguation symbols.

        Entries as Kaldi's context composition makes them: none for label 0, one number ≤ 0 for a symbol that stands for
        no phone, otherwise the phones of the window.
        """
        rows: list[Row] = []
        disambig: list[int] = []
        size = 1
        for label, window in enumerate(windows):
            if not len(window):
                continue
            if len(window) == 1 and window[0] <= 0:
                disambig.append(self.transitions.num_transition_ids + 1 + len(disambig))
                rows.append((0, disambig[-1], label, 0.0, 0))
            else:
                size = self._add(rows, label, self.hmm(window), size)
        final = np.full(size, np.inf, np.float32)
        final[0] = 0.0
        arcs = np.array([(ilabel, olabel, cost, to) for _, ilabel, olabel, cost, to in rows], ARC)
        return Fst.of(0, final, np.array([row[0] for row in rows], np.int64), arcs), disambig

    def _add(self, rows: list[Row], label: int, hmm: Hmm, size: int) -> int:
        """State 0 is where every phone begins and ends, and each HMM's first state, unless arcs return to that one."""
        arcs = self._hmm_arcs(hmm)
        last = len(self.transitions.topology.states(hmm[0])) - 1
        base = size - 1  # HMM state s becomes base + s
        if any(to == 0 for _, _, _, to in arcs):
            base += 1
            rows.append((0, 0, label, 0.0, base))
            label = 0
        for source, ilabel, cost, to in arcs:
            here = 0 if source == 0 and base < size else base + source
            there = 0 if to == last else base + to
            rows.append((here, ilabel, 0 if source else label, cost, there))
        return base + last

    def _hmm_arcs(self, hmm: Hmm) -> list[tuple[int, int, float, int]]:
        """HMM state, transition-id, cost, next HMM state; without self-loops."""
        if hmm in self._arcs:
            return self._arcs[hmm]
        phone, pdfs = hmm
        arcs = self._arcs[hmm] = []
        for number, state in enumerate(self.transitions.topology.states(phone)):
            first = 0
            if state.emits:
                item = TransitionState(phone, number, pdfs[state.pdf_class] or 0, pdfs[state.self_loop_pdf_class] or 0)
                first = self.transitions.first_id.get(item, 0)
                if not first or pdfs[state.pdf_class] is None:
                    raise KernelamError(
                        f"the model has no state for phone {phone} with pdfs {pdfs}: it is of another tree"
                    )
            for index, (to, probability) in enumerate(state.transitions):
                if to != number:
                    label = first + index if first else 0
                    cost = self._costs[label] if label else -self.scale * math.log(probability)
                    arcs.append((number, label, cost, to))
        return arcs


def add_self_loops(fst: Fst, transitions: TransitionModel, scale: float) -> Fst:
    """Give each state that a transition-id enters the self-loop of its transition-state (as Kaldi does with --reorder).

    Staying costs scale · -log p(self-loop), leaving scale · -log(1 - p(self-loop)). A state that different
    transition-states enter is first given a predecessor for each of them.
    """
    fst, state_class = _one_class_each(fst, transitions.transition_state[fst.arcs["ilabel"]])
    leaving = 0.0 - scale * transitions.non_self_loop_log_prob[state_class].astype(np.float64)
    leaving[state_class == 0] = 0.0
    arcs = fst.arcs.copy()
    arcs["weight"] = arcs["weight"] + leaving[fst.source]
    loops = transitions.self_loop[state_class]
    where = np.flatnonzero(loops)
    loop_arcs = np.zeros(len(where), ARC)
    loop_arcs["ilabel"], loop_arcs["nextstate"] = loops[where], where
    loop_arcs["weight"] = 0.0 - scale * transitions.log_probs[loops[where]].astype(np.float64)
    source = np.concatenate([fst.source, where])
    return Fst.of(fst.start, fst.final + leaving, source, np.concatenate([arcs, loop_arcs]))


def _one_class_each(fst: Fst, arc_class: NDArray[np.int64]) -> tuple[Fst, NDArray[np.int64]]:
    """Split states so that all arcs into a state have one class (0: no transition-id); and the class of each state."""
    count, into = len(fst.final), fst.arcs["nextstate"]
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(low, into, arc_class)
    np.maximum.at(high, into, arc_class)
    low[fst.start], high[fst.start] = 0, max(high[fst.start], 0)  # the start counts as entered without a transition-id
    mixed = low < high
    moved = np.flatnonzero(mixed[into] & (arc_class > 0))
    pairs, index = np.unique(np.stack([into[moved], arc_class[moved]]), axis=1, return_inverse=True)
    arcs = fst.arcs.copy()
    arcs["nextstate"][moved] = count + index.ravel()
    bridges = np.zeros(pairs.shape[1], ARC)
    bridges["nextstate"] = pairs[0]
    new = np.arange(count, count + pairs.shape[1])
    final = np.concatenate([fst.final, np.full(len(new), np.inf, np.float32)])
    split = Fst.of(fst.start, final, np.concatenate([fst.source, new]), np.concatenate([arcs, bridges]))
    return split, np.concatenate([np.where(mixed, 0, np.maximum(high, 0)), pairs[1]])


def relabel_input(fst: Fst, table: NDArray[np.int64] | Iterable[int]) -> Fst:
    """Input label i becomes table[i]."""
    arcs = fst.arcs.copy()
    arcs["ilabel"] = np.asarray(table)[arcs["ilabel"]]
    return Fst(fst.start, fst.final, fst.offsets, arcs)
