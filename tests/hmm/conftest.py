from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelam.hmm.lang import Lang, prepare_lang
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree, Leaf, Split, Table
from kernelam.kaldi.fst import ARC, Fst

DICT = {
    "silence_phones.txt": "SIL\nSPN\n",
    "nonsilence_phones.txt": "a\nb\nc\n",
    "optional_silence.txt": "SIL\n",
    "lexicon.txt": "<UNK> SPN\nab a b\nabc a b c\nba b a\nba2 b a\nc c\nc a c\n",
}


@pytest.fixture
def dict_dir(tmp_path: Path) -> Callable[..., Path]:
    """dict_dir(lexicon="…", …): a small dictionary directory, with some files replaced (None: left out)."""

    def make(**changes: str | None) -> Path:
        directory = tmp_path / "dict"
        directory.mkdir(exist_ok=True)
        for name, text in {**DICT, **{f"{key}.txt": value for key, value in changes.items()}}.items():
            (directory / name).unlink(missing_ok=True)
            if text is not None:
                (directory / name).write_text(text)
        return directory

    return make


@pytest.fixture
def lang(dict_dir: Callable[..., Path], tmp_path: Path) -> Lang:
    """A lang directory of that dictionary, without position marks, with a unigram G.fst of ab, abc, ba, ba2, c."""
    prepare_lang(dict_dir(), "<UNK>", tmp_path / "lang", position_dependent_phones=False, num_sil_states=3)
    lang = Lang(tmp_path / "lang")
    words = [lang.words[word] for word in ("ab", "abc", "ba", "ba2", "c")]
    arcs = np.array([(word, word, 1.0 + 0.1 * i, 0) for i, word in enumerate(words)], ARC)
    Fst.of(0, np.array([0.7]), np.zeros(len(arcs), int), arcs).save(lang.directory / "G.fst")
    return lang


Model = tuple[ContextTree, TransitionModel]


@pytest.fixture
def monophones(lang: Lang) -> Model:
    topology = lang.topology
    tree = ContextTree.monophone(lang.phone_sets(), {p: topology.num_pdf_classes(p) for p in topology.phones})
    return tree, TransitionModel.from_tree(topology, tree)


@pytest.fixture
def triphones(lang: Lang, monophones: Model) -> Model:
    """Phone a differs after b, phone b before c in its last state; the others do not see their context."""
    root, count = monophones[0].root, monophones[0].num_pdfs
    assert isinstance(root, Table)
    a, b, c = (lang.phones[phone] for phone in "abc")
    children = list(root.children)
    children[a] = Split(0, frozenset({b}), Table(-1, tuple(Leaf(count + i) for i in range(3))), children[a])
    children[b] = Split(-1, frozenset({2}), Split(2, frozenset({c}), Leaf(count + 3), children[b]), children[b])
    tree = ContextTree(3, 1, Table(1, tuple(children)))
    return tree, TransitionModel.from_tree(lang.topology, tree)
