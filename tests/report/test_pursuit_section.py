"""The table of pursued bases, from what a model directory records."""

from pathlib import Path
from typing import Any

from kernelam.report.experiments import Run
from kernelam.report.pursuit import pursuit_tables, rounds


def about(method: str, told: list[tuple[int, float, float]]) -> dict[str, Any]:
    config = {"kernel": {"name": "gaussian", "sigma": 1.0}, "basis": told[-1][0], "method": method}
    rows = [{"basis": m, "objective": f, "steps": 7, "condition": c, "seconds": 2.0} for m, f, c in told]
    training = {"frames": 200, "bandwidth": 0.2, "penalty": 0.1, "rounds": rows, "seconds": 2.0 * len(rows)}
    return {"kind": "pursuit", "config": config, "training": training, "heldout": {}}


PURSUED = about("orthogonal", [(10, -90.0, 2.0), (20, -60.0, 4.5), (30, -61.0, 9.0), (40, -50.0, 12345.0)])
AT_ONCE = about("nystrom", [(40, -70.0, 3.0)])


def run(model: dict[str, Any]) -> Run:
    return Run(Path("exp"), model, {}, {}, None, ("", []), None)  # type: ignore[arg-type]


def test_rounds_and_conditions() -> None:
    table = rounds([PURSUED, AT_ONCE])
    name = "Gaussian kernel expansion, 40 vectors, orthogonal"
    assert table.rows[0] == [name, "0.2", "0.1", "-0.2500", "2 of 3", "4.5", "1.23e+04", "28", "8"]
    assert table.rows[1][4:7] == ["–", "–", "3"]
    assert {len(row) for row in table.rows} == {len(table.header)}


def test_the_table_is_there_only_where_it_has_something_to_tell() -> None:
    assert pursuit_tables([[run({"kind": "dnn", "training": {}})]]) == []
    assert [title for title, _, _ in pursuit_tables([[run(PURSUED)]])] == ["Pursued bases"]
