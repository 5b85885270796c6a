"""Features by the files of a real alignment directory: chosen in training, stored with the model, made again later."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelam.kaldi.ark import read_ark
from kernelam.models import load_model

Run = Callable[..., subprocess.CompletedProcess[str]]
SMALL = "--num-features 64 --max-epochs 1 --rates 8 --search-frames 2000"


@pytest.fixture
def sample(corpora: Path) -> Path:
    return corpora / "kaldi-timit-sample"


def train(kernelam: Run, sample: Path, options: str, data: str, folder: Path) -> subprocess.CompletedProcess[str]:
    sets = f"{data}/train {data}/dev data/lang exp/tri3_ali exp/tri3_ali_dev"
    return kernelam(*f"train kernel {SMALL} {options} {sets}".split(), folder, cwd=sample)


def test_fmllr_is_made_or_read(kernelam: Run, sample: Path, tmp_path: Path) -> None:
    """A model on fMLLR features, made of MFCCs here, scores as it does on those that Kaldi made."""
    done = train(kernelam, sample, "--feat-type fmllr", "data", tmp_path / "exp")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "exp/final.mat").read_bytes() == (sample / "exp/tri3/final.mat").read_bytes()
    forward = ["forward", tmp_path / "exp", "data/test"]
    without = kernelam(*forward, f"ark:{tmp_path}/none", cwd=sample)
    assert without.returncode == 1
    assert "the model takes fMLLR features: --transform-dir names the directory" in without.stderr
    assert not (tmp_path / "none").exists()
    made = kernelam(*forward, f"ark:{tmp_path}/made", "--transform-dir", "exp/tri3/decode_test", cwd=sample)
    assert made.returncode == 0, made.stderr
    about = json.loads((tmp_path / "exp/model.json").read_text())
    assert about["input"]["pipeline"]["fmllr"]
    likelihoods = dict(read_ark(tmp_path / "made"))
    assert len(likelihoods) == 24
    model = load_model(tmp_path / "exp")
    for utt, features in read_ark(sample / "fmllr/feats_fmllr_test.1.ark"):
        np.testing.assert_allclose(likelihoods[utt], model.log_likelihoods(features), atol=1e-3)


def test_a_gmm_scores_with_transforms(kernelam: Run, sample: Path, tmp_path: Path) -> None:
    done = kernelam(
        "forward", "--transform-dir", "exp/tri3/decode_test", "exp/tri3", "data/test", tmp_path / "out", cwd=sample
    )
    assert done.returncode == 0, done.stderr
    assert next(matrix.shape[1] for _, matrix in read_ark(tmp_path / "out")) == 208


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ("--feat-type lda", "data-fbank", "data-fbank/train/feats.scp has 40 features a frame, 280 with 3 + 3 frames"),
        ("--feat-type lda --delta-order 2", "data", "type lda take their CMVN and delta options from exp/tri3_ali"),
    ],
)
def test_what_does_not_fit(kernelam: Run, sample: Path, tmp_path: Path, options: str, data: str, message: str) -> None:
    done = train(kernelam, sample, options, data, tmp_path / "exp")
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
