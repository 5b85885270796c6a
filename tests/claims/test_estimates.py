"""Intervals against scipy, and their coverage by simulation."""

import math

import numpy as np
import pytest
import scipy.stats

from kernelam.claims.estimates import change, change_of_errors, correlation_gap, mean, share, student_quantile
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.bootstrap import compare
from kernelam.scoring.wer import WerResult


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 8, 11, 23, 47, 200])
def test_student_is_that_of_scipy(df):
    assert student_quantile(df) == pytest.approx(scipy.stats.t.ppf(0.975, df), rel=1e-9)


def test_mean_has_students_interval():
    values = [0.3, -0.1, 0.25, 0.4, 0.05]
    expected = scipy.stats.t.interval(0.95, 4, np.mean(values), scipy.stats.sem(values))
    assert mean(values).interval == pytest.approx(expected, rel=1e-9)
    assert mean(values).effect == pytest.approx(np.mean(values))
    assert mean(values[:2]).interval is None
    assert mean([0.1, math.nan, 0.2]).interval is None


@pytest.mark.parametrize(("wins", "count"), [(8, 8), (7, 8), (0, 8), (3, 24)])
def test_share_has_wilsons_interval(wins, count):
    expected = scipy.stats.binomtest(wins, count).proportion_ci(method="wilson")
    assert share(wins, count).interval == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_change_is_relative_to_the_old():
    found = change([(9.0, 10.0), (18.0, 20.0), (4.5, 5.0)])
    assert found.effect == pytest.approx(-0.1)
    assert found.interval == pytest.approx((-0.1, -0.1))
    assert math.isnan(change([(1.0, 0.0), (1.0, 2.0), (1.0, 2.0)]).effect)


def result(errors) -> WerResult:
    return WerResult({f"u{i:03}": ErrorCounts(substitutions=int(n), ref_words=10) for i, n in enumerate(errors)})


def test_change_of_errors_adds_both_spreads():
    rng = np.random.default_rng(0)
    old, new = ([result(rng.binomial(10, p, 50)) for _ in range(4)] for p in (0.3, 0.25))
    found = change_of_errors(list(zip(new, old, strict=True)))
    base = np.mean([one.total.rate for one in old])
    differences = [a.total.rate - b.total.rate for a, b in zip(new, old, strict=True)]
    assert found.effect == pytest.approx(np.mean(differences) / base)
    low, high = compare(old, new).interval
    pairs = scipy.stats.t.ppf(0.975, 3) * scipy.stats.sem(differences)
    half = math.sqrt(((high - low) / 2) ** 2 + pairs**2) / base
    assert found.interval == pytest.approx((found.effect - half, found.effect + half))
    assert change_of_errors([(new[0], old[0])] * 2).interval is None
    assert math.isnan(change_of_errors([(new[0], result([0] * 50))] * 3).effect)


def test_pairs_that_share_a_model_are_one_case():
    rng = np.random.default_rng(1)
    old, new = ([result(rng.binomial(10, p, 50)) for _ in range(6)] for p in (0.3, 0.25))
    pairs = list(zip(new, old, strict=True))
    found = change_of_errors(pairs, together=2)
    differences = np.array([a.total.rate - b.total.rate for a, b in pairs]).reshape(3, 2).mean(axis=1)
    low, high = compare(old, new).interval
    cases = scipy.stats.t.ppf(0.975, 2) * scipy.stats.sem(differences)
    half = math.hypot((high - low) / 2, cases) / np.mean([one.total.rate for one in old])
    assert found.interval == pytest.approx((found.effect - half, found.effect + half))
    assert (found.count, change_of_errors(pairs, together=3).interval) == (3, None)


def test_interval_of_errors_covers_the_truth():
    """Utterances differ in hardness, models in skill: both are drawn anew each time. The sum of both is cautious."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(40):
        hard = rng.beta(3, 7, 40)

        def model(factor, hard=hard):
            return result(rng.binomial(10, np.clip(hard * factor * rng.normal(1, 0.05), 0, 1)))

        low, high = change_of_errors([(model(0.9), model(1.0)) for _ in range(4)]).interval
        hits += low < -0.1 < high
    assert hits >= 36


def test_correlation_gap_is_that_of_numpy_and_finds_what_is_there():
    rng = np.random.default_rng(2)
    target = rng.normal(size=30)
    good, bad = target + 0.3 * rng.normal(size=30), target + 3 * rng.normal(size=30)
    groups = [f"g{i // 2}" for i in range(30)]
    found = correlation_gap(good, bad, target, groups)
    expected = np.corrcoef(good, target)[0, 1] - np.corrcoef(bad, target)[0, 1]
    assert found.effect == pytest.approx(expected)
    assert 0 < found.interval[0] < expected < found.interval[1]
    assert correlation_gap(good, bad, target, ["one", "two"] * 15).interval is None
    assert correlation_gap(good, np.ones(30), target, groups).interval is None


def test_correlation_gap_resamples_groups():
    """Against a loop that draws groups one by one."""
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(3, 24))
    groups = np.repeat(np.arange(12), 2)
    gaps = []
    for _ in range(2000):
        members = np.concatenate([np.flatnonzero(groups == group) for group in rng.integers(12, size=12)])
        x, y, z = columns[:, members]
        gaps.append(np.corrcoef(x, z)[0, 1] - np.corrcoef(y, z)[0, 1])
    found = correlation_gap(*columns, [f"g{group}" for group in groups])
    assert found.interval == pytest.approx(np.quantile(gaps, [0.025, 0.975]), abs=0.05)


def test_interval_of_correlations_covers_the_truth():
    """Of normal variables with correlations 0.9 and 0.5 with the third, the gap is 0.4."""
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(150):
        target, noise = rng.normal(size=28), rng.normal(size=(2, 28))
        first, second = 0.9 * target + math.sqrt(0.19) * noise[0], 0.5 * target + math.sqrt(0.75) * noise[1]
        low, high = correlation_gap(first, second, target, [f"g{i}" for i in range(28)], replicates=400).interval
        hits += low < 0.4 < high
    assert 0.88 <= hits / 150 <= 1.0
