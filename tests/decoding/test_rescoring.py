"""Lattices with another language model, against enumeration of their paths."""

import numpy as np
import pytest

from kernelam.decoding.lattice import path_alignment
from kernelam.decoding.rescoring import Grammar, rescored
from kernelam.errors import KernelamError
from kernelam.lm.arpa import ArpaModel
from kernelam.lm.fst import to_fst
from kernelam.lm.kneser_ney import estimate

SYMBOLS = {"<eps>": 0, "a": 1, "b": 2, "#0": 3}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> list[ArpaModel]:
    text = tmp_path_factory.mktemp("lm") / "text"
    text.write_text("u1 a b a a b\nu2 b b a\nu3 a\nu4 a b b b a a\n")
    return [estimate(text, order) for order in (1, 3)]


def grammar(model: ArpaModel) -> Grammar:
    return Grammar(to_fst(model, SYMBOLS), SYMBOLS["#0"])


def sentence_cost(model: ArpaModel, words: list[str]) -> float:
    spoken = ["<s>", *words, "</s>"]
    return -np.log(10) * sum(model.log10_prob(spoken[:place], spoken[place]) for place in range(1, len(spoken)))


def test_every_path_has_the_cost_of_the_other_model(lattices, all_paths, models):
    names = {number: word for word, number in SYMBOLS.items()}
    old, new = map(grammar, models)
    for lattice in lattices[:150]:
        made = rescored("u", lattice, old, new)
        found, expected = [], []
        for which, paths in ((lattice, expected), (made, found)):
            for path in all_paths(which):
                arcs = np.array(path, int)
                end = which.next[path[-1]] if path else 0
                words = [names[word] for word in which.word[arcs].tolist() if word]
                graph = which.graph[arcs].sum(dtype=float) + which.final_graph[end]
                if which is lattice:
                    graph += sentence_cost(models[1], words) - sentence_cost(models[0], words)
                acoustic = which.acoustic[arcs].sum(dtype=float) + which.final_acoustic[end]
                paths.append((words, path_alignment(which, arcs).tolist(), round(graph, 3), round(acoustic, 3)))
        assert len(found) == len(expected)
        for ours, theirs in zip(sorted(found), sorted(expected), strict=True):
            assert ours[:2] == theirs[:2]
            assert ours[2:] == pytest.approx(theirs[2:], abs=2e-3)
        assert made.compact == lattice.compact


def test_words_that_the_new_model_lacks(lattices, models, tmp_path):
    (tmp_path / "text").write_text("u1 a a\nu2 a\n")
    new = grammar(estimate(tmp_path / "text", 2))
    lattice = next(
        one for one in lattices if (one.word == 2).any() and (one.word[one.first[0] : one.first[1]] < 2).all()
    )
    assert not (rescored("u", lattice, grammar(models[0]), new).word == 2).any()
    only = next(one for one in lattices if (one.word == 2).all() and not np.isfinite(one.final_graph[0]))
    with pytest.raises(KernelamError, match="the lattice of u-1 with the new language model has no path"):
        rescored("u-1", only, grammar(models[0]), new)
