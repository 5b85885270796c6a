"""Where the weights of a model start."""

import numpy as np
import torch
from torch import Tensor

from kernelam.randomness import stream

CHUNK = 1 << 14  # rows drawn at once


def glorot(rows: int, columns: int, seed: int, number: int, places: Tensor | None = None) -> Tensor:
    """Matrix `number` of a model: uniform within ±√(6 / (rows + columns)) (Glorot and Bengio, AISTATS 2010); or those
    of its rows that are at `places`, in ascending order."""
    bound, rng = (6.0 / (rows + columns)) ** 0.5, stream(seed, "weights", number)
    wanted, parts = np.arange(rows) if places is None else places.numpy(), []
    for start in range(0, rows, CHUNK):
        drawn = rng.uniform(-bound, bound, (min(CHUNK, rows - start), columns)).astype(np.float32)
        first, last = np.searchsorted(wanted, (start, start + CHUNK))
        parts.append(drawn[wanted[first:last] - start])
    return torch.from_numpy(np.concatenate(parts))
