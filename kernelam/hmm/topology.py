"""HMM topologies: for each phone the emitting states, their pdf classes and their transitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.kaldi.binary import KaldiReader, KaldiWriter

NO_PDF = -1
_HIGHEST_PHONE = 1_000_000  # tables over phones are made


@dataclass(frozen=True)
class State:
    """`pdf_class` scores what leaves the state, `self_loop_pdf_class` what stays; they differ in chain models only."""

    pdf_class: int
    self_loop_pdf_class: int
    transitions: tuple[tuple[int, float], ...]

    @property
    def emits(self) -> bool:
        return self.pdf_class != NO_PDF


Entry = tuple[State, ...]


@dataclass(frozen=True)
class Topology:
    """`entries[phone_entry[phone]]` are the states of `phone`; the last, final, has neither pdf nor transitions."""

    entries: tuple[Entry, ...]
    phone_entry: dict[int, int]

    @property
    def phones(self) -> list[int]:
        return sorted(self.phone_entry)

    @property
    def is_hmm(self) -> bool:
        """Whether every state has one pdf class, as in all models but chain models."""
        return all(state.pdf_class == state.self_loop_pdf_class for entry in self.entries for state in entry)

    def states(self, phone: int) -> Entry:
        if phone not in self.phone_entry:
            raise KernelamError(f"phone {phone} has no topology")
        return self.entries[self.phone_entry[phone]]

    def num_pdf_classes(self, phone: int) -> int:
        return 1 + max(max(state.pdf_class, state.self_loop_pdf_class) for state in self.states(phone))

    @classmethod
    def left_to_right(
        cls, nonsilence: Sequence[int], silence: Sequence[int], num_nonsil_states: int = 3, num_sil_states: int = 5
    ) -> "Topology":
        """Bakis models for speech; for silence the inner states are joined each with each, as in Kaldi's recipes."""
        bakis = tuple(_state(i, {i: 0.75, i + 1: 0.25}) for i in range(num_nonsil_states))
        entries = [(*bakis, _state(NO_PDF, {})), _silence(num_sil_states)]
        groups = [(states, phones) for states, phones in zip(entries, (nonsilence, silence), strict=True) if phones]
        return cls(
            tuple(states for states, _ in groups),
            {phone: number for number, (_, phones) in enumerate(groups) for phone in phones},
        )

    @classmethod
    def load(cls, path: str | Path) -> "Topology":
        """Read a `topo` file."""
        reader = KaldiReader.open(path)
        return cls.read(reader)

    @classmethod
    def read(cls, reader: KaldiReader) -> "Topology":
        """Read <Topology> … </Topology>."""
        reader.expect("<Topology>")
        topology = cls(*(_read_binary(reader) if reader.binary else _read_text(reader)))
        if reader.binary:
            reader.expect("</Topology>")
        topology._check(reader)
        return topology

    def topo_text(self) -> list[str]:
        """The lines of a `topo` file."""
        rows = ["<Topology>"]
        for number, entry in enumerate(self.entries):
            phones = " ".join(str(phone) for phone in self.phones if self.phone_entry[phone] == number)
            rows += ["<TopologyEntry>", "<ForPhones>", phones, "</ForPhones>"]
            for index, state in enumerate(entry):
                pdf = f" <PdfClass> {state.pdf_class}" if state.emits else ""
                arcs = "".join(f" <Transition> {to} {probability:.15g}" for to, probability in state.transitions)
                rows.append(f"<State> {index}{pdf}{arcs} </State>")
            rows.append("</TopologyEntry>")
        return [*rows, "</Topology>"]

    def write(self, writer: KaldiWriter) -> None:
        writer.token("<Topology>")
        writer.line()
        if writer.binary:
            self._write_binary(writer)
        else:
            for number, entry in enumerate(self.entries):
                self._write_entry(writer, [p for p in self.phones if self.phone_entry[p] == number], entry)
        writer.token("</Topology>")
        writer.line()

    def _write_binary(self, writer: KaldiWriter) -> None:
        writer.integers(self.phones)
        writer.integers([self.phone_entry.get(phone, -1) for phone in range(self.phones[-1] + 1)])
        if not self.is_hmm:
            writer.integer(-1)  # the mark of the layout with self-loop pdf classes
        writer.integer(len(self.entries))
        for entry in self.entries:
            writer.integer(len(entry))
            for state in entry:
                writer.integer(state.pdf_class)
                if not self.is_hmm:
                    writer.integer(state.self_loop_pdf_class)
                writer.integer(len(state.transitions))
                for to, probability in state.transitions:
                    writer.integer(to)
                    writer.real(probability)

    def _write_entry(self, writer: KaldiWriter, phones: list[int], entry: Entry) -> None:
        for token in ("<TopologyEntry>", "<ForPhones>"):
            writer.token(token)
            writer.line()
        for phone in phones:
            writer.integer(phone)
        writer.line()
        writer.token("</ForPhones>")
        writer.line()
        for number, state in enumerate(entry):
            writer.token(f"<State> {number}")
            if state.pdf_class != state.self_loop_pdf_class:
                writer.token(f"<ForwardPdfClass> {state.pdf_class} <SelfLoopPdfClass> {state.self_loop_pdf_class}")
            elif state.emits:
                writer.token(f"<PdfClass> {state.pdf_class}")
            for to, probability in state.transitions:
                writer.token(f"<Transition> {to}")
                writer.real(probability)
            writer.token("</State>")
            writer.line()
        writer.token("</TopologyEntry>")
        writer.line()

    def _check(self, reader: KaldiReader) -> None:
        if not self.phone_entry or any(not 0 <= n < len(self.entries) for n in self.phone_entry.values()):
            reader.fail("a topology without phones, or a phone without states")
        for entry in self.entries:
            if len(entry) < 2 or entry[-1].emits or entry[-1].transitions:
                reader.fail("a topology whose last state is not a plain final state")
            for number, state in enumerate(entry[:-1]):
                if not state.transitions or any(not 0 <= to < len(entry) for to, _ in state.transitions):
                    reader.fail(f"a topology whose state {number} leads nowhere")
                if abs(sum(p for _, p in state.transitions) - 1) > 0.01 or any(p <= 0 for _, p in state.transitions):
                    reader.fail(f"a topology whose state {number} has transition probabilities that do not sum to 1")
                if len({to for to, _ in state.transitions}) < len(state.transitions):
                    reader.fail(f"a topology whose state {number} has two transitions to one state")
                if min(state.pdf_class, state.self_loop_pdf_class) < (0 if state.emits else NO_PDF):
                    reader.fail(f"a topology whose state {number} has an impossible pdf class")
                if not state.emits and any(to == number for to, _ in state.transitions):
                    reader.fail(f"a topology whose state {number} emits nothing but has a self-loop")
            _check_classes(entry, reader)


