"""Figures of the papers, to stand beside ours where corpus and set are the same."""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines

FILE = Path(__file__).with_name("published.csv")
FIELDS = ["paper", "table", "corpus", "split", "metric", "model", "setting", "value"]
PAPER = "may2017"
"""Whose figures are shown. The sets of other papers have the same names, but are not the same."""

SIZES = {"timit": (200_000, 147), "bn50": (100_000, 5000), "bengali": (100_000, 1000), "cantonese": (100_000, 1000)}
"""Random features D and classes of its models, by corpus (table 2 and section 6.3)."""


@dataclass(frozen=True)
class Published:
    """Figures of one corpus by (split, metric, model, setting)."""

    corpus: str
    figures: Mapping[tuple[str, ...], str]

    def label(self, kernels: bool) -> str:
        """Of a line of figures, with what sets its models apart from ours."""
        features, classes = SIZES.get(self.corpus, (0, 0))
        sizes = [f"D = {features:,}"] * kernels + [f"{classes:,} classes"]
        return ", ".join([PAPER, *sizes]) if classes else PAPER


def read_published(path: Path, corpus: str) -> Published:
    """The figures of PAPER in a CSV file with the columns FIELDS, one figure a row."""
    found: dict[tuple[str, ...], str] = {}
    known = set[str]()
    rows = csv.reader(lines(path), strict=True)
    try:
        if next(rows, None) != FIELDS:
            raise KernelamError(f"{path}, line 1: expected the columns {','.join(FIELDS)}")
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if len(row) != len(FIELDS):
                raise KernelamError(f"{where}: expected {len(FIELDS)} fields, found {len(row)}")
            if row[0] != PAPER:
                continue
            _check_number(row[7], where)
            known.add(row[2])
            if row[2] == corpus and tuple(row[3:7]) in found:
                raise KernelamError(f"{where}: there is a figure of {' '.join(row[2:7]).strip()} already")
            if row[2] == corpus:
                found[tuple(row[3:7])] = row[7]
    except csv.Error as error:
        raise KernelamError(f"{path}, line {rows.line_num}: {error}") from None
    if not found:
        raise KernelamError(
            f"{path} has no figures of {PAPER} for --corpus {corpus}, only for {', '.join(sorted(known)) or 'none'}"
        )
    return Published(corpus, found)


def _check_number(text: str, where: str) -> None:
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise KernelamError(f"{where}: the value {text} is not a number")
