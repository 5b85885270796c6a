"""What there is to tell of pursued bases alone (kubo2012)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from kernelam.report.experiments import Experiment, system
from kernelam.report.tables import NONE, Table

ROUNDS = (
    "The objective is that of all training frames after the last fit, a frame, penalty included; it rose in so many of"
    " the rounds that added vectors. Conditions are of the Gram matrix of the basis, its diagonal scaled to 1, when"
    " half of the vectors were found, and of all. Of several seeds, the first."
)


def pursuit_tables(experiments: Sequence[Experiment]) -> list[tuple[str, str, Table]]:
    """Tables, each with a title and a note; none where no model has a pursued basis."""
    models = [runs[0].about for runs in experiments if runs[0].about["kind"] == "pursuit" and runs[0].trained]
    return [("Pursued bases", ROUNDS, rounds(models))] if models else []


def rounds(models: Sequence[dict[str, Any]]) -> Table:
    """The story of the rounds, a row a model."""
    rows = []
    for about in models:
        training = about["training"]
        told = training["rounds"]
        last = told[-1]
        rises = [new["objective"] > old["objective"] for old, new in pairwise(told)]
        half = next((f"{row['condition']:.3g}" for row in told[:-1] if 2 * row["basis"] >= last["basis"]), NONE)
        rows.append(
            [
                system(about),
                *(f"{training[name]:g}" for name in ("bandwidth", "penalty")),
                f"{last['objective'] / training['frames']:.4f}",
                f"{sum(rises)} of {len(rises)}" if rises else NONE,
                half,
                f"{last['condition']:.3g}",
                str(sum(row["steps"] for row in told)),
                f"{training['seconds']:.0f}",
            ]
        )
    header = ["system", "bandwidth", "c", "objective a frame", "rounds that raised it", "condition of half", "of all"]
    return Table([*header, "steps of fits", "seconds"], rows)
