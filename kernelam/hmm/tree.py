"""The phonetic context tree: from a window of phones and a pdf class to a pdf.

An event map is a leaf (CE), a table over the values of one key (TE) or a question about one key (SE). Key -1 is the pdf
class, key i the phone at position i of the window; the window is `width` phones with the phone itself at `central`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kernelam.files import replacing
from kernelam.kaldi.binary import KaldiReader, KaldiWriter

PDF_CLASS = -1
_DEEPEST = 200  # questions, one after another


@dataclass(frozen=True)
class Leaf:
    pdf: int


@dataclass(frozen=True)
class Table:
    key: int
    children: tuple["Node | None", ...]


@dataclass(frozen=True)
class Split:
    key: int
    yes_set: frozenset[int]
    yes: "Node | None"
    no: "Node | None"


Node = Leaf | Table | Split
Context = Mapping[int, frozenset[int]]  # by position, the phones that may stand there


@dataclass(frozen=True)
class ContextTree:
    """`width` and `central` are N and P in Kaldi's terms: 1 and 0 for monophones, 3 and 1 for triphones."""

    width: int
    central: int
    root: Node

    def pdf(self, window: Sequence[int], pdf_class: int) -> int | None:
        """The pdf of the phone at `central` of `window` (0 stands for no phone), None if the tree has no answer."""
        node = self._branch(window[self.central], pdf_class)
        while node is not None and not isinstance(node, Leaf):
            node = _answer(node, window[node.key])
        return None if node is None else node.pdf

    def _branch(self, phone: int, pdf_class: int) -> Node | None:
        """The tree that is left when the phone itself and its pdf class are known: only questions about neighbours."""
        if (phone, pdf_class) not in self._branches:
            self._branches[phone, pdf_class] = _resolve(self.root, {self.central: phone, PDF_CLASS: pdf_class})
        return self._branches[phone, pdf_class]

    @cached_property
    def _branches(self) -> dict[tuple[int, int], Node | None]:
        return {}

    @cached_property
    def num_pdfs(self) -> int:
        return 1 + max(leaf.pdf for leaf in _leaves(self.root))

    def pdfs(self, phone: int, pdf_class: int) -> set[int]:
        """All pdfs that `phone` has in this class, over all contexts."""
        return {leaf.pdf for leaf in _leaves(self._branch(phone, pdf_class))}

    def pdf_pairs(self, phone: int, classes: tuple[int, int], phones: Iterable[int]) -> set[tuple[int, int]]:
        """The pairs of pdfs that two classes have in one and the same context of `phones`."""
        anything = {key: frozenset({0, *phones}) for key in range(self.width)}
        return {
            (first, second)
            for first, context in _walk(self._branch(phone, classes[0]), anything)
            for second, _ in _walk(self._branch(phone, classes[1]), context)
        }

    @classmethod
    def monophone(cls, phone_sets: Sequence[Sequence[int]], num_pdf_classes: Mapping[int, int]) -> "ContextTree":
        """One leaf for each pdf class of each set of phones, numbered in order of the sets."""
        branches: list[Node] = []
        first = 0
        for phones in phone_sets:
            classes = range(first, first + max(num_pdf_classes[phone] for phone in phones))
            branches.append(Table(PDF_CLASS, tuple(Leaf(pdf) for pdf in classes)))
            first = classes.stop
        return cls(1, 0, phone_stub(0, phone_sets, branches))

    @classmethod
    def load(cls, path: str | Path) -> "ContextTree":
        """Read a `tree` file."""
        reader = KaldiReader.open(path)
        reader.expect("ContextDependency")
        width, central = reader.integer("context width"), reader.integer("central position")
        if not 0 <= central < width <= 32:
            reader.fail(f"impossible context width {width} and central position {central}")
        reader.expect("ToPdf")
        root = _read(reader, 0)
        if root is None:
            reader.fail("an empty tree")
        reader.expect("EndContextDependency")
        if any(not PDF_CLASS <= key < width for key in _keys(root)):
            reader.fail(f"a tree with questions outside its {width} positions")
        return cls(width, central, root)

    def save(self, path: str | Path, binary: bool = True) -> None:
        """Write as Kaldi does, byte for byte."""
        with replacing(path) as stream:
            writer = KaldiWriter(stream, binary)
            writer.token("ContextDependency")
            writer.integer(self.width)
            writer.integer(self.central)
            writer.token("ToPdf")
            _write(writer, self.root)
            writer.token("EndContextDependency")


