"""Figures of the page of results: what models cost, how they learnt, and what more features do."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from kernelam.report.evidence import Epoch, read_epochs
from kernelam.report.experiments import Run, kernel_title, selected, trick
from kernelam.report.figures import Axis, Plot, figure, figures
from kernelam.report.layouts import NAMES
from kernelam.report.results import Results
from kernelam.report.sections import name_of, numbered, rate_of, rate_title, section, title_of

GREY = 7  # the colour of legends about any system
COSTS = {
    "seconds": ("training, seconds", 1),
    "flops": ("training, Tflop", 1e12),
    "memory": ("peak memory, GiB", 2**30),
}


def cost(results: Results) -> str:
    drawn = []
    trained = [one for one in numbered(results) if one[1].trained]
    for name, (title, unit) in COSTS.items():
        told = [(one, (one[1].cost or {}).get(name, 0) / unit) for one in trained]
        if known := [(one, value) for one, value in told if value > 0]:
            runs, values = zip(*known, strict=True)
            drawn.append(figure(scatter(title, values, runs, results, log=True), f"{title}; one point a run."))
    note = "Points have the numbers of the tables."
    return section("Error rate against the cost of training", f"{note} {results.costs}", figures(drawn))


def scatter(
    name: str, values: Sequence[float], runs: Sequence[tuple[int, Run]], results: Results, log: bool = False
) -> Plot:
    """A dot for each run, the first of an experiment with its number."""
    plot = Plot(Axis.around(name, values, log), Axis.around(rate_title(results), [rate_of(run) for _, run in runs]))
    seen: set[int] = set()
    for (number, run), value in zip(runs, values, strict=True):
        title = f"{title_of(number, run)}: {name} {value:.6g}, {rate_title(results)} {rate_of(run):.2f}"
        plot.mark("dot", value, rate_of(run), number, title, "" if number in seen else str(number + 1))
        seen.add(number)
    return plot


def learning(results: Results) -> str:
    stories = [[read_epochs(run.folder)[1:] for run in runs] for runs in results.experiments]
    rows = [row for story in stories for epochs in story for row in epochs]
    values = [row.ce for row in rows if row.ce is not None and row.kept]
    if not values:
        return ""
    x = Axis.around("epoch", [1, max(row.number for row in rows)], whole=True)
    drawn = []
    for number, story in enumerate(stories):
        plot = Plot(x, Axis.around("heldout CE", values))
        for epochs in story:
            _curve(plot, epochs, number)
        if any(story):
            drawn.append(figure(plot, name_of(number, results)))
    keys = [("line", GREY, "kept epochs"), ("cross", GREY, "reverted"), ("triangle", GREY, "rate halved")]
    note = (
        "Heldout cross-entropy after each epoch. A dashed line leads to an epoch that was reverted: the next one starts"
        " from where it started. Where the rate is halved by ERLL, cross-entropy may rise in epochs that are kept. What"
        " lies beyond the axis, or diverged, is drawn at its upper end."
    )
    return section("Learning curves", note, figures(drawn, keys))


def _curve(plot: Plot, epochs: list[Epoch], colour: int) -> None:
    kept: list[tuple[float, float]] = []
    for row in epochs:
        here = (float(row.number), plot.y.high if row.ce is None else min(plot.y.high, row.ce))
        title = f"epoch {row.number}: {'diverged' if row.ce is None else f'CE {row.ce:.4f}'}"
        if row.kept:
            kept.append(here)
            plot.mark("dot", *here, colour, title)
        else:
            plot.line([*kept[-1:], here], colour, dashed=True)
            plot.mark("cross", *here, colour, f"{title}, reverted")
        if row.halved:
            plot.mark("triangle", *here, colour, f"{title}, rate halved")
    plot.line(kept, colour)


Groups = dict[tuple[str, bool], list[Run]]
"""Runs by kernel with its trick, and by whether features are selected."""


def features(results: Results) -> str:
    """may2017, figure 3."""
    groups: Groups = {}
    for _, run in numbered(results):
        if run.about["kind"] == "kernel" and run.about.get("heldout"):
            groups.setdefault((_line(run.about), selected(run.about)), []).append(run)
    if len({_number(run) for runs in groups.values() for run in runs}) < 2:
        return ""
    names = list(dict.fromkeys(name for name, _ in groups))
    drawn = [
        _by_number("heldout CE", lambda run: float(run.about["heldout"]["ce"]), groups, names),
        _by_number(rate_title(results), rate_of, groups, names),
    ]
    keys = [
        ("dashed" if chosen else "line", names.index(name), f"{name}, selected features" if chosen else name)
        for name, chosen in groups
    ]
    note = f"Lines join means of runs (may2017, figure 3). {NAMES}"
    return section("Number of features", note, figures(drawn, keys))


def _line(about: dict[str, Any]) -> str:
    rank = about["config"]["bottleneck"]
    return f"{kernel_title(about['config']['kernel'])}, {trick(about)}" + (f", bottleneck {rank}" if rank else "")


def _number(run: Run) -> int:
    return int(run.about["config"]["features"])


def _by_number(title: str, value: Callable[[Run], float], groups: Groups, names: list[str]) -> str:
    runs = [run for members in groups.values() for run in members]
    plot = Plot(Axis.around("features D", map(_number, runs), log=True), Axis.around(title, map(value, runs)))
    for (name, chosen), members in groups.items():
        colour, means = names.index(name), dict[int, list[float]]()
        for run in members:
            means.setdefault(_number(run), []).append(value(run))
            plot.mark("dot", _number(run), value(run), colour, f"{run.folder.name}: {_number(run)}, {value(run):.4g}")
        plot.line([(number, fmean(values)) for number, values in sorted(means.items())], colour, chosen)
    return figure(plot, f"{title} by the number of features")