def _check_classes(entry: Entry, reader: KaldiReader) -> None:
    classes = {number for state in entry if state.emits for number in (state.pdf_class, state.self_loop_pdf_class)}
    if not classes or classes != set(range(len(classes))):
        reader.fail("a topology whose pdf classes are not 0, 1, 2 …")
    if {to for state in entry for to, _ in state.transitions} | {0} != set(range(len(entry))):
        reader.fail("a topology with a state that no transition enters, or a transition into none")


def _state(pdf_class: int, transitions: dict[int, float]) -> State:
    return State(pdf_class, pdf_class, tuple(transitions.items()))


def _silence(count: int) -> Entry:
    if count == 1:
        return _state(0, {0: 0.75, 1: 0.25}), _state(NO_PDF, {})
    share = 1 / (count - 1)
    first = _state(0, dict.fromkeys(range(count - 1), share))  # silence lasts at least two frames
    inner = tuple(_state(i, dict.fromkeys(range(1, count), share)) for i in range(1, count - 1))
    return first, *inner, _state(count - 1, {count - 1: 0.75, count: 0.25}), _state(NO_PDF, {})


def _read_binary(reader: KaldiReader) -> tuple[tuple[Entry, ...], dict[int, int]]:
    phones = reader.integers().tolist()
    phone_entry = reader.integers().tolist()
    if any(not 0 < phone < len(phone_entry) for phone in phones):
        reader.fail("a topology with impossible phones")
    is_hmm = True
    number = reader.integer("number of topology entries")
    if number == -1:
        is_hmm, number = False, reader.integer("number of topology entries")
    entries = tuple(
        tuple(_read_state(reader, is_hmm) for _ in range(reader.count(10, "number of states"))) for _ in range(number)
    )
    return entries, {phone: phone_entry[phone] for phone in phones}


def _read_state(reader: KaldiReader, is_hmm: bool) -> State:
    pdf_class = reader.integer("pdf class")
    self_loop = pdf_class if is_hmm else reader.integer("self-loop pdf class")
    count = reader.count(10, "number of transitions")
    return State(pdf_class, self_loop, tuple((reader.integer(), reader.real()) for _ in range(count)))


def _read_text(reader: KaldiReader) -> tuple[tuple[Entry, ...], dict[int, int]]:
    entries: list[Entry] = []
    phone_entry: dict[int, int] = {}
    while reader.expect("<TopologyEntry>", "</Topology>") == "<TopologyEntry>":
        reader.expect("<ForPhones>")
        while reader.peek() != "</ForPhones>":
            phone = reader.integer("phone")
            if phone in phone_entry or not 0 < phone <= _HIGHEST_PHONE:
                reader.fail(f"phone {phone} a second time, or impossible,")
            phone_entry[phone] = len(entries)
        reader.expect("</ForPhones>")
        entries.append(tuple(_read_text_states(reader)))
    return tuple(entries), phone_entry


def _read_text_states(reader: KaldiReader) -> list[State]:
    states: list[State] = []
    while reader.expect("<State>", "</TopologyEntry>") == "<State>":
        if reader.integer("state number") != len(states):
            reader.fail("states that are not numbered from 0 in order")
        classes = [NO_PDF, NO_PDF]
        transitions: list[tuple[int, float]] = []
        while (token := reader.token()) != "</State>":
            if token == "<PdfClass>":
                classes = [reader.integer("pdf class")] * 2
            elif token == "<ForwardPdfClass>":
                classes[0] = reader.integer("pdf class")
            elif token == "<SelfLoopPdfClass>":
                classes[1] = reader.integer("pdf class")
            elif token == "<Transition>":
                with np.errstate(over="ignore"):  # probabilities are checked when all is read
                    transitions.append((reader.integer(), float(np.float32(reader.real()))))
            else:
                reader.fail(f"{token[:40]!r} in a state")
        states.append(State(classes[0], classes[1], tuple(transitions)))
    return states
