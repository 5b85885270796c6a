import gzip
import random
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.lm.arpa import ArpaModel, read_arpa, write_arpa
from kernelam.lm.kneser_ney import estimate
from kernelam.lm.perplexity import perplexity
from kernelam.lm.text import read_vocabulary


class Reference:
    """Chen & Goodman's formulas with dictionaries, word by word."""

    def __init__(self, sentences: list[list[str]], order: int) -> None:
        grams: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(order + 1)]
        for words in sentences:
            s = ["<s>", *words, "</s>"]
            for n in range(1, order + 1):
                grams[n].update(tuple(s[i : i + n]) for i in range(len(s) - n + 1))
        self.vocabulary = {w for s in sentences for w in s} | {"</s>"}
        self.a: list[dict[tuple[str, ...], int]] = [{}]
        for n in range(1, order + 1):
            before = Counter(g[1:] for g in grams[n + 1]) if n < order else grams[n]
            self.a.append({g: grams[n][g] if g[0] == "<s>" else before[g] for g in grams[n] if g != ("<s>",)})
        self.followers: list[dict[tuple[str, ...], list[int]]] = [defaultdict(list) for _ in range(order + 1)]
        for n in range(1, order + 1):
            for g, c in self.a[n].items():
                self.followers[n][g[:-1]].append(c)
        self.d = [self.discounts(Counter(a.values())) for a in self.a]

    def discounts(self, n: Counter[int]) -> list[float]:
        if min(n[1], n[2], n[3], n[4]) > 0:
            y = n[1] / (n[1] + 2 * n[2])
            d = [0.0] + [k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3)]
            if min(d[1:]) > 0:
                return d
        return [0.0, 0.5, 1.0, 1.5]

    def prob(self, history: tuple[str, ...], word: str) -> float:
        n = len(history) + 1
        lower = self.prob(history[1:], word) if history else 1 / len(self.vocabulary)
        if not (counts := self.followers[n].get(history)):
            return lower
        c = self.a[n].get((*history, word), 0)
        gamma = sum(self.d[n][min(x, 3)] for x in counts)
        return (c - self.d[n][min(c, 3)] + gamma * lower) / sum(counts)


def sample(seed: int, sentences: int, words: int) -> list[list[str]]:
    """Sentences with few frequent and many rare words, and some repetition."""
    rng = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(words)]
    weights = [1 / (i + 1) for i in range(words)]
    made = [rng.choices(vocabulary, weights, k=rng.randint(1, 7)) for _ in range(sentences)]
    return made + made[: sentences // 5]


def write_text(path: Path, sentences: list[list[str]]) -> Path:
    path.write_text("".join(" ".join(s) + "\n" for s in sentences))
    return path


def histories(model: ArpaModel) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()]
    for n in range(1, model.order):
        found += [words for words, _, _ in model.ngrams(n) if words[-1] != "</s>"]
    return found


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(("seed", "size", "words"), [(1, 150, 30), (2, 4, 3)])
def test_equals_the_formulas_and_sums_to_one(tmp_path: Path, order: int, seed: int, size: int, words: int) -> None:
    sentences = sample(seed, size, words)
    model = estimate(write_text(tmp_path / "text", sentences), order, skip_first_field=False)
    reference = Reference(sentences, order)
    for history in [*histories(model)[::9], ("w0", "never", "w1")[: order - 1], ("w2", "w2", "w2")[: order - 1]]:
        ours = {word: 10 ** model.log10_prob(history, word) for word in reference.vocabulary}
        assert sum(ours.values()) == pytest.approx(1, abs=1e-12)
        for word, p in ours.items():
            assert p == pytest.approx(reference.prob(history, word), rel=1e-9)


def test_discounts_are_estimated_not_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = Reference(sample(1, 400, 2000), 3)
    estimate(write_text(tmp_path / "text", sample(1, 400, 2000)), 3, skip_first_field=False)
    assert capsys.readouterr().err == ""
    assert all(d != [0.0, 0.5, 1.0, 1.5] for d in reference.d[1:])


