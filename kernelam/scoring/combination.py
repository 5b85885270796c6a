"""Minimum Bayes risk of the lattices of a system, or of several together; they need share no more than their words."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kernelam.decoding.mbr import minimum_bayes_risk
from kernelam.decoding.union import side_by_side, union
from kernelam.errors import KernelamError
from kernelam.kaldi.alignment import num_jobs
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.lattices import read_lattices
from kernelam.kaldi.tables import read_symbols
from kernelam.models.description import decoded_by
from kernelam.progress import progress, warn
from kernelam.scoring.directory import read_result, read_weights
from kernelam.scoring.tuning import Weights
from kernelam.scoring.vocabulary import Vocabulary

_NAMED = 10  # utterances in a warning


class System(NamedTuple):
    """A decode directory, the LM weight and word insertion penalty that it has in a combination, and the fingerprint of
    the model that decoded it, if that is told."""

    folder: str
    lmwt: int
    wip: float
    model: str | None


def read_systems(folders: Sequence[Path], tuned_on: Path | None) -> list[System]:
    """The systems of decode directories, each at the weights it was scored with, or of its like in `tuned_on`."""
    names, places = [str(folder) for folder in folders], {folder.resolve() for folder in folders}
    if len(places) < len(names):
        raise KernelamError(f"a combination needs different decode directories, not {' '.join(names)}")
    models = [decoded_by(folder) for folder in folders]
    if tuned_on is None:
        return [System(name, *read_weights(name)[:2], model) for name, model in zip(names, models, strict=True)]
    tuned = _tuned_systems(tuned_on)
    if len(tuned) != len(names):
        raise KernelamError(f"{tuned_on} combines {len(tuned)} systems, not {len(names)}")
    systems = [System(name, one.lmwt, one.wip, model) for name, model, one in zip(names, models, tuned, strict=True)]
    for own, one in zip(systems, tuned, strict=True):
        if not _of_one_model(own, one):
            raise KernelamError(
                f"{tuned_on} combines {' '.join(other.folder for other in tuned)}: {own.folder} is not of the model"
                f" that {one.folder} was of; name the same systems in that order, or tune a combination of these"
            )
    return systems


def _of_one_model(one: System, other: System) -> bool:
    """By what the models are or, where that is not told of both, by the names of their directories."""
    if one.model and other.model:
        return one.model == other.model
    first, second = (Path(system.folder).resolve().parent.name for system in (one, other))
    return first == second


def _tuned_systems(directory: Path) -> list[System]:
    record = read_result(directory)
    if "systems" not in record:
        raise KernelamError(f"{directory} is no combination of systems: tune one with steps/score_combine.sh")
    return [System(one["folder"], one["lmwt"], one["wip"], one.get("model")) for one in record["systems"]]


def grid(count: int, tuned_on: Path | None) -> list[Weights]:
    """The points to try: 0.1 … 0.9 for the first of two systems, else equal weights, and those of `tuned_on`.

    The costs in a union are scaled already: its LM weight is 1.
    """
    parts = [(part, 10 - part) for part in range(1, 10)] if count == 2 else [(1,) * count]
    points = [Weights(1, 0.0, one) for one in parts]
    return list(dict.fromkeys([*points, *([read_weights(tuned_on)] if tuned_on else [])]))


def combined(systems: Sequence[System], words: Path, points: Sequence[Weights]) -> dict[Weights, dict[str, list[str]]]:
    """The words of least risk of every utterance at each point. An utterance that a system lacks has the others'."""
    spelling = {number: word for word, number in read_symbols(words).items()}
    archives = {system.folder: _lattices(Path(system.folder), words) for system in systems}
    hyps: dict[Weights, dict[str, list[str]]] = {point: {} for point in points}
    heard: dict[str, set[str]] = {system.folder: set() for system in systems}
    for utt, found in progress(side_by_side(archives), f"combining {len(systems)} systems"):
        there = [number for number, system in enumerate(systems) if system.folder in found]
        lattices = [found[systems[number].folder] for number in there]
        scales = [(systems[number].lmwt, systems[number].wip) for number in there]
        for point in points:
            parts = [point.parts[number] for number in there]
            risk = minimum_bayes_risk(union(lattices, scales, [part / sum(parts) for part in parts]), 1.0)
            hyps[point][utt] = [spelling[item.word] for item in risk]
        for folder in found:
            heard[folder].add(utt)
    _compare(heard)
    return hyps


def _compare(heard: dict[str, set[str]]) -> None:
    """Say which utterances a system lacks; one that has none of the others' is of another set."""
    for folder, own in heard.items():
        others = set().union(*(utts for name, utts in heard.items() if name != folder))
        if len(heard) > 1 and not own & others:
            raise KernelamError(f"{folder} has no utterance of the other systems: combine decodings of the same set")
        if lacking := sorted(others - own):
            names = " ".join(lacking[:_NAMED]) + (" …" if len(lacking) > _NAMED else "")
            total = len(others | own)
            warn(f"{folder} lacks {len(lacking)} of {total} utterances, which are combined without it: {names}")


def _lattices(folder: Path, words: Path) -> Iterator[tuple[str, Lattice]]:
    """Those of lat.1.gz … lat.<num_jobs>.gz, whose words have the same numbers in `words` and in the folder's own."""
    vocabulary = Vocabulary(words, folder)
    seen: set[str] = set()
    for job in range(1, num_jobs(folder) + 1):
        path = folder / f"lat.{job}.gz"
        for utt, lattice in read_lattices(path):
            if utt in seen:
                raise KernelamError(f"{path}: utterance {utt} is also in an earlier file of {folder}")
            vocabulary.spell(np.unique(lattice.word[lattice.word > 0]).tolist(), path, utt)
            seen.add(utt)
            yield utt, lattice
    if not seen:
        raise KernelamError(f"there is no lattice in {folder}; decode again")
