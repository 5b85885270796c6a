"""Figures of selected features, one for each kernel: how they survive, and which inputs they weigh."""

from statistics import fmean

from kernelam.report.charts import GREY
from kernelam.report.evidence import Selection, read_selection
from kernelam.report.experiments import Run, kernel_title
from kernelam.report.figures import Axis, Plot, figure, figures
from kernelam.report.results import Results
from kernelam.report.sections import numbered, section, title_of

Told = tuple[int, Run, Selection]


def _by_kernel(results: Results) -> dict[str, list[Told]]:
    """The runs of each kernel that have selected features."""
    found: dict[str, list[Told]] = {}
    for number, run in numbered(results):
        if (told := read_selection(run.folder)) is not None:
            found.setdefault(kernel_title(run.about["config"]["kernel"]), []).append((number, run, told))
    return found


def survival(results: Results) -> str:
    """may2017, figure 4."""
    drawn = []
    for kernel, runs in _by_kernel(results).items():
        rounds = max(len(told.kept) for _, _, told in runs)
        plot = Plot(Axis.around("round", [1, rounds], whole=True), Axis("share", 0.0, 1.0))
        for one in runs:
            _curve(plot, *one)
        drawn.append(figure(plot, f"{kernel} kernel{_count(runs)}"))
    note = "The share of the features kept in each round that are in the final model (may2017, figure 4)."
    keys = [("line", GREY, "selected"), ("dashed", GREY, "chosen by chance")]
    return section("Survival of selected features", note, figures(drawn, keys))


def _count(runs: list[Told]) -> str:
    return f", {len(runs)} runs" if len(runs) > 1 else ""


def _curve(plot: Plot, number: int, run: Run, told: Selection) -> None:
    for shares, dashed in ((told.survival, False), (told.chance, True)):
        plot.line(list(enumerate(shares, 1)), number, dashed)
    for t, (share, kept) in enumerate(zip(told.survival, told.kept, strict=True), 1):
        title = f"{title_of(number, run)}, round {t}: of {kept} kept, {100 * share:.1f} % survive"
        plot.mark("point", t, share, number, title)


def inputs(results: Results) -> str:
    """may2017, figure 5: a row for each frame of the context, where the inputs are such frames."""
    drawn = []
    for kernel, runs in _by_kernel(results).items():
        alike: dict[tuple[int, ...], list[Told]] = {}
        for one in runs:
            alike.setdefault((*one[1].about["input"]["context"], len(one[2].input_weights)), []).append(one)
        for (left, right, _), group in alike.items():
            columns = zip(*(told.input_weights for _, _, told in group), strict=True)
            drawn.append(_map(f"{kernel} kernel{_count(group)}", list(map(fmean, columns)), left, right))
    note = (
        "How much the selected features weigh each input, relative to the mean of all; of several runs, in their mean"
        " (may2017, figure 5)."
    )
    return section("Weights of the inputs", note, figures(drawn))


def _map(name: str, weights: list[float], left: int, right: int) -> str:
    frames = left + 1 + right
    if len(weights) % frames:
        left, frames = 0, 1
    width, most = len(weights) // frames, max(weights) or 1.0
    plot = Plot(
        Axis("coordinate", -0.5, width - 0.5, whole=True), Axis("frame", -left - 0.5, frames - left - 0.5, whole=True)
    )
    for place, weight in enumerate(weights):
        frame, coordinate = place // width - left, place % width
        plot.cell(coordinate, frame, weight / most, f"frame {frame}, coordinate {coordinate}: {weight:.2f}")
    return figure(plot, f"{name}: from 0 (pale) to {most:.2f}")
