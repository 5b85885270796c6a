"""The grids that the recipe of images declares: what their cells are, and some of them at a small size."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelam.frames.augmentation import Augmentation
from kernelam.grid import Grid
from kernelam.kernels.composition import arc_cosine_layers
from kernelam.training.exact import unit_kernel


@pytest.fixture(scope="module")
def place(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe's folder with small sets of both kinds: data/<task> and exp/<task>."""
    folder = tmp_path_factory.mktemp("s5")
    for name in ("steps", "utils"):
        (folder / name).symlink_to(root / name)
    (folder / "conf").symlink_to(root / "egs/mnist/s5/conf")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "local/mnist"))
        lookalikes, prepare = (importlib.import_module(name) for name in ("lookalikes", "prepare"))
        patch.setattr(lookalikes, "BATCH", 600)
        digits = prepare.digits(Path())
        few = {name: (x[:size], y[:size]) for (name, (x, y)), size in zip(digits.items(), (500, 200, 100), strict=True)}
        rng = np.random.default_rng(0)
        noisy = {
            name: (np.maximum(x, rng.uniform(0, 0.5, x.shape).astype(np.float32)), y) for name, (x, y) in few.items()
        }
        for task, sets, names in (
            ("convex", lookalikes.convex(400, 200), ["other", "convex"]),
            ("back-rand", noisy, prepare.DIGITS),
        ):
            prepare.write_sets(
                sets, names, folder / "data" / task, folder / "data" / task / "lang", folder / "exp" / task / "ali"
            )
    return folder


@pytest.fixture
def declared(root: Path):
    def read(name: str) -> Grid:
        return Grid.read(root / f"egs/mnist/s5/conf/{name}.toml", {"task": "convex"})

    return read


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_machines_have_the_degrees_and_depths_of_their_names(declared):
    cells = {cell.name: cell.train for cell in declared("svm").cells}
    assert len(cells) == 19
    for degree in range(3):
        for depth in range(1, 7):
            kernel = unit_kernel(option(cells[f"arccos{degree}-{depth}"], "--kernel"))
            assert kernel == arc_cosine_layers([degree] + [1] * (depth - 1))
    assert option(cells["gaussian"], "--kernel") == "gaussian"


def test_layers_are_one_to_three_in_five_draws_beside_references(declared):
    cells = {cell.name: cell.train for cell in declared("multilayer").cells}
    assert len(cells) == 45
    for name, command in cells.items():
        machine, seed = name.split("_")
        kernel, _, depth = machine.partition("-")
        assert [option(command, name) for name in ("--kernel", "--layers", "--seed")] == [kernel, depth, seed]
    references = {cell.name: cell.train for cell in declared("references").cells}
    assert list(references) == ["inputs", "svm", "rbm-1", "rbm-2", "rbm-3"]
    assert option(references["inputs"], "--layers") == "0"
    assert [option(references["rbm-2"], name) for name in ("--layers", "--pretraining", "--seed")] == ["3", "rbm", "2"]


def test_augmentations_are_such(declared):
    cells = {cell.name: cell.train for cell in declared("augmentation").cells}
    assert len(cells) == 10
    for name, command in cells.items():
        given = option(command, "--augment") if "--augment" in command else "plain"
        assert str(given).replace(":", "-") == name.split("_")[1]
        assert given == "plain" or Augmentation.parse(given)


def run(place: Path, root: Path, text: str, task: str) -> subprocess.CompletedProcess[str]:
    (place / "small.toml").write_text(text)
    env = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    env["PATH"] = f"{root / 'utils/bin'}:{root / 'utils'}:{env['PATH']}"
    command = [
        sys.executable,
        "-m",
        "kernelam",
        "grid",
        "--set",
        f"task={task}",
        "--output",
        f"exp/{task}.md",
        "small.toml",
    ]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=600)


def some_of(path: Path, *cells: str) -> str:
    """A declaration with these values of its first axis alone."""
    head, _, values = path.read_text().partition("\n[axes.")
    title, *lines = values.splitlines()
    kept = [line for line in lines if line.split(" = ")[0] in cells]
    return "\n".join([head, f"[axes.{title}", *kept, ""])


def test_support_vector_machines_on_regions(place, root):
    text = some_of(place / "conf/svm.toml", "gaussian", "arccos1-2")
    done = run(place, root, text, "convex")
    assert done.returncode == 0, done.stderr
    table = (place / "exp/convex.md").read_text()
    for name in ("Gaussian", "Arccos1 o arccos1"):
        assert f"| {name} support vector machine, " in table
    result = json.loads((place / "exp/convex/svm/arccos1-2/decode_test/scoring_kaldi/result.json").read_text())
    assert (result["units"], result["ref_words"]) == ("classes", 200)
    assert result["rate"] < 0.48
    before = (place / "exp/convex/svm/gaussian/model.json").stat().st_mtime_ns
    assert run(place, root, text, "convex").returncode == 0
    assert (place / "exp/convex/svm/gaussian/model.json").stat().st_mtime_ns == before


def test_multilayer_machines_on_noise_are_rows_with_a_deviation(place, root):
    text = some_of(place / "conf/multilayer.toml", "arccos1-1").replace('baseline = "arccos0-1_1"\n', "")
    text += "[axes.seed]\n1 = '--seed 1'\n2 = '--seed 2'\n"
    text = text.replace("--num-threads 1", "--num-threads 1 --pca-examples 200 --components 40")
    done = run(place, root, text, "back-rand")
    assert done.returncode == 0, done.stderr
    rows = [line for line in (place / "exp/back-rand.md").read_text().splitlines() if "kernel machine, " in line]
    assert len(rows) >= 1
    assert rows[0].startswith("| Arccos1 multilayer kernel machine, 1 layer, ")
    assert " ± " in rows[0]
