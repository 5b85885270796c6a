"""Progress: a bar where somebody watches, plain lines in a log."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import IO, TypeVar

from tqdm import tqdm

from kernelam.ranks import is_first

T = TypeVar("T")


def say(message: str) -> None:
    """One line on standard error: for the log, and for whoever reads the terminal. Of processes that work together, the
    first one speaks."""
    if is_first():
        print(message, file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """A line that the steps also show of a job's log: something is not as the user may think."""
    say(f"warning: {message}")


def _terminal() -> IO[str] | None:
    """Where a bar may be drawn: standard error, or the descriptor that utils/run_local.sh hands to its first job."""
    if sys.stderr.isatty():
        return sys.stderr
    try:
        stream = os.fdopen(os.dup(int(os.environ["KERNELAM_PROGRESS_FD"])), "w")
    except (KeyError, ValueError, OSError):
        return None
    return stream if stream.isatty() else None


def progress(items: Iterable[T], what: str, total: int | None = None, every: float = 30.0) -> Iterator[T]:
    """Yield from `items`; show a bar on a terminal, and in a log a line every `every` seconds."""
    if not is_first():
        yield from items
        return
    terminal = _terminal()
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # type: ignore[arg-type]
    if terminal is not None:
        known = all(os.get_terminal_size(terminal.fileno()))  # some do not tell, and tqdm would show nothing
        size = {"dynamic_ncols": True} if known else {"ncols": 80, "nrows": 24}
        yield from tqdm(items, desc=what, total=total, file=terminal, leave=False, **size)
    if terminal is sys.stderr:
        return
    if terminal is not None:
        terminal.close()
        return
    start = last = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        if time.monotonic() - last >= every:
            last = time.monotonic()
            say(f"{what}: {count}{f' of {total}' if total else ''} in {last - start:.0f} s")
