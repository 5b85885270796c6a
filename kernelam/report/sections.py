"""The parts of the page of results, each HTML, or empty where the experiments have nothing to show."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from statistics import StatisticsError, correlation, fmean

from kernelam.report.evidence import Epoch, Pairs, read_alignments, read_epochs, read_selection, read_speakers
from kernelam.report.figures import Axis, Plot, figure, legend
from kernelam.report.results import Experiment, Results, Run, kernel_name, selected, spread, system
from kernelam.scoring.details import EMPTY

METRICS = {"ce": "CE", "entropy": "entropy", "erll": "ERLL", "frame_error": "frame error"}
UTTERANCES, SPEAKERS, WORDS = 200, 20, 25  # the worst that are listed
Section = Callable[[Results], str]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A cell that starts with **a number** has it strong, as in Markdown."""

    def line(cells: Sequence[str], tag: str) -> str:
        texts = (re.sub(r"^\*\*([^*]+)\*\*", r"<strong>\1</strong>", escape(cell)) for cell in cells)
        return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f'<div class="scroll"><table><thead>{line(header, "th")}</thead><tbody>{body}</tbody></table></div>'


def _section(title: str, note: str, *parts: str) -> str:
    body = "".join(parts)
    return f"<section><h2>{escape(title)}</h2><p>{escape(note)}</p>{body}</section>" if body else ""


def _figures(drawn: Sequence[str]) -> str:
    return f'<div class="figures">{"".join(drawn)}</div>' if drawn else ""


def _name(number: int, runs: Experiment) -> str:
    return f"{number + 1} · {system(runs[0].about)}"


def _rate(run: Run) -> float:
    return 100 * float(run.test["rate"])


def _wer(results: Results) -> str:
    return f"{results.sets[1]} WER %"


def _runs(results: Results) -> list[tuple[int, Run]]:
    """With the number of their experiment."""
    return [(number, run) for number, runs in enumerate(results.experiments) for run in runs]


def _labelled(plot: Plot, points: Sequence[tuple[int, Run, float, float]]) -> Plot:
    """A dot for each run, the first of an experiment with its number."""
    seen: set[int] = set()
    for number, run, x, y in points:
        title = f"{_name(number, [run])} ({run.folder.name}): {x:.6g}, {y:.2f}"
        plot.mark("dot", x, y, number, title, "" if number in seen else str(number + 1))
        seen.add(number)
    return plot


def errors(results: Results) -> str:
    header, rows = results.errors.header, results.errors.rows
    names = [_name(number, runs) for number, runs in enumerate(results.experiments)]
    return _section(
        "Error rates", results.notes, table(header, [[n, *row[1:]] for n, row in zip(names, rows, strict=True)])
    )


def training(results: Results) -> str:
    rows = []
    for number, (runs, row) in enumerate(zip(results.experiments, results.training.rows, strict=True)):
        wer = spread([_rate(run) for run in runs], ".2f", bold=True)
        rows.append([_name(number, runs), wer, *row[1:], " ".join(str(run.folder) for run in runs)])
    header = ["system", _wer(results), *results.training.header[1:], "directory"]
    return _section(
        "Metrics and training",
        "Metrics are of heldout frames, in nats; seconds are of one training.",
        table(header, rows),
    )


def cost(results: Results) -> str:
    points = [(n, run, float(run.about["training"]["seconds"]), _rate(run)) for n, run in _runs(results)]
    points = [point for point in points if point[2] > 0]
    if not points:
        return ""
    seconds, rates = [x for *_, x, _ in points], [y for *_, y in points]
    plot = Plot(Axis.around("training, seconds", seconds, log=True), Axis.around(_wer(results), rates))
    drawn = figure(_labelled(plot, points), "Error rate against the seconds of training, one point a run.")
    return _section("Cost", "Points have the numbers of the table.", _figures([drawn]))


