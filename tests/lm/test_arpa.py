import contextlib
import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelam.errors import KernelamError
from kernelam.lm.arpa import ArpaModel, read_arpa, write_arpa
from kernelam.lm.perplexity import Perplexity, log10_probs, perplexity

GOOD = r"""text before the data is allowed

\data\
ngram 1=4
ngram 2=3
ngram 3=1

\1-grams:
-99	<s>	-0.3
-0.5	a	-0.2
-0.7	b
-0.4	</s>

\2-grams:
-0.1	<s> a	0.25
-0.9	a b	-0.6
-0.8	b </s>

\3-grams:
-0.05	<s> a b

\end\
"""


@pytest.fixture
def good(tmp_path: Path) -> ArpaModel:
    (tmp_path / "lm").write_text(GOOD)
    return read_arpa(tmp_path / "lm")


@pytest.mark.parametrize(
    ("history", "word", "expected"),
    [
        ([], "a", -0.5),
        (["<s>"], "a", -0.1),
        (["<s>", "a"], "b", -0.05),
        (["<s>", "a"], "</s>", 0.25 - 0.2 - 0.4),
        (["b", "<s>", "a"], "b", -0.05),
        (["b", "a"], "b", -0.9),
        (["a", "b"], "</s>", -0.6 - 0.8),
        (["b", "b"], "a", -0.5),
        (["a", "unknown"], "a", -0.5),
        (["unknown", "a"], "a", -0.2 - 0.5),
        (["a"], "unknown", -math.inf),
    ],
)
def test_probability(good: ArpaModel, history: list[str], word: str, expected: float) -> None:
    assert good.log10_prob(history, word) == pytest.approx(expected)


def test_perplexity_counts(good: ArpaModel, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1 a b\nu2 zzz a zzz\nu3\n")
    result = perplexity(good, tmp_path / "text")
    # <s> a, <s> a b, [a b] b </s>;  a after an unknown word; </s> after an unknown word
    total = -0.1 - 0.05 + (-0.6 - 0.8) - 0.5 - 0.4
    assert result == Perplexity(2, 5, 2, 0, pytest.approx(total))
    assert result.ppl == pytest.approx(10 ** (-total / 5))
    assert result.ppl1 == pytest.approx(10 ** (-total / 3))
    assert str(result) == "2 sentences, 5 words, 2 OOVs\n0 zeroprobs, logprob= -2.45 ppl= 3.0903 ppl1= 6.55642"


def test_scores_in_bulk_are_the_scores_one_by_one(good: ArpaModel) -> None:
    rng = np.random.default_rng(0)
    text = [["<s>", *(("a", "b", "zzz")[i] for i in rng.integers(0, 3, 6)), "</s>"] for _ in range(100)]
    tokens = np.array([good.index.get(w, -1) for s in text for w in s])
    scores = iter(log10_probs(good, tokens))
    for sentence in text:
        for i, word in enumerate(sentence):
            score = next(scores)
            if word not in ("<s>", "zzz"):
                assert score == pytest.approx(good.log10_prob(sentence[:i], word))


def test_perplexity_of_nothing(good: ArpaModel, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1\n")
    with pytest.raises(KernelamError, match="text has no sentences"):
        perplexity(good, tmp_path / "text")
    (tmp_path / "text").write_text("u1 zzz\n")
    assert math.isnan(perplexity(good, tmp_path / "text").ppl1)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("\\data\\\n", "", r"lm is not an ARPA file: it has no \\data\\ line"),
        ("ngram 1=4\n", "", r"lm, line 4: expected 'ngram 1=<count>'"),
        ("ngram 2=3", "ngram 2=x", r"lm, line 5: expected 'ngram 2=<count>'"),
        ("ngram 2=3", "ngram 2=4", r"lm: the header counts 4 2-grams, the section has 3"),
        ("ngram 3=1\n", "", r"lm, line 14: expected a log10 probability, 2 words$"),
        ("\\2-grams:", "\\3-grams:", r"lm, line 14: expected \\2-grams:"),
        ("\\end\\\n", "", r"lm ends before \\end\\: it is cut short"),
        ("-0.8\tb </s>", "-0.8\tb", r"lm, line 17: expected a log10 probability, 2 words and perhaps a backoff"),
        ("-0.8\tb </s>", "-0.8\tb c", r"lm, line 17: c is not among the 1-grams"),
        ("-0.8\tb </s>", "-0.x\tb </s>", r"lm, line 17: -0.x is not a number"),
        ("-0.8\tb </s>", "-1_0\tb </s>", r"lm, line 17: -1_0 is not a number"),
        ("-0.8\tb </s>", "nan\tb </s>", r"lm, line 17: the log10 probability is not a finite number"),
        ("-0.8\tb </s>", "-inf\tb </s>", r"lm, line 17: the log10 probability is not a finite number"),
        ("-0.8\tb </s>", "0.1\tb </s>", r"lm, line 17: the log10 probability is not a finite number below or at 0"),
        ("-0.8\tb </s>", "-0.8\ta b", r"lm, line 17: this n-gram is listed twice"),
        ("a b\t-0.6", "a b\tinf", r"lm, line 16: the log10 backoff is not finite"),
        ("a b\t-0.6", "a b\tx", r"lm, line 16: x is not a number"),
        ("-0.7\tb", "-0.7\ta", r"lm, line 11: a is listed twice"),
        ("<s> a b", "b a b", r"lm, line 20: the first 2 words are not among the 2-grams"),
        ("<s> a b", "<s> a b\t-0.5", r"lm, line 20: expected a log10 probability, 3 words"),
    ],
)
def test_bad_file(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in GOOD
    (tmp_path / "lm").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(KernelamError, match=sentence):
        read_arpa(tmp_path / "lm")


def test_bad_bytes(tmp_path: Path) -> None:
    (tmp_path / "lm").write_bytes(GOOD.encode().replace(b"-0.7\tb", b"-0.7\t\xff"))
    with pytest.raises(KernelamError, match=r"lm, line 11: b'\\xff' is not UTF-8 text"):
        read_arpa(tmp_path / "lm")
    (tmp_path / "lm.gz").write_bytes(gzip.compress(GOOD.encode())[:-12])
    with pytest.raises(KernelamError, match=r"lm.gz is not a whole gzip file"):
        read_arpa(tmp_path / "lm.gz")
    with pytest.raises(KernelamError, match="no such file"):
        read_arpa(tmp_path / "none")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, len(GOOD)), st.binary(max_size=4), st.integers(0, 6))
