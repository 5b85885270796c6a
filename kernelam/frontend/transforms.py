"""Deltas and splicing, with the first and last frame repeated beyond the edges of an utterance."""

import numpy as np
from numpy.typing import NDArray

from kernelam.kaldi.ark import Matrix


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
