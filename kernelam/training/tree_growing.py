"""Phonetic decision trees: the questions that make frames most likely, asked one after another."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelam.hmm.lang import Root
from kernelam.hmm.tree import PDF_CLASS, ContextTree, Leaf, Node, Split, Table, phone_stub
from kernelam.progress import say, warn
from kernelam.training.context_stats import ContextStats, GaussianStats

Events = NDArray[np.int64]
Question = tuple[int, frozenset[int]]  # a key of the tree, and the values that are a yes


@dataclass(eq=False)
class _Plant:
    """A part of the tree: a leaf with its events, until there is a question and a part for each answer."""

    events: Events
    question: Question | None = None
    answers: tuple["_Plant", ...] = ()  # yes, no
    pdf: int = -1

    def leaves(self) -> list["_Plant"]:
        return [leaf for part in self.answers for leaf in part.leaves()] if self.answers else [self]

    def node(self) -> Node:
        if self.question is None:
            return Leaf(self.pdf)
        yes, no = (part.node() for part in self.answers)
        return yes if yes == no else Split(*self.question, yes, no)


class _Asker:
    """Finds the question about some events that makes their frames most likely."""

    def __init__(self, stats: ContextStats, questions: Mapping[int, Sequence[frozenset[int]]]) -> None:
        self.stats, self.questions = stats, questions
        self.tables = {}
        for key, sets in questions.items():
            size = 1 + max([int(self.values(key).max()), *(max(values) for values in sets)])
            self.tables[key] = np.zeros((len(sets), size), bool)
            for row, values in enumerate(sets):
                self.tables[key][row, sorted(values)] = True

    def values(self, key: int) -> NDArray[np.int64]:
        return self.stats.pdf_class if key == PDF_CLASS else self.stats.windows[:, key]

    def best(self, events: Events) -> tuple[float, Question | None]:
        """The greatest gain in log-likelihood, and the question that has it."""
        part = self.stats.gaussians[events]
        whole, best, found = part.total, 0.0, None
        before = whole.log_likelihood[0]
        for key, table in self.tables.items():
            present, group = np.unique(self.values(key)[events], return_inverse=True)
            answers = table[:, present]
            rows = np.flatnonzero(answers.any(axis=1) & ~answers.all(axis=1))
            if not len(rows):
                continue
            yes = part.grouped(group.ravel(), len(present)).joined(answers[rows])
            gains = yes.log_likelihood + (whole - yes).log_likelihood - before
            top = int(np.argmax(gains))
            if gains[top] > best:
                best, found = float(gains[top]), (key, self.questions[key][rows[top]])
        return best, found

    def ask(self, plant: _Plant, question: Question) -> None:
        key, values = question
        yes = np.isin(self.values(key)[plant.events], list(values))
        plant.question = question
        plant.answers = (_Plant(plant.events[yes]), _Plant(plant.events[~yes]))


def grow_tree(
    stats: ContextStats,
    roots: Sequence[Root],
    phone_sets: Sequence[frozenset[int]],
    num_pdf_classes: Mapping[int, int],
    max_leaves: int,
    min_gain: float = 300.0,
) -> tuple[ContextTree, NDArray[np.int64]]:
    """A tree of at most `max_leaves` leaves, and the pdf of each event of `stats`.

    Of all questions about all leaves, the one of the greatest gain in log-likelihood is asked, again and again, until
    there are `max_leaves` or it would gain less than `min_gain`. Then leaves of one root that can be joined at a
    smaller loss than the last gain are joined.
    """
    width = stats.windows.shape[1]
    questions = {key: list(phone_sets) for key in range(width)}
    questions[PDF_CLASS] = [frozenset(range(last)) for last in range(1, max(num_pdf_classes.values()))]
    planted = [_plant(stats, root, num_pdf_classes) for root in roots]
    growing = [plant for root, plants in zip(roots, planted, strict=True) if root.splits for plant in plants]
    fixed = sum(map(len, planted))
    last = _grow(_Asker(stats, questions), growing, max_leaves - fixed, min_gain)
    pdfs = np.full(len(stats.pdf_class), -1, np.int64)
    number = 0
    for plant in (plant for plants in planted for plant in plants):
        for group in _joined(stats.gaussians, plant.leaves(), last):
            for leaf in group:
                leaf.pdf = pdfs[leaf.events] = number
            number += 1
    say(f"the tree has {number} leaves")
    nodes = [
        plants[0].node() if root.shared else Table(PDF_CLASS, tuple(plant.node() for plant in plants))
        for root, plants in zip(roots, planted, strict=True)
    ]
    return ContextTree(width, stats.central, phone_stub(stats.central, [root.phones for root in roots], nodes)), pdfs


def _plant(stats: ContextStats, root: Root, num_pdf_classes: Mapping[int, int]) -> list[_Plant]:
    """One for all pdf classes of the root's phones, or one for each."""
    events = np.flatnonzero(np.isin(stats.phone, root.phones))
    if root.shared:
        return [_Plant(events)]
    classes = range(max(num_pdf_classes[phone] for phone in root.phones))
    return [_Plant(events[stats.pdf_class[events] == one]) for one in classes]


def _grow(asker: _Asker, plants: Sequence[_Plant], room: int, min_gain: float) -> float:
    """Ask at most `room` questions; the gain of the last one."""
    order, waiting, last = 0, list[tuple[float, int, _Plant, Question]](), 0.0

    def consider(plant: _Plant) -> None:
        nonlocal order
        gain, question = asker.best(plant.events) if len(plant.events) > 1 else (0.0, None)
        if question is not None and gain >= min_gain:
            heapq.heappush(waiting, (-gain, order, plant, question))
            order += 1

    for plant in plants:
        consider(plant)
    for left in range(room, 0, -1):
        if not waiting:
            warn(f"{left} more leaves are asked for than the frames allow: no question gains {min_gain:g} any more")
            break
        loss, _, plant, question = heapq.heappop(waiting)
        asker.ask(plant, question)
        last = -loss
        for part in plant.answers:
            consider(part)
    return last


def _joined(gaussians: GaussianStats, leaves: Sequence[_Plant], limit: float) -> list[list[_Plant]]:
    """The leaves in groups: two at a time are joined, those that lose least, while that is below `limit`."""
    groups = [[leaf] for leaf in leaves]
    stats = [gaussians[leaf.events].total for leaf in leaves]
    while len(groups) > 1:
        alone = np.array([one.log_likelihood[0] for one in stats])
        pairs = np.stack(np.triu_indices(len(groups), 1))
        arrays = [np.concatenate([getattr(one, name) for one in stats]) for name in ("count", "sums", "squares")]
        every = GaussianStats(*arrays)
        losses = alone[pairs[0]] + alone[pairs[1]] - (every[pairs[0]] + every[pairs[1]]).log_likelihood
        if losses.min() >= limit:
            break
        into, other = pairs[:, np.argmin(losses)]
        groups[into] += groups.pop(other)
        stats[into] = stats[into] + stats.pop(other)
    return groups
