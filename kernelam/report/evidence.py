"""What model and decode directories tell beside their results: how training went, what was selected, which words."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import entry, lines
from kernelam.models.description import CLASS_MEANS
from kernelam.records import read_record

Pairs = list[tuple[str, str]]
"""Reference and hypothesis word by word, with scoring.details.EMPTY where there is none."""


@dataclass(frozen=True)
class Epoch:
    number: int
    ce: float | None  # of heldout frames; None where it diverged
    kept: bool
    halved: bool


@dataclass(frozen=True)
class Selection:
    """Of each round, how many features were kept, the share of them in the final model, and that share by chance; the
    relative weight of each input."""

    kept: list[int]
    survival: list[float]
    chance: list[float]
    input_weights: list[float]


@dataclass(frozen=True)
class ClassMeans:
    """Of each class with heldout frames: its number, its phone, its frames, and the mean of its logits."""

    classes: list[int]
    phones: list[str]
    frames: np.ndarray
    means: np.ndarray


@dataclass(frozen=True)
class Speaker:
    name: str
    utterances: int
    words: int
    substitutions: int
    insertions: int
    deletions: int
    errors: int


def read_epochs(folder: Path) -> list[Epoch]:
    """The rows of epochs.jsonl, of which the first is the model before training; none of a model without."""
    path = folder / "epochs.jsonl"
    if not path.exists():
        return []
    try:
        rows = [json.loads(line) for line in lines(path)]
        return [
            Epoch(int(row["epoch"]), _finite(row["ce"]), bool(row.get("kept", True)), bool(row.get("halved")))
            for row in rows
        ]
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise KernelamError(f"{path} is damaged: {_said(error)}") from None


def read_selection(folder: Path) -> Selection | None:
    path = folder / "selection.json"
    if not path.exists():
        return None
    told = read_record(path, "features were not selected")
    try:
        columns = {name: [float(value) for value in told[name]] for name in Selection.__annotations__}
        if not len(columns["kept"]) == len(columns["survival"]) == len(columns["chance"]):
            raise ValueError("its rounds differ in number")
        for name, values in columns.items():
            if not values or not all(0 <= value < math.inf for value in values):
                raise ValueError(f"{name} is not a list of numbers from 0 on")
    except (ValueError, TypeError, KeyError) as error:
        raise KernelamError(f"{path} is damaged: {_said(error)}") from None
    return Selection([int(size) for size in columns.pop("kept")], **columns)


def read_class_means(folder: Path) -> ClassMeans | None:
    path = folder / CLASS_MEANS
    if not path.exists():
        return None
    try:
        with safe_open(path, "np") as file:
            classes, frames, means = (file.get_tensor(name) for name in ("classes", "frames", "means"))
            phones = json.loads(file.metadata()["about"])["phones"]
        if not len(classes) == len(frames) == len(means) == len(phones) or not np.isfinite(means).all():
            raise ValueError("its classes differ in number, or are not finite")
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise KernelamError(f"{path} is damaged: {_said(error)}") from None
    return ClassMeans(classes.tolist(), phones, frames, means)


def _finite(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _said(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def read_alignments(decoded: Path) -> dict[str, Pairs]:
    """wer_details/per_utt: lines `utterance ref …`, `utterance hyp …` in columns."""
    path = decoded / "scoring_kaldi/wer_details/per_utt"
    found: dict[str, dict[str, list[str]]] = {}
    for line in lines(path):
        utt, rest = entry(line)
        side, *words = re.split("[ \t]+", rest)  # no others: Unicode spaces belong to the words
        if side in ("ref", "hyp"):
            found.setdefault(utt, {})[side] = words
    for utt, sides in found.items():
        if len(sides) != 2 or len(sides["ref"]) != len(sides["hyp"]):
            raise KernelamError(f"{path} is damaged: the columns of {utt} differ in number; score {decoded} again")
    return {utt: list(zip(sides["ref"], sides["hyp"], strict=True)) for utt, sides in found.items()}


def read_speakers(decoded: Path) -> list[Speaker]:
    """wer_details/per_spk: the raw counts of each speaker; the last are the sum."""
    path = decoded / "scoring_kaldi/wer_details/per_spk"
    rows = [re.split("[ \t]+", line.strip(" \t")) for line in lines(path)]
    try:
        counts = [(row[0], list(map(int, row[2:]))) for row in rows[1:] if row[1] == "raw"]
        return [Speaker(name, *numbers[:2], *numbers[3:7]) for name, numbers in counts[:-1]]
    except (ValueError, IndexError, TypeError):
        raise KernelamError(f"{path} is damaged: score {decoded} again") from None
