"""What sentences about the folders of a corpus say: what is there, and what comes nearest to what was looked for."""

import difflib
from collections.abc import Iterable

NAMED = 10


def some(names: Iterable[str]) -> str:
    """Of many names, the first."""
    every = list(names)
    return " ".join(every[:NAMED]) + (" …" if len(every) > NAMED else "")


def found_instead(names: Iterable[str], *like: str) -> str:
    """The names that are there, and one that resembles the first of `like` that any does."""
    every = {name.lower(): name for name in sorted(names)}
    near = [every[match] for one in like for match in difflib.get_close_matches(one.lower(), every, 1, 0.4)]
    return (f"it has {some(every.values())}" if every else "it is empty") + "".join(
        f"; {name} comes nearest" for name in near[:1]
    )
