"""The language of --kernel: what it means, that it is written as it is read, and what mistakes are told."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelam.errors import KernelamError
from kernelam.kernels.expression import (
    BANDWIDTHS,
    CompositionOf,
    Expression,
    Leaf,
    ProductOf,
    Projection,
    SumOf,
    parse,
)

G, L, S = Leaf("gaussian"), Leaf("laplacian"), Leaf("sparse-gaussian", 5)
PCA = Projection("pca", 100)
MEANINGS = {
    "gaussian": G,
    " gaussian ": G,
    "((gaussian))": G,
    "gaussian@0.6": Leaf("gaussian", factor=0.6),
    "sparse-gaussian": S,
    "sparse-gaussian:7@3": Leaf("sparse-gaussian", 7, 3.0),
    "arccos0": Leaf("arccos0"),
    "polynomial:3": Leaf("polynomial", 3),
    "linear": Leaf("linear"),
    "posteriors:exp/Kernel_1+a": Leaf("posteriors", folder="exp/Kernel_1+a"),
    "0.3*gaussian + 0.7*laplacian": SumOf((0.3, 0.7), (G, L)),
    "gaussian+laplacian": SumOf((0.5, 0.5), (G, L)),
    "0*gaussian+1e-3*laplacian": SumOf((0.0, 0.001), (G, L)),
    "2*gaussian": SumOf((2.0,), (G,)),
    "gaussian * laplacian": ProductOf((G, L)),
    "0.5*gaussian*laplacian + 0.5*gaussian": SumOf((0.5, 0.5), (ProductOf((G, L)), G)),
    "gaussian * (gaussian + laplacian)": ProductOf((G, SumOf((0.5, 0.5), (G, L)))),
    "gaussian o laplacian": CompositionOf(G, None, L),
    "gaussian o pca:100 o laplacian#5000": CompositionOf(G, PCA, L, 5000),
    "gaussian o pca:100": CompositionOf(G, PCA, Leaf("linear")),
    "gaussian o pca:100 + laplacian": SumOf((0.5, 0.5), (CompositionOf(G, PCA, Leaf("linear")), L)),
    "gaussian o fda:9 o laplacian": CompositionOf(G, Projection("fda", 9), L),
    "arccos1 o arccos1#20 o arccos0#10": CompositionOf(
        Leaf("arccos1"), None, CompositionOf(Leaf("arccos1"), None, Leaf("arccos0"), 10), 20
    ),
    "gaussian o (gaussian + laplacian)#40": CompositionOf(G, None, SumOf((0.5, 0.5), (G, L)), 40),
    "gaussian + gaussian o laplacian * gaussian": SumOf((0.5, 0.5), (G, ProductOf((CompositionOf(G, None, L), G)))),
    "gaussian o pca:50 o posteriors:exp/k": CompositionOf(G, Projection("pca", 50), Leaf("posteriors", folder="exp/k")),
    "(gaussian o laplacian) o sparse-gaussian": CompositionOf(CompositionOf(G, None, L), None, S),
}
MISTAKES = {
    "": "a kernel .* is missing at the end",
    "gausian": "a kernel .* is missing at 'gausian'",
    "Gaussian": "a kernel .* is missing at 'Gaussian'",
    "gaussian +": "a kernel .* is missing at the end",
    "gaussian laplacian": r"\+, \* or o is missing at 'laplacian'",
    "gaussian)": r"\+, \* or o is missing at '\)'",
    "(gaussian": "a closing bracket is missing at the end",
    "gaussian & laplacian": "a sign without a meaning at '& laplacian'",
    "0.3*gaussian + laplacian": "some terms of a sum have a weight and others have none",
    "0*gaussian + 0*laplacian": "all weights are zero",
    "-1*gaussian": "a sign without a meaning at '-1",
    "0.3 gaussian": r"the \* of a weight is missing at 'gaussian'",
    "1e999*gaussian": "a weight, a number, is missing at '1e999",
    "gaussian@": "a multiple of the median distance, a number, is missing at the end",
    "gaussian@0": "the bandwidth is above zero, not at '0'",
    "linear@2": r"\+, \* or o is missing at '@2'",
    "polynomial": "a polynomial needs a degree, as in polynomial:2, at the end",
    "polynomial:0": "a degree, a whole number above zero, is missing at '0'",
    "sparse-gaussian:2.5": "a number of coordinates, a whole number above zero, is missing at '2.5'",
    "gaussian:3": r"\+, \* or o is missing at ':3'",
    "gaussian#50": "#50 is not right of an o, where it would be the size of an inner map, at 'gaussian#50'",
    "gaussian o (laplacian#5 + gaussian)": r"#5 is not right of an o.* at 'laplacian#5 \+ gaussian\)'",
    "gaussian o laplacian#": "a number of features, a whole number above zero, is missing at the end",
    "gaussian o": "a kernel .* is missing at the end",
    "gaussian o pca o laplacian": "pca needs a dimension, as in pca:50, at 'o laplacian'",
    "gaussian o pca:10 laplacian": r"\+, \* or o is missing at 'laplacian'",
    "gaussian o linear#10": "linear has as many features as it has, at 'linear#10'",
    "pca:10 o gaussian": "a projection comes after an o, as in gaussian o pca:10, unlike here at 'pca:10 o gaussian'",
    "posteriors": "posteriors need the directory of a model, as in posteriors:exp/kernel1, at 'posteriors'",
    "posteriors: exp": "posteriors need the directory of a model",
}


@pytest.mark.parametrize("text", MEANINGS)
def test_meaning(text):
    assert parse(text) == MEANINGS[text]


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_a_sentence_that_shows_the_place(text):
    with pytest.raises(KernelamError, match=MISTAKES[text]) as caught:
        parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", [" o ".join(["arccos1"] * 2000), "(" * 2000 + "linear" + ")" * 2000])
def test_kernels_that_are_nested_too_deep_are_refused(text):
    with pytest.raises(KernelamError, match=r"at most 50 compositions and brackets, not (1999|2000)"):
        parse(text)
    parse(" o ".join(["arccos1"] * 51))


def expressions() -> st.SearchStrategy[Expression]:
    above_zero = st.floats(1e-6, 1e6)
    leaves = st.one_of(
        st.builds(
            lambda name, k, factor: Leaf(name, k if name in ("sparse-gaussian", "polynomial") else 0, factor),
            *(st.sampled_from(BANDWIDTHS), st.integers(1, 99), st.none() | above_zero),
        ),
        st.sampled_from([Leaf(name) for name in ("arccos0", "arccos1", "arccos2", "linear")]),
        st.builds(lambda folder: Leaf("posteriors", folder=folder), st.from_regex(r"[\w/.+*#@:-]+", fullmatch=True)),
    )
    projections = st.none() | st.builds(Projection, st.sampled_from(["pca", "fda"]), st.integers(1, 999))

    def composed(outer: Expression, projection: Projection | None, inner: Expression, size: int | None) -> Expression:
        fixed = isinstance(inner, Leaf) and inner.name in ("posteriors", "linear")
        return CompositionOf(outer, projection, inner, None if fixed else size)

    def deeper(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        weighted = st.lists(st.tuples(above_zero, parts), min_size=1, max_size=3)
        return st.one_of(
            weighted.map(lambda terms: SumOf(tuple(w for w, _ in terms), tuple(term for _, term in terms))),
            st.lists(parts, min_size=2, max_size=3).map(lambda factors: ProductOf(tuple(factors))),
            st.builds(composed, parts, projections, parts, st.none() | st.integers(1, 10**6)),
        )

    return st.recursive(leaves, deeper, max_leaves=8)


@given(expressions())
def test_what_is_written_is_read_as_the_same_again(expression):
    assert parse(str(expression)) == expression


@given(st.text("gaussian laplacian +*o()#@:0123456789.e pca posteriors", max_size=30))
def test_anything_else_is_read_or_told(text):
    try:
        found = parse(text)
    except KernelamError:
        return
    assert parse(str(found)) == found


def test_reading_an_expression_needs_no_torch():
    code = (
        "import sys; from kernelam.kernels.expression import parse; parse('gaussian'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
