"""Effects and their 95 % intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

import numpy as np

from kernelam.scoring.bootstrap import compare
from kernelam.scoring.wer import WerResult

FEWEST = 3  # pairs that an interval is made of
FEWEST_SETTINGS = 10  # that a correlation is resampled over
LEVEL, REPLICATES, SEED = 0.95, 10_000, 0


@dataclass(frozen=True)
class Estimate:
    effect: float
    interval: tuple[float, float] | None  # none where there are too few to have one
    count: int  # of what it was made of


def student_quantile(df: int) -> float:
    """t with P(|T| < t) = 0.95, by bisection of the closed form for whole degrees of freedom.

    With θ = atan(t/√ν), P = sin θ Σ_{j<ν/2} c_j cos²ʲ θ for even ν, c_j = c_{j−1} (2j−1)/2j; and for odd ν
    P = 2/π (θ + sin θ cos θ Σ_{j<(ν−1)/2} c_j cos²ʲ θ), c_j = c_{j−1} 2j/(2j+1); c_0 = 1.
    """

    def inside(t: float) -> float:
        theta, odd = math.atan(t / math.sqrt(df)), df % 2
        term, total = 1.0, 0.0
        for j in range(1, df // 2 + 1):
            total += term
            term *= math.cos(theta) ** 2 * (2 * j / (2 * j + 1) if odd else (2 * j - 1) / (2 * j))
        if odd:
            return 2 / math.pi * (theta + math.sin(theta) * math.cos(theta) * total)
        return math.sin(theta) * total

    low, high = 1.0, 16.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < LEVEL else (low, middle)
    return high


def _half_width(values: Sequence[float]) -> float:
    """Of Student's interval of the mean: t s/√n."""
    return student_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))


def mean(values: Sequence[float]) -> Estimate:
    """With Student's interval."""
    middle = fmean(values)
    if len(values) < FEWEST or not math.isfinite(middle):
        return Estimate(middle, None, len(values))
    half = _half_width(values)
    return Estimate(middle, (middle - half, middle + half), len(values))


def relative(new: float, old: float) -> float:
    return (new - old) / old if old else math.nan


def change(pairs: Sequence[tuple[float, float]]) -> Estimate:
    """The mean of (new − old) / old."""
    return mean([relative(new, old) for new, old in pairs])


def change_of_errors(pairs: Sequence[tuple[WerResult, WerResult]], together: int = 1) -> Estimate:
    """The mean over pairs of the error rates' difference, relative to the mean rate of the old.

    Two things could have come out otherwise: the test set, by a paired bootstrap over utterances of the errors of all
    pairs, and the models, by Student's interval over pairs. Their half-widths are added as √(a² + b²). So many pairs
    in a row as are `together` share a model, and are one case among the models.
    """
    new, old = ([pair[side] for pair in pairs] for side in (0, 1))
    base = fmean(result.total.rate for result in old)
    differences = [one.total.rate - other.total.rate for one, other in pairs]
    if base == 0:
        return Estimate(math.nan, None, len(pairs))
    effect = fmean(differences) / base
    cases = [fmean(differences[start : start + together]) for start in range(0, len(pairs), together)]
    if len(cases) < FEWEST or len(old[0].utterances) < 2:
        return Estimate(effect, None, len(cases))
    low, high = compare(old, new).interval
    half = math.hypot((high - low) / 2, _half_width(cases)) / base
    return Estimate(effect, (effect - half, effect + half), len(cases))


def share(successes: float, count: int) -> Estimate:
    """With Wilson's interval."""
    z, p = NormalDist().inv_cdf((1 + LEVEL) / 2), successes / count
    middle, scale = (p + z * z / (2 * count)), 1 + z * z / count
    half = z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    interval = ((middle - half) / scale, (middle + half) / scale)
    return Estimate(p, interval if count >= FEWEST else None, count)


def correlation_gap(
    first: Sequence[float],
    second: Sequence[float],
    target: Sequence[float],
    groups: Sequence[str],
    replicates: int = REPLICATES,
) -> Estimate:
    """corr(first, target) − corr(second, target), with the central 95 % of it when groups are drawn with replacement:
    models that differ in their seed alone are no evidence of their own."""
    names, index = np.unique(groups, return_inverse=True)
    columns = np.array([first, second, target], dtype=np.float64)

    def gap(weights: np.ndarray) -> np.ndarray:
        return _correlations(columns[0], columns[2], weights) - _correlations(columns[1], columns[2], weights)

    effect = float(gap(np.ones((1, len(index))))[0])
    if len(names) < FEWEST_SETTINGS or not math.isfinite(effect):
        return Estimate(effect, None, len(index))
    drawn = np.random.default_rng(SEED).multinomial(len(names), [1 / len(names)] * len(names), replicates)
    low, high = np.nanquantile(gap(drawn[:, index].astype(np.float64)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(effect, (float(low), float(high)), len(index))


def _correlations(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Pearson's, of models with each row of weights; NaN where one of the two is constant."""
    x, y, total = x - x.mean(), y - y.mean(), weights.sum(axis=1)
    mean_x, mean_y = weights @ x / total, weights @ y / total
    covariance = weights @ (x * y) / total - mean_x * mean_y
    variances = (weights @ (x * x) / total - mean_x**2) * (weights @ (y * y) / total - mean_y**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variances > 1e-24, covariance / np.sqrt(variances), np.nan)
