"""The tables of may2017: kernels (3, 8, 10, 12, 14) and networks (4, 7, 9, 11, 13) by tricks, and the best ones (5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from kernelam.report.experiments import (
    TRICKS,
    Experiment,
    Run,
    kernel_name,
    kernel_title,
    named,
    selected,
    trick,
)
from kernelam.report.published import PAPER, Published
from kernelam.report.tables import NONE, Table, spread

METRICS = (
    "CE (cross-entropy), ENT (entropy), ERLL (their sum, the entropy-regularised log loss) and ERR (frame error) are of"
    " heldout frames; TER, the token error rate, is that of the tables above."
)
NAMES = (
    "B is a bottleneck, R the halving rule that judges by ERLL, BR both, NT no trick; FS are selected features, D is"
    " how many."
)


@dataclass(frozen=True)
class Measure:
    """A metric of the paper: of which set, how a run tells it, and how it is printed."""

    name: str
    split: str
    value: Callable[[Run], float | None]
    form: str = ".2f"
    percent: bool = False  # which the paper has as a fraction

    @property
    def title(self) -> str:
        return f"{self.name}, {self.split}" + (", %" if self.percent or self.name == "TER" else "")

    def of(self, runs: Experiment) -> list[float]:
        """Of the runs that tell it."""
        return [value for value in map(self.value, runs) if value is not None]

    def text(self, runs: Experiment) -> str:
        values = self.of(runs)
        return spread(values, self.form) if values else NONE

    def row(self, published: Published | None, kernels: bool, keys: Sequence[tuple[str, str]]) -> list[list[str]]:
        """A line of published figures, by model and setting; none where there is none."""
        if published is None:
            return []
        found = [published.figures.get((self.split, self.name, *key), NONE) for key in keys]
        if self.percent:
            found = [text if text == NONE else f"{100 * float(text):g}" for text in found]
        return [[published.label(kernels), *found]] if set(found) != {NONE} else []


def measures(sets: tuple[str, str]) -> list[Measure]:
    """The six of table 5; error rates are of the set where weights were tuned, and of the one that is reported."""

    def heldout(name: str, scale: float = 1.0) -> Callable[[Run], float | None]:
        return lambda run: scale * run.about["heldout"][name] if run.about.get("heldout") else None

    return [
        Measure("CE", "heldout", heldout("ce"), ".3f"),
        Measure("ENT", "heldout", heldout("entropy"), ".3f"),
        Measure("ERLL", "heldout", heldout("erll"), ".3f"),
        Measure("ERR", "heldout", heldout("frame_error", 100), percent=True),
        Measure("TER", sets[0], lambda run: 100 * float(run.dev["rate"])),
        Measure("TER", sets[1], lambda run: 100 * float(run.test["rate"])),
    ]


@dataclass(frozen=True)
class Layouts:
    tables: list[tuple[str, Table]]
    note: str


@dataclass(frozen=True)
class Row:
    """A line of a table: its name, what the paper calls the model, what it puts before the tricks, and the cells."""

    name: str
    model: str
    before: str
    cells: dict[str, list[Experiment]]


def layouts(experiments: Sequence[Experiment], sets: tuple[str, str], published: Published | None) -> Layouts:
    """A table of kernels, and one of networks, for each measure, where they fill more than a cell or there are
    published figures; then the best of both."""
    tables: list[tuple[str, Table]] = []
    notes: list[str] = []
    for kind, rows in (("kernels", _kernels(experiments)), ("networks", _networks(experiments))):
        if sum(len(row.cells) for row in rows) > 1 or (rows and published):
            for measure in measures(sets):
                tables.append((f"{measure.title}, {kind}", _table(measure, rows, published)))
            notes += [NAMES, *_crowded(rows)]
    if best := _best(experiments, sets, published):
        tables.append(("Best network and best kernel", best))
        notes.append(f"The best on {sets[1]} is the one that is best on {sets[0]}.")
    if tables:
        notes.insert(0, METRICS)
    if published:
        notes.append(_said(published, tables))
    return Layouts(tables, " ".join(dict.fromkeys(notes)))


def _said(published: Published, tables: Sequence[tuple[str, Table]]) -> str:
    if any(row[0].startswith(PAPER) for _, table in tables for row in table.rows):
        return (
            f"Below ours are {PAPER}'s figures of {published.corpus}, for the same kinds of models, but not for models"
            " of the same size: sizes stand beside the names."
        )
    return f"{PAPER} has no figure of {published.corpus} for these sets and models."


def _rows(
    experiments: Sequence[Experiment], kind: str, head: Callable[[dict[str, Any]], tuple[str, str, str]]
) -> list[Row]:
    found: dict[tuple[str, str, str], Row] = {}
    for runs in experiments:
        about = runs[0].about
        if about["kind"] == kind:
            row = found.setdefault(head(about), Row(*head(about), {}))
            row.cells.setdefault(trick(about), []).append(runs)
    return list(found.values())


def _kernels(experiments: Sequence[Experiment]) -> list[Row]:
    """Each kernel, then the same with selected features."""

    def head(about: dict[str, Any]) -> tuple[str, str, str]:
        kernel, chosen = about["config"]["kernel"], selected(about)
        title = kernel_title(kernel) + (" + FS" if chosen else "")
        return title, kernel_name(kernel).replace("-", "_"), "FS+" if chosen else ""

    rows = _rows(experiments, "kernel", head)
    models = list(dict.fromkeys(row.model for row in rows))
    return sorted(rows, key=lambda row: (models.index(row.model), row.before))


def _networks(experiments: Sequence[Experiment]) -> list[Row]:
    """Each shape. The paper's have tanh units and nothing newer."""

    def head(about: dict[str, Any]) -> tuple[str, str, str]:
        config = about["config"]
        layers, width, activation = (config[name] for name in ("layers", "width", "activation"))
        newer = ["normalised"] * bool(config.get("normalise")) + ["dropout"] * bool(config.get("dropout"))
        title = ", ".join([f"{layers} × {width} {activation}", *newer])
        return title, f"dnn_{layers}x{width}" if activation == "tanh" and not newer else "", ""

    return _rows(experiments, "dnn", head)


