"""The results page of a set of experiments."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.models.description import describe
from kernelam.scoring.bootstrap import bootstrap, compare
from kernelam.scoring.directory import read_result, read_scored
from kernelam.scoring.wer import WerResult


@dataclass(frozen=True)
class Run:
    """A model directory with a scored decode directory of the set `sets` names first, where its weights were tuned,
    and one of the set that is reported."""

    folder: Path
    about: dict[str, Any]
    dev: dict[str, Any]
    test: dict[str, Any]
    words: WerResult  # of the test set

    @classmethod
    def read(cls, folder: Path, sets: tuple[str, str]) -> "Run":
        places = [folder / f"decode_{name}" for name in sets]
        dev, test = map(read_result, places)
        if Path(test["tuned_on"]) != places[0]:
            raise KernelamError(
                f"{places[1]} was scored with weights tuned on {test['tuned_on']}; score it again with"
                f" steps/score.sh --tuned-on {places[0]}"
            )
        return cls(folder, describe(folder), dev, test, read_scored(places[1]))

    @property
    def key(self) -> str:
        """Runs of one key differ in their seed alone."""
        training = self.about["training"]
        if "settings" not in training:
            return str(self.folder)
        options = {name: value for name, value in training["options"].items() if name != "seed"}
        return json.dumps([self.about["kind"], training["settings"], options, training["data"]], sort_keys=True)


Experiment = list[Run]
"""The runs of one system, with as many seeds."""


def read_experiments(folders: list[Path], sets: tuple[str, str]) -> list[Experiment]:
    """In the order of their first runs."""
    found: dict[str, Experiment] = {}
    for folder in folders:
        run = Run.read(folder, sets)
        found.setdefault(run.key, []).append(run)
    return list(found.values())


def spread(values: list[float], form: str, bold: bool = False) -> str:
    """A mean and, of several, their standard deviation."""
    text = format(fmean(values), form)
    text = f"**{text}**" if bold else text
    return text if len(values) < 2 else f"{text} ± {format(stdev(values), form)}"


def system(about: dict[str, Any]) -> str:
    """What a model is, in a few words."""
    config = about["config"]
    match about["kind"]:
        case "gmm":
            return f"GMM, {config['gaussians']} Gaussians"
        case "kernel":
            rank = f", bottleneck {config['bottleneck']}" if config["bottleneck"] else ""
            number = f"{config['features']}{' selected' if selected(about) else ''} features"
            return f"{kernel_name(config['kernel']).capitalize()} kernel, {number}{rank}{_rule(about)}"
        case "dnn":
            rank = f", bottleneck {config['bottleneck']}" if config.get("bottleneck") else ""
            begin = about.get("training", {}).get("settings", {}).get("pretraining", "")
            start = f", {begin} pre-training" if begin else ""
            return f"DNN, {config['layers']} × {config['width']} {config['activation']}{rank}{start}{_rule(about)}"
        case "combination":
            shares = zip(config["weights"], map(system, config["members"]), strict=True)
            return " + ".join(f"{weight:.2f} ({name})" for weight, name in shares)
        case kind:
            return str(kind)


def selected(about: dict[str, Any]) -> bool:
    """Whether the features were selected, for this model or for the one that it has them of."""
    return bool(about.get("training", {}).get("settings", {}).get("selection"))


def _rule(about: dict[str, Any]) -> str:
    """What the halving rule judged heldout frames by, if not by cross-entropy."""
    options = about.get("training", {}).get("options", {})
    return f", by {options['metric']}" if options.get("schedule") == "halving" and options["metric"] != "ce" else ""


def kernel_name(settings: dict[str, Any]) -> str:
    """As an expression of --kernel without bandwidths and weights: gaussian + gaussian o fda:200."""

    def part(inside: dict[str, Any], *bracketed: str) -> str:
        return f"({kernel_name(inside)})" if inside["name"] in bracketed else kernel_name(inside)

    match settings["name"]:
        case "sum":
            return " + ".join(part(kernel, "sum") for kernel in settings["kernels"])
        case "product":
            return " * ".join(part(kernel, "sum", "product") for kernel in settings["kernels"])
        case "composition":
            outer, inner = (part(settings[side], "sum", "product", "composition") for side in ("outer", "inner"))
            return " o ".join(filter(None, (outer, settings["projection"], inner if inner != "linear" else None)))
        case "arccos":
            return f"arccos{settings['degree']}"
        case name:
            return str(name)


@dataclass(frozen=True)
class Table:
    header: list[str]
    rows: list[list[str]]

    @property
    def markdown(self) -> str:
        lines = [self.header, [":--" if number == 0 else "--:" for number in range(len(self.header))], *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Results:
    """What the pages tell, in tables of one row an experiment. p is against `reference`; the weights of each run are
    tuned on the first of `sets` and applied to the second; `failures` are experiments without a result, each with the
    last lines of its log."""

    title: str
    experiments: list[Experiment]
    reference: Experiment
    sets: tuple[str, str]
    failures: Mapping[str, list[str]]

    @cached_property
    def errors(self) -> Table:
        return _errors(self.experiments, self.reference, self.sets)

    @cached_property
    def training(self) -> Table:
        return _training(self.experiments)

    @property
    def notes(self) -> str:
        return _notes(self.experiments, self.reference, self.sets)

    @property
    def conditions(self) -> list[str]:
        return _conditions(self.experiments)


def read_results(
    title: str,
    folders: list[Path],
    baseline: Path,
    sets: tuple[str, str] = ("dev", "test"),
    failures: Mapping[str, list[str]] | None = None,
) -> Results:
    """Runs that differ in their seed alone are one experiment; that of `baseline` is the reference."""
    experiments = read_experiments(folders, sets)
    reference = next((one for one in experiments if any(run.folder == baseline for run in one)), None)
    if reference is None:
        raise KernelamError(f"the baseline {baseline} is none of the experiments that are reported")
    return Results(title, experiments, reference, sets, failures or {})


def write_results(
    path: Path,
    title: str,
    folders: list[Path],
    baseline: Path,
    sets: tuple[str, str] = ("dev", "test"),
    failures: Mapping[str, list[str]] | None = None,
) -> Results:
    """Write a Markdown page: error rates with their conditions, then what training cost."""
    results = read_results(title, folders, baseline, sets, failures)
    sections = [
        f"# {title}",
        results.errors.markdown,
        results.notes,
        "## Training",
        results.training.markdown,
        "## Conditions",
        "\n".join(f"- {line}" for line in results.conditions),
    ]
    if failures:
        logs = ("\n".join([f"{name}:", "", *(f"    {line}" for line in lines)]) for name, lines in failures.items())
        sections += ["## Failed", *logs]
    with replacing(path, "w") as stream:
        stream.write("\n\n".join(sections) + "\n")
    return results


def _errors(experiments: list[Experiment], reference: Experiment, sets: tuple[str, str]) -> Table:
    dev, test = sets
    rows = []
    for runs in experiments:
        words = [run.words for run in runs]
        interval = bootstrap(words).interval
        span = f"{100 * interval[0]:.2f} – {100 * interval[1]:.2f}" if interval else "–"
        p = "" if runs is reference else f"{compare([run.words for run in reference], words).p:.4f}"
        weights = "; ".join(f"{run.test['lmwt']}, {run.test['wip']}" for run in runs)
        rates = [
            spread([100 * run.dev["rate"] for run in runs], ".2f"),
            spread([100 * run.test["rate"] for run in runs], ".2f", bold=True),
        ]
        oracle = spread([100 * run.test["oracle"]["rate"] for run in runs], ".2f")
        rows.append([system(runs[0].about), *rates, span, p, weights, oracle])
    header = ["system", f"{dev} WER %", f"{test} WER %", "95 % interval", "p", "LM weight, penalty", f"{test} oracle %"]
    return Table(header, rows)


def _notes(experiments: list[Experiment], reference: Experiment, sets: tuple[str, str]) -> str:
    first, (dev, test) = experiments[0][0], sets
    seeds = (
        " Of several seeds there are the mean and the standard deviation; interval and p are of the mean."
        if any(len(runs) > 1 for runs in experiments)
        else ""
    )
    return (
        f"LM weight and word insertion penalty are tuned on {dev} and applied to {test}; the oracle has them chosen on"
        f" {test} itself, for comparison only. Intervals are 95 % bootstrap intervals over {first.test['utterances']}"
        f" utterances, p is that of a paired bootstrap test against {system(reference[0].about)}"
        f" ({first.test['replicates']} replicates).{seeds} {dev} has {first.dev['ref_words']} words, {test}"
        f" {first.test['ref_words']}."
    )


def _training(experiments: list[Experiment]) -> Table:
    rows = []
    for runs in experiments:
        about, training = runs[0].about, runs[0].about["training"]
        rates = training.get("options", {}).get("rates", [])
        heldout = [run.about["heldout"] for run in runs if run.about.get("heldout")]
        metrics = [
            spread([one[name] for one in heldout], ".3f") if heldout else "–" for name in ("ce", "entropy", "erll")
        ]
        metrics.append(spread([100 * one["frame_error"] for one in heldout], ".2f") if heldout else "–")
        cost = [
            f"{about['num_parameters']:,}",
            f"{training['frames']:,}",
            str(training.get("epochs", "–")),
            f"{training.get('configurations', len(rates))} × {training['search_frames']:,}" if rates else "–",
            f"{fmean(run.about['training']['seconds'] for run in runs):.0f}",
        ]
        seeds = " ".join(str(run.about["seed"]) for run in runs)
        rows.append([system(about), *cost, *metrics, seeds])
    header = ["system", "parameters", "frames", "epochs", "tuned on (configurations × frames)", "seconds"]
    return Table([*header, "heldout CE", "entropy", "ERLL", "frame error %", "seed"], rows)


def _conditions(experiments: list[Experiment]) -> list[str]:
    """Of all runs, each once."""
    lines = []
    for run in (run for runs in experiments for run in runs):
        origin = run.about["provenance"]
        versions = ", ".join(f"{name} {number}" for name, number in origin["versions"].items())
        machine = origin["machine"]
        lines.append(f"{versions}; commit {origin['git']}")
        lines.append(f"{machine['processor']}, {machine['cores']} cores, {machine['system']}")
    return list(dict.fromkeys(lines))
