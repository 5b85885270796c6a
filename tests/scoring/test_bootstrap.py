"""Intervals and p values against exact enumeration, scipy, Kaldi, kaldialign, and simulation under the null."""

import time
from itertools import product
from pathlib import Path

import kaldialign
import numpy as np
import pytest
import scipy.stats

from kernelam.errors import KernelamError
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.bootstrap import Bootstrap, Comparison, bootstrap, compare
from kernelam.scoring.wer import WerResult, compute_wer, read_transcripts


def result_of(errors: list[int] | np.ndarray, words: list[int] | np.ndarray) -> WerResult:
    pairs = zip(map(int, errors), map(int, words), strict=True)
    return WerResult({f"u{i:04d}": ErrorCounts(substitutions=e, ref_words=n) for i, (e, n) in enumerate(pairs)})


def random_result(seed: int, utterances: int = 500, rate: float = 0.2) -> WerResult:
    rng = np.random.default_rng(seed)
    words = rng.integers(4, 20, utterances)
    return result_of(rng.binomial(words, rate), words)


def test_replicates_have_the_exact_distribution() -> None:
    errors, words = [0, 1, 3], [2, 5, 4]
    exact = [sum(errors[i] for i in d) / sum(words[i] for i in d) for d in product(range(3), repeat=3)]
    rates = bootstrap(result_of(errors, words), replicates=200_000).rates
    for value in sorted(set(exact)):
        share = np.mean(np.abs(rates - value) < 1e-12)
        assert share == pytest.approx(np.mean(np.isclose(exact, value)), abs=0.005)


def test_interval_is_that_of_scipy() -> None:
    result = random_result(1, 200)
    errors = np.array([c.errors for c in result.utterances.values()])
    words = np.array([c.ref_words for c in result.utterances.values()])

    def rate(e: np.ndarray, n: np.ndarray, axis: int) -> np.ndarray:
        return e.sum(axis) / n.sum(axis)

    theirs = scipy.stats.bootstrap((errors, words), rate, paired=True, method="percentile", rng=2, batch=1000)
    low, high = theirs.confidence_interval
    assert bootstrap(result).interval == pytest.approx((low, high), abs=1e-3)


def test_interval_of_equal_utterances_is_binomial() -> None:
    """400 utterances of one word, 30 % wrong: the replicates are Binomial(400, 0.3) / 400."""
    boot = bootstrap(result_of([1] * 120 + [0] * 280, [1] * 400))
    assert boot.rates.std() == pytest.approx(np.sqrt(0.3 * 0.7 / 400), rel=0.03)
    low, high = scipy.stats.binom.ppf([0.025, 0.975], 400, 0.3) / 400
    assert boot.interval == pytest.approx((low, high), abs=0.005)


@pytest.mark.parametrize("name", ["tri1.dev", "tri1.test", "tri3.dev", "tri3.test"])
def test_line_is_that_of_compute_wer_bootci(corpora: Path, name: str) -> None:
    folder = corpora / "kaldi-timit-sample/expected/compute-wer"
    tables = [folder / f"{name}.ref.txt", folder / f"{name}.lmwt7.hyp.txt"]
    refs, hyps = map(read_transcripts, tables)
    ours = bootstrap(compute_wer(refs, hyps)).kaldi_line.split()
    theirs = (folder / f"{name}.lmwt7.bootci.stdout").read_text().split()
    for mine, kaldis in zip(ours, theirs, strict=True):
        try:  # Kaldi draws from rand(): its own lines differ by as much
            assert float(mine.rstrip(",")) == pytest.approx(float(kaldis.rstrip(",")), abs=0.15)
            assert len(mine) == len(kaldis)
        except ValueError:
            assert mine == kaldis


def test_line_to_the_character() -> None:
    line = Bootstrap(np.array([0.1, 0.3]), 2).kaldi_line
    assert line == "Set1: %WER 20.00 95% Conf Interval [ 0.40, 39.60 ]"


