"""Damaged copies of a file, and the watch over the code that reads them."""

import resource
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

SECONDS = 10.0  # for one copy
ROOM = 1 << 28  # bytes of memory for all that reading a small file may need


def mutated(data: bytes, rng: Random) -> bytes:
    """A copy with some bytes changed, its end cut off, or a chunk repeated somewhere; sometimes with two of these."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        kind, place = rng.choice(("bytes", "bytes", "cut", "chunk")), rng.randrange(len(out))
        if kind == "cut":
            del out[max(place, 1) :]
        elif kind == "chunk":
            start = rng.randrange(len(out))
            out[place:place] = out[start : start + rng.randint(1, 64)]
        else:
            for _ in range(rng.randint(1, 5)):
                place = rng.randrange(len(out))
                flipped = out[place] ^ (1 << rng.randrange(8))
                out[place] = rng.choice((flipped, rng.randrange(256), 0x00, 0x7F, 0x80, 0xFF))
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
