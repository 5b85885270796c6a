"""The choice of weights, against the choices Kaldi's scripts make of the same scores."""

import re
from pathlib import Path

import pytest

from kernelam.errors import KernelamError
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.tuning import Weights, edges, tune
from kernelam.scoring.wer import WerResult


def points(errors: dict[tuple[int, float], int], words: int = 1000) -> dict[Weights, WerResult]:
    return {Weights(*w): WerResult({"u": ErrorCounts(substitutions=e, ref_words=words)}) for w, e in errors.items()}


def test_fewest_errors() -> None:
    assert tune(points({(7, 0.0): 30, (8, 0.5): 20, (9, 1.0): 25})) == Weights(8, 0.5)


def test_ties_go_to_the_lowest_penalty_then_the_lowest_weight() -> None:
    grid = points({(9, 1.0): 20, (7, 1.0): 20, (10, 0.5): 20, (8, 0.5): 20, (11, 0.0): 21})
    assert tune(grid) == Weights(8, 0.5)
    assert tune(dict(reversed(grid.items()))) == Weights(8, 0.5)


def test_ties_of_combinations_go_to_the_most_even() -> None:
    grid = {Weights(1, 0.0, (part, 10 - part)): points({(1, 0.0): 20})[Weights(1, 0.0)] for part in (1, 3, 6, 4, 9)}
    assert tune(grid).parts == (4, 6)


def test_choice_on_a_real_grid(corpora: Path) -> None:
    """Two points of the grid tie; `best` holds the one Kaldi's best_wer.sh took."""
    folder = corpora / "kaldi-iban/exp/gmm/decode_dev"
    pattern = r"lmwt (\d+) wip ([\d.]+) %WER \S+ \[ (\d+) / (\d+)"
    rows = re.findall(pattern, (folder / "wer.txt").read_text())
    grid = points({(int(l), float(w)): int(e) for l, w, e, _ in rows}, int(rows[0][3]))  # noqa: E741
    best = tune(grid)
    assert (folder / "best").read_text().startswith(f"lmwt {best.lmwt} wip {best.wip} ")
    assert sum(r.total.errors == grid[best].total.errors for r in grid.values()) == 2
    assert edges(best, grid) == []


def test_name() -> None:
    assert Weights(7, 0.0).name == "7_0.0"
    assert Weights(12, 1).name == "12_1.0"
    assert Weights(1, 0.0, (3, 7)).name == "1_0.0_3_7"


def test_edges() -> None:
    grid = points({(lmwt, wip): 0 for lmwt in (7, 8, 9) for wip in (0.0, 0.5, 1.0)})
    assert edges(Weights(8, 0.5), grid) == edges(Weights(8, 0.0), grid) == []
    assert edges(Weights(7, 0.5), grid) == [
        "the best LM weight, 7, is the lowest tried: try lower ones with --min-lmwt"
    ]
    assert edges(Weights(9, 1.0), grid) == [
        "the best LM weight, 9, is the highest tried: try higher ones with --max-lmwt",
        "the best word insertion penalty, 1.0, is the highest tried: try higher ones with --word-ins-penalty",
    ]


def test_an_axis_of_one_value_and_a_natural_end_have_no_edge() -> None:
    assert edges(Weights(7, 0.5), points({(7, 0.5): 0})) == []
    assert edges(Weights(1, 0.0), points({(1, 0.0): 0, (2, 0.0): 0})) == []


def test_bad_input() -> None:
    with pytest.raises(KernelamError, match="the grid is empty"):
        tune({})
    with pytest.raises(KernelamError, match="different references"):
        tune(points({(7, 0.0): 1}, 10) | points({(8, 0.0): 1}, 11))