def test_seeds() -> None:
    result = random_result(3)
    assert np.array_equal(bootstrap(result, seed=1).rates, bootstrap(result, seed=1).rates)
    assert not np.array_equal(bootstrap(result, seed=1).rates, bootstrap(result, seed=2).rates)


def test_speakers_that_differ_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    words = np.full(400, 10)
    result = result_of(rng.binomial(words, np.repeat(rng.uniform(0, 0.4, 20), 20)), words)
    utt2spk = {utt: f"s{i // 20}" for i, utt in enumerate(result.utterances)}
    by_utterance, by_speaker = bootstrap(result), bootstrap(result, utt2spk)
    assert by_speaker.units == 20
    assert by_speaker.rates.std() > 1.5 * by_utterance.rates.std()
    sums = np.array([c.errors for c in result.utterances.values()]).reshape(20, 20).sum(1) / 200
    assert by_speaker.rates.std() == pytest.approx(sums.std() / np.sqrt(20), rel=0.03)


def test_one_unit_has_no_interval() -> None:
    assert bootstrap(result_of([1], [3])).interval is None
    assert bootstrap(result_of([1, 2], [3, 3]), {"u0000": "s", "u0001": "s"}).interval is None


def test_empty_references_among_others() -> None:
    boot = bootstrap(result_of([1, 1, 0], [0, 2, 0]))
    assert np.isfinite(boot.rates).all()


def test_identical_systems_do_not_differ() -> None:
    result = random_result(5)
    same = compare(result, result)
    assert (same.difference, same.interval, same.p) == (0, (0, 0), 1)


def test_a_clear_difference_and_its_mirror() -> None:
    worse, better = random_result(6, rate=0.3), random_result(6, rate=0.2)
    there, back = compare(worse, better), compare(better, worse)
    assert there.difference == pytest.approx(better.total.rate - worse.total.rate)
    assert there.p == back.p == pytest.approx(2 / 10_001)
    assert there.interval[0] < there.difference < there.interval[1] < 0
    assert back.interval == pytest.approx((-there.interval[1], -there.interval[0]))


def test_comparison_is_that_of_kaldialign() -> None:
    rng = np.random.default_rng(7)

    def noisy(ref: list[str], rate: float) -> list[str]:
        return [w if rng.random() > rate else "x" for w in ref]

    refs = {f"u{i:03d}": [str(rng.integers(50)) for _ in range(8)] for i in range(150)}
    one, two = ({utt: noisy(ref, rate) for utt, ref in refs.items()} for rate in (0.22, 0.20))
    theirs = kaldialign.bootstrap_wer_ci(list(refs.values()), list(one.values()), list(two.values()), replications=3000)
    ours = compare(compute_wer(refs, one), compute_wer(refs, two))
    assert ours.p / 2 == pytest.approx(1 - theirs["p_s2_improv_over_s1"], abs=0.03)
    assert bootstrap(compute_wer(refs, one)).rates.std() * 1.96 == pytest.approx(theirs["system1"]["ci95"], rel=0.06)


def test_p_is_uniform_when_systems_are_exchangeable() -> None:
    rng = np.random.default_rng(8)
    words = np.full(120, 10)
    ps = []
    for trial in range(200):
        hard = rng.uniform(0, 0.5, 120)  # both systems find the same utterances hard
        one, two = (result_of(rng.binomial(words, hard), words) for _ in range(2))
        ps.append(compare(one, two, replicates=500, seed=trial).p)
    assert 0.02 <= np.mean(np.array(ps) < 0.05) <= 0.09
    assert 0.4 <= np.mean(np.array(ps) < 0.5) <= 0.6


def test_few_units_cannot_be_significant() -> None:
    """Three speakers, each better: a sign test gives 1/4, and so no less is reported."""
    one, two = result_of([5, 6, 7], [10, 10, 10]), result_of([4, 5, 6], [10, 10, 10])
    assert compare(one, two).p == 0.25
    assert compare(result_of([1], [3]), result_of([0], [3])).p == 1


