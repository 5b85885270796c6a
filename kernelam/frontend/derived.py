"""Features made of others, as those of a data directory of their own."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.kaldi.ark import ArkWriter, MatrixScp
from kernelam.progress import progress


def cepstral_matrix(num_bins: int, num_ceps: int, lifter: float = 22.0) -> NDArray[np.float32]:
    """From log-mel energies to MFCC: the orthonormal cosine transform, row k times 1 + Q/2 sin(πk/Q), as in Kaldi."""
    if not 0 < num_ceps <= num_bins:
        raise KernelamError(f"{num_ceps} cepstra of {num_bins} bins: --num-ceps is from 1 to {num_bins}")
    k = np.arange(num_ceps)[:, None]
    cosines = np.sqrt(2.0 / num_bins) * np.cos(np.pi / num_bins * k * (np.arange(num_bins) + 0.5))
    cosines[0] /= np.sqrt(2.0)
    weights = 1.0 + 0.5 * lifter * np.sin(np.pi * k / lifter) if lifter else np.ones_like(k)
    return (cosines * weights).astype(np.float32)


class Cepstra(Mapping[str, np.ndarray]):
    """Utterance → cepstra of the filterbanks of a data directory."""

    def __init__(self, data: Path, num_ceps: int, lifter: float) -> None:
        self.banks = MatrixScp(data / "feats.scp")
        self.matrix = cepstral_matrix(self.banks.dim, num_ceps, lifter)

    def __getitem__(self, utt: str) -> np.ndarray:
        return self.banks[utt] @ self.matrix.T

    def __iter__(self) -> Iterator[str]:
        return iter(self.banks)

    def __len__(self) -> int:
        return len(self.banks)


def write_features(features: Mapping[str, np.ndarray], data: Path, ark: Path, *, compress: bool) -> None:
    """`features` as the archive `ark`, and feats.scp of `data`."""
    with ArkWriter(ark, data / "feats.scp", compress=compress) as writer:
        for utt in progress(features, f"features of {data}"):
            writer.write(utt, features[utt])
