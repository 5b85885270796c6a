"""A decode directory's scores in Kaldi's layout.

wer_<lmwt>_<wip>                    compute-wer's text for every point of the grid
scoring_kaldi/test_filt.txt         the reference that was scored
scoring_kaldi/penalty_<wip>/<lmwt>.txt   the hypotheses that were scored
scoring_kaldi/best_wer              the %WER line of the chosen point, and its file
scoring_kaldi/oracle_wer            where the weights come from another set: the same for the best point of this one
scoring_kaldi/wer_details/          lmwt wip per_utt per_spk ops wer_bootci of the chosen point
scoring_kaldi/result.json           the chosen point for programs; written last, so that it vouches for the rest
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.tables import lines, read_table
from kernelam.progress import say
from kernelam.scoring.alignment import TokenMap
from kernelam.scoring.bootstrap import REPLICATES, Bootstrap, bootstrap
from kernelam.scoring.details import details
from kernelam.scoring.tuning import Weights, edges, tune
from kernelam.scoring.wer import Transcripts, WerResult, compute_wer

_RESULT = "scoring_kaldi/result.json"
_WEIGHTS = r"(\d+)_(-?\d+(?:\.\d+)?)"


@dataclass(frozen=True)
class Scored:
    """The chosen point of a decode directory, and the best one of its grid."""

    weights: Weights
    result: WerResult
    oracle: Weights
    oracle_result: WerResult
    interval: tuple[float, float] | None


def score_directory(
    directory: str | Path,
    refs: Transcripts,
    hyps: Mapping[Weights, Transcripts],
    utt2spk: Mapping[str, str],
    tuned_on: str | Path | None = None,
    token_map: TokenMap = list,
    seed: int = 0,
) -> Scored:
    """Score the hypotheses of every point and write all files.

    `tuned_on` is the scored decode directory whose weights are used; without it they are tuned here.
    """
    directory = Path(directory)
    refs = {utt: token_map(words) for utt, words in refs.items()}
    grid = {Weights(*w): {utt: token_map(words) for utt, words in hyp.items()} for w, hyp in hyps.items()}
    points = {weights: compute_wer(refs, hyp) for weights, hyp in grid.items()}
    oracle = tune(points)
    best = oracle if tuned_on is None else read_weights(tuned_on)
    if best not in points:
        raise KernelamError(f"{tuned_on} was tuned to {best.name}, which is not among the points tried in {directory}")
    result, boot = points[best], bootstrap(points[best], seed=seed)
    record = _record(best, result, boot, bootstrap(result, utt2spk, seed=seed))
    record |= {"tuned_on": str(tuned_on or directory), "seed": seed, "replicates": REPLICATES}
    record["oracle"] = {"lmwt": oracle.lmwt, "wip": oracle.wip, **_counts(points[oracle])}

    files = {"scoring_kaldi/test_filt.txt": _table(refs)}
    for weights, point in points.items():
        files[_hypotheses(weights)] = _table(grid[weights])
        files[f"wer_{weights.name}"] = _header(directory, weights) + point.text
    files["scoring_kaldi/best_wer"] = _best_line(directory, best, result)
    if tuned_on is not None:
        files["scoring_kaldi/oracle_wer"] = _best_line(directory, oracle, points[oracle])
    files["scoring_kaldi/wer_details/lmwt"] = f"{best.lmwt}\n"
    files["scoring_kaldi/wer_details/wip"] = f"{float(best.wip)}\n"
    for name, text in details(refs, grid[best], utt2spk, boot).items():
        files[f"scoring_kaldi/wer_details/{name}"] = text
    files[_RESULT] = json.dumps(record, indent=1) + "\n"
    _replace_all(directory, files)

    _warn(directory, result, len(refs), edges(best, points) if tuned_on is None else [])
    return Scored(best, result, oracle, points[oracle], boot.interval)


def read_weights(directory: str | Path) -> Weights:
    """The weights that best_wer of a scored decode directory names, ours or Kaldi's."""
    path = Path(directory) / "scoring_kaldi/best_wer"
    match = re.search(rf"wer_{_WEIGHTS}$", " ".join(lines(path)).strip())
    if match is None:
        raise KernelamError(f"{path} does not end with the name of a file wer_<lmwt>_<wip>: score {directory} again")
    return Weights(int(match[1]), float(match[2]))


def read_scored(directory: str | Path) -> WerResult:
    """The chosen point of a scored decode directory, counted again from its reference and hypotheses."""
    directory = Path(directory)
    tables = (directory / "scoring_kaldi/test_filt.txt", directory / _hypotheses(read_weights(directory)))
    refs, hyps = ({utt: text.split() for utt, text in read_table(t, empty_values=True).items()} for t in tables)
    return compute_wer(refs, hyps)


def _hypotheses(weights: Weights) -> str:
    return f"scoring_kaldi/penalty_{float(weights.wip)}/{weights.lmwt}.txt"


def _header(directory: Path, weights: Weights) -> str:
    """Where Kaldi has the command line: the command of Kaldi's that prints the lines below it."""
    reference, hypotheses = directory / "scoring_kaldi/test_filt.txt", directory / _hypotheses(weights)
    return f"# compute-wer --text --mode=all ark:{reference} ark:{hypotheses}\n"


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
        "lmwt": weights.lmwt,
        "wip": float(weights.wip),
    }


def _replace_all(directory: Path, files: Mapping[str, str]) -> None:
    """Write `files`, the result last; what an earlier scoring left goes first, so that no mixture looks finished."""
    (directory / _RESULT).unlink(missing_ok=True)
    ours = re.compile(rf"wer_{_WEIGHTS}|scoring_kaldi/(oracle_wer|penalty_-?\d+\.\d+/\d+\.txt)")
    for path in [*directory.glob("wer_*"), *directory.glob("scoring_kaldi/**/*")]:
        name = path.relative_to(directory).as_posix()
        if ours.fullmatch(name) and name not in files:
            path.unlink()
    for name, text in files.items():
        with replacing(directory / name, "w") as stream:
            stream.write(text)


def _warn(directory: Path, result: WerResult, utterances: int, at_edges: list[str]) -> None:
    if result.missing:
        say(
            f"{directory}: {len(result.missing)} of {utterances} utterances have no hypothesis and count as deleted,"
            f" first {result.missing[0]}"
        )
    for sentence in at_edges:
        say(f"{directory}: {sentence}")