def learning(results: Results) -> str:
    stories = [[read_epochs(run.folder)[1:] for run in runs] for runs in results.experiments]
    rows = [row for story in stories for epochs in story for row in epochs]
    values = [row.ce for row in rows if row.ce is not None and row.kept]
    values = values or [row.ce for row in rows if row.ce is not None]
    if not values:
        return ""
    x = Axis.around("epoch", [1, max(row.number for row in rows)], whole=True)
    y = Axis.around("heldout CE", values)
    drawn = []
    for number, story in enumerate(stories):
        plot = Plot(x, y)
        for epochs in story:
            _curve(plot, epochs, number)
        if any(story):
            drawn.append(figure(plot, _name(number, results.experiments[number])))
    keys = [("line", 0, "kept epochs"), ("cross", 0, "reverted"), ("triangle", 0, "rate halved")]
    note = (
        "Heldout cross-entropy after each epoch. A dashed line leads to an epoch that was reverted: the next one starts"
        " from where it started. What lies beyond the axis, or diverged, is drawn at its upper end."
    )
    return _section("Learning curves", note, legend(keys), _figures(drawn))


def _curve(plot: Plot, epochs: list[Epoch], colour: int) -> None:
    kept: list[tuple[float, float]] = []
    for row in epochs:
        here = (float(row.number), min(plot.y.high, plot.y.high if row.ce is None else row.ce))
        value = "diverged" if row.ce is None else f"CE {row.ce:.4f}"
        if row.kept:
            kept.append(here)
        elif kept:
            plot.line([kept[-1], here], colour, dashed=True)
        plot.mark(
            "dot" if row.kept else "cross",
            *here,
            colour,
            f"epoch {row.number}: {value}{'' if row.kept else ', reverted'}",
        )
        if row.halved:
            plot.mark("triangle", *here, colour, f"rate halved after epoch {row.number}")
    if kept:
        plot.line(kept, colour)


def correlations(results: Results) -> str:
    """may2017, figure 2."""
    runs = [(n, run) for n, run in _runs(results) if run.about.get("heldout")]
    if len(runs) < 4:
        return ""
    rates, y = [_rate(run) for _, run in runs], Axis.around(_wer(results), [_rate(run) for _, run in runs])
    values = {name: [float(run.about["heldout"][name]) for _, run in runs] for name in METRICS}
    drawn = []
    for name, title in METRICS.items():
        plot = Plot(Axis.around(f"heldout {title}", values[name]), y)
        points = [(n, run, x, _rate(run)) for (n, run), x in zip(runs, values[name], strict=True)]
        r = _correlation(values[name], rates)
        drawn.append(
            figure(_labelled(plot, points), f"{title}: r = {'undefined' if r is None else f'{r:.2f}'}, n = {len(runs)}")
        )
    return _section(
        "Which metric foretells the error rate",
        f"Pearson's correlation r with {_wer(results)} over n = {len(runs)} runs (may2017, figure 2).",
        _figures([*drawn, _by_beta(values["ce"], values["entropy"], rates)]),
    )


def _by_beta(ce: list[float], entropy: list[float], rates: list[float]) -> str:
    """ERLL of parameter β is CE + β entropy."""
    betas = [step / 20 for step in range(81)]
    found = [(beta, _correlation([c + beta * h for c, h in zip(ce, entropy, strict=True)], rates)) for beta in betas]
    points = [(beta, r) for beta, r in found if r is not None]
    if not points:
        return ""
    plot = Plot(Axis("β", 0, 4), Axis("r", -1, 1))
    plot.line(points, 0)
    return figure(plot, f"CE + β entropy, the ERLL of parameter β (0 is CE, 1 ERLL): r by β, n = {len(rates)}")


def _correlation(a: list[float], b: list[float]) -> float | None:
    try:
        return correlation(a, b)
    except StatisticsError:  # one of them is constant
        return None