def test_a_tiny_text_gets_fixed_discounts_and_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("a\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = estimate(tmp_path / "text", 2, skip_first_field=False)
    assert "1-grams seen once, twice, three, four times: 2, 0, 0, 0; too few" in capsys.readouterr().err
    assert all(np.isfinite(level.log10_prob).all() and np.isfinite(level.log10_backoff).all() for level in model.levels)
    # p(a) = (1 - 0.5) / 2 + 0.5 · 1/2; p(a | <s>) = 0.5 + 0.5 p(a)
    assert 10 ** model.log10_prob([], "a") == pytest.approx(0.5)
    assert 10 ** model.log10_prob(["<s>"], "a") == pytest.approx(0.75)


def test_order_is_cut_to_the_longest_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("a\nb\n")
    assert estimate(tmp_path / "text", 6, skip_first_field=False).order == 3
    assert "has no 4-gram; the model is of order 3" in capsys.readouterr().err


def test_vocabulary_fixes_the_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "words.txt").write_text("<eps> 0\n!SIL 1\n<UNK> 2\na 3\nb 4\nunseen 5\n#0 6\n<s> 7\n</s> 8\n")
    (tmp_path / "text").write_text("u1 a b zzz\nu2 a\nu3\nu4 b yyy b\n")
    vocabulary = read_vocabulary(tmp_path / "words.txt")
    assert vocabulary == ["!SIL", "<UNK>", "a", "b", "unseen"]
    whole = estimate(tmp_path / "text", 3, vocabulary=vocabulary, keep_unk=True)
    assert "2 of 7 words (28.57 %) are outside the vocabulary and count as <UNK>" in capsys.readouterr().err
    assert whole.words == ["<s>", "<UNK>", "a", "b", "unseen", "</s>"]
    # the same text with the unknown words written out, of which "unseen" has the uniform share of five
    mapped = [["a", "b", "<UNK>"], ["a"], ["b", "<UNK>", "b"]]
    reference = Reference(mapped, 3)
    reference.vocabulary.add("unseen")
    for history in histories(whole):
        for word in reference.vocabulary:
            assert 10 ** whole.log10_prob(history, word) == pytest.approx(reference.prob(history, word))
    cut = estimate(tmp_path / "text", 3, vocabulary=vocabulary)
    assert cut.words == ["<s>", "a", "b", "unseen", "</s>"]
    assert cut.log10_prob(["a"], "b") == whole.log10_prob(["a"], "b")
    for n in (1, 2, 3):
        assert list(cut.ngrams(n)) == [g for g in whole.ngrams(n) if "<UNK>" not in g[0]]


def test_unknown_word_takes_no_part_in_a_closed_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1 a b\nu2 <SIL> a\n")
    model = estimate(tmp_path / "text", 2, vocabulary=["a", "b", "<SIL>", "!SIL"], keep_unk=True)
    assert model.words == ["<s>", "<SIL>", "a", "b", "</s>"]
    assert sum(10 ** model.log10_prob(["a"], w) for w in model.words[1:]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "text has no sentences"),
        (b"u1\nu2 \n", "text has no sentences"),
        (b"u1 a\nu2 a <s> b\n", "text, line 2: <s> may not stand in a text"),
        (b"u1 a\nu2 #0\n", "text, line 2: #0 may not stand in a text"),
        (b"u1 a\n\nu2 \xff\n", "text, line 3: .*can't decode byte 0xff"),
        (b"the cat\na dog\nthe dog\n", "text, line 3: utterance id the occurs twice.*--skip-first-field false"),
    ],
)
@pytest.mark.parametrize("vocabulary", [None, ["a"]])
def test_bad_text(tmp_path: Path, text: bytes, sentence: str, vocabulary: list[str] | None) -> None:
    (tmp_path / "text").write_bytes(text)
    with pytest.raises(KernelamError, match=sentence):
        estimate(tmp_path / "text", 3, vocabulary=vocabulary)


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match="no such file"):
        estimate(tmp_path / "none", 3)
    (tmp_path / "text").write_text("u1 a\n")
    with pytest.raises(KernelamError, match="the unknown word cannot be '<s>'"):
        estimate(tmp_path / "text", 3, unk="<s>")
    (tmp_path / "words").write_text("<eps> 0\n#0 1\n")
    with pytest.raises(KernelamError, match="words lists no words"):
        read_vocabulary(tmp_path / "words")
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"u1 a b c\nu2 b\n")[:-9])
    with pytest.raises(KernelamError, match=r"text.gz is not a whole gzip file"):
        estimate(tmp_path / "text.gz", 3)


