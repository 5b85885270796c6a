"""Segments by hand, the statistic against scipy."""

from math import inf

import numpy as np
import pytest
import scipy.stats

from kernelam.errors import KernelamError
from kernelam.scoring.matched_pairs import MatchedPairs, _segments, _slots, mapsswe


def differences(ref: str, baseline: str, system: str) -> list[int]:
    return list(_segments(_slots(ref.split(), baseline.split()), _slots(ref.split(), system.split())))


@pytest.mark.parametrize(
    ("ref", "baseline", "system", "expected"),
    [
        ("a b c d e", "a b c d e", "a b c d e", []),
        ("a b c d e", "x b c y e", "a b c d e", [1, 1]),  # two words right in both: the segment ends
        ("a b c d e", "x b y d e", "a b c d e", [2]),  # one does not end it
        ("a b c d e", "x b c d e", "a b c y e", [1, -1]),
        ("a b c d", "a b x c d", "a b c d", [1]),  # an insertion
        ("a b", "x a b", "a b y", [1, -1]),  # at the two ends
        ("a b", "", "a b", [2]),
        ("a b c", "x b c", "y b c", [0]),  # a segment in which both err alike counts
    ],
)
def test_segments(ref: str, baseline: str, system: str, expected: list[int]) -> None:
    assert differences(ref, baseline, system) == expected


def test_statistic_is_that_of_a_one_sample_z_test() -> None:
    rng = np.random.default_rng(0)
    refs = {f"u{i:03d}": [f"w{rng.integers(40)}" for _ in range(12)] for i in range(100)}
    one, two = ({u: [w if rng.random() > rate else "x" for w in r] for u, r in refs.items()} for rate in (0.25, 0.2))
    ours = mapsswe(refs, one, two)
    values = [d for u in refs for d in differences(*(" ".join(t[u]) for t in (refs, one, two)))]
    z = scipy.stats.ttest_1samp(values, 0).statistic
    assert ours.segments == len(values) > 50
    assert ours.z == pytest.approx(z)
    assert ours.p == pytest.approx(2 * scipy.stats.norm.sf(abs(z)))
    assert mapsswe(refs, two, one).z == pytest.approx(-z)


def test_nothing_to_tell_apart() -> None:
    refs = {"u": ["a", "b"]}
    assert mapsswe(refs, refs, refs) == MatchedPairs(0, 0, 0)
    assert mapsswe(refs, refs, refs).p == 1
    assert mapsswe(refs, {}, refs) == MatchedPairs(1, 2, 0)
    assert mapsswe(refs, {}, refs).p == 1
    assert MatchedPairs(9, -1, 0).z == -inf


def test_bad_input() -> None:
    with pytest.raises(KernelamError, match="the reference is empty"):
        mapsswe({}, {}, {})
