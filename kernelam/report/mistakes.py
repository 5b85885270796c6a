"""What the best system of a report gets wrong: speakers, words, phones, utterances."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import fmean

from kernelam.report.evidence import Pairs, read_alignments, read_speakers
from kernelam.report.experiments import Experiment
from kernelam.report.results import Results
from kernelam.report.sections import rate_of, section, table, title_of
from kernelam.scoring.details import EMPTY

UTTERANCES, SPEAKERS, WORDS, PHONES = 200, 20, 15, 20  # the worst that are listed


def _best(results: Results) -> tuple[str, Path] | None:
    """The first run that has a directory of the best experiment that has such a run, and its decode directory."""
    there = [one for one in enumerate(results.experiments) if not all(run.kept for run in one[1])]
    if not there:
        return None
    number, runs = min(there, key=_errors)
    first = next(run for run in runs if not run.kept)
    return f"{title_of(number, first)}, the best on {results.sets[0]}", first.folder / f"decode_{results.sets[1]}"


def _errors(numbered: tuple[int, Experiment]) -> tuple[float, float]:
    """Where the weights were tuned; only among equals, in the set that is reported."""
    return fmean(run.dev["rate"] for run in numbered[1]), fmean(map(rate_of, numbered[1]))


def speakers(results: Results) -> str:
    if (best := _best(results)) is None:
        return ""
    name, decoded = best
    reference = results.reference[0].folder / decoded.name
    alone = results.reference[0].kept or reference == decoded
    theirs = {} if alone else {one.name: one.errors for one in read_speakers(reference)}  # of the same words
    found = [one for one in read_speakers(decoded) if one.words]
    worst = sorted(found, key=lambda one: -one.errors / one.words)[:SPEAKERS]
    rows = []
    for one in worst:
        counts = (one.utterances, one.words, one.substitutions, one.deletions, one.insertions)
        rates = (f"{100 * errors / one.words:.2f}" for errors in (one.errors, theirs.get(one.name, 0)))
        rows.append([one.name, *map(str, counts), *rates])
    header = ["speaker", "utterances", results.units, "substitutions", "deletions", "insertions"]
    header += [f"{results.rate} %", f"baseline's {results.rate} %"]
    if alone:
        header, rows = header[:-1], [row[:-1] for row in rows]
    return section("Worst speakers", f"Of {name}: {len(worst)} of {len(found)}.", table(header, rows))


def words(results: Results) -> str:
    if (best := _best(results)) is None:
        return ""
    name, decoded = best
    pairs = Counter(pair for aligned in read_alignments(decoded).values() for pair in aligned)
    wrong = [(ref, hyp, str(count)) for (ref, hyp), count in pairs.most_common() if ref != hyp]
    kinds: list[tuple[list[str], Sequence[Sequence[str]]]] = [
        ([results.units.removesuffix("s"), "taken for", "times"], [row for row in wrong if EMPTY not in row]),
        (["deleted", "times"], [(ref, count) for ref, hyp, count in wrong if hyp == EMPTY]),
        (["inserted", "times"], [(hyp, count) for ref, hyp, count in wrong if ref == EMPTY]),
    ]
    tables = "".join(table(header, rows[:WORDS]) for header, rows in kinds if rows)
    note = f"Of {name}: at most {WORDS} of each kind."
    return section(f"Most confused {results.units}", note, f'<div class="beside">{tables}</div>' if tables else "")


def phones(results: Results) -> str:
    """Of the best model that tells which it takes for others."""
    told = [one for one in enumerate(results.experiments) if one[1][0].about.get("confusions")]
    if not told:
        return ""
    number, runs = min(told, key=_errors)
    rows = [(ref, hyp, str(count)) for ref, hyp, count in runs[0].about["confusions"][:PHONES]]
    note = f"Of {title_of(number, runs[0])}: heldout frames whose most probable class is one of another phone."
    body = table(["phone", "taken for", "frames"], rows)
    return section("Most confused phones", note, f'<div class="beside">{body}</div>')


def alignments(results: Results) -> str:
    if (best := _best(results)) is None:
        return ""
    name, decoded = best
    found = read_alignments(decoded)
    wrong = {utt: sum(ref != hyp for ref, hyp in pairs) for utt, pairs in found.items()}
    worst = sorted((utt for utt in found if wrong[utt]), key=lambda utt: -wrong[utt])
    if not worst:
        return ""
    shown = [_aligned(utt, wrong[utt], found[utt], results.units) for utt in worst[:UTTERANCES]]
    key = "<p><del>deleted</del>, <ins>inserted</ins>, <span><del>word</del> <ins>taken for</ins></span></p>"
    count = f"{len(worst)} of {len(found)} utterances have errors"
    if len(worst) > UTTERANCES:
        count += f", of which the {UTTERANCES} with the most are shown"
    folded = f"<details><summary>{len(shown)} utterances</summary>{''.join(shown)}</details>"
    return section("Alignments", f"Of {name}: {count}, those with the most first.", key, folded)


def _aligned(utt: str, wrong: int, pairs: Pairs, units: str) -> str:
    words = []
    for ref, hyp in pairs:
        removed = f"<del>{escape(ref)}</del>" if ref not in (EMPTY, hyp) else ""
        added = f"<ins>{escape(hyp)}</ins>" if hyp not in (EMPTY, ref) else ""
        words.append(f"<span>{removed} {added}</span>" if removed and added else removed or added or escape(ref))
    counts = f"{wrong} wrong, {sum(ref != EMPTY for ref, _ in pairs)} {units}"
    return f'<p class="utterance"><b>{escape(utt)}</b> <small>{counts}</small><br>{" ".join(words)}</p>'
