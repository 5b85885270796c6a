"""What is told of the cells of a grid that failed."""

from pathlib import Path

import pytest

from kernelam.experiments import DONE, cause
from kernelam.grid import Grid

DECLARATION = """
title = "A grid"
folder = "."
train = "./train.sh"
data = ["a", "a", "a", "a", "a"]
decode = "./decode.sh"
graph = "a"
tuned = "a/dev"
tested = "a/test"
[axes.kind]
none = ""
gmm = ""
dnn = ""
"""


def test_the_report_begins_with_how_many_failed_and_who_is_the_baseline(folders, monkeypatch, kernelam):
    monkeypatch.chdir(folders[0].parent)
    Path("grid.toml").write_text(DECLARATION)
    for name in ("a/dev", "a/test"):
        Path(name).mkdir(parents=True)
    grid = Grid.read(Path("grid.toml"), {})
    for cell in grid.cells[1:]:
        (cell.folder / DONE).write_text(grid.commands(cell))
    ran = kernelam("grid", "--cmd", "true", "--output", "RESULTS.md", "grid.toml")
    assert (ran.returncode, ran.stderr) == (1, "none failed: it was never begun\n")
    remark = "1 of 3 cells failed: none. As none, the baseline, is one of them, gmm takes its place."
    assert Path("RESULTS.md").read_text().splitlines()[2] == remark
    page = Path("report.html").read_text()
    assert page.index(remark) < page.index("The weights of decoding are tuned on")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["steps/train_dnn.sh: unknown option --raets", "kernelam grid: steps/train_dnn.sh failed with status 1"], 0),
        (["a", "kernelam train dnn: out of memory", "kernelam grid: steps/train_dnn.sh failed with status 1"], 1),
        (["the cause", "kernelam grid: ./train.sh failed with status 1"], 1),
        (
            [
                "steps/train_dnn.sh: the model is in a",
                "kernelam grid: steps/train_dnn.sh ended well but did not make b",
            ],
            1,
        ),
    ],
)
def test_the_cause_is_the_sentence_of_what_failed(lines, expected):
    assert cause(lines) == lines[expected]
    assert cause([]) == "its log is empty"
