"""Random numbers by counter: the stream of (seed, purpose, number) is the same whoever asks, and in whatever order."""

import zlib

import numpy as np


def stream(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """An independent generator for each purpose ("frequencies", "shuffle", …) and number (a block, an epoch)."""
    counter = [0, 0, 0, zlib.crc32(purpose.encode())]
    return np.random.Generator(np.random.Philox(key=[seed, number], counter=counter))
