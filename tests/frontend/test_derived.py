"""Cepstra of filterbanks against those that are made from sound."""

from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.frontend.derived import Cepstra, cepstral_matrix
from kernelam.frontend.features import Extractor
from kernelam.kaldi.ark import ArkWriter


@pytest.mark.parametrize(("bins", "ceps", "lifter"), [(40, 13, 22.0), (23, 13, 0.0), (30, 30, 10.0)])
def test_cepstra_of_filterbanks_are_mfcc(tmp_path, bins, ceps, lifter):
    sound = np.round(3000 * np.random.default_rng(0).standard_normal(16000)).astype(np.float32)
    (tmp_path / "fbank").write_text(f"--num-mel-bins={bins}\n")
    (tmp_path / "mfcc").write_text(
        f"--num-mel-bins={bins}\n--num-ceps={ceps}\n--cepstral-lifter={lifter}\n--use-energy=false\n"
    )
    banks, mfcc = (Extractor(kind, tmp_path / kind)(sound) for kind in ("fbank", "mfcc"))
    np.testing.assert_allclose(banks @ cepstral_matrix(bins, ceps, lifter).T, mfcc, atol=2e-3)
    with ArkWriter(tmp_path / "feats.ark", tmp_path / "feats.scp") as writer:
        writer.write("u", banks)
    np.testing.assert_allclose(Cepstra(Path(tmp_path), ceps, lifter)["u"], mfcc, atol=2e-3)


def test_more_cepstra_than_bins():
    with pytest.raises(KernelamError, match="41 cepstra of 40 bins: --num-ceps is from 1 to 40"):
        cepstral_matrix(40, 41)
