"""The tables of ridge regression, from what a model directory records."""

from pathlib import Path
from typing import Any

from kernelam.report.experiments import Run
from kernelam.report.ridge import costs, iterations, ridge_tables, terms


def about(scheme: str, trials: list[dict[str, Any]]) -> dict[str, Any]:
    config = {"kernel": {"name": "gaussian", "sigma": 1.0}, "features": 2000, "scheme": scheme}
    training = {
        "ridge": 0.1,
        "frames": 300_000,
        "iterations": trials[-1]["iterations"],
        "seconds_of_phases": {"sums": 6.2, "systems": 190.1, "calibration": 8.4, "heldout": 47.0},
        "memory": 3 * 2**30,
        "estimate": {"disk": 0, "memory": 2 * 2**30, "mapped": 2**30, "job": 0},
        "disk": 2**29,
        "trials": trials,
    }
    heldout = {"frame_error": 0.5213, "vote_error": 0.5752}
    common = {"kind": "ridge", "config": config, "input": {"dim": 440}, "num_classes": 112}
    return {**common, "training": training, "heldout": heldout}


def trial(ridge: float, *told: tuple[str, float, int]) -> dict[str, Any]:
    figures = {level: {"mean": mean, "max": most} for level, mean, most in told}
    return {"ridge": ridge, "iterations": {"sum": 100_000, "to": figures}}


ONE = about("one-vs-one", [trial(0.01, ("0.1", 3.25, 5)), trial(0.1, ("0.1", 3.0, 4), ("0.001", 15.04, 29))])
REST = about("one-vs-rest", [{"ridge": 0.1, "iterations": {"sum": 0}}])


def run(model: dict[str, Any]) -> Run:
    return Run(Path("exp"), model, {}, {}, None, ("", []), None)  # type: ignore[arg-type]


def test_costs_stand_beside_the_papers() -> None:
    table = costs([ONE, REST])
    cells = ["0.1", "52.13", "57.52", "6", "190", "8", "3.00", "3.00", "0.50"]
    assert table.rows[0] == ["Gaussian kernel ridge regression, one-vs-one, 2000 features", *cells]
    assert table.rows[2][:4] == ["chen2016, TIMIT, D = 5K", "–", "33.12", "34.37"]
    assert len(table.rows) == 6
    assert {len(row) for row in table.rows} == {len(table.header)}


def test_terms_are_those_of_the_paper() -> None:
    """(440 + 2000) · 2000 · 300,000 = 1464 · 10⁹; 100,000 · 2000² = 400 · 10⁹, or 2000³ + 112 · 2000²;
    112 · 2000² + (112² + 440) · 2000 numbers, or 2000² + (112 + 440) · 2000, of 4 bytes."""
    one, rest = terms([ONE, REST]).rows
    assert one[1:] == ["1464", "6", "236", "400", "190", "2", "1.77", "3.00"]
    assert rest[1:] == ["1464", "6", "236", "8", "190", "0", "0.02", "3.00"]


def test_iterations_by_ridge_and_tolerance() -> None:
    table = iterations([REST, ONE])
    assert table.header == ["tolerance", "0.1", "0.01", "0.001", "0.0001", "1e-05", "1e-06"]
    assert table.rows[0][0].endswith("one-vs-one, 2000 features, λ = 0.1")
    assert table.rows[0][1:] == ["3.0 (4)", "–", "15.0 (29)", "–", "–", "–"]
    assert table.rows[1][1:3] == ["3.2 (5)", "–"]
    assert table.rows[2] == ["chen2016, one pair, D = 10K, λ = 0.1", "4", "12", "44", "83", "105", "123"]
    assert len(table.rows) == 8


def test_the_tables_are_there_only_where_they_have_something_to_tell() -> None:
    other = {"kind": "dnn", "training": {}}
    assert ridge_tables([[run(other)]]) == []
    assert [title for title, _, _ in ridge_tables([[run(other)], [run(REST)]])] == [
        "Ridge regression",
        "Formulas of costs",
    ]
    titles = [title for title, _, _ in ridge_tables([[run(REST)], [run(ONE)]])]
    assert titles == ["Ridge regression", "Formulas of costs", "Iterations of ridge regression"]
