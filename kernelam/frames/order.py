"""Random orders of frames."""

from collections.abc import Iterator

import numpy as np

LISTED = 1 << 22
"""Frames (11 hours) up to which an order is a list of them; beyond, it is a function, which takes no memory."""
CHUNK = 1 << 16
ROUNDS = 8


def some(total: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` random ones of `total` frames, each once; all of them where there are fewer."""
    return np.concatenate(list(orders(total, min(count, total), rng)))


def orders(total: int, count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The first `count` of `total` frames in random order, in pieces."""
    if total <= LISTED:
        yield rng.permutation(total)[:count]
        return
    keys = rng.integers(2**63, size=ROUNDS, dtype=np.uint64)
    for start in range(0, count, CHUNK):
        yield permuted(np.arange(start, min(start + CHUNK, count)), total, keys)


def permuted(indices: np.ndarray, total: int, keys: np.ndarray) -> np.ndarray:
    """Where a random bijection of 0 … total − 1 sends these indices.

    A Feistel network permutes the numbers of twice as many bits as each of its halves has; what it sends beyond the
    last frame it sends on until it comes back (Black and Rogaway, CT-RSA 2002).
    """
    half = np.uint64((max(2, (total - 1).bit_length()) + 1) // 2)
    found = _feistel(indices.astype(np.uint64), half, keys)
    while len(beyond := np.flatnonzero(found >= total)):
        found[beyond] = _feistel(found[beyond], half, keys)
    return found.astype(np.int64)


def _feistel(values: np.ndarray, half: np.uint64, keys: np.ndarray) -> np.ndarray:
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = values >> half, values & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right ^ key) & mask)
    return (left << half) | right


def _mixed(values: np.ndarray) -> np.ndarray:
    """Each bit of the result depends on all bits (the finaliser of splitmix64; Steele, Lea and Flood, OOPSLA 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
