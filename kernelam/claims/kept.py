"""What the cells of a study came to, in one file beside its page, which stands for them where their models are not."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from kernelam.claims.outcomes import Outcome
from kernelam.claims.study import Study
from kernelam.errors import KernelamError
from kernelam.experiments import Work
from kernelam.records import read_record
from kernelam.report.experiments import whole
from kernelam.report.kept import error_counts
from kernelam.scoring.wer import WerResult

FORMAT = "kernelam claims 1"
HEAD = f'{{"format": "{FORMAT}"'


@dataclass(frozen=True)
class Kept:
    made: str  # the sign of the commands
    data: Any  # digests of what it was trained on; None of combinations
    outcome: Outcome
    work: Sequence[Work]
    conditions: Sequence[str]


def signs(path: Path, variables: Mapping[str, str], quick: bool) -> dict[str, str]:
    """Of the commands that make each cell and those that it needs, the same wherever paths among the variables lead."""
    anywhere = {name: f"{{{name}}}" if "/" in value else value for name, value in variables.items()}
    study = Study.read(path, anywhere, quick)
    found: dict[str, str] = {}
    for cell in study.cells:  # each behind those that it needs
        text = "\n".join([study.commands(cell), *(found[need] for need in cell.needs)])
        found[cell.name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def written(cells: Mapping[str, Kept]) -> str:
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(_row(one))}" for name, one in cells.items())
    return f'{HEAD}, "cells": {{\n{rows}\n}}}}\n'


def read_kept(path: Path, made: Mapping[str, str]) -> dict[str, Kept]:
    """Those of the cells that were made by the same commands."""
    told = read_record(path, "there is no such file of outcomes")
    if told.get("format") != FORMAT:
        raise KernelamError(f"{path} is no file of outcomes that kernelam claims has written beside its page")
    with whole(path):
        return {name: _kept(**row) for name, row in told["cells"].items() if row["made"] == made.get(name)}


def _row(one: Kept) -> dict[str, Any]:
    found = one.outcome
    words = found.words and {utt: astuple(counts) for utt, counts in found.words.utterances.items()}
    outcome = [dict(found.heldout), list(found.losses), found.survival, found.tuned, words]
    work = [astuple(step) for step in one.work]
    return {"made": one.made, "data": one.data, "outcome": outcome, "work": work, "conditions": list(one.conditions)}


def _kept(made: str, data: Any, outcome: list[Any], work: list[Any], conditions: list[str]) -> Kept:
    heldout, losses, survival, tuned, words = outcome
    found = words and WerResult(error_counts(words))
    told = {str(name): _figure(value) for name, value in heldout.items()}
    survival, tuned = (None if one is None else _figure(one) for one in (survival, tuned))
    steps = [Work(str(step), _figure(start), _figure(end)) for step, start, end in work]
    if not all(isinstance(line, str) for line in conditions):
        raise ValueError(f"{conditions} are no lines of text")
    return Kept(
        made, data, Outcome(told, [_figure(one, math.inf) for one in losses], survival, tuned, found), steps, conditions
    )


def _figure(value: Any, otherwise: float = 0.0) -> float:
    """A finite number, or what it may be `otherwise`."""
    number = float(value)
    if not (math.isfinite(number) or number == otherwise):
        raise ValueError(f"{value!r} is no figure")
    return number