def test_no_damage_crashes_the_reader(tmp_path: Path, at: int, bytes_: bytes, drop: int) -> None:
    (tmp_path / "lm").write_bytes(GOOD.encode()[:at] + bytes_ + GOOD.encode()[at + drop :])
    with contextlib.suppress(KernelamError):
        read_arpa(tmp_path / "lm")


WORD = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters=" \t\n\r\x0b\x0c"), min_size=1, max_size=4
)
VALUE = st.integers(-99_000_000, 0).map(lambda i: i / 1e6)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[tuple[str, ...], tuple[float, float]]]:
    """n-gram tables in which every prefix is listed."""
    words = draw(st.lists(WORD, min_size=1, max_size=6, unique=True))
    result = [{(w,): (draw(VALUE), draw(VALUE)) for w in words}]
    for _ in range(draw(st.integers(0, 2))):
        grams = draw(st.sets(st.tuples(st.sampled_from(sorted(result[-1])), st.sampled_from(words)), max_size=8))
        if not grams:
            break
        result.append({(*p, w): (draw(VALUE), draw(VALUE)) for p, w in grams})
    result[-1] = {gram: (prob, 0.0) for gram, (prob, _) in result[-1].items()}
    return result


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(tables(), st.sampled_from(["lm", "lm.gz"]))
def test_round_trip(tmp_path: Path, table: list[dict[tuple[str, ...], tuple[float, float]]], name: str) -> None:
    lines = ["\\data\\", *(f"ngram {n}={len(grams)}" for n, grams in enumerate(table, 1))]
    for n, grams in enumerate(table, 1):
        lines.append(f"\\{n}-grams:")
        lines += [
            f"{p:.6f}\t{' '.join(gram)}" + (f"\t{b:.6f}" if n < len(table) else "") for gram, (p, b) in grams.items()
        ]
    (tmp_path / "given").write_bytes("\n".join([*lines, "\\end\\"]).encode())
    first = read_arpa(tmp_path / "given")
    write_arpa(tmp_path / name, first)
    again = read_arpa(tmp_path / name)
    for model in (first, again):
        assert model.order == len(table)
        for n, grams in enumerate(table, 1):
            assert {gram: (p, b) for gram, p, b in model.ngrams(n)} == grams
