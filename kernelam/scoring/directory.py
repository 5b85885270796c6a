"""A decode directory's scores in Kaldi's layout.

wer_<lmwt>_<wip>                    compute-wer's text for every point of the grid
scoring_kaldi/test_filt.txt         the reference that was scored
scoring_kaldi/penalty_<wip>/<lmwt>.txt   the hypotheses that were scored
scoring_kaldi/best_wer              the %WER line of the chosen point, and its file
scoring_kaldi/oracle_wer            where the weights come from another set: the same for the best point of this one
scoring_kaldi/wer_details/          lmwt wip per_utt per_spk ops wer_bootci of the chosen point
scoring_kaldi/result.json           the chosen point for programs; written last, so that it vouches for the rest

Of a combination the systems' parts are in the names too: wer_<lmwt>_<wip>_3_7, <lmwt>_3_7.txt.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.tables import lines
from kernelam.progress import say
from kernelam.records import read_record
from kernelam.scoring.alignment import align, count_errors
from kernelam.scoring.bootstrap import REPLICATES, SEED, Bootstrap, bootstrap
from kernelam.scoring.details import details
from kernelam.scoring.networks import align_networks, count_networks
from kernelam.scoring.tuning import Weights, edges, tune
from kernelam.scoring.units import TokenMap
from kernelam.scoring.wer import Transcripts, WerResult, compute_wer, read_transcripts

_REFERENCE = "scoring_kaldi/test_filt.txt"
_BEST = "scoring_kaldi/best_wer"
_RESULT = "scoring_kaldi/result.json"
_RULES = {"kaldi": (count_errors, align), "sclite": (count_networks, align_networks)}
_PARTS = r"((?:_\d{1,9})*)"
_WEIGHTS = rf"(\d{{1,9}})_(-?\d{{1,9}}(?:\.\d+)?){_PARTS}"


@dataclass(frozen=True)
class Scored:
    """The chosen point of a decode directory."""

    weights: Weights
    result: WerResult


def score_directory(
    directory: str | Path,
    refs: Transcripts,
    hyps: Mapping[Weights, Transcripts],
    utt2spk: Mapping[str, str],
    tuned_on: str | Path | None = None,
    token_map: TokenMap = list,
    units: str = "words",
    systems: Sequence[Mapping[str, Any]] = (),
    rule: str = "kaldi",
) -> Scored:
    """Score the hypotheses of every point and write all files.

    `tuned_on` is the scored decode directory whose weights are used; without it they are tuned here. `units` names
    what `token_map` gives: weights tuned on other units are an error. `systems` are those
    of a combination, for the result. `rule` is sclite's where texts have alternatives.
    """
    directory, (count, align) = Path(directory), _RULES[rule]
    if tuned_on is not None and (others := _units_of(Path(tuned_on))) not in (None, units):
        raise KernelamError(f"{tuned_on} was scored in {others}, {directory} is to be in {units}: score both alike")
    refs = {utt: token_map(words) for utt, words in refs.items()}
    grid = {Weights(*w): {utt: token_map(words) for utt, words in hyp.items()} for w, hyp in hyps.items()}
    points = {weights: compute_wer(refs, hyp, count=count) for weights, hyp in grid.items()}
    oracle = tune(points)
    best = oracle if tuned_on is None else read_weights(tuned_on)
    if best not in points:
        raise KernelamError(f"{tuned_on} was tuned to {best.name}, which is not among the points tried in {directory}")
    boot = bootstrap(points[best])
    record = _record(best, points[best], boot, bootstrap(points[best], utt2spk))
    tuning = os.path.relpath(Path(tuned_on or directory).resolve(), directory.resolve())
    record |= {"seed": SEED, "replicates": REPLICATES, "tuned_on": tuning, "units": units}
    record["oracle"] = {**_point(oracle), **_counts(points[oracle])}
    record |= {"systems": list(systems)} if systems else {}
    record |= {"rule": rule} if rule != "kaldi" else {}

    files = _grid_files(directory, refs, grid, points, rule)
    files[_BEST] = _best_line(directory, best, points[best])
    if tuned_on is not None:
        files["scoring_kaldi/oracle_wer"] = _best_line(directory, oracle, points[oracle])
    texts = {"lmwt": f"{best.lmwt}\n", "wip": f"{float(best.wip)}\n", **details(refs, grid[best], utt2spk, boot, align)}
    files |= {f"scoring_kaldi/wer_details/{name}": text for name, text in texts.items()}
    files[_RESULT] = json.dumps(record, indent=1) + "\n"
    _replace_all(directory, files)

    for sentence in points[best].remarks + (edges(best, points) if tuned_on is None else []):
        say(f"{directory}: {sentence}")
    return Scored(best, points[best])


def read_weights(directory: str | Path) -> Weights:
    """The weights that best_wer of a scored decode directory names, ours or Kaldi's."""
    path = Path(directory) / _BEST
    match = re.search(rf"wer_{_WEIGHTS}$", " ".join(lines(path)).strip())
    if match is None:
        raise KernelamError(f"{path} does not end with the name of a file wer_<lmwt>_<wip>: score {directory} again")
    return Weights(int(match[1]), float(match[2]), tuple(map(int, match[3].split("_")[1:])))


