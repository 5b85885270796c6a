"""The results page of a set of experiments."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import write_texts
from kernelam.records import check_place
from kernelam.report.experiments import Experiment, Run, experiments_of, named, names
from kernelam.report.kept import HEAD, kept, read_runs
from kernelam.report.layouts import Layouts, layouts
from kernelam.report.published import Published
from kernelam.report.pursuit import pursuit_tables
from kernelam.report.ridge import ridge_tables
from kernelam.report.tables import NONE, Table, spread
from kernelam.scoring.bootstrap import bootstrap, check_same_references, compare

LAYOUTS = "The tables of may2017"
CLASSES = "classes"  # the units of what was classified, not decoded
RATES = {"words": "WER", "characters": "CER", CLASSES: "error"}


@dataclass(frozen=True)
class Results:
    """What the pages tell, in tables of one row an experiment. p is against `reference`; the weights of each run are
    tuned on the first of `sets` and applied to the second; `failures` are experiments without a result, each with the
    last lines of its log; figures of `published` stand beside ours."""

    title: str
    experiments: list[Experiment]
    reference: Experiment
    sets: tuple[str, str]
    failures: Mapping[str, list[str]]
    published: Published | None = None
    remark: str = ""  # what is told first

    @property
    def units(self) -> str:
        """What was scored: words, characters, or what a map makes of them."""
        told = _units(self.reference[0]).partition(" (")[0]
        return told if told in RATES else "tokens"

    @property
    def rate(self) -> str:
        return RATES.get(self.units, "TER")

    @cached_property
    def errors(self) -> Table:
        return _errors(self.experiments, self.reference, self.sets, self.rate)

    @cached_property
    def training(self) -> Table:
        return _training(self.experiments)

    @property
    def costs(self) -> str:
        """How costs are counted."""
        return _costs(self.experiments)

    @cached_property
    def layouts(self) -> Layouts:
        return layouts(self.experiments, self.sets, self.published)

    @property
    def of_methods(self) -> list[tuple[str, str, Table]]:
        """Tables of what only some kinds of models have, each with a title and a note."""
        return ridge_tables(self.experiments) + pursuit_tables(self.experiments)

    @property
    def notes(self) -> str:
        return _notes(self.experiments, self.reference, self.sets, self.rate, self.units)

    @property
    def conditions(self) -> list[str]:
        """Of all runs, each once."""
        runs = [run for runs in self.experiments for run in runs if run.trained]
        return list(dict.fromkeys(line for run in runs for line in conditions(run.about)))


def read_results(
    title: str,
    folders: list[Path],
    baseline: Path,
    sets: tuple[str, str] = ("dev", "test"),
    failures: Mapping[str, list[str]] | None = None,
    published: Published | None = None,
    remark: str = "",
) -> Results:
    """Runs that differ in their seed alone are one experiment; that of `baseline` is the reference. Among `folders` may
    be files of figures that an earlier report has kept; run NAME of such a FILE is FILE/NAME."""
    experiments = experiments_of(read_runs(folders, sets))
    place = baseline.resolve()
    found = [runs for runs in experiments if place in (run.folder.resolve() for run in runs)]
    if not found:
        raise KernelamError(f"the baseline {baseline} is none of the experiments that are reported")
    if len(found) > 1:
        raise KernelamError(f"there are {len(found)} experiments called {baseline}: make another one the baseline")
    (reference,) = found
    _check_alike([run for runs in experiments for run in runs], sets)
    return Results(title, experiments, reference, sets, failures or {}, published, remark)


def write_results(
    path: Path,
    title: str,
    folders: list[Path],
    baseline: Path,
    sets: tuple[str, str] = ("dev", "test"),
    failures: Mapping[str, list[str]] | None = None,
    published: Published | None = None,
) -> Results:
    """Write a Markdown page: error rates with their conditions, what training cost, and the tables of the papers; and
    beside it a file of the figures that it was made of."""
    results = read_results(title, folders, baseline, sets, failures, published)
    write_texts(tables_and_figures(path, results))
    return results


def tables(results: Results) -> str:
    """The page in Markdown."""
    sections = [
        f"# {results.title}",
        *([results.remark] if results.remark else []),
        results.errors.markdown,
        results.notes,
        "## Training",
        results.training.markdown,
        results.costs,
    ]
    if results.layouts.note:
        told_there = (f"### {name}\n\n{table.markdown}" for name, table in results.layouts.tables)
        sections += [f"## {LAYOUTS}", results.layouts.note, *told_there]
    for name, note, told in results.of_methods:
        sections += [f"## {name}", told.markdown, note]
    sections += ["## Conditions", "\n".join(f"- {line}" for line in results.conditions)]
    if results.failures:
        logs = (
            "\n".join([f"{name}:", "", *(f"    {line}" for line in lines)]) for name, lines in results.failures.items()
        )
        sections += ["## Failed", *logs]
    return "\n\n".join(sections) + "\n"


def tables_and_figures(path: Path, results: Results) -> dict[Path, str]:
    """Markdown, and the figures it was made of beside it."""
    figures = path.with_suffix(".json")
    check_place(figures, HEAD, "results")
    return {path: tables(results), figures: kept(results.sets, results.experiments)}


def _units(run: Run) -> str:
    return str(run.test.get("units", "words"))


def _check_alike(runs: list[Run], sets: tuple[str, str]) -> None:
    """All were scored in the same units on the same references."""
    first = runs[0]
    for run in runs[1:]:
        if _units(run) != _units(first):
            raise KernelamError(
                f"{first.folder} was scored in {_units(first)}, {run.folder} in {_units(run)}: score both alike"
            )
        if run.dev["ref_words"] != first.dev["ref_words"] and not first.words.alternatives:
            raise KernelamError(
                f"{sets[0]} has {first.dev['ref_words']} {_units(run)} where {first.folder} was scored,"
                f" {run.dev['ref_words']} where {run.folder} was: score both alike"
            )
        try:
            check_same_references(first.words, run.words)
        except KernelamError as error:
            raise KernelamError(f"{first.folder} and {run.folder}: {error}") from None


def _errors(experiments: list[Experiment], reference: Experiment, sets: tuple[str, str], rate: str) -> Table:
    rows, decoded = [], _units(reference[0]) != CLASSES
    for name, runs in zip(names(experiments), experiments, strict=True):
        words = [run.words for run in runs]
        interval = bootstrap(words).interval
        span = f"{100 * interval[0]:.2f} – {100 * interval[1]:.2f}" if interval else NONE
        p = "" if runs is reference else compare([run.words for run in reference], words).p_text
        rates = [
            spread([100 * run.dev["rate"] for run in runs], ".2f"),
            spread([100 * run.test["rate"] for run in runs], ".2f", bold=True),
        ]
        tuned = []
        if decoded:
            oracle = spread([100 * run.test["oracle"]["rate"] for run in runs], ".2f")
            weights = [_weights(run) for run in runs]
            tuned = ["; ".join(weights) if {*weights} != {NONE} else NONE, oracle]
        rows.append([name, *rates, span, p, *tuned])
    header = ["system", *(f"{name} {rate} %" for name in sets), "95 % interval", "p"]
    header += ["LM weight, penalty", f"{sets[1]} oracle %"] if decoded else []
    return Table(header, rows)


def _weights(run: Run) -> str:
    """Combined lattices have none but those of their systems."""
    return NONE if "parts" in run.test else f"{run.test['lmwt']}, {run.test['wip']}"


def _notes(experiments: list[Experiment], reference: Experiment, sets: tuple[str, str], rate: str, units: str) -> str:
    first, (dev, test) = experiments[0][0], sets
    against = names(experiments)[experiments.index(reference)]
    seeds = (
        " Of several seeds there are the mean and the standard deviation; interval and p are of the mean."
        if any(len(runs) > 1 for runs in experiments)
        else ""
    )
    rule = (
        " “Rate by” says which heldout metric the learning rate is halved by, where it is not cross-entropy; ERLL is"
        " cross-entropy plus entropy."
        if any(", rate by " in named(runs) for runs in experiments)
        else ""
    )
    weights = (
        f"{rate} is the share of errors in {units}. LM weight and word insertion penalty are tuned on {dev} and applied"
        f" to {test}; the oracle has them chosen on {test} itself, for comparison only."
    )
    paired = f"of a paired bootstrap test against {against} ({first.test['replicates']:,} replicates)"
    counted, seen = units, ""
    if units == CLASSES:
        counted = "utterances"
        if any(run.about.get("kind") == "svm" for runs in experiments for run in runs):
            seen = (
                f" Once their options are chosen, support vector machines are trained on {dev} too: their errors there"
                " are on what they have learned."
            )
        weights = f"Errors are those of {units}. Models are chosen on {dev}, {test} is only reported."
        if not seeds:
            paired = f"of McNemar's exact test against {against}"
    return (
        f"{weights} Intervals are 95 % bootstrap intervals over {first.test['utterances']} utterances, p is that"
        f" {paired}.{seeds} There are"
        f" {first.dev['ref_words']:,} {counted} in {dev}, {first.test['ref_words']:,} in {test}.{rule}{seen}"
    )


def _training(experiments: list[Experiment]) -> Table:
    rows = []
    for name, runs in zip(names(experiments), experiments, strict=True):
        if not runs[0].trained:
            continue
        heldout = [run.about["heldout"] for run in runs if run.about.get("heldout")]
        metrics = [
            spread([one[metric] for one in heldout], ".3f") if heldout else NONE for metric in ("ce", "entropy", "erll")
        ]
        metrics.append(spread([100 * one["frame_error"] for one in heldout], ".2f") if heldout else NONE)
        costs = [run.cost for run in runs if run.cost is not None]
        first = costs[0] if costs else {}
        cost = [
            f"{runs[0].about['num_parameters']:,}",
            f"{first['frames']:,}" if "frames" in first else NONE,
            str(first.get("epochs", NONE)),
            _tuning(first),
            _mean(costs, "seconds", 1, ".0f"),
            _mean(costs, "flops", 1e12, ".3g"),
            _mean(costs, "memory", 2**30, ".3g"),
        ]
        seeds = " ".join(str(run.about["seed"]) for run in runs)
        rows.append([name, *cost, *metrics, seeds])
    header = ["system", "parameters", "frames", "epochs", "tuned on (configurations × frames)", "seconds"]
    header += ["Tflop", "memory, GiB"]
    return Table([*header, "heldout CE", "entropy", "ERLL", "frame error %", "seed"], rows)


def _tuning(cost: dict[str, Any]) -> str:
    count = cost.get("configurations", len(cost.get("options", {}).get("rates", [])))
    return f"{count} × {cost['search_frames']:,}" if count and cost.get("search_frames") else NONE


def _mean(costs: list[dict[str, Any]], name: str, unit: float, form: str) -> str:
    """Of those that tell it: older models do not."""
    told = [cost[name] for cost in costs if name in cost]
    return format(fmean(told) / unit, form) if told else NONE


def _costs(experiments: list[Experiment]) -> str:
    runs = [run for runs in experiments for run in runs if run.trained]
    trainings = [run.about["training"] for run in runs]
    notes = ["Seconds, flops and peak memory are of one training; heldout frames are not counted in flops."]
    if any("members" in training for training in trainings):
        notes.append("Those of a model made of others include theirs; its memory and frames are the largest of them.")
    if any(training.get("settings", {}).get("features_of") for training in trainings):
        notes.append("Those of a model that takes the features of another do not include that one.")
    if lost := [str(run.folder) for run in runs if run.cost is None]:
        notes.append(f"What {', '.join(lost)} was made of is no longer there: its cost is not known.")
    return " ".join(notes)


def conditions(about: dict[str, Any]) -> list[str]:
    """The software and the machine that a model was trained with."""
    origin = about["provenance"]
    versions = ", ".join(f"{name} {number}" for name, number in origin["versions"].items())
    machine = origin["machine"]
    return [
        f"{versions}; commit {origin['git']}",
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}",
    ]
