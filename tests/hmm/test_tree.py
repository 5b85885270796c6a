from pathlib import Path

import pytest

from kernelam.errors import KernelamError
from kernelam.hmm.tree import ContextTree, Leaf, Split, Table

TREE = ContextTree(
    3,
    1,
    Table(1, (None, Leaf(0), Split(-1, frozenset({0}), Split(0, frozenset({1}), Leaf(1), Leaf(2)), Leaf(3)))),
)


def test_answers() -> None:
    assert TREE.num_pdfs == 4
    assert [TREE.pdf(window, 0) for window in ((1, 2, 0), (2, 2, 1), (2, 1, 2), (0, 3, 0))] == [1, 2, 0, None]
    assert TREE.pdf((1, 2, 0), 1) == 3
    assert TREE.pdfs(2, 0) == {1, 2}
    assert TREE.pdfs(2, 1) == {3}


def test_pairs_are_of_one_context() -> None:
    """Two classes that ask about the left phone cannot answer yes and no at once."""
    question = {c: Split(0, frozenset({1}), Leaf(2 * c), Leaf(2 * c + 1)) for c in (0, 1)}
    tree = ContextTree(2, 1, Table(-1, (question[0], question[1])))
    assert tree.pdf_pairs(1, (0, 1), [1, 2]) == {(0, 2), (1, 3)}


def test_monophone_table_and_shared_sets() -> None:
    assert ContextTree.monophone([[1], [2]], {1: 2, 2: 1}).root == Table(
        0, (None, Table(-1, (Leaf(0), Leaf(1))), Table(-1, (Leaf(2),)))
    )
    shared = ContextTree.monophone([[1, 2], [3], [4]], {1: 1, 2: 2, 3: 1, 4: 1})
    rest = Table(0, (None, None, None, Table(-1, (Leaf(2),)), Table(-1, (Leaf(3),))))
    assert shared.root == Split(0, frozenset({1, 2}), Table(-1, (Leaf(0), Leaf(1))), rest)
    assert [shared.pdf((phone,), 0) for phone in (1, 2, 3, 4)] == [0, 0, 2, 3]


@pytest.mark.parametrize("binary", [True, False])
def test_round_trip_and_truncation(tmp_path: Path, binary: bool) -> None:
    path = tmp_path / "tree"
    TREE.save(path, binary)
    assert ContextTree.load(path) == TREE
    data = path.read_bytes()
    for length in range(len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(KernelamError, match="tree"):
            ContextTree.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ContextDependency 1 1 ToPdf CE 0 EndContextDependency ", "impossible context width"),
        ("ContextDependency 1 0 ToPdf SE 2 [ 1 ]\n{ CE 0 CE 1 } \nEndContextDependency ", "outside its 1 positions"),
        ("ContextDependency 1 0 ToPdf NULL EndContextDependency ", "an empty tree"),
        ("ContextDependency 1 0 ToPdf CE -4 EndContextDependency ", "pdf -4"),
        ("ContextDependency 1 0 ToPdf " + "SE 0 [ 1 ]\n{ " * 5000, "too deep"),
    ],
)
def test_bad_trees(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tree").write_text(text)
    with pytest.raises(KernelamError, match=message):
        ContextTree.load(tmp_path / "tree")


@pytest.mark.parametrize("model", ["mono", "tri1", "tri3"])
def test_kaldis_trees_byte_for_byte(corpora: Path, tmp_path: Path, model: str) -> None:
    sample = corpora / "kaldi-timit-sample"
    tree = ContextTree.load(sample / "exp" / model / "tree")
    tree.save(tmp_path / "binary")
    tree.save(tmp_path / "text", binary=False)
    assert (tmp_path / "binary").read_bytes() == (sample / "exp" / model / "tree").read_bytes()
    assert (tmp_path / "text").read_bytes() == (sample / "expected" / model / "tree.txt").read_bytes()
    assert ContextTree.load(tmp_path / "text") == tree


def test_kaldis_monophone_tree(corpora: Path) -> None:
    sample = corpora / "kaldi-timit-sample"
    sets = [[int(phone) for phone in line.split()] for line in (sample / "data/lang/phones/sets.int").open()]
    made = ContextTree.monophone(sets, dict.fromkeys(range(1, 49), 3))
    assert made == ContextTree.load(sample / "exp/mono/tree")
