import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelam.frontend import cmvn
from kernelam.frontend.transforms import add_deltas, splice
from kernelam.kaldi.ark import MatrixScp, read_ark
from kernelam.kaldi.tables import read_table


def noise(rows: int, cols: int = 3) -> np.ndarray:
    return np.random.default_rng(rows).standard_normal((rows, cols)).astype(np.float32)


@given(st.integers(1, 30), st.integers(0, 3), st.integers(1, 3))
def test_deltas_by_the_sum(rows: int, order: int, window: int) -> None:
    """Order k at t: Σ over j_1 … j_k of Π j_i x_{t + Σ j_i} / (Σ j²)^k, with t + Σ j_i held inside the utterance."""
    feats = noise(rows)
    norm = 2 * sum(j * j for j in range(window + 1))
    expected = [feats.astype(np.float64)]
    weights = {0: 1.0}
    for _ in range(order):
        longer: dict[int, float] = {}
        for shift, weight in weights.items():
            for j in range(-window, window + 1):
                longer[shift + j] = longer.get(shift + j, 0.0) + weight * j / norm
        weights = longer
        part = sum(w * feats[np.clip(np.arange(rows) + s, 0, rows - 1)] for s, w in weights.items())
        expected.append(np.asarray(part, np.float64))
    got = add_deltas(feats, order, window)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.hstack(expected), atol=1e-5)


def test_delta_of_a_line_is_its_slope() -> None:
    feats = add_deltas(3.0 * np.arange(20, dtype=np.float32)[:, None])
    np.testing.assert_allclose(feats[4:-4, 1:], [[3, 0]] * 12, atol=1e-5)


@given(st.integers(1, 12), st.integers(0, 5), st.integers(0, 5))
def test_splice_by_hand(rows: int, left: int, right: int) -> None:
    feats = noise(rows)
    spliced = splice(feats, left, right)
    assert spliced.shape == (rows, 3 * (left + right + 1))
    for t in range(rows):
        row = [feats[min(max(u, 0), rows - 1)] for u in range(t - left, t + right + 1)]
        np.testing.assert_array_equal(spliced[t], np.concatenate(row))


def test_parity_with_kaldi(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What apply-cmvn, add-deltas and splice-feats print of real features."""
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    feats, stats = MatrixScp("data/dev/feats.scp"), MatrixScp("data/dev/cmvn.scp", double=True)
    utt2spk = read_table("data/dev/utt2spk")

    def normalised(utt: str, **options: bool) -> np.ndarray:
        return cmvn.apply(feats[utt], stats[utt2spk[utt]], **options)

    pipelines = {
        "mfcc_cmvn": normalised,
        "mfcc_cmvn_normvars": lambda utt: normalised(utt, norm_vars=True),
        "mfcc_cmvn_deltas": lambda utt: add_deltas(normalised(utt)),
    }
    for name, pipeline in pipelines.items():
        expected = dict(read_ark(f"expected/feats/{name}.dev2.txt"))
        assert len(expected) == 2
        for utt, matrix in expected.items():
            np.testing.assert_allclose(pipeline(utt), matrix, rtol=1e-5, atol=2e-5)
    with gzip.open("expected/feats/mfcc_cmvn_splice5.dev1.ark.gz") as stream:
        ((utt, matrix),) = read_ark(stream)
    np.testing.assert_allclose(splice(normalised(utt), 5, 5), matrix, atol=1e-5)