def _answer(node: Table | Split, value: int) -> Node | None:
    if isinstance(node, Split):
        return node.yes if value in node.yes_set else node.no
    return node.children[value] if 0 <= value < len(node.children) else None


def _resolve(node: Node | None, known: Mapping[int, int]) -> Node | None:
    while isinstance(node, Table | Split) and node.key in known:
        node = _answer(node, known[node.key])
    if isinstance(node, Table):
        return Table(node.key, tuple(_resolve(child, known) for child in node.children))
    if isinstance(node, Split):
        yes, no = _resolve(node.yes, known), _resolve(node.no, known)
        return yes if yes == no else Split(node.key, node.yes_set, yes, no)
    return node


def _leaves(node: Node | None) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    for child in _children(node):
        yield from _leaves(child)


def _keys(node: Node | None) -> Iterator[int]:
    if isinstance(node, Split | Table):
        yield node.key
    for child in _children(node):
        yield from _keys(child)


def _children(node: Node | None) -> tuple[Node | None, ...]:
    if isinstance(node, Table):
        return node.children
    return (node.yes, node.no) if isinstance(node, Split) else ()


def _walk(node: Node | None, context: Context) -> Iterator[tuple[int, Context]]:
    """The leaves that some window within `context` reaches, each with the windows that do."""
    if isinstance(node, Leaf):
        yield node.pdf, context
    elif isinstance(node, Split):
        possible = context[node.key]
        for child, values in ((node.yes, possible & node.yes_set), (node.no, possible - node.yes_set)):
            if values:
                yield from _walk(child, {**context, node.key: values})
    elif isinstance(node, Table):
        for value in context[node.key]:
            yield from _walk(_answer(node, value), {**context, node.key: frozenset({value})})


def phone_stub(key: int, sets: Sequence[Sequence[int]], branches: Sequence[Node]) -> Node:
    """The tree that leads each of the sets of phones at position `key` to its branch: a table if each is one phone,
    otherwise questions that halve."""
    if len(sets) == 1:
        return branches[0]
    highest = max(phone for phones in sets for phone in phones)
    if all(len(phones) == 1 for phones in sets) and len(sets) <= 2 * highest:
        table: list[Node | None] = [None] * (highest + 1)
        for phones, branch in zip(sets, branches, strict=True):
            table[phones[0]] = branch
        return Table(key, tuple(table))
    half = len(sets) // 2
    yes, no = phone_stub(key, sets[:half], branches[:half]), phone_stub(key, sets[half:], branches[half:])
    return Split(key, frozenset(phone for phones in sets[:half] for phone in phones), yes, no)


def _read(reader: KaldiReader, depth: int) -> Node | None:
    if depth > _DEEPEST:
        reader.fail("a tree that is too deep")
    kind = reader.expect("CE", "TE", "SE", "NULL")
    if kind == "NULL":
        return None
    if kind == "CE":
        pdf = reader.integer("pdf")
        if not 0 <= pdf < len(reader.data):  # pdfs are numbered without gaps, and each takes some bytes
            reader.fail(f"pdf {pdf}")
        return Leaf(pdf)
    key = reader.integer("key")
    if kind == "TE":
        size = reader.count(3, "table size")
        reader.expect("(")
        table = Table(key, tuple(_read(reader, depth + 1) for _ in range(size)))
        reader.expect(")")
        return table
    values = frozenset(reader.integers().tolist())
    reader.expect("{")
    yes, no = _read(reader, depth + 1), _read(reader, depth + 1)
    reader.expect("}")
    if yes is None or no is None:
        reader.fail("a question with one answer")
    return Split(key, values, yes, no)


def _write(writer: KaldiWriter, node: Node | None) -> None:
    if node is None:
        writer.token("NULL")
    elif isinstance(node, Leaf):
        writer.token("CE")
        writer.integer(node.pdf)
    elif isinstance(node, Table):
        writer.token("TE")
        writer.integer(node.key)
        writer.unsigned(len(node.children))
        _write_children(writer, "(", node.children, ")")
    else:
        writer.token("SE")
        writer.integer(node.key)
        writer.integers(sorted(node.yes_set))
        _write_children(writer, "{", (node.yes, node.no), "}")


def _write_children(writer: KaldiWriter, opening: str, children: Sequence[Node | None], closing: str) -> None:
    writer.token(opening)
    for child in children:
        _write(writer, child)
    writer.token(closing)
    writer.line()
