"""The median trick: kernel widths from the distances of random pairs of training frames (may2017, footnote 8)."""

import torch
from torch import Tensor

from kernelam.frames.batches import Batches
from kernelam.randomness import stream

PAIRS = 20_000


def random_pairs(train: Batches, seed: int) -> tuple[Tensor, Tensor]:
    """PAIRS pairs of different random frames, as inputs of a model."""
    rng = stream(seed, "pairs")
    left = rng.integers(len(train), size=PAIRS)
    right = (left + rng.integers(1, max(2, len(train)), size=PAIRS)) % len(train)
    return train.take(torch.from_numpy(left))[0], train.take(torch.from_numpy(right))[0]
