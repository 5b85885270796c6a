"""Deltas and splicing, with the first and last frame repeated beyond the edges of an utterance; linear transforms."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.kaldi.alignment import num_jobs
from kernelam.kaldi.ark import Matrix, read_ark


def _clamped(feats: Matrix, left: int, right: int) -> NDArray[np.float32]:
    return np.pad(feats.astype(np.float32, copy=False), ((left, right), (0, 0)), mode="edge")


def add_deltas(feats: Matrix, order: int = 2, window: int = 2) -> NDArray[np.float32]:
    """[x, Δx, Δ²x, …] with Δx_t = Σ_j j x_{t+j} / Σ_j j², |j| ≤ window.

    Δ² is one filter, Δ's convolved with itself, over the original frames: it differs from the Δ of Δx at the edges.
    """
    slope = np.arange(-window, window + 1) / np.sum(np.arange(-window, window + 1) ** 2)
    taps = np.ones(1)
    parts = [feats.astype(np.float32, copy=False)]
    for _ in range(order):
        taps = np.convolve(taps, slope)
        reach = len(taps) // 2
        padded = _clamped(feats, reach, reach)
        delta = np.zeros_like(parts[0])
        for i, tap in enumerate(taps):
            delta += np.float32(tap) * padded[i : i + len(feats)]
        parts.append(delta)
    return np.hstack(parts)


def splice(feats: Matrix, left: int, right: int) -> NDArray[np.float32]:
    """Row t is [x_{t−left}, …, x_t, …, x_{t+right}]."""
    padded = _clamped(feats, left, right)
    return np.hstack([padded[i : i + len(feats)] for i in range(left + right + 1)])


def apply_linear(feats: Matrix, matrix: Matrix) -> NDArray[np.float32]:
    """A x, or A x + b where `matrix` is [A b], as LDA and fMLLR are stored."""
    dim = feats.shape[1]
    out = feats @ matrix[:, :dim].T
    if matrix.shape[1] > dim:
        out += matrix[:, dim]
    return out.astype(np.float32, copy=False)


def read_transforms(folder: Path) -> dict[str, Matrix]:
    """Speaker → transform of trans.1 … trans.<num_jobs> in an alignment or decoding directory."""
    transforms: dict[str, Matrix] = {}
    for job in range(1, num_jobs(folder) + 1):
        for speaker, matrix in read_ark(folder / f"trans.{job}"):
            if speaker in transforms:
                raise KernelamError(f"{folder}/trans.{job}: {speaker} is also in an earlier file")
            transforms[speaker] = matrix
    return transforms
