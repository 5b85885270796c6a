"""The papers' tables, with published figures beside ours."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_experiments import DNN, GMM, experiment

from kernelam.errors import KernelamError
from kernelam.report.layouts import Layouts
from kernelam.report.published import FIELDS, FILE, Published, read_published
from kernelam.report.results import read_results

TIMIT = read_published(FILE, "timit")


def kernel(name: str, ce: float, features: int = 1000, **more: Any) -> dict[str, Any]:
    settings = {"selection": more.get("selection", ""), "features": features, "name": name}
    options = {"rates": [1.0], "schedule": "halving", "metric": more.get("metric", "ce")}
    return {
        "kind": "kernel",
        "config": {"kernel": {"name": name}, "features": features, "bottleneck": more.get("bottleneck", 0)},
        "training": {**DNN["training"], "options": options, "settings": settings, "data": []},
        "heldout": {"ce": ce, "entropy": 0.5, "erll": ce + 0.5, "frame_error": 0.4},
    }


def experiments(folder: Path, abouts: list[dict[str, Any]], wrong: list[int]) -> list[Path]:
    told = enumerate(zip(abouts, wrong, strict=True))
    return [experiment(folder / str(number), about, errors) for number, (about, errors) in told]


def made(folder: Path, abouts: list[dict[str, Any]], wrong: list[int], published: Published | None = None) -> Layouts:
    folders = experiments(folder, abouts, wrong)
    return read_results("T", folders, folders[0], published=published).layouts


@pytest.fixture
def abouts() -> list[dict[str, Any]]:
    return [
        kernel("laplacian", 2.0),
        kernel("sparse-gaussian", 1.5, bottleneck=9, metric="erll"),
        kernel("laplacian", 1.8, selection="50", bottleneck=9),
        kernel("laplacian", 1.0, features=500),
        DNN,
    ]


def test_cells(tmp_path: Path, abouts: list[dict[str, Any]]) -> None:
    told = made(tmp_path, abouts, [8, 4, 6, 2, 5])
    tables = dict(told.tables)
    assert list(tables) == [
        *(f"{name}, heldout, kernels" for name in ("CE", "ENT", "ERLL")),
        "ERR, heldout, %, kernels",
        "TER, dev, %, kernels",
        "TER, test, %, kernels",
        "Best network and best kernel",
    ]
    assert tables["CE, heldout, kernels"].header == ["", "NT", "B", "R", "BR"]
    assert tables["CE, heldout, kernels"].rows == [
        ["Laplacian, D = 1,000", "2.000", "–", "–", "–"],
        ["Laplacian + FS, D = 1,000", "–", "1.800", "–", "–"],
        ["Sparse Gaussian, D = 1,000", "–", "–", "–", "1.500"],
    ]
    assert [row[-1] for row in tables["TER, test, %, kernels"].rows] == ["–", "–", "10.00"]
    assert [row[-1] for row in tables["ERR, heldout, %, kernels"].rows] == ["–", "–", "40.00"]
    assert "the one with the most features stands" in told.note
    assert told.note.count("Laplacian kernel, 500 features") == 1
    assert "Below ours" not in told.note


def test_the_best_is_never_chosen_on_the_set_that_is_reported(tmp_path: Path) -> None:
    abouts = [kernel("gaussian", 2.0), kernel("laplacian", 3.0), DNN, GMM]
    folders = experiments(tmp_path, abouts, [8, 4, 6, 1])
    record = json.loads((folders[1] / "decode_dev/scoring_kaldi/result.json").read_text())
    (folders[1] / "decode_dev/scoring_kaldi/result.json").write_text(json.dumps(record | {"rate": 0.3}))
    rows = dict(read_results("T", folders, folders[3]).layouts.tables)["Best network and best kernel"].rows
    assert rows[0] == ["CE, heldout", "1.234", "2.000", "DNN, 4 × 1000 tanh", "Gaussian kernel, 1000 features"]
    assert rows[-2][:3] == ["TER, dev, %", "0.00", "0.00"]
    assert rows[-1] == ["TER, test, %", "15.00", "20.00", "DNN, 4 × 1000 tanh", "Gaussian kernel, 1000 features"]


def test_published_figures_stand_beside_ours_with_what_sets_their_models_apart(
    tmp_path: Path, abouts: list[dict[str, Any]]
) -> None:
    sized = [{**about, "num_classes": 1232} for about in abouts]
    sized.append(kernel("sparse-gaussian", 1.4, features=500, metric="erll") | {"num_classes": 900})
    told = made(tmp_path, sized, [8, 4, 6, 2, 5, 4], TIMIT)
    tables, theirs = dict(told.tables), "may2017, D = 200,000, 147 classes"
    assert tables["TER, dev, %, kernels"].rows == [
        ["Laplacian, D = 1,000, 1,232 classes", "0.00", "–", "–", "–"],
        [theirs, "20.6", "19.2", "20.4", "18.9"],
        ["Laplacian + FS, D = 1,000, 1,232 classes", "–", "0.00", "–", "–"],
        [theirs, "19.5", "18.6", "19.3", "18.4"],
        ["Sparse Gaussian, D = 500–1,000, 900–1,232 classes", "–", "–", "0.00", "0.00"],
        [theirs, "19.9", "18.8", "19.6", "18.4"],
    ]
    assert not any(row[0] == theirs for row in tables["TER, test, %, kernels"].rows)
    assert tables["TER, dev, %, networks"].rows == [
        ["4 × 1000 tanh, 1,232 classes", "0.00", "–", "–", "–"],
        ["may2017, 147 classes", "19.5", "19.3", "19.4", "19.2"],
    ]
    best = tables["Best network and best kernel"].rows
    assert [row[:3] for row in best[6:8]] == [["ERR, heldout, %", "25.00", "40.00"], [theirs, "32.4", "30.85"]]
    assert best[-1] == [theirs, "20.5", "20.4", "", ""]
    assert "not for models of the same size" in told.note
    assert Published("iban", {}).label(kernels=True) == "may2017"


def test_nothing_published_is_a_sentence(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "gmm", GMM, 3)
    for published, note in (
        (None, ""),
        (Published("iban", {}), "may2017 has no figure of iban for these sets and models."),
    ):
        assert read_results("T", [folder], folder, published=published).layouts == Layouts([], note)


@pytest.mark.parametrize("corpus", ["timit", "bn50", "bengali", "cantonese"])
def test_the_file_that_ships(corpus: str) -> None:
    figures = read_published(FILE, corpus).figures
    assert len(figures) > 100
    assert ("dev", "TER", "best_kernel", "") in figures


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "line 2: expected 8 fields, found 7"),
        (["may2017,3,timit,dev,TER,gaussian,NT,N/A"], "line 2: the value N/A is not a number"),
        (
            ["may2017,3,timit,dev,TER,gaussian,NT,1.0"] * 2,
            "line 3: there is a figure of timit dev TER gaussian NT already",
        ),
        (['may2017,3,timit,dev,TER,"gaussian"x,NT,1.0'], "line 2: "),
    ],
)
def test_damage_is_a_sentence(tmp_path: Path, rows: list[str], sentence: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text("\n".join([",".join(FIELDS), *(rows or ["may2017,3,timit,dev,TER,gaussian,NT"])]))
    with pytest.raises(KernelamError, match=rf"p\.csv, {sentence}"):
        read_published(path, "timit")
    path.write_text("paper,table\n")
    with pytest.raises(KernelamError, match=r"p\.csv, line 1: expected the columns paper,table,corpus"):
        read_published(path, "timit")


def test_command(tmp_path: Path, kernelam: Callable) -> None:
    folder = experiment(tmp_path / "k", kernel("gaussian", 2.0), 3)
    command = ["report", "--title", "T", "--baseline", folder, "--output", tmp_path / "RESULTS.md", folder]
    assert kernelam(*command, "--corpus", "timit").returncode == 0
    assert "| may2017, D = 200,000, 147 classes | 19.8 | 18.9 | 19.6 | 18.6 |" in (tmp_path / "RESULTS.md").read_text()
    assert "<td>19.8</td><td>18.9</td><td>19.6</td><td>18.6</td>" in (tmp_path / "report.html").read_text()
    unknown = kernelam(*command, "--corpus", "nope")
    said = f"{FILE} has no figures of may2017 for --corpus nope, only for bengali, bn50, cantonese, timit"
    assert (unknown.returncode, unknown.stderr) == (1, f"kernelam report: {said}\n")
    lost = kernelam(*command, "--published", FILE)
    assert (lost.returncode, "say with --corpus which corpus" in lost.stderr) == (1, True)


def test_networks_with_something_newer_are_not_called_as_those_without(tmp_path: Path) -> None:
    abouts = [DNN, DNN | {"config": DNN["config"] | {"normalise": True, "dropout": 0.1}}]
    rows = dict(made(tmp_path, abouts, [4, 5]).tables)["CE, heldout, networks"].rows
    assert [row[0] for row in rows] == ["4 × 1000 tanh", "4 × 1000 tanh, normalised, dropout"]
