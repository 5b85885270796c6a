"""Tables of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

NONE = "–"


@dataclass(frozen=True)
class Table:
    header: list[str]
    rows: list[list[str]]

    @property
    def markdown(self) -> str:
        lines = [self.header, [":--" if number == 0 else "--:" for number in range(len(self.header))], *self.rows]
        escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def spread(values: Sequence[float], form: str, bold: bool = False) -> str:
    """A mean and, of several, their standard deviation."""
    text = format(fmean(values), form)
    text = f"**{text}**" if bold else text
    return text if len(values) < 2 else f"{text} ± {format(stdev(values), form)}"
