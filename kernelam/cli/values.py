"""Values of options that click has no type for."""

from collections.abc import Callable
from typing import TypeVar

from kernelam.errors import KernelamError

T = TypeVar("T", int, float)


def numbers(kind: Callable[[str], T], text: str) -> list[T]:
    """Numbers with spaces or commas between them."""
    try:
        values = [kind(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise KernelamError(f"'{text}' is not a list of numbers") from None
    if not values:
        raise KernelamError("a list of numbers is empty")
    return values
