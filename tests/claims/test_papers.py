"""Claims in worlds where each is true, false, or hidden by noise: what is trained is not needed for that."""

import math
import zlib
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from kernelam.claims.estimates import Estimate
from kernelam.claims.outcomes import Evidence, Outcome
from kernelam.claims.papers import CLAIMS, Verdict, above, below, find, within
from kernelam.claims.study import KERNELS, TRICKS, Key, Scale
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.wer import WerResult

SCALE = Scale((1, 2, 3), (1, 2, 3), (500, 1000, 2000))


@dataclass(frozen=True)
class World:
    """Factors of what the claims are about, and how much models differ beside."""

    bottleneck: float = 0.9  # on TER
    erll: float = 0.95  # on TER
    sparse: float = 0.95  # on TER
    dnn: float = 0.98  # on TER
    combined: float = 0.9  # on the lower TER of two
    laplacian_selection: float = 0.9  # on CE
    selection: float = 0.97  # on CE of the other kernels
    sizes: tuple[float, float] = (1.2, 1.08)  # on CE of 500 and 1000 features
    blocks: float = 1.002  # on CE
    sag: float = 0.95  # on CE
    sum: float = 0.95  # on perplexity
    mask: float = 0.95  # on the frame error of kernel models
    survival: float = 0.6
    correlated: str = "erll"  # what goes with TER: erll, ce or neither
    noise: float = 0.002

    def outcome(self, key: Key) -> Outcome:
        rng = np.random.default_rng(zlib.crc32(key.name.encode()))

        def about(value: float) -> float:
            return value * (1 + self.noise * rng.uniform(-1, 1))

        trick, ce = key.setting.removesuffix("-fs"), self._ce(key)
        tuned, rate = (about(self._rate(key.system, trick)) for _ in range(2))
        erll = about(2.0 + 10 * rate) if self.correlated == "erll" else 4 + rng.uniform()
        ce = {"ce": 10 * rate, "neither": 2 + rng.uniform()}.get(self.correlated, about(ce))
        ppl = about(7.0 * (self.sum if key.system == "sum" else 1.0))
        kernel_gain = self.mask if key.system != "dnn" else 0.99
        heldout = {"ce": ce, "erll": erll, "perplexity": ppl}
        heldout["frame_error"] = about(0.5 * (kernel_gain if key.setting == "mask" else 1.0))
        losses = [about(loss * (self.sag if key.setting == "sag" else 1.0)) for loss in (3.0, 2.5, 2.2)]
        return Outcome(heldout, losses, about(self.survival), tuned, words(rate))

    def _rate(self, system: str, trick: str) -> float:
        if trick == "with-dnn":
            return self.combined * min(self._rate(system, "br"), self._rate("dnn", "br"))
        of = {"sparse-gaussian": self.sparse, "gaussian": 1.02, "dnn": self.dnn}.get(system, 1.0)
        b, r = ("b" in trick, "r" in trick) if trick in TRICKS else (True, False)
        return 0.2 * of * (self.bottleneck if b else 1.0) * (self.erll if r else 1.0)

    def _ce(self, key: Key) -> float:
        ce = 2.0 * (1.1 if key.setting.startswith("b") else 1.0)
        if key.setting.endswith("-fs"):
            ce *= self.laplacian_selection if key.system == "laplacian" else self.selection
        more = {"b-500": self.sizes[0], "b-1000": self.sizes[1], "blocks": self.blocks / 1.1}
        return ce * more.get(key.setting, 1.0)


def words(rate: float) -> WerResult:
    """A hundred utterances of a hundred words, alike."""
    ends = [math.floor(i * 100 * rate) for i in range(101)]
    counts = (ErrorCounts(substitutions=b - a, ref_words=100) for a, b in pairwise(ends))
    return WerResult({f"u{i:03}": count for i, count in enumerate(counts)})


def keys(scale: Scale = SCALE) -> list[Key]:
    settings = [*TRICKS, *(f"{trick}-fs" for trick in TRICKS), "b-500", "b-1000", "blocks", "sag", "sgd", "mask"]
    systems = {kernel: [*settings, "with-dnn"] for kernel in KERNELS} | {"dnn": [*TRICKS, "mask"], "sum": ["b"]}
    return [Key(system, setting, seed) for system in systems for setting in systems[system] for seed in scale.seeds]


def verdict(number: int, world: World, scale: Scale = SCALE) -> Verdict:
    evidence = Evidence(scale, {key: world.outcome(key) for key in keys(scale)})
    return find(CLAIMS[number - 1], evidence).verdict


