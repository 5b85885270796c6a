"""Time to a given heldout CE: what epochs.jsonl of trainings of one model in several ways says."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelam.training.bench import table


def read_epochs(folder: Path) -> list[dict[str, Any]]:
    """The epochs of a training; the 0th, before it, has no frames."""
    with open(folder / "epochs.jsonl", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def best_ce(epochs: list[dict[str, Any]]) -> float:
    return min(row["ce"] for row in epochs if row.get("kept", True))


def time_to(epochs: list[dict[str, Any]], target: float) -> dict[str, Any]:
    """Epochs, frames and time of the processor until the heldout CE was `target` or less; none if it never was.

    The search for a rate, which is the same for all, is not counted.
    """
    frames, seconds = 0, 0.0
    for row in epochs[1:]:
        frames, seconds = frames + row["frames"], seconds + row["cpu_seconds"]
        if row["kept"] and row["ce"] <= target:
            return {"epochs": row["epoch"], "frames": frames, "cpu_seconds": round(seconds, 2)}
    return {"epochs": None, "frames": None, "cpu_seconds": None}


def compare_optimisers(seed: int, runs: Mapping[str, list[dict[str, Any]]], target: str) -> list[dict[str, Any]]:
    """A row for each of the `runs` of a seed, timed to the best heldout CE of the one that `target` names."""
    goal = best_ce(runs[target])
    full = time_to(runs[target], goal)["cpu_seconds"]
    rows = []
    for way, epochs in runs.items():
        found = time_to(epochs, goal)
        share = None if found["cpu_seconds"] is None else round(found["cpu_seconds"] / full, 3)
        rate, ce = epochs[1]["rate"], round(best_ce(epochs), 4)
        rows.append({"way": way, "seed": seed, "rate": rate, "ce": ce, **found, "share": share})
    return rows


def describe_optimisers(rows: list[dict[str, Any]], target: str) -> str:
    cells = (["never" if value is None else value for value in row.values()] for row in rows)
    head = "way  seed  rate  best heldout CE  epochs  frames  CPU s"
    return f"until the best heldout CE of {target} was reached, without the search:\n\n" + table(
        f"{head}  of {target}", cells
    )
