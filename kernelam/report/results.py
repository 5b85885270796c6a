"""The results page of a set of experiments."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.report.experiments import Experiment, Run, read_experiments, system
from kernelam.report.layouts import Layouts, layouts
from kernelam.report.published import Published
from kernelam.report.tables import Table, spread
from kernelam.scoring.bootstrap import bootstrap, compare

LAYOUTS = "The tables of may2017"


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

    @cached_property
    def errors(self) -> Table:
        return _errors(self.experiments, self.reference, self.sets)

    @cached_property
    def training(self) -> Table:
        return _training(self.experiments)

    @cached_property
    def layouts(self) -> Layouts:
        return layouts(self.experiments, self.sets, self.published)

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
    published: Published | None = None,
) -> Results:
    """Runs that differ in their seed alone are one experiment; that of `baseline` is the reference."""
    experiments = read_experiments(folders, sets)
    reference = next((one for one in experiments if any(run.folder == baseline for run in one)), None)
    if reference is None:
        raise KernelamError(f"the baseline {baseline} is none of the experiments that are reported")
    return Results(title, experiments, reference, sets, failures or {}, published)


def write_results(
    path: Path,
    title: str,
    folders: list[Path],
    baseline: Path,
    sets: tuple[str, str] = ("dev", "test"),
    failures: Mapping[str, list[str]] | None = None,
    published: Published | None = None,
) -> Results:
    """Write a Markdown page: error rates with their conditions, what training cost, and the tables of the papers."""
    results = read_results(title, folders, baseline, sets, failures, published)
    sections = [
        f"# {title}",
        results.errors.markdown,
        results.notes,
        "## Training",
        results.training.markdown,
    ]
    if results.layouts.note:
        tables = (f"### {name}\n\n{table.markdown}" for name, table in results.layouts.tables)
        sections += [f"## {LAYOUTS}", results.layouts.note, *tables]
    sections += ["## Conditions", "\n".join(f"- {line}" for line in results.conditions)]
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
        weights = "; ".join(map(_weights, runs))
        rates = [
            spread([100 * run.dev["rate"] for run in runs], ".2f"),
            spread([100 * run.test["rate"] for run in runs], ".2f", bold=True),
        ]
        oracle = spread([100 * run.test["oracle"]["rate"] for run in runs], ".2f")
        rows.append([system(runs[0].about), *rates, span, p, weights, oracle])
    header = ["system", f"{dev} WER %", f"{test} WER %", "95 % interval", "p", "LM weight, penalty", f"{test} oracle %"]
    return Table(header, rows)


def _weights(run: Run) -> str:
    """Combined lattices have none but those of their systems."""
    return "–" if "parts" in run.test else f"{run.test['lmwt']}, {run.test['wip']}"


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
    for runs in (runs for runs in experiments if runs[0].trained):
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
            _mean(runs, "flops", 1e12),
            _mean(runs, "memory", 2**30),
        ]
        seeds = " ".join(str(run.about["seed"]) for run in runs)
        rows.append([system(about), *cost, *metrics, seeds])
    header = ["system", "parameters", "frames", "epochs", "tuned on (configurations × frames)", "seconds"]
    header += ["Tflop", "memory, GiB"]
    return Table([*header, "heldout CE", "entropy", "ERLL", "frame error %", "seed"], rows)


def _mean(runs: Experiment, name: str, unit: float) -> str:
    """Of the runs that tell it: older models do not."""
    told = [run.about["training"][name] for run in runs if name in run.about["training"]]
    return f"{fmean(told) / unit:.3g}" if told else "–"


def _conditions(experiments: list[Experiment]) -> list[str]:
    """Of all runs, each once."""
    lines = []
    for run in (run for runs in experiments for run in runs if run.trained):
        origin = run.about["provenance"]
        versions = ", ".join(f"{name} {number}" for name, number in origin["versions"].items())
        machine = origin["machine"]
        lines.append(f"{versions}; commit {origin['git']}")
        lines.append(f"{machine['processor']}, {machine['cores']} cores, {machine['system']}")
    return list(dict.fromkeys(lines))