FALSE = {
    1: {"bottleneck": 1.1},
    2: {"selection": 1.05, "laplacian_selection": 1.05},
    3: {"erll": 1.06},
    4: {"correlated": "ce"},
    5: {"sparse": 1.05},
    6: {"sizes": (0.9, 0.95)},
    7: {"survival": -0.1},
    8: {"dnn": 0.85},
    9: {"blocks": 1.03},
    10: {"sag": 1.05},
    11: {"sum": 1.05},
    12: {"combined": 1.08},
    13: {"mask": 1.05},
}
HIDDEN = {
    1: {"bottleneck": 1.0},
    2: {"selection": 1.0, "laplacian_selection": 1.0},
    3: {"erll": 1.0},
    4: {"correlated": "neither"},
    5: {"sparse": 1.0, "noise": 0.1},
    6: {"sizes": (1.0, 1.0)},
    7: {"survival": 0.0},
    8: {"sparse": 1.0, "dnn": 0.97, "noise": 0.05},
    9: {"blocks": 1.01},
    10: {"sag": 1.001},
    11: {"sum": 0.999},
    12: {"combined": 1.0, "noise": 0.05},
    13: {"mask": 0.99},
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_each_claim_is_told_by_the_world(claim):
    assert verdict(claim.number, World()) == Verdict.HELD
    assert verdict(claim.number, replace(World(), **FALSE[claim.number])) == Verdict.NOT_HELD
    assert verdict(claim.number, replace(World(), **HIDDEN[claim.number])) == Verdict.TOO_SMALL


OF_ONE_SEED = dict.fromkeys((2, 8, 11, 12, 13), Verdict.TOO_SMALL)
"""Where all pairs share a selection or a DNN, which might have come out otherwise."""


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_with_one_seed_there_are_still_kernels_and_tricks(claim):
    scale = replace(SCALE, seeds=(1,), grid_seeds=(1,))
    assert verdict(claim.number, World(), scale) == OF_ONE_SEED.get(claim.number, Verdict.HELD)


def test_only_models_of_all_seeds_stand_against_the_dnn():
    evidence = Evidence(replace(SCALE, grid_seeds=(1,)), {key: World().outcome(key) for key in keys()})
    (part,) = find(CLAIMS[7], evidence).parts
    assert part.text == "TER of sparse-gaussian BR, best of 9 kernel settings, against DNN BR, best of 4"


def test_selection_must_help_the_laplacian_kernel_most():
    finding = find(CLAIMS[1], Evidence(SCALE, {key: World(selection=0.8).outcome(key) for key in keys()}))
    assert [part.verdict for part in finding.parts] == [Verdict.HELD, Verdict.NOT_HELD, Verdict.NOT_HELD]
    assert finding.verdict == Verdict.NOT_HELD


def test_returns_must_diminish():
    finding = find(CLAIMS[5], Evidence(SCALE, {key: World(sizes=(1.2, 1.15)).outcome(key) for key in keys()}))
    assert [part.verdict for part in finding.parts] == [Verdict.HELD, Verdict.HELD, Verdict.NOT_HELD]


def test_the_error_rate_of_combined_kernels_is_told_and_not_asked_for():
    first, beside = find(CLAIMS[10], Evidence(SCALE, {key: World().outcome(key) for key in keys()})).parts
    assert (first.verdict, beside.verdict) == (Verdict.HELD, None)


NEEDED_BY = {
    "laplacian_br-fs_1": {1, 2, 3, 4, 5, 8},
    "dnn_br_2": {4, 8, 12},
    "gaussian_sag_3": {10},
    "gaussian_b-fs_1": {1, 2, 3, 4, 5, 7, 8},
    "sum_b_1": {11},
}


@pytest.mark.parametrize("name", NEEDED_BY)
def test_claims_that_need_a_cell_that_failed_are_not_tested(name):
    evidence = Evidence(SCALE, {key: World().outcome(key) for key in keys() if key.name != name})
    findings = [find(claim, evidence) for claim in CLAIMS]
    untested = [finding for finding in findings if finding.verdict == Verdict.NOT_TESTED]
    assert {finding.claim.number for finding in untested} == NEEDED_BY[name]
    assert {finding.note for finding in untested} == {f"cell {name} failed"}


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((0.1, 0.2), (Verdict.HELD, Verdict.NOT_HELD, Verdict.TOO_SMALL)),
        ((0.16, 0.2), (Verdict.HELD, Verdict.NOT_HELD, Verdict.NOT_HELD)),
        ((-0.2, -0.16), (Verdict.NOT_HELD, Verdict.HELD, Verdict.NOT_HELD)),
        ((-0.1, 0.1), (Verdict.TOO_SMALL, Verdict.TOO_SMALL, Verdict.HELD)),
        ((-0.2, 0.1), (Verdict.TOO_SMALL, Verdict.TOO_SMALL, Verdict.TOO_SMALL)),
        ((math.nan, math.nan), (Verdict.TOO_SMALL,) * 3),
        (None, (Verdict.TOO_SMALL,) * 3),
    ],
)
def test_verdicts(interval, expected):
    estimate = Estimate(0.0, interval, 3)
    assert (above(estimate), below(estimate), within(estimate, 0.15)) == expected
