"""Cepstral mean and variance normalisation by speaker.

Statistics are Kaldi's 2 × (D + 1) doubles: Σx and the number of frames; Σx² and 0.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.kaldi.ark import ArkWriter, Matrix, MatrixScp
from kernelam.kaldi.datadir import DataDir

_VARIANCE_FLOOR = 1e-20
_LARGEST_MEAN = 1e10  # of a feature; larger ones only damage makes


def cmvn_stats(utterances: Iterable[Matrix]) -> NDArray[np.float64]:
    """The statistics of one speaker; sums are taken utterance by utterance in the order given."""
    stats: NDArray[np.float64] | None = None
    for feats in utterances:
        wide = feats.astype(np.float64)
        rows = np.zeros((2, feats.shape[1] + 1))
        rows[0, :-1], rows[0, -1] = wide.sum(axis=0), len(feats)
        rows[1, :-1] = np.square(wide).sum(axis=0)
        stats = rows if stats is None else stats + rows
    if stats is None:
        raise KernelamError("a speaker without utterances has no CMVN statistics")
    return stats


def apply(
    feats: Matrix, stats: Matrix, norm_vars: bool = False, where: str = "CMVN", skip_dims: Sequence[int] = ()
) -> NDArray[np.float32]:
    """x − μ, or (x − μ) / σ with σ² floored at 1e-20, but x itself in `skip_dims`; `where` names the utterance."""
    feats = feats.astype(np.float32, copy=False)
    if stats.shape != (2, feats.shape[1] + 1):
        raise KernelamError(
            f"{where}: statistics are {stats.shape[0]} × {stats.shape[1]}, but features of {feats.shape[1]} dimensions"
            f" need 2 × {feats.shape[1] + 1}; run steps/compute_cmvn_stats.sh again"
        )
    count = stats[0, -1]
    if count < 1:
        raise KernelamError(f"{where}: statistics are of {count:g} frames; run steps/compute_cmvn_stats.sh again")
    if skip_dims and max(skip_dims) >= feats.shape[1]:
        raise KernelamError(f"{where}: --skip-dims names dimension {max(skip_dims)}, but there are {feats.shape[1]}")
    skipped = list(skip_dims)
    mean = stats[0, :-1] / count
    if not (np.abs(mean) < _LARGEST_MEAN).all() or not (np.abs(stats[1]) / count < _LARGEST_MEAN**2).all():
        raise KernelamError(f"{where}: statistics are out of all bounds; run steps/compute_cmvn_stats.sh again")
    mean[skipped] = 0
    if not norm_vars:
        return feats - mean.astype(np.float32)
    scale = 1 / np.sqrt(np.maximum(stats[1, :-1] / count - mean**2, _VARIANCE_FLOOR))
    scale[skipped] = 1
    return feats * scale.astype(np.float32) - (mean * scale).astype(np.float32)


def write_cmvn(data: str | Path, ark_path: str | Path) -> None:
    """Statistics of every speaker of a data directory, into `ark_path` and the directory's cmvn.scp."""
    directory = DataDir(data)
    feats = MatrixScp(directory.path / "feats.scp")
    with ArkWriter(ark_path, directory.path / "cmvn.scp") as writer:
        for speaker, utts in directory.spk2utt.items():
            writer.write(speaker, cmvn_stats(feats[utt] for utt in utts))