def _shown(cell: Sequence[Experiment]) -> Experiment:
    """The one with the most random features, the first of equals."""
    return max(cell, key=lambda runs: runs[0].about["config"].get("features", 0))


def _crowded(rows: Sequence[Row]) -> list[str]:
    cells = [cell for row in rows for cell in row.cells.values() if len(cell) > 1]
    names = [named(runs) for cell in cells for runs in cell if runs is not _shown(cell)]
    if not names:
        return []
    rule = "Of several in one cell the one with the most features stands, the first of equals; not shown"
    return [f"{rule}: {'; '.join(names)}."]


def _table(measure: Measure, rows: Sequence[Row], published: Published | None) -> Table:
    lines = []
    for row in rows:
        cells = [_shown(row.cells[trick]) if trick in row.cells else [] for trick in TRICKS]
        lines.append([", ".join([row.name, *_sizes(cells, published)]), *map(measure.text, cells)])
        kernels = any("features" in runs[0].about["config"] for runs in cells if runs)
        lines += measure.row(published, kernels, [(row.model, row.before + trick) for trick in TRICKS])
    return Table(["", *TRICKS], lines)


def _sizes(cells: Sequence[Experiment], published: Published | None) -> list[str]:
    """Of the models of a line: D and, where others stand below it, classes."""
    abouts = [runs[0].about for runs in cells if runs]
    features = [about["config"]["features"] for about in abouts if "features" in about["config"]]
    classes = [about["num_classes"] for about in abouts if published and "num_classes" in about]
    told = [f"D = {_numbers(features)}"] if features else []
    return told + ([f"{_numbers(classes)} classes"] if classes else [])


def _numbers(values: Sequence[int]) -> str:
    return "–".join(f"{value:,}" for value in sorted({min(values), max(values)}))


def best_of(experiments: Sequence[Experiment], kind: str, sets: tuple[str, str]) -> Experiment:
    """The experiment of a kind that is best on the set where weights were tuned; empty where there is none."""
    return _least(measures(sets)[-2], [runs for runs in experiments if runs[0].about["kind"] == kind])


def _best(experiments: Sequence[Experiment], sets: tuple[str, str], published: Published | None) -> Table | None:
    """Of each measure the least; on the set that is reported, that of the experiment which is best on the tuned one."""
    kinds = {kind: [runs for runs in experiments if runs[0].about["kind"] == kind] for kind in ("dnn", "kernel")}
    if not all(kinds.values()):
        return None
    lines = []
    for measure, judge in zip(measures(sets), [*measures(sets)[:-1], measures(sets)[-2]], strict=True):
        best = {kind: _least(judge, members) for kind, members in kinds.items()}
        names = [named(best[kind]) if best[kind] else NONE for kind in kinds]
        lines.append([measure.title, *(measure.text(best[kind]) for kind in kinds), *names])
        lines += [[*row, "", ""] for row in measure.row(published, True, [(f"best_{kind}", "") for kind in kinds])]
    return Table(["", "network", "kernel", "which network", "which kernel"], lines)


def _least(measure: Measure, members: Sequence[Experiment]) -> Experiment:
    known = [runs for runs in members if measure.of(runs)]
    return min(known, key=lambda runs: fmean(measure.of(runs)), default=[])
