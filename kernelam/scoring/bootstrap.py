"""Confidence intervals and paired comparison of error rates by resampling (Bisani and Ney, ICASSP 2004); of errors in
classes, by McNemar's exact test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelam.errors import KernelamError
from kernelam.scoring.wer import WerResult

REPLICATES, SEED = 10_000, 0
Runs = WerResult | Sequence[WerResult]
"""A system's result, or its results with several seeds, of which the mean counts."""
_BLOCK = 1 << 21  # draws in memory at once


@dataclass(frozen=True)
class Bootstrap:
    """Rates of replicates: Σ errors / Σ words over as many units as there are, drawn with replacement."""

    rates: np.ndarray
    units: int

    @property
    def interval(self) -> tuple[float, float] | None:
        """The central 95 % of the replicates; None of a single unit, which resampling cannot vary."""
        if self.units < 2:
            return None
        low, high = np.quantile(self.rates, [0.025, 0.975])
        return float(low), float(high)

    @property
    def kaldi_line(self) -> str:
        """What compute-wer-bootci prints: mean ± 1.96 standard deviations of the replicates."""
        mean, half = 100 * self.rates.mean(), 196 * self.rates.std()
        return f"Set1: %WER {mean:.2f} 95% Conf Interval [ {mean - half:.2f}, {mean + half:.2f} ]"


@dataclass(frozen=True)
class Comparison:
    """How a system compares with a baseline on the same references."""

    difference: float  # rate of the system - rate of the baseline: negative is better
    interval: tuple[float, float]  # the central 95 % of the replicates' differences
    p: float  # two-sided

    @property
    def p_text(self) -> str:
        """As tables have it."""
        return f"{self.p:.4f}" if self.p >= 5e-5 else "< 0.0001"

    @property
    def text(self) -> str:
        difference, low, high = (f"{100 * rate:+.2f}" for rate in (self.difference, *self.interval))
        return f"%WER {difference} 95% Conf Interval [ {low}, {high} ] p {self.p:.2g}"


def bootstrap(
    result: Runs, utt2spk: Mapping[str, str] | None = None, replicates: int = REPLICATES, seed: int = SEED
) -> Bootstrap:
    """Resample utterances, or, with `utt2spk`, speakers: errors of one speaker's utterances are not independent."""
    units = _units([_runs(result)], utt2spk)
    errors, words = _resample(units, replicates, seed)
    return Bootstrap(errors[words > 0] / words[words > 0], units.shape[1])


def compare(baseline: Runs, system: Runs, replicates: int = REPLICATES, seed: int = SEED) -> Comparison:
    """Resample the same utterances for both systems.

    p = 2 min(#{δ* ≤ 0} + 1, #{δ* ≥ 0} + 1) / (replicates + 1), where δ* is a replicate's difference in errors; but no
    less than 2^(1 - k), the least that a sign test on k utterances can give: resampling a few understates the spread.
    Where each utterance is right or wrong, as images are, p is that of McNemar's test, which needs no replicates.
    """
    first, second = _runs(baseline), _runs(system)
    units = _units([first, second])
    base_errors, errors, words = _resample(units, replicates, seed)
    delta = errors - base_errors
    if np.isin(units[:2], (0, 1)).all() and (units[2] == 1).all():
        p = mcnemar(*units[:2])
    else:
        p = 2 * (1 + min(np.sum(delta <= 0), np.sum(delta >= 0))) / (replicates + 1)
        p = min(1.0, max(float(p), 2.0 ** (1 - units.shape[1])))
    low, high = np.quantile(delta[words > 0] / words[words > 0], [0.025, 0.975])
    base_rate, rate = (np.mean([run.total.rate for run in runs]) for runs in (first, second))
    difference = float(rate - base_rate)
    return Comparison(difference, (float(low), float(high)), p)


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided and exact: of the units that one system alone has wrong (1, not 0), any may be either's."""
    alone = int((first > second).sum()), int((second > first).sum())
    ways, term = 0, 1  # of the 2ⁿ, those in which the better system has no more of them than here
    for k in range(min(alone) + 1):
        ways += term
        term = term * (sum(alone) - k) // (k + 1)
    return min(1.0, 2 * ways / 2 ** sum(alone))


def check_same_references(a: WerResult, b: WerResult) -> None:
    if odd := sorted(a.utterances.keys() ^ b.utterances.keys()):
        raise KernelamError(f"the two systems were not scored on the same utterances: only one has {odd[0]}")
    for utt, counts in a.utterances.items():
        if counts.ref_words != b.utterances[utt].ref_words and not (a.alternatives and b.alternatives):
            raise KernelamError(f"the two systems were not scored on the same reference: {utt} differs in length")


def _runs(runs: Runs) -> Sequence[WerResult]:
    return [runs] if isinstance(runs, WerResult) else runs


def _units(systems: list[Sequence[WerResult]], utt2spk: Mapping[str, str] | None = None) -> np.ndarray:
    """Rows: errors of each system in the mean of its runs, then reference words. Columns: utterances, or speakers."""
    first = systems[0][0].utterances
    for other in (run for runs in systems for run in runs):
        check_same_references(systems[0][0], other)
    columns = [
        [sum(run.utterances[utt].errors for run in runs) / len(runs) for runs in systems] + [counts.ref_words]
        for utt, counts in first.items()
    ]
    table = np.array(columns, dtype=np.float64).T
    if utt2spk is None:
        return table
    if unknown := [utt for utt in first if utt not in utt2spk]:
        raise KernelamError(f"utterance {unknown[0]} has no speaker in the utt2spk of its data directory")
    speakers, index = np.unique([utt2spk[utt] for utt in first], return_inverse=True)
    return np.stack([np.bincount(index, row, len(speakers)) for row in table])


def _resample(table: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """Sums of every row over columns drawn with replacement: rows × replicates."""
    rng = np.random.default_rng(seed)
    count = table.shape[1]
    block = max(1, _BLOCK // count)
    sums = np.empty((len(table), replicates))
    for start in range(0, replicates, block):
        picks = rng.integers(count, size=(min(block, replicates - start), count), dtype=np.int32)
        for row, values in zip(sums, table, strict=True):
            row[start : start + block] = values[picks].sum(axis=1)
    return sums
