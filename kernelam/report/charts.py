"""Figures of the page of results: what models cost, how they learnt, and those of may2017."""

from collections.abc import Callable, Sequence
from statistics import fmean

from kernelam.report.evidence import Epoch, Selection, read_epochs, read_selection
from kernelam.report.experiments import Run, kernel_name, selected
from kernelam.report.figures import Axis, Plot, figure, figures
from kernelam.report.results import Results
from kernelam.report.sections import name_of, numbered, rate_of, section, title_of, wer_of

GREY = 7  # the colour of legends about any system
COSTS = {
    "seconds": ("training, seconds", 1),
    "flops": ("training, Tflop", 1e12),
    "memory": ("peak memory, GiB", 2**30),
}


def cost(results: Results) -> str:
    drawn = []
    for name, (title, unit) in COSTS.items():
        told = [(one, one[1].about["training"].get(name, 0) / unit) for one in numbered(results) if one[1].trained]
        if known := [(one, value) for one, value in told if value > 0]:
            runs, values = zip(*known, strict=True)
            drawn.append(figure(scatter(title, values, runs, results, log=True), f"{title}; one point a run."))
    note = "Points have the numbers of the tables. Heldout frames are not counted in flops."
    return section("Error rate against the cost of training", note, figures(drawn))


def scatter(
    name: str, values: Sequence[float], runs: Sequence[tuple[int, Run]], results: Results, log: bool = False
) -> Plot:
    """A dot for each run, the first of an experiment with its number."""
    plot = Plot(Axis.around(name, values, log), Axis.around(wer_of(results), [rate_of(run) for _, run in runs]))
    seen: set[int] = set()
    for (number, run), value in zip(runs, values, strict=True):
        title = f"{title_of(number, run)}: {name} {value:.6g}, {wer_of(results)} {rate_of(run):.2f}"
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
            drawn.append(figure(plot, name_of(number, results.experiments[number][0])))
    keys = [("line", GREY, "kept epochs"), ("cross", GREY, "reverted"), ("triangle", GREY, "rate halved")]
    note = (
        "Heldout cross-entropy after each epoch. A dashed line leads to an epoch that was reverted: the next one starts"
        " from where it started. What lies beyond the axis, or diverged, is drawn at its upper end."
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


def features(results: Results) -> str:
    """may2017, figure 3."""
    groups: dict[tuple[str, bool], list[Run]] = {}
    for _, run in numbered(results):
        if run.about["kind"] == "kernel" and run.about.get("heldout"):
            config = run.about["config"]
            rank = f", bottleneck {config['bottleneck']}" if config["bottleneck"] else ""
            groups.setdefault((kernel_name(config["kernel"]) + rank, selected(run.about)), []).append(run)
    if len({_number(run) for runs in groups.values() for run in runs}) < 2:
        return ""
    kernels = list(dict.fromkeys(name for name, _ in groups))
    drawn = [
        _by_number("heldout CE", lambda run: float(run.about["heldout"]["ce"]), groups, kernels),
        _by_number(wer_of(results), rate_of, groups, kernels),
    ]
    keys = [
        ("dashed" if chosen else "line", kernels.index(name), f"{name}, selected" if chosen else name)
        for name, chosen in groups
    ]
    return section("Number of features", "Lines join means of runs (may2017, figure 3).", figures(drawn, keys))


def _number(run: Run) -> int:
    return int(run.about["config"]["features"])


def _by_number(
    title: str, value: Callable[[Run], float], groups: dict[tuple[str, bool], list[Run]], kernels: list[str]
) -> str:
    runs = [run for members in groups.values() for run in members]
    plot = Plot(Axis.around("features D", map(_number, runs), log=True), Axis.around(title, map(value, runs)))
    for (name, chosen), members in groups.items():
        colour, means = kernels.index(name), dict[int, list[float]]()
        for run in members:
            means.setdefault(_number(run), []).append(value(run))
            plot.mark("dot", _number(run), value(run), colour, f"{run.folder.name}: {_number(run)}, {value(run):.4g}")
        plot.line([(number, fmean(values)) for number, values in sorted(means.items())], colour, chosen)
    return figure(plot, f"{title} by the number of features")


def _selections(results: Results) -> list[tuple[int, Run, Selection]]:
    found = ((number, run, read_selection(run.folder)) for number, run in numbered(results))
    return [(number, run, told) for number, run, told in found if told is not None]


def survival(results: Results) -> str:
    """may2017, figure 4."""
    drawn = []
    for number, run, told in _selections(results):
        rounds = range(1, len(told.kept) + 1)
        positive = [share for share in (*told.survival, *told.chance) if share > 0]  # there is no logarithm of 0
        plot = Plot(Axis.around("round", rounds, whole=True), Axis("share", min(0.1, *positive), 1.0, log=True))
        for shares, dashed in ((told.survival, False), (told.chance, True)):
            plot.line([(t, share) for t, share in zip(rounds, shares, strict=True) if share > 0], number, dashed)
        for t, share, kept in zip(rounds, told.survival, told.kept, strict=True):
            if share > 0:
                plot.mark("dot", t, share, number, f"round {t}: of {kept} kept, {100 * share:.1f} % survive")
        drawn.append(figure(plot, title_of(number, run)))
    note = "The share of the features kept in each round that are in the final model (may2017, figure 4)."
    keys = [("line", GREY, "selected"), ("dashed", GREY, "chosen by chance")]
    return section("Survival of selected features", note, figures(drawn, keys))


def inputs(results: Results) -> str:
    """may2017, figure 5: a row for each frame of the context, where the inputs are such frames."""
    drawn = []
    for number, run, told in _selections(results):
        left, right = run.about["input"]["context"]
        weights, frames = told.input_weights, left + 1 + right
        if len(weights) % frames:
            left, frames = 0, 1
        width, most = len(weights) // frames, max(weights) or 1.0
        plot = Plot(
            Axis("coordinate", -0.5, width - 0.5, whole=True),
            Axis("frame", -left - 0.5, frames - left - 0.5, whole=True),
        )
        for place, weight in enumerate(weights):
            frame, coordinate = place // width - left, place % width
            title = f"frame {frame}, coordinate {coordinate}: {weight:.2f}"
            plot.cell(coordinate, frame, weight / most, title)
        drawn.append(figure(plot, f"{title_of(number, run)}: from 0 to {most:.2f}"))
    note = "How much the selected features weigh each input, in the mean 1 (may2017, figure 5)."
    return section("Weights of the inputs", note, figures(drawn))
