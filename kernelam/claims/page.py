"""The page that says which claims held."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kernelam.claims.kept import Kept, written
from kernelam.claims.outcomes import Evidence, read_outcome
from kernelam.claims.papers import CLAIMS, Finding, Form, Part, find
from kernelam.claims.study import Study
from kernelam.errors import KernelamError
from kernelam.experiments import Cell, Work, cause
from kernelam.files import write_texts
from kernelam.models.description import describe
from kernelam.report.experiments import Run
from kernelam.report.results import conditions
from kernelam.report.tables import NONE, Table

NOTHING: Mapping[str, Kept] = MappingProxyType({})

NOTES = """\
An effect in % with a sign is a relative change, from a model without what is claimed to help to one with it; without a
sign it is a share; others are differences of correlations or of shares. n counts pairs of models, or models (4) and
settings (5). Intervals are 95 %: Student's over pairs that differ in one thing; for TER its half-width is combined, as
√(a² + b²), with that of a paired bootstrap over the utterances of {tested}. Models of one corpus are not independent:
an interval says how sure an effect is on this corpus, not on others. A claim held if the interval of every part lies
on its side; it did not if one lies on the other side; else, as with fewer than three pairs, it is too small to tell.
TER, the error rate, is of {tested}, with weights tuned on {tuned}; CE (cross-entropy), ERLL (CE plus entropy),
perplexity and frame error are of heldout frames."""


@dataclass(frozen=True)
class Told:
    """What the cells of a study have come to."""

    findings: list[Finding]
    cells: Mapping[str, Kept]
    failures: Mapping[str, list[str]]

    @property
    def work(self) -> list[Work]:
        return [step for cell in self.cells.values() for step in cell.work]

    @property
    def conditions(self) -> list[str]:
        """Of all cells, each once."""
        return list(dict.fromkeys(line for cell in self.cells.values() for line in cell.conditions))


def read_findings(study: Study, made: Mapping[str, str], kept: Mapping[str, Kept] = NOTHING) -> Told:
    """From the cells that are done here, and those that are `kept` from elsewhere."""
    failures = study.failures()
    cells = {}
    for cell in study.cells:
        if study.done(cell):
            cells[cell.name] = _read(study, cell, made[cell.name])
        elif cell.name in kept:
            cells[cell.name] = kept[cell.name]
    if not cells:
        name, lines = next(iter(failures.items()))
        raise KernelamError(f"all {len(failures)} cells failed, {name} with: {cause(lines)}")
    seen = {json.dumps(cell.data): name for name, cell in cells.items() if cell.data is not None}
    if len(seen) > 1:
        one, other, *_ = seen.values()
        raise KernelamError(
            f"the cells {one} and {other} were trained on different data: remove the model that is of another study, or"
            " leave out --known if its file is"
        )
    outcomes = {study.keys[name]: cell.outcome for name, cell in cells.items()}
    return Told([find(claim, Evidence(study.scale, outcomes)) for claim in CLAIMS], cells, failures)


def _read(study: Study, cell: Cell, made: str) -> Kept:
    run = Run.read(cell.folder, study.sets) if cell.decoded else None
    about = run.about if run else describe(cell.folder)
    data = about.get("training", {}).get("data")  # a list, but of combinations
    return Kept(
        made,
        data if isinstance(data, list) else None,
        read_outcome(cell.folder, run),
        study.work(cell),
        conditions(about),
    )


def table(findings: Sequence[Finding]) -> Table:
    """A row a claim; where it has several parts, rows of these follow."""
    rows = []
    for finding in findings:
        claim, parts = finding.claim, finding.parts
        verdict = f"**{finding.verdict}**" + (f": {finding.note}" if finding.note else "")
        alone = _figures(parts[0]) if len(parts) == 1 else ["", "", ""]
        rows.append([f"{claim.number}. {claim.text}", claim.paper, *alone, verdict])
        for part in parts if len(parts) > 1 else ():
            rows.append([f"– {part.text}", "", *_figures(part), part.verdict or ""])
    return Table(["claim", "paper", "effect", "95 % interval", "n", "verdict"], rows)


def _figures(part: Part) -> list[str]:
    effect, interval = part.estimate.effect, part.estimate.interval
    ends = " to ".join(_number(end, part.form) for end in interval) if interval else NONE
    return [_number(effect, part.form), ends, str(part.estimate.count)]


def _number(value: float, form: Form) -> str:
    """What rounds to zero has no sign."""
    if not math.isfinite(value):
        return NONE
    shape, unit, many = form.value
    text = format(many * value, shape)
    return (text if float(text) else text.lstrip("+-")).replace("-", "−") + unit


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return (
        f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else "under a minute"
    )


def elapsed(work: Iterable[Work]) -> float:
    """Seconds in which at least one step was at work."""
    total, until = 0.0, -math.inf
    for step in sorted(work, key=lambda step: step.start):
        total += max(0.0, step.end - max(step.start, until))
        until = max(until, step.end)
    return total


def _time(study: Study, work: Sequence[Work]) -> str:
    training, decoding = (
        sum(one.end - one.start for one in work if one.step.startswith(step)) for step in ("train", "decode")
    )
    return (
        f"{len(study.cells)} cells took {duration(elapsed(work))} by the clock: {duration(training)} of training and"
        f" {duration(decoding)} of decoding, of jobs that ran side by side. What was interrupted is not counted."
    )


def page(study: Study, told: Told) -> str:
    compared = []
    for finding in told.findings:
        alone = f" ({finding.parts[0].text})" if len(finding.parts) == 1 else ""
        compared.append(f"{finding.claim.number}. {finding.claim.compared}{alone}")
    sections = [
        f"# {study.title}",
        table(told.findings).markdown,
        NOTES.format(tuned=study.tuned.name, tested=study.tested.name).replace("\n", " "),
        "## What was compared",
        "\n".join(compared),
        "## Time",
        _time(study, told.work),
        "## Conditions",
        "\n".join(f"- {line}" for line in [*_scale(study), *told.conditions]),
    ]
    if told.failures:
        logs = ("\n".join([f"{name}:", "", *(f"    {line}" for line in log)]) for name, log in told.failures.items())
        sections += ["## Failed", *logs]
    return "\n\n".join(sections) + "\n"


def _scale(study: Study) -> list[str]:
    """How large the study is, and the options of its models."""
    scale = study.scale
    seeds = " ".join(map(str, scale.seeds))
    grid = "" if scale.grid_seeds == scale.seeds else f", of claims 1 to 5 and 7 {' '.join(map(str, scale.grid_seeds))}"
    settings = [f"{name}: `{' '.join(text.split())}`" for name, text in study.settings.items() if text]
    return [f"seeds {seeds}{grid}; {' '.join(f'{count:,}' for count in scale.features)} features", *settings]


def write_claims(path: Path, study: Study, made: Mapping[str, str], kept: Mapping[str, Kept]) -> Told:
    """The page, and what it was made of beside it."""
    told = read_findings(study, made, kept)
    write_texts({path: page(study, told), path.with_suffix(".json"): written(told.cells)})
    return told