def features(results: Results) -> str:
    """may2017, figure 3."""
    groups: dict[tuple[str, str, bool], list[Run]] = {}
    for _, run in _runs(results):
        if run.about["kind"] == "kernel" and run.about.get("heldout"):
            config = run.about["config"]
            rank = f", bottleneck {config['bottleneck']}" if config["bottleneck"] else ""
            groups.setdefault((kernel_name(config["kernel"]), rank, selected(run.about)), []).append(run)
    kernels = list(dict.fromkeys(key[:2] for key in groups))
    numbers = [int(run.about["config"]["features"]) for runs in groups.values() for run in runs]
    if len(set(numbers)) < 2:
        return ""
    x = Axis.around("features D", numbers, log=True)
    drawn = []
    for title, value in (("heldout CE", lambda run: float(run.about["heldout"]["ce"])), (_wer(results), _rate)):
        plot = Plot(x, Axis.around(title, [value(run) for runs in groups.values() for run in runs]))
        for key, runs in groups.items():
            colour = kernels.index(key[:2])
            by_number: dict[int, list[float]] = {}
            for run in runs:
                by_number.setdefault(int(run.about["config"]["features"]), []).append(value(run))
                plot.mark(
                    "dot", run.about["config"]["features"], value(run), colour, f"{run.folder.name}: {value(run):.4g}"
                )
            plot.line([(number, fmean(by_number[number])) for number in sorted(by_number)], colour, dashed=key[2])
        drawn.append(figure(plot, f"{title} by the number of features"))
    keys = [
        ("dashed" if chosen else "line", kernels.index((name, rank)), f"{name}{rank}{', selected' * chosen}")
        for name, rank, chosen in groups
    ]
    return _section(
        "Number of features", "Lines join the means over seeds (may2017, figure 3).", legend(keys), _figures(drawn)
    )


def survival(results: Results) -> str:
    """may2017, figure 4."""
    drawn = []
    for number, run in _runs(results):
        if told := read_selection(run.folder):
            rounds = list(range(1, len(told.kept) + 1))
            curves = [
                [(t, value) for t, value in zip(rounds, values, strict=True) if value > 0]
                for values in (told.survival, told.chance)
            ]
            shown = [value for curve in curves for _, value in curve]
            if not shown:
                continue
            plot = Plot(Axis.around("round", rounds, whole=True), Axis("share", min(*shown, 0.1), 1.0, log=True))
            for curve, dashed in zip(curves, (False, True), strict=True):
                plot.line(curve, number, dashed)
            for t, value in curves[0]:
                plot.mark("dot", t, value, number, f"round {t}: {told.kept[t - 1]} kept, {100 * value:.1f} % survive")
            drawn.append(figure(plot, f"{_name(number, [run])} ({run.folder.name})"))
    keys = [("line", 0, "selected"), ("dashed", 0, "by chance")]
    note = "The share of the features kept in each round that are in the final model (may2017, figure 4)."
    return _section("Survival of selected features", note, legend(keys) if drawn else "", _figures(drawn))


def inputs(results: Results) -> str:
    """may2017, figure 5."""
    drawn = []
    for number, run in _runs(results):
        if told := read_selection(run.folder):
            left, right = run.about["input"]["context"]
            frames, rest = divmod(len(told.input_weights), left + 1 + right)
            first, width = (-left, frames) if not rest else (0, len(told.input_weights))
            if not width:
                continue
            rows = [told.input_weights[start : start + width] for start in range(0, len(told.input_weights), width)]
            drawn.append(_heat_map(rows, first, f"{_name(number, [run])} ({run.folder.name})"))
    note = "How much the selected features weigh each input, of mean 1 (may2017, figure 5)."
    return _section("Weights of the inputs", note, _figures(drawn))


def _heat_map(rows: list[list[float]], first: int, name: str) -> str:
    """A row for each frame of the context."""
    most = max(max(row) for row in rows) or 1.0
    last = first + len(rows) - 1
    plot = Plot(
        Axis("coordinate", -0.5, len(rows[0]) - 0.5, whole=True), Axis("frame", first - 0.5, last + 0.5, whole=True)
    )
    for frame, row in enumerate(rows, first):
        for coordinate, value in enumerate(row):
            plot.cell(coordinate, frame, value / most, f"frame {frame}, coordinate {coordinate}: {value:.2f}")
    return figure(plot, f"{name}: from 0 to {most:.2f}")


def _best(results: Results) -> tuple[int, Run]:
    """The first run of the experiment with the fewest errors."""
    number, runs = min(enumerate(results.experiments), key=lambda one: fmean(map(_rate, one[1])))
    return number, runs[0]


