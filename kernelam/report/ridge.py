"""What there is to tell of ridge regression alone, beside the figures of chen2016."""

import csv
from collections.abc import Sequence
from typing import Any

from kernelam.kaldi.tables import lines
from kernelam.report.experiments import Experiment, system
from kernelam.report.published import FILE
from kernelam.report.tables import NONE, Table

PAPER = "chen2016"
GIB = 2**30
COSTS = (
    "Errors are of heldout frames, to which the maps from outputs to probabilities were fitted; `kernelam score frames`"
    " tells those of other sets. Memory is the peak, mapped files included, beside the estimate. Seconds are of all"
    " jobs; published ones are of 72 Power8 cores, published errors of TIMIT's test set. Of several seeds, the first."
)
TERMS = (
    "The terms of the paper's costs of training (its table 1), without constants, in 10⁹: (d + r) r n for sums of n"
    " frames with d inputs; for systems k r², with k the iterations of all pairs, or for Cholesky factors r³ each and"
    " c r². Where a formula holds, the rate of a second is the same for any r. Numbers held are c r² + (c² + d) r, for"
    " one-vs-rest r² + (c + d) r, of 4 bytes each; of symmetric matrices and of pairs, half are really there."
)
ITERATIONS = (
    "Iterations until the residual is that share of the right-hand side: the mean over all pairs, and the most."
)


def ridge_tables(experiments: Sequence[Experiment]) -> list[tuple[str, str, Table]]:
    """Tables, each with a title and a note; none where no model is one of ridge regression."""
    models = [runs[0].about for runs in experiments if runs[0].about["kind"] == "ridge" and runs[0].trained]
    found = [("Ridge regression", COSTS, costs(models)), ("Formulas of costs", TERMS, terms(models))] if models else []
    if any(_trials(model) for model in models):
        found.append(("Iterations of ridge regression", ITERATIONS, iterations(models)))
    return found


def costs(models: Sequence[dict[str, Any]]) -> Table:
    """Errors by probabilities and by votes, and what training took, a row a model; then those of the paper."""
    rows = []
    for about in models:
        training, heldout = about["training"], about["heldout"]
        seconds = training["seconds_of_phases"]
        estimate = training["estimate"]["memory"] + training["estimate"]["mapped"]
        rows.append(
            [
                system(about),
                f"{training['ridge']:g}",
                *(f"{100 * heldout[name]:.2f}" for name in ("frame_error", "vote_error")),
                *(f"{seconds[name]:.0f}" for name in ("sums", "systems", "calibration")),
                *(f"{size / GIB:.2f}" for size in (training["memory"], estimate, training["disk"])),
            ]
        )
    header = ["system", "λ", "frame error %", "by votes %", "sums, s", "systems, s", "calibration, s"]
    return Table([*header, "memory, GiB", "estimated", "disk, GiB"], rows + _published_costs())


def terms(models: Sequence[dict[str, Any]]) -> Table:
    """What the formulas of the paper (table 1, part 1) say beside what was measured."""
    rows = []
    for about in models:
        training, pairs = about["training"], about["config"]["scheme"] == "one-vs-one"
        n, d, r, c = training["frames"], about["input"]["dim"], about["config"]["features"], about["num_classes"]
        k, seconds = training["iterations"]["sum"], training["seconds_of_phases"]
        factors = c * c // 2 if pairs else 1
        solved = k * r**2 if k else factors * r**3 + c * r**2
        held = c * r**2 + (c**2 + d) * r if pairs else r**2 + (c + d) * r
        cells: list[str] = []
        for term, took in (((d + r) * r * n, seconds["sums"]), (solved, seconds["systems"])):
            cells += [f"{term / 1e9:.0f}", f"{took:.0f}", f"{term / 1e9 / took:.0f}" if took >= 1.0 else NONE]
        rows.append([system(about), *cells, f"{4 * held / GIB:.2f}", f"{training['memory'] / GIB:.2f}"])
    header = ["system", "sums", "s", "a second", "systems", "s", "a second"]
    return Table([*header, "numbers held, GiB", "memory, GiB"], rows)


def _published_costs() -> list[list[str]]:
    names = ("frame_error(prob)", "frame_error(vote)", "seconds(72 Power8 cores)", "memory_GB")
    figures = {name: _published(name) for name in names}
    rows = []
    for setting in figures[names[0]]:
        error, votes, seconds, memory = (figures[name][setting] for name in names)
        cells = [NONE, error, votes, NONE, f"{seconds} in all", NONE, f"{float(memory) * 1e9 / GIB:.0f}", NONE, NONE]
        rows.append([f"{PAPER}, TIMIT, {setting.replace('=', ' = ')}", *cells])
    return rows


def iterations(models: Sequence[dict[str, Any]]) -> Table:
    """By λ and tolerance."""
    ours = [
        (f"{system(about)}, λ = {trial['ridge']:g}", {float(level): told for level, told in told_to.items()})
        for about in models
        for trial, told_to in _trials(about)
    ]
    theirs: dict[str, dict[float, str]] = {}
    for setting, value in _published("gmres_iterations").items():
        ridge, tolerance = (float(part.partition("=")[2]) for part in setting.split())
        theirs.setdefault(f"{PAPER}, one pair, D = 10K, λ = {ridge:g}", {})[tolerance] = value
    levels = sorted({level for _, told in (*ours, *theirs.items()) for level in told}, reverse=True)
    rows = [
        [name, *(f"{told[level]['mean']:.1f} ({told[level]['max']})" if level in told else NONE for level in levels)]
        for name, told in ours
    ]
    rows += [[name, *(told.get(level, NONE) for level in levels)] for name, told in theirs.items()]
    return Table(["tolerance", *(f"{level:g}" for level in levels)], rows)


def _trials(about: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Those that took iterations, by falling λ, and how many they took to each tolerance."""
    trials = sorted(about["training"]["trials"], key=lambda trial: -float(trial["ridge"]))
    return [(trial, trial["iterations"]["to"]) for trial in trials if "to" in trial["iterations"]]


def _published(metric: str) -> dict[str, str]:
    """Figures by setting."""
    rows = csv.DictReader(lines(FILE))
    return {row["setting"]: row["value"] for row in rows if row["paper"] == PAPER and row["metric"] == metric}