def _units_of(directory: Path) -> str | None:
    """What a directory that we scored was scored in."""
    return read_result(directory).get("units") if (directory / _RESULT).exists() else None


def read_result(directory: str | Path) -> dict[str, Any]:
    """The contents of result.json."""
    return read_record(Path(directory) / _RESULT, f"{directory} is not scored")


def check_tuning(directory: Path, other: Path) -> None:
    """The weights of a scored decode directory were tuned on another one.

    That one is told as seen from the directory itself, which holds wherever both are moved together. Older results tell
    it as seen from where scoring was called: for them another of its name will do, if the weights tuned there are the
    same.
    """
    record = read_result(directory)
    told = str(record.get("tuned_on", "an unknown set"))
    if other.resolve() in (place.resolve() for place in (directory.resolve() / told, Path(told))):
        return
    beside = told.startswith(".")
    tuned, used = ([one.get(name) for name in ("lmwt", "wip", "parts")] for one in (read_result(other), record))
    if beside or Path(told).name != other.resolve().name or tuned != used:
        raise KernelamError(
            f"{directory} was scored with weights tuned on {os.path.normpath(directory / told) if beside else told};"
            f" score it again with steps/score.sh --tuned-on {other}"
        )


def read_scored(directory: str | Path) -> WerResult:
    """The chosen point of a scored decode directory, counted again from its reference and hypotheses."""
    directory = Path(directory)
    hyps = read_transcripts(directory / _hypotheses(read_weights(directory)))
    rule = read_result(directory).get("rule", "kaldi") if (directory / _RESULT).exists() else "kaldi"
    if not isinstance(rule, str) or rule not in _RULES:
        raise KernelamError(f"{directory / _RESULT} is damaged: there is no rule {rule!r} of scoring")
    try:
        return compute_wer(read_transcripts(directory / _REFERENCE), hyps, count=_RULES[rule][0])
    except KernelamError as error:
        raise KernelamError(f"{directory}/scoring_kaldi is damaged: {error}") from None


def _hypotheses(weights: Weights) -> str:
    return f"scoring_kaldi/penalty_{float(weights.wip)}/{'_'.join(map(str, [weights.lmwt, *weights.parts]))}.txt"


def _grid_files(
    directory: Path,
    refs: Transcripts,
    grid: Mapping[Weights, Transcripts],
    points: Mapping[Weights, WerResult],
    rule: str,
) -> dict[str, str]:
    """The texts that were scored, and the score of every point.

    Its first line, where Kaldi has the command line, is the command of Kaldi's that prints the other three.
    """
    files = {_REFERENCE: _table(refs)}
    for weights, result in points.items():
        hypotheses = _hypotheses(weights)
        command = f"compute-wer --text --mode=all ark:{directory / _REFERENCE} ark:{directory / hypotheses}"
        if rule != "kaldi":
            command = f"{directory / hypotheses} against {directory / _REFERENCE} by the rules of {rule}"
        files[hypotheses] = _table(grid[weights])
        files[f"wer_{weights.name}"] = f"# {command}\n{result.text}"
    return files


def _best_line(directory: Path, weights: Weights, result: WerResult) -> str:
    return f"{result.wer_line} {directory / f'wer_{weights.name}'}\n"


def _table(transcripts: Transcripts) -> str:
    return "".join(" ".join([utt, *transcripts[utt]]) + "\n" for utt in sorted(transcripts))


def _counts(result: WerResult) -> dict[str, Any]:
    t = result.total
    return {
        "rate": t.rate,
        "errors": t.errors,
        "insertions": t.insertions,
        "deletions": t.deletions,
        "substitutions": t.substitutions,
        "ref_words": t.ref_words,
    }


def _record(weights: Weights, result: WerResult, by_utterance: Bootstrap, by_speaker: Bootstrap) -> dict[str, Any]:
    """Rates and intervals are fractions."""
    return {
        **_counts(result),
        "interval_95": by_utterance.interval,
        "interval_95_by_speaker": by_speaker.interval,
        "sentence_errors": result.sentence_errors,
        "utterances": by_utterance.units,
        "speakers": by_speaker.units,
        "missing": list(result.missing),
        **_point(weights),
    }


def _point(weights: Weights) -> dict[str, Any]:
    parts = {"parts": list(weights.parts)} if weights.parts else {}
    return {"lmwt": weights.lmwt, "wip": float(weights.wip), **parts}


def _replace_all(directory: Path, files: Mapping[str, str]) -> None:
    """Write `files`, the result last; what an earlier scoring left goes first, so that no mixture looks finished."""
    for name in (_RESULT, _BEST):
        (directory / name).unlink(missing_ok=True)
    ours = re.compile(rf"wer_{_WEIGHTS}|scoring_kaldi/(oracle_wer|penalty_-?\d+\.\d+/\d+{_PARTS}\.txt)")
    for path in [*directory.glob("wer_*"), *directory.glob("scoring_kaldi/**/*")]:
        name = path.relative_to(directory).as_posix()
        if ours.fullmatch(name) and name not in files:
            path.unlink()
    for name, text in files.items():
        with replacing(directory / name, "w") as stream:
            stream.write(text)