@pytest.mark.parametrize("seed", range(5))
def test_right_or_wrong_is_tested_as_scipy_does(seed: int) -> None:
    """McNemar's exact test: a binomial one of the utterances that one system alone has wrong."""
    rng = np.random.default_rng(seed)
    hard = rng.uniform(0, 0.3, 4000)
    one, two = (rng.binomial(1, share * hard) for share in (1.0, 0.85))
    only = int((one > two).sum()), int((two > one).sum())
    theirs = scipy.stats.binomtest(only[0], sum(only), 0.5).pvalue
    ours = [compare(result_of(a, [1] * 4000), result_of(b, [1] * 4000)).p for a, b in ((one, two), (two, one))]
    assert ours == pytest.approx([theirs, theirs], rel=1e-9)


def test_a_p_is_never_told_as_zero() -> None:
    assert Comparison(0.1, (0.0, 0.2), 1e-9).p_text == "< 0.0001"
    assert Comparison(0.1, (0.0, 0.2), 6e-5).p_text == "0.0001"


def test_an_inserted_word_is_more_than_right_or_wrong() -> None:
    one, two = result_of([2, 1, 0, 0] * 50, [1] * 200), result_of([0, 1, 0, 0] * 50, [1] * 200)
    assert compare(one, two).p == pytest.approx(2 / 10_001)


def test_bad_input() -> None:
    one, other = result_of([1, 1], [2, 2]), result_of([1], [2])
    with pytest.raises(KernelamError, match="only one has u0001"):
        compare(one, other)
    with pytest.raises(KernelamError, match="u0001 differs in length"):
        compare(one, result_of([1, 1], [2, 3]))
    with pytest.raises(KernelamError, match="u0001 has no speaker"):
        bootstrap(one, {"u0000": "s"})


def test_ten_thousand_replicates_are_quick() -> None:
    result = random_result(9)
    start = time.process_time()
    bootstrap(result)
    assert time.process_time() - start < 1


def test_runs_with_several_seeds_count_by_their_mean():
    errors, words = np.array([[3, 0, 1, 2], [1, 2, 1, 0]]), [4, 5, 3, 6]
    runs = [result_of(list(row), words) for row in errors]
    mean = result_of([2, 1, 1, 1], words)
    other = result_of([2, 2, 2, 2], words)
    np.testing.assert_allclose(bootstrap(runs).rates, bootstrap(mean).rates)
    assert compare(other, runs) == compare(other, mean)
    assert compare(runs, [other, other]) == compare(mean, other)
    with pytest.raises(KernelamError, match="not scored on the same reference: u0001 differs in length"):
        compare(other, [runs[0], result_of([1, 1, 1, 1], [4, 6, 3, 6])])


def test_two_systems_of_text_files(tmp_path, kernelam):
    texts = {"ref": "x y z w", "better": "x y z w", "worse": "x y z"}
    for name, words in texts.items():
        (tmp_path / name).write_text("".join(f"u{i} {words}\n" for i in range(8)))
    done = kernelam("score", "text", "--against", "worse", "ref", "better", cwd=tmp_path)
    rates = [line for line in done.stdout.splitlines() if line.startswith("%WER")]
    assert rates[0].startswith("%WER 0.00 [ 0 / 32")
    assert rates[1].startswith("%WER 25.00 [ 8 / 32")
    assert rates[2] == "%WER -25.00 95% Conf Interval [ -25.00, -25.00 ] p 0.0078"
    (tmp_path / "part").write_text("u0 x y z\n")
    done = kernelam("score", "text", "--mode", "present", "--against", "part", "ref", "better", cwd=tmp_path)
    assert done.returncode == 1
    assert "not scored on the same utterances: only one has u1" in done.stderr