def test_words_are_split_at_ascii_space_only(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1 a\u00a0b\tc\u3000d\n", encoding="utf-8")
    model = estimate(tmp_path / "text", 2)
    write_arpa(tmp_path / "lm", model)
    assert read_arpa(tmp_path / "lm").words == ["<s>", "a\u00a0b", "c\u3000d", "</s>"]


def test_command_line_writes_the_same_bytes(tmp_path: Path, kernelam: Callable) -> None:
    text = write_text(tmp_path / "text", sample(3, 50, 10))
    for name in ("a.gz", "b.gz", "c"):
        done = kernelam("lm", "estimate", "--order", 3, "--skip-first-field", "false", text, tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == (tmp_path / "c").read_bytes()


def test_command_line_error_leaves_nothing(tmp_path: Path, kernelam: Callable) -> None:
    (tmp_path / "text").write_text("u1 a </s>\n")
    done = kernelam("lm", "estimate", tmp_path / "text", tmp_path / "out" / "lm.arpa")
    assert done.returncode == 1
    assert done.stderr == f"kernelam lm estimate: {tmp_path}/text, line 1: </s> may not stand in a text\n"
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def iban_models(corpora: Path) -> tuple[ArpaModel, ArpaModel]:
    """The Iban model with the n-grams of <UNK> kept, and as it was made by another program, which removed them."""
    iban = corpora / "kaldi-iban"
    vocabulary = read_vocabulary(iban / "data/local/dict/lexicon.txt")
    whole = estimate(iban / "data-fbank/train/text", 3, vocabulary=vocabulary, keep_unk=True)
    return whole, read_arpa(iban / "data/lang_test/lm.arpa.gz")


def test_equals_the_iban_model(corpora: Path, iban_models: tuple[ArpaModel, ArpaModel]) -> None:
    """The same n-grams and values, to the last of the six decimals."""
    iban = corpora / "kaldi-iban"
    vocabulary = read_vocabulary(iban / "data/local/dict/lexicon.txt")
    model = estimate(iban / "data-fbank/train/text", 3, vocabulary=vocabulary)
    _, theirs = iban_models
    for n in (1, 2, 3):
        ours = {words: values for words, *values in model.ngrams(n)}
        given = {words: values for words, *values in theirs.ngrams(n)}
        assert ours.keys() == given.keys()
        assert np.abs(np.array([ours[g] for g in given]) - np.array(list(given.values()))).max() < 1e-6


def test_iban_perplexities(corpora: Path, iban_models: tuple[ArpaModel, ArpaModel]) -> None:
    """Near the 54 and 127 given with the model, both with <UNK> kept in histories and with it removed."""
    for name, given, oovs, *figures in (("dev", 54, 32, 54.28, 54.89), ("heldout", 127, 74, 126.60, 127.01)):
        for model, figure in zip(iban_models, figures, strict=True):
            result = perplexity(model, corpora / f"kaldi-iban/data-fbank/{name}/text")
            assert result.oovs == oovs
            assert result.ppl == pytest.approx(figure, abs=0.01)
            assert result.ppl == pytest.approx(given, rel=0.02)


def test_the_iban_unknown_word_carries_the_missing_share(iban_models: tuple[ArpaModel, ArpaModel]) -> None:
    """The <UNK> n-grams of the Iban model were removed and nothing rescaled: with them, histories sum to one."""
    whole, theirs = iban_models
    for model, missing in ((whole, 0.0), (theirs, 10 ** whole.log10_prob([], "<UNK>"))):
        total = np.sum(10 ** model.levels[0].log10_prob)
        assert total == pytest.approx(1 - missing, abs=1e-5)
