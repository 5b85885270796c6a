"""Values of options and arguments that click has no type for."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kernelam.errors import KernelamError

T = TypeVar("T", int, float)


class Number(click.FloatRange):
    """A number in a range, which NaN never is although it fails no comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"'{value}' is not a number", param, ctx)
        return number


ABOVE_ZERO, NOT_NEGATIVE = Number(0, min_open=True), Number(0)
COUNT, POSITIVE = click.IntRange(min=0), click.IntRange(min=1)
PATH = click.Path(path_type=Path)


def numbers(kind: Callable[[str], T], text: str, option: str) -> list[T]:
    """Finite numbers with spaces or commas between them, as the value of an option."""
    try:
        values = [kind(word) for word in text.replace(",", " ").split()]
        usable = bool(values) and all(map(math.isfinite, values))
    except ValueError:
        usable = False
    if not usable:
        noun = "whole numbers" if kind is int else "numbers"
        raise KernelamError(f"option {option} takes {noun} with spaces or commas between them, not '{text}'")
    return values


def check_output(output: str | Path, ways: str = "a FILE") -> None:
    """Only files are written, `ways` says how they are named; not Kaldi's `ark:…`, `scp:…`, pipes and `-`.

    A file is written into a folder that is there, as by Kaldi's programs; only directories are made.
    """
    name, folder = str(output), Path(output).parent
    if name == "-" or "|" in name or re.match(r"[a-z,]+:", name):
        raise KernelamError(f"{name}: write to {ways}; other ways are not supported")
    if not folder.is_dir():
        raise KernelamError(f"cannot write {name}: there is no folder {folder}")
    if Path(output).exists() and not Path(output).is_file():
        raise KernelamError(f"cannot write {name}: it is there and is no file")


def page_beside(tables: Path) -> Path:
    """Where the page goes that belongs to tables in Markdown: report.html with RESULTS.md, else of their name."""
    if tables.suffix != ".md":
        raise KernelamError(
            f"{tables} cannot hold the tables, the page and the figures: --output is to end in .md, of which .html and"
            " .json are made"
        )
    return tables.with_name("report.html") if tables.name == "RESULTS.md" else tables.with_suffix(".html")