def speakers(results: Results) -> str:
    (number, run), reference = _best(results), results.reference[0]
    place = f"decode_{results.sets[1]}"
    other = {one.name: one for one in read_speakers(reference.folder / place)}
    found = [one for one in read_speakers(run.folder / place) if one.words]
    worst = sorted(found, key=lambda one: -one.errors / one.words)[:SPEAKERS]
    rows = []
    for one in worst:
        counts = (one.utterances, one.words, one.substitutions, one.deletions, one.insertions)
        rates = (f"{100 * s.errors / s.words:.2f}" if s and s.words else "–" for s in (one, other.get(one.name)))
        rows.append([one.name, *map(str, counts), *rates])
    header = ["speaker", "utterances", "words", "sub", "del", "ins", "WER %", "baseline WER %"]
    note = (
        f"Of {_name(number, [run])} ({run.folder.name}), the {len(worst)} worst of {len(found)}; the last column is of"
        f" the baseline, {system(reference.about)}."
    )
    return _section("Worst speakers", note, table(header, rows))


def words(results: Results) -> str:
    number, run = _best(results)
    found = read_alignments(run.folder / f"decode_{results.sets[1]}")
    counts = Counter(pair for pairs in found.values() for pair in pairs if pair[0] != pair[1])
    swapped = [[ref, hyp, str(n)] for (ref, hyp), n in counts.most_common() if EMPTY not in (ref, hyp)][:WORDS]
    deleted = [[ref, str(n)] for (ref, hyp), n in counts.most_common() if hyp == EMPTY][:WORDS]
    added = [[hyp, str(n)] for (ref, hyp), n in counts.most_common() if ref == EMPTY][:WORDS]
    parts = [(["word", "taken for", "times"], swapped), (["deleted", "times"], deleted), (["inserted", "times"], added)]
    tables = [table(header, rows) for header, rows in parts if rows]
    note = f"Of {_name(number, [run])} ({run.folder.name}), the {WORDS} most frequent of each kind."
    return _section("Most confused words", note, f'<div class="beside">{"".join(tables)}</div>' if tables else "")


def alignments(results: Results) -> str:
    number, run = _best(results)
    found = read_alignments(run.folder / f"decode_{results.sets[1]}")
    wrong = {utt: sum(ref != hyp for ref, hyp in pairs) for utt, pairs in found.items()}
    worst = sorted((utt for utt in found if wrong[utt]), key=lambda utt: -wrong[utt])[:UTTERANCES]
    if not worst:
        return ""
    lines = [_aligned(utt, wrong[utt], found[utt]) for utt in worst]
    key = "<p><del>deleted</del> <ins>inserted</ins> <span><del>word</del> <ins>taken for</ins></span></p>"
    note = (
        f"Of {_name(number, [run])} ({run.folder.name}): {len(worst)} of {len(found)} utterances, those with the most"
        f" errors first{f' (at most {UTTERANCES} are listed)' if len(worst) == UTTERANCES else ''}."
    )
    return _section(
        "Alignments", note, key, f"<details><summary>{len(worst)} utterances</summary>{''.join(lines)}</details>"
    )


def _aligned(utt: str, wrong: int, pairs: Pairs) -> str:
    words = []
    for ref, hyp in pairs:
        removed = f"<del>{escape(ref)}</del>" if ref not in (EMPTY, hyp) else ""
        added = f"<ins>{escape(hyp)}</ins>" if hyp not in (EMPTY, ref) else ""
        words.append(f"<span>{removed} {added}</span>" if removed and added else removed or added or escape(ref))
    counts = f"{wrong} error{'s' * (wrong > 1)} in {sum(ref != EMPTY for ref, _ in pairs)} words"
    return f'<p class="utterance"><b>{escape(utt)}</b> <small>{counts}</small><br>{" ".join(words)}</p>'


def failed(results: Results) -> str:
    logs = [
        f"<h3>{escape(name)}</h3><pre>{escape(chr(10).join(lines))}</pre>" for name, lines in results.failures.items()
    ]
    return _section("Failed", "Experiments without a result, each with the last lines of its log.", *logs)


def conditions(results: Results) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in results.conditions)
    tuned, tested = results.sets
    return f'<ul class="conditions"><li>weights tuned on {escape(tuned)}, results on {escape(tested)}</li>{items}</ul>'


SECTIONS: list[Section] = [
    conditions,
    errors,
    training,
    cost,
    learning,
    correlations,
    features,
    survival,
    inputs,
    speakers,
    words,
    alignments,
    failed,
]
