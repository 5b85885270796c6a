"""The figures of runs in one file, from which another report can tell them again where their directories are not."""

import json
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import is_name
from kernelam.records import read_record
from kernelam.report.experiments import Experiment, Run, check_result, whole
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.wer import WerResult

FORMAT = "kernelam results 1"
HEAD = f'{{"format": "{FORMAT}"'
LARGEST = 10**9  # number of words
LEFT_OUT = ("command", "confusions", "files", "folder", "tuned_on")  # what only the directory itself needs


def kept(sets: tuple[str, str], experiments: Iterable[Experiment]) -> str:
    """Everything that tables, intervals and paired tests are made of, the errors of every utterance among it."""
    runs = [_figures(run) for runs in experiments for run in runs]
    rows = ",\n".join(json.dumps(run, separators=(",", ":"), ensure_ascii=False) for run in runs)
    return f'{HEAD}, "sets": {json.dumps(sets)}, "runs": [\n{rows}\n]}}\n'


def read_runs(places: Iterable[Path], sets: tuple[str, str]) -> list[Run]:
    """Of model directories, each once, and of files of figures."""
    runs = []
    for place in {place.resolve(): place for place in places}.values():
        if not place.exists():
            raise KernelamError(f"{place} does not exist: name model directories, or files that a report has kept")
        runs += read_kept(place, sets) if place.is_file() else [Run.read(place, sets)]
    return runs


def read_kept(path: Path, sets: tuple[str, str]) -> list[Run]:
    """The runs that a report wrote."""
    told = read_record(path, "there is no such file of results")
    if told.get("format") != FORMAT:
        raise KernelamError(f"{path} is no file of results that kernelam report has written beside its tables")
    with whole(path):
        if tuple(told["sets"]) != sets:
            raise KernelamError(
                f"{path} has weights tuned and results reported on {' and '.join(map(str, told['sets']))},"
                f" not on {' and '.join(sets)}"
            )
        return [_run(path, **figures) for figures in told["runs"]]


def _figures(run: Run) -> dict[str, Any]:
    counts = {utt: astuple(one) for utt, one in run.words.utterances.items()}
    told = {name: _stripped(getattr(run, name)) for name in ("about", "dev", "test", "cost")}
    return {"name": run.folder.name, "identity": run.identity, **told, "utterances": counts}


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stripped(one) for name, one in value.items() if name not in LEFT_OUT}
    return [_stripped(one) for one in value] if isinstance(value, list | tuple) else value


def error_counts(rows: dict[str, list[int]]) -> dict[str, ErrorCounts]:
    """By utterance, what `astuple` made of them."""
    for utt, counts in rows.items():
        if not all(type(count) is int and 0 <= count < LARGEST for count in counts):
            raise ValueError(f"{counts} are no counts of errors in {utt}")
    return {utt: ErrorCounts(*counts) for utt, counts in rows.items()}


def _run(path: Path, name: str, identity: tuple[str, list[Any]], utterances: dict[str, list[int]], **told: Any) -> Run:
    key, seeds = identity
    words = WerResult(error_counts(utterances), alternatives=told["test"].get("rule") == "sclite")
    if not is_name(name):  # its folder is not looked for elsewhere
        raise ValueError(f"{name!r} is no name of a run")
    if not utterances:
        raise ValueError(f"{name} has no utterances")
    run = Run(path / name, identity=(str(key), list(seeds)), words=words, kept=True, **told)
    run.check_model()
    for result in (run.dev, run.test):
        check_result(result)
    return run
