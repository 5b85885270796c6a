"""Where the weights of a model start."""

import numpy as np
import torch
from torch import Tensor

from kernelam.randomness import stream


def glorot(rows: int, columns: int, seed: int, number: int) -> Tensor:
    """Matrix `number` of a model: uniform within ±√(6 / (rows + columns)) (Glorot and Bengio, AISTATS 2010)."""
    bound = (6.0 / (rows + columns)) ** 0.5
    drawn = stream(seed, "weights", number).uniform(-bound, bound, (rows, columns))
    return torch.from_numpy(drawn.astype(np.float32))
