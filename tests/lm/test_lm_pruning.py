"""Entropy pruning and interpolation, against sums over all words of small models."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kernelam.errors import KernelamError
from kernelam.lm.arpa import ArpaModel, read_arpa, write_arpa
from kernelam.lm.kneser_ney import estimate
from kernelam.lm.mixing import mixed, tuned_weights
from kernelam.lm.perplexity import perplexity
from kernelam.lm.pruning import _losses, pruned


def write_text(path: Path, seed: int, words: str = "abcd", lines: int = 60) -> Path:
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(len(words), 0.7), len(words) + 1)
    with path.open("w") as stream:
        for number in range(lines):
            sentence, last = [], len(words)
            for _ in range(rng.integers(1, 8)):
                last = rng.choice(len(words), p=chances[last])
                sentence.append(words[last])
            stream.write(f"{path.name}-{number:03} {' '.join(sentence)}\n")
    return path


@pytest.fixture
def model(tmp_path: Path) -> ArpaModel:
    return estimate(write_text(tmp_path / "text", 1), 3)


def predicted(model: ArpaModel) -> list[str]:
    return [word for word in model.words if word != "<s>"]


def histories(model: ArpaModel) -> list[tuple[str, ...]]:
    inner = [word for word in model.words if word not in ("<s>", "</s>")]
    return [
        (), *((word,) for word in ["<s>", *inner]), *itertools.product(["<s>", *inner], inner)
    ]  # fmt: skip


def probability(model: ArpaModel, history: tuple[str, ...], word: str) -> float:
    return 10 ** model.log10_prob(history, word)


@pytest.mark.parametrize("n", [2, 3])
def test_a_loss_is_the_divergence_of_the_history_it_belongs_to(model, n):
    """Take one n-gram out, set the backoff anew, and compare the distributions after its history."""
    losses = _losses(model, n)
    for row, (words, _, _) in enumerate(model.ngrams(n)):
        history, word = words[:-1], words[-1]
        listed = [
            w for w in predicted(model) if model.rows([np.array([model.index[x]]) for x in (*history, w)])[0] >= 0
        ]
        listed.remove(word)
        whole = {w: probability(model, history, w) for w in predicted(model)}
        lower = {w: probability(model, history[1:], w) for w in predicted(model)}
        alpha = (1 - sum(whole[w] for w in listed)) / (1 - sum(lower[w] for w in listed))
        without = {w: whole[w] if w in listed else alpha * lower[w] for w in predicted(model)}
        divergence = sum(p * math.log(p / without[w]) for w, p in whole.items())
        weight = 1.0
        for place, spoken in enumerate(history):
            weight *= probability(model, history[:place], "</s>" if spoken == "<s>" else spoken)
        assert losses[row] == pytest.approx(weight * divergence, rel=1e-6, abs=1e-12)


def test_pruned_models_are_smaller_sum_to_one_and_lose_little(model, tmp_path):
    before, size = perplexity(model, tmp_path / "text").ppl, sum(map(len, model.levels))
    for threshold in (1e-5, 1e-3, 1e-2, 0.1):
        cut = pruned(model, threshold)
        now = sum(map(len, cut.levels))
        assert now <= size
        size = now
        for history in histories(model):
            assert sum(probability(cut, history, w) for w in predicted(model)) == pytest.approx(1, abs=1e-9)
        after = perplexity(cut, tmp_path / "text").ppl
        assert before * (1 - 1e-6) <= after
        write_arpa(tmp_path / "cut.arpa", cut)
        assert [len(level) for level in read_arpa(tmp_path / "cut.arpa").levels] == [len(level) for level in cut.levels]
        before = after
    assert pruned(model, 1e9).order == 1
    assert pruned(model, 1e9).levels[0].log10_backoff.tolist() == [0.0] * len(model.words)


def test_nothing_is_lost_at_threshold_zero(model):
    same = pruned(model, 0.0)
    for ours, theirs in zip(same.levels, model.levels, strict=True):
        for name in ("key", "log10_prob", "log10_backoff"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    with pytest.raises(KernelamError, match="at least 0, not nan"):
        pruned(model, math.nan)
    endless = model.subset(
        [np.array([word != "</s>" for word in model.words]), *(np.ones(len(x), bool) for x in model.levels[1:])]
    )
    for use in (lambda: pruned(endless, 0.1), lambda: mixed([endless], [1.0])):
        with pytest.raises(KernelamError, match="the model has no </s>: it cannot be"):
            use()


def test_prefixes_of_what_stays_stay(model):
    cut = pruned(model, 1e-2)
    shorter = {words for words, _, _ in cut.ngrams(2)}
    assert cut.order == 3
    assert {words[:2] for words, _, _ in cut.ngrams(3)} <= shorter


def test_a_mixture_is_the_weighted_mean(model, tmp_path):
    other = estimate(write_text(tmp_path / "other", 2, "bcde"), 2)
    both = mixed([model, other], [0.3, 0.7])
    assert both.words == ["<s>", "a", "b", "c", "d", "e", "</s>"]
    for n in (1, 2, 3):
        for words, log10_prob, _ in both.ngrams(n):
            if words != ("<s>",):
                mean = sum(
                    weight * probability(part, words[:-1], words[-1])
                    for weight, part in ((0.3, model), (0.7, other))
                    if words[-1] in part.index
                )
                assert 10**log10_prob == pytest.approx(mean)
    for history in histories(both):
        assert sum(probability(both, history, w) for w in predicted(both)) == pytest.approx(1, abs=1e-9)
    alone = mixed([model, other], [1.0, 0.0])
    for history in histories(model):
        for word in predicted(model):
            assert probability(alone, history, word) == pytest.approx(probability(model, history, word), rel=1e-6)


def test_weights_make_the_text_most_probable(tmp_path):
    parts = [estimate(write_text(tmp_path / f"part{seed}", seed), 2) for seed in (3, 4)]
    text = tmp_path / "both"
    text.write_text((tmp_path / "part3").read_text() + "".join((tmp_path / "part4").read_text().splitlines(True)[:15]))
    first, second = tuned_weights(parts, text, "<UNK>", skip_first_field=True)
    assert first + second == pytest.approx(1)
    # The mixture itself backs off otherwise than its parts: the best weights for it are near, not the same.
    best = minimize_scalar(lambda w: perplexity(mixed(parts, [w, 1 - w]), text).ppl, bounds=(0, 1), method="bounded")
    assert first == pytest.approx(best.x, abs=0.03)
    with pytest.raises(KernelamError, match=r"2 models need 2 weights of at least 0 whose sum is 1, not 0\.5 0\.6"):
        mixed(parts, [0.5, 0.6])


def test_commands(tmp_path, kernelam):
    for seed in (1, 2):
        text = write_text(tmp_path / f"text{seed}", seed)
        assert kernelam("lm", "estimate", text, tmp_path / f"{seed}.arpa.gz").returncode == 0
    done = kernelam("lm", "prune", "--threshold", "1e-3", tmp_path / "1.arpa.gz", tmp_path / "cut.arpa")
    assert done.returncode == 0
    assert "cut.arpa: 6 1-grams" in done.stderr
    pair = (tmp_path / "1.arpa.gz", tmp_path / "2.arpa.gz")
    done = kernelam("lm", "interpolate", "--tune", tmp_path / "text1", "--output", tmp_path / "mix.arpa", *pair)
    assert done.returncode == 0
    assert done.stderr.startswith("weights 1.0000 0.0000\n")
    done = kernelam("lm", "interpolate", "--output", tmp_path / "none.arpa", *pair)
    assert (done.returncode, "give either --weights or --tune" in done.stderr) == (1, True)
    assert not (tmp_path / "none.arpa").exists()
