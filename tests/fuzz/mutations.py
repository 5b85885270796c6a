"""Damaged copies of a file, and the watch over the code that reads them."""

import resource
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

SECONDS = 10.0  # for one copy
ROOM = 1 << 28  # bytes of memory for all that reading a small file may need


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A copy with some bytes changed, its end cut off, or a chunk repeated somewhere; sometimes with two of these."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 3))):
        kind = rng.integers(4)
        start, end = sorted(int(place) for place in rng.integers(len(out) + 1, size=2))
        if kind == 0:
            out = out[: max(end, 1)]
        elif kind == 1:
            chunk = out[start : min(end, start + 64)]
            place = int(rng.integers(len(out) + 1))
            out[place:place] = chunk
        else:
            for place in rng.integers(len(out), size=rng.integers(1, 6)).tolist():
                out[place] = int(
                    rng.choice([rng.integers(256), 0, 0x7F, 0x80, 0xFF, out[place] ^ (1 << rng.integers(8))])
                )
    return bytes(out)


@contextmanager
def watched() -> Iterator[None]:
    """No more than ROOM bytes beyond what is in use; and no warning of numpy's passes unseen."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, _too_long)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (in_use + ROOM, hard))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def wind_up() -> None:
    """Give the next copy its time."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"a damaged file kept its reader busy for {SECONDS} s")
