"""The transition model: transition-ids, what each stands for, and their probabilities.

A transition-state is a tuple (phone, HMM state, forward pdf, self-loop pdf); the tuples are sorted and numbered from 1.
The transition-ids number the transitions out of the transition-states in order, from 1; no array's index 0 is used.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.hmm.topology import Topology
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.binary import KaldiReader, KaldiWriter

_HIGHEST_LOG_PROB = 0.01  # floors and rounding may lift a probability slightly above 1


class TransitionState(NamedTuple):
    phone: int
    hmm_state: int
    forward_pdf: int
    self_loop_pdf: int


@dataclass(frozen=True, eq=False)
class TransitionModel:
    """`log_probs[tid]` is the log-probability of a transition-id given its transition-state; `log_probs[0]` is 0."""

    topology: Topology
    tuples: tuple[TransitionState, ...]
    log_probs: NDArray[np.float32]

    @classmethod
    def from_tree(cls, topology: Topology, tree: ContextTree) -> "TransitionModel":
        """All transition-states that the tree admits, with the topology's probabilities."""
        tuples = set()
        for phone in topology.phones:
            for number, state in enumerate(topology.states(phone)):
                if not state.emits:
                    continue
                if topology.is_hmm:
                    pairs = {(pdf, pdf) for pdf in tree.pdfs(phone, state.pdf_class)}
                else:
                    pairs = tree.pdf_pairs(phone, (state.pdf_class, state.self_loop_pdf_class), topology.phones)
                if not pairs:
                    raise KernelamError(f"the tree has no pdf for phone {phone}, state {number} of the topology")
                tuples |= {TransitionState(phone, number, *pair) for pair in pairs}
        ordered = tuple(sorted(tuples))
        probabilities = [p for t in ordered for _, p in topology.states(t.phone)[t.hmm_state].transitions]
        return cls(topology, ordered, np.log(np.array([1.0, *probabilities], np.float32)))

    @cached_property
    def num_pdfs(self) -> int:
        return 1 + max(max(t.forward_pdf, t.self_loop_pdf) for t in self.tuples)

    @property
    def num_transition_ids(self) -> int:
        return len(self.log_probs) - 1

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        """By transition-id: transition-state, index in it, destination, whether it is a self-loop, whether it is final,
        whether the destination emits."""
        rows = [(0, 0, 0, 0, 0, 0)]
        for number, (phone, state, _, _) in enumerate(self.tuples, 1):
            states = self.topology.states(phone)
            for index, (to, _) in enumerate(states[state].transitions):
                rows.append((number, index, to, to == state, to == len(states) - 1, states[to].emits))
        return np.array(rows)

    @cached_property
    def transition_state(self) -> NDArray[np.int64]:
        """By transition-id: the number of its transition-state, from 1."""
        return self._table[:, 0]

    @cached_property
    def transition_index(self) -> NDArray[np.int64]:
        return self._table[:, 1]

    @cached_property
    def is_self_loop(self) -> NDArray[np.bool_]:
        return self._table[:, 3].astype(bool)

    @cached_property
    def is_final(self) -> NDArray[np.bool_]:
        """By transition-id: whether it enters the final state of its phone."""
        return self._table[:, 4].astype(bool)

    @cached_property
    def phone(self) -> NDArray[np.int32]:
        return self._of_state(0)

    @cached_property
    def hmm_state(self) -> NDArray[np.int32]:
        return self._of_state(1)

    @cached_property
    def pdf(self) -> NDArray[np.int32]:
        """By transition-id; [0] is -1."""
        return np.where(self.is_self_loop, self._of_state(3), self._of_state(2))

    @cached_property
    def pdf_class(self) -> NDArray[np.int32]:
        """By transition-id; [0] is -1."""
        states = [self.topology.states(t.phone)[t.hmm_state] for t in self.tuples]
        loop, forward = (
            np.array([-1, *(getattr(state, name) for state in states)], np.int32)[self.transition_state]
            for name in ("self_loop_pdf_class", "pdf_class")
        )
        return np.where(self.is_self_loop, loop, forward)

    def _of_state(self, field: int) -> NDArray[np.int32]:
        return np.array([-1, *(t[field] for t in self.tuples)], np.int32)[self.transition_state]

    @cached_property
    def self_loop(self) -> NDArray[np.int64]:
        """By transition-state: the transition-id of its self-loop, 0 if it has none."""
        loops = np.zeros(len(self.tuples) + 1, np.int64)
        ids = np.flatnonzero(self.is_self_loop)
        loops[self.transition_state[ids]] = ids
        return loops

    @cached_property
    def first_id(self) -> dict[TransitionState, int]:
        """The transition-id of the first transition out of a transition-state."""
        starts = np.searchsorted(self.transition_state, np.arange(1, len(self.tuples) + 1))
        return dict(zip(self.tuples, starts.tolist(), strict=True))

    @cached_property
    def non_self_loop_log_prob(self) -> NDArray[np.float32]:
        """By transition-state: the log-probability of leaving it, log(1 - p(self-loop))."""
        loop = np.where(self.self_loop > 0, np.exp(self.log_probs[self.self_loop].astype(np.float64)), 0.0)
        return np.log(np.maximum(1.0 - loop, 1e-10)).astype(np.float32)

    @cached_property
    def log_prob_ignoring_self_loops(self) -> NDArray[np.float32]:
        """By transition-id: log p(transition | it is no self-loop); meaningless for self-loops."""
        return self.log_probs - self.non_self_loop_log_prob[self.transition_state]

    def log_prob(self, transition_scale: float = 1.0, self_loop_scale: float = 1.0) -> NDArray[np.float64]:
        """By transition-id, scaled as in graphs: staying in a state has self_loop_scale · log p(self-loop), leaving it
        self_loop_scale · log(1 - p(self-loop)) + transition_scale · log p(transition | no self-loop)."""
        leaving = self_loop_scale * self.non_self_loop_log_prob[self.transition_state].astype(np.float64)
        scaled = leaving + transition_scale * self.log_prob_ignoring_self_loops.astype(np.float64)
        scaled[self.is_self_loop] = self_loop_scale * self.log_probs[self.is_self_loop].astype(np.float64)
        scaled[0] = 0.0
        return scaled

    def update(self, counts: NDArray, floor: float = 0.01, min_count: float = 5.0) -> "TransitionModel":
        """Maximum-likelihood probabilities from `counts` by transition-id, each at least about `floor`.

        A transition-state seen fewer than `min_count` times keeps what it has.
        """
        if len(counts) != len(self.log_probs):
            raise ValueError(f"{len(counts)} counts for {len(self.log_probs)} transition-ids")
        counts = np.asarray(counts, np.float64).copy()
        counts[0] = 0.0
        state, size = self.transition_state, len(self.tuples) + 1
        total = np.bincount(state, counts, size)
        fan_out = np.bincount(state, minlength=size)
        probability = counts / np.maximum(total, 1e-30)[state]
        for _ in range(3):  # each renormalisation may take some below the floor again
            probability = probability / np.maximum(np.bincount(state, probability, size), 1e-30)[state]
            probability = np.maximum(probability, floor)
        seen = (total >= min_count) & (fan_out > 1)
        seen[0] = False
        updated = np.where(seen[state], np.log(probability), self.log_probs).astype(np.float32)
        return TransitionModel(self.topology, self.tuples, updated)

    def follows(self, before: NDArray, after: NDArray) -> NDArray[np.bool_]:
        """Whether of two transition-ids, none a self-loop, the second can come next: out of the state that the first
        enters or, if that ends its phone, out of the first state of any phone. (What lies behind a state that emits
        nothing is not looked at.)"""
        to, emits = self._table[before, 2], self._table[before, 5] > 0
        inside = (self.phone[before] == self.phone[after]) & (to == self.hmm_state[after])
        return np.where(self.is_final[before], self.hmm_state[after] == 0, inside | ~emits)

    def check_ids(self, alignment: NDArray[np.int32], where: str) -> None:
        """Raise unless `alignment` is a path through states of this model; `where` names its file or utterance."""
        self.check_range(alignment, where)
        frames = np.flatnonzero(~self.is_self_loop[alignment])
        leaving = alignment[frames]
        wrong = np.flatnonzero(~self.follows(leaving[:-1], leaving[1:]))
        if len(wrong):
            raise KernelamError(
                f"{where}: transition-id {leaving[wrong[0] + 1]} at frame {frames[wrong[0] + 1]} cannot follow"
                f" {leaving[wrong[0]]} in the model; the alignment is of another model"
            )

    def check_range(self, alignment: NDArray[np.int32], where: str) -> None:
        """Raise unless all of `alignment` are transition-ids of this model."""
        if len(alignment) and not (alignment.min() >= 1 and alignment.max() <= self.num_transition_ids):
            raise KernelamError(
                f"{where}: transition-id {alignment[(alignment < 1) | (alignment > self.num_transition_ids)][0]} is not"
                f" among the model's 1 … {self.num_transition_ids}; the alignment is of another model"
            )

    def ali_to_pdf(self, alignment: NDArray[np.int32]) -> NDArray[np.int32]:
        """The pdf of each frame."""
        return self.pdf[alignment]

    def ali_to_phones(self, alignment: NDArray[np.int32]) -> list[tuple[int, int]]:
        """The phones of an alignment, each with its number of frames."""
        if not len(alignment):
            return []
        ends = self._phone_ends(np.asarray(alignment))
        lengths = np.diff(ends, prepend=0)
        return list(zip(self.phone[alignment[ends - 1]].tolist(), lengths.tolist(), strict=True))

    def _phone_ends(self, alignment: NDArray[np.int32]) -> NDArray[np.int64]:
        """A phone ends with its final transition, and if self-loops come after transitions, with those that follow."""
        state, loop, final = self.transition_state[alignment], self.is_self_loop[alignment], self.is_final[alignment]
        change = np.append(np.flatnonzero(state[1:] != state[:-1]), len(state) - 1)
        phone = self.phone[alignment]
        other = np.append(phone[1:] != phone[:-1], True)
        if not self._reordered(state, loop):
            return np.flatnonzero(final | other) + 1
        follows = np.append(loop[1:], False)  # a self-loop after a transition belongs to the same visit of the state
        run_end = change[np.searchsorted(change, np.arange(len(state)))]
        after = np.flatnonzero(~follows)
        visit_end = after[np.searchsorted(after, np.flatnonzero(final))]
        return np.union1d(np.minimum(visit_end, run_end[np.flatnonzero(final)]), np.flatnonzero(other)) + 1

    @staticmethod
    def _reordered(state: NDArray[np.int64], loop: NDArray[np.bool_]) -> bool:
        """Whether self-loops stand after the transition that leaves the state, as in graphs that Kaldi reorders."""
        for i in np.flatnonzero(state[1:] != state[:-1]):
            if loop[i] != loop[i + 1]:
                return bool(loop[i])
        return bool(loop[-1] and not loop[0])

    @classmethod
    def load(cls, path: str | Path) -> "TransitionModel":
        """Read the transition model at the head of a `final.mdl`."""
        return cls.read(KaldiReader.open(path))

    @classmethod
    def read(cls, reader: KaldiReader) -> "TransitionModel":
        """Read <TransitionModel> … </TransitionModel> and leave `reader` after it, where the acoustic model begins."""
        reader.expect("<TransitionModel>")
        topology = Topology.read(reader)
        kind = reader.expect("<Triples>", "<Tuples>")
        pair = kind == "<Tuples>"
        count = reader.count(15, "number of transition-states")
        tuples = tuple(_read_tuple(reader, pair) for _ in range(count))
        reader.expect(kind.replace("<", "</"))
        reader.expect("<LogProbs>")
        log_probs = reader.vector().astype(np.float32)
        reader.expect("</LogProbs>")
        reader.expect("</TransitionModel>")
        model = cls(topology, tuples, log_probs)
        model._check(reader)
        return model

    def _check(self, reader: KaldiReader) -> None:
        if not self.tuples:
            reader.fail("a transition model without states")
        for phone, state, forward, loop in self.tuples:
            states = self.topology.entries[self.topology.phone_entry.get(phone, 0)]
            if phone not in self.topology.phone_entry or not 0 <= state < len(states) or not states[state].emits:
                reader.fail(f"a transition-state (phone {phone}, state {state}) that the topology does not have")
            for pdf in (forward, loop):
                if not 0 <= pdf < len(reader.data):  # pdfs are numbered without gaps, and each takes some bytes
                    reader.fail(f"a pdf {pdf}")
            if forward != loop and states[state].pdf_class == states[state].self_loop_pdf_class:
                reader.fail(
                    f"a transition-state (phone {phone}, state {state}) with two pdfs where the topology has one"
                )
        if list(self.tuples) != sorted(set(self.tuples)):
            reader.fail("transition-states that are not sorted")
        if len(self._table) != len(self.log_probs):
            reader.fail(f"{len(self.log_probs) - 1} log-probabilities for {len(self._table) - 1} transition-ids")
        if not np.isfinite(self.log_probs).all():
            reader.fail("a log-probability that is not finite")
        if self.log_probs.max() > _HIGHEST_LOG_PROB:
            reader.fail("a probability above 1")

    def write(self, writer: KaldiWriter) -> None:
        """Write byte for byte as Kaldi does; the acoustic model may follow in the same stream."""
        writer.token("<TransitionModel>")
        writer.line()
        self.topology.write(writer)
        kind = "Triples" if self.topology.is_hmm else "Tuples"
        writer.token(f"<{kind}>")
        writer.integer(len(self.tuples))
        writer.line()
        for item in self.tuples:
            for value in item[: 3 if self.topology.is_hmm else 4]:
                writer.integer(value)
            writer.line()
        for token in (f"</{kind}>", "<LogProbs>"):
            writer.token(token)
            writer.line()
        writer.vector(self.log_probs)
        for token in ("</LogProbs>", "</TransitionModel>"):
            writer.token(token)
            writer.line()

    def save(self, path: str | Path, binary: bool = True) -> None:
        """Write a file of the transition model alone."""
        with replacing(path) as stream:
            self.write(KaldiWriter(stream, binary))


def _read_tuple(reader: KaldiReader, pair: bool) -> TransitionState:
    phone, state, forward = (reader.integer("transition-state") for _ in range(3))
    return TransitionState(phone, state, forward, reader.integer("self-loop pdf") if pair else forward)


def check_tree(tree: ContextTree, transitions: TransitionModel, where: str = "") -> None:
    """Raise unless the two have the same pdfs."""
    if tree.num_pdfs != transitions.num_pdfs:
        raise KernelamError(
            f"{where}the tree has {tree.num_pdfs} pdfs, the transition model {transitions.num_pdfs}:"
            " they belong to two models"
        )
