"""Which experiments are one row of a report, and what rows are called."""

import json
import shutil
from pathlib import Path

import pytest
from small_experiments import DNN, GMM, REFS, UTT2SPK, cells, combined, combined_lattices, experiment, seeded

from kernelam.errors import KernelamError
from kernelam.kernels import ArcCosine, Composition, Gaussian, Laplacian, Linear, Product, Sum
from kernelam.report.experiments import kernel_name, system
from kernelam.report.page import write_page
from kernelam.report.results import write_results
from kernelam.scoring.directory import score_directory
from kernelam.scoring.tuning import Weights


def test_runs_that_differ_in_their_seed_make_one_row(tmp_path: Path, folders: list[Path]) -> None:
    alike = {"settings": {"layers": 4}, "options": {"rates": [0.1, 0.2], "seed": 1}, "data": ["x"]}
    seeds = [
        experiment(tmp_path / f"seed{n}", {**DNN, "training": {**DNN["training"], **alike}}, wrong)
        for n, wrong in enumerate((2, 4, 6))
    ]
    for number, folder in enumerate(seeds):
        record = json.loads((folder / "model.json").read_text())
        record["training"]["options"]["seed"] = record["seed"] = number
        record["heldout"]["ce"] += number
        (folder / "model.json").write_text(json.dumps(record))
    write_results(tmp_path / "RESULTS.md", "A title", [*folders, *seeds], folders[1])
    page = (tmp_path / "RESULTS.md").read_text()
    (_, one), (_, all_three) = (cells(page, "DNN, 4 × 1000 tanh")[part::2] for part in (0, 1))
    assert [row[2] for row in cells(page, "DNN, 4 × 1000 tanh")[:2]] == ["**10.00**", "**10.00** ± 5.00"]
    assert (one[-1], all_three[-1], all_three[8]) == ("7", "0 1 2", "2.234 ± 1.000")
    assert "of the mean" in page
    with pytest.raises(KernelamError, match="the baseline elsewhere is none of the experiments"):
        write_results(tmp_path / "RESULTS.md", "A title", folders, Path("elsewhere"))


def test_a_seed_counts_once(tmp_path: Path, folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "RESULTS.md"
    monkeypatch.chdir(tmp_path)
    results = write_results(page, "A title", [*folders, Path("dnn"), folders[1]], Path("./gmm"))
    assert [len(runs) for runs in results.experiments] == [1, 1]
    twins = [seeded(tmp_path / name, 1) for name in ("one", "two")]
    with pytest.raises(KernelamError, match=r"/one and .*/two have the same settings and seed, which are no two seeds"):
        write_results(page, "A title", twins, twins[0])


def test_seeds_of_a_model_on_features_of_another_are_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "exp").mkdir()
    for seed in (1, 2):
        seeded(tmp_path / f"exp/donor_{seed}", seed, settings={"selection": "50"})

    def taker(name: str, seed: int, donor: int, settings: dict) -> Path:
        models = [f"print of donor_{donor}"]
        return seeded(tmp_path / f"exp/{name}_{seed}_{donor}", seed, settings={**settings, "models": models})

    def rows(*folders: Path) -> list[int]:
        results = write_results(tmp_path / "RESULTS.md", "A title", list(folders), folders[0])
        return [len(runs) for runs in results.experiments]

    takers = [taker("fs", *both, {"features_of": f"exp/donor_{both[1]}"}) for both in ((1, 1), (2, 2), (1, 2))]
    # where the path is that of another working directory, the donor is the one beside
    assert rows(*takers) == [3]
    of_posteriors = [taker("p", n, n, {"kernel": f"gaussian o (posteriors:exp/donor_{n})"}) for n in (1, 2)]
    monkeypatch.chdir(tmp_path)
    assert rows(*takers, *of_posteriors) == [3, 2]
    shutil.rmtree("exp/donor_2")  # what it was is no longer known
    assert rows(*takers[:2]) == [1, 1]


def test_names_of_rows_have_ranges_of_what_was_found(tmp_path: Path) -> None:
    seeds = [seeded(tmp_path / f"{seed}", seed, dropout=dropout) for seed, dropout in ((1, 0.2), (2, 0.1), (3, 0.2))]
    write_results(tmp_path / "RESULTS.md", "A title", seeds, seeds[0])
    assert cells((tmp_path / "RESULTS.md").read_text(), "DNN")[0][0] == "DNN, 4 × 1000 tanh, dropout 0.1–0.2"
    pairs = [{"kind": "combination", "config": {"weights": [w, 0.5], "members": [DNN, GMM]}} for w in (0.25, 0.5)]
    assert system(*pairs) == "0.25–0.50 (DNN, 4 × 1000 tanh) + 0.50 (GMM, 300 Gaussians)"


def test_combinations_of_models_that_differ_in_their_seed_make_one_row(tmp_path: Path) -> None:
    def both(seed: int) -> Path:
        names = [(tmp_path / f"{width}_{seed}", width) for width in (10, 20)]
        members = [
            seeded(name, seed, settings={"width": width, "pretraining": "rbm" * (width == 10)}) for name, width in names
        ]
        return combined(tmp_path / f"both_{seed}", members, 2 * seed)

    page, folders = tmp_path / "RESULTS.md", [both(seed) for seed in (1, 2)]
    results = write_results(page, "A title", folders, folders[0])
    rbm, other = "DNN, 4 × 1000 tanh, rbm pre-training", "DNN, 4 × 1000 tanh"  # as only the members tell
    assert results.errors.rows[0][0] == f"0.50 ({rbm}) + 0.50 ({other})"
    assert [row[2] for row in cells(page.read_text(), "0.50")[:-1]] == ["**7.50** ± 3.54"]
    (tmp_path / "10_2/model.json").unlink()  # what it was made of is no longer known
    write_results(page, "A title", folders, folders[0])
    assert [row[2] for row in cells(page.read_text(), "0.50")[:2]] == ["**5.00**", "**10.00**"]


def test_what_is_made_of_models_costs_what_they_cost(tmp_path: Path) -> None:
    page, members = tmp_path / "RESULTS.md", [seeded(tmp_path / f"m{n}", 1, settings={"n": n}) for n in (1, 2, 3)]
    both = combined(tmp_path / "both", members[:2])
    nested = combined(tmp_path / "nested", [both, members[2]])
    write_results(page, "A title", [both, nested], both)
    rows = cells(page.read_text(), "0.50")[2:]
    assert rows[0][2:8] == ["5,000", "–", "4 × 1,000", "15", "2.5", "0.5"]
    assert rows[1][2:8] == ["5,000", "–", "6 × 1,000", "23", "3.75", "0.5"]
    assert "Those of a model made of others include theirs" in page.read_text()
    joined = combined(tmp_path / "joined", [Path("block.1"), Path("block.2")], kind="kernel")
    for number in (1, 2):
        seeded(joined / f"block.{number}", 1, settings={"block": number})
    write_results(page, "A title", [joined], joined)
    assert cells(page.read_text(), "Gaussian kernel, 8 features in 2 blocks")[1][5:7] == ["15", "2.5"]
    about = json.loads((members[1] / "model.json").read_text())
    (members[1] / "model.json").write_text(json.dumps(about | {"files": {"model.safetensors": "trained again"}}))
    results = write_results(page, "A title", [both, joined], both)
    assert cells(page.read_text(), "0.50")[1][2:8] == ["–"] * 6
    assert f"What {both} was made of is no longer there: its cost is not known." in page.read_text()
    write_page(tmp_path / "report.html", results)
    assert "both): training, seconds" not in (tmp_path / "report.html").read_text()


def test_rows_are_in_the_order_of_the_papers(tmp_path: Path) -> None:
    def about(name: str, bottleneck: int, selection: str, metric: str) -> dict:
        config = {"kernel": {"name": name}, "features": 50, "bottleneck": bottleneck}
        options = {"schedule": "halving", "metric": metric}
        told = {"settings": {"selection": selection, "name": name, "rank": bottleneck}, "options": options, "data": []}
        return {"kind": "kernel", "config": config, "training": {**DNN["training"], **told}}

    given = [
        about(name, rank, selection, metric)
        for name in ("sparse-gaussian", "gaussian", "laplacian")
        for rank, metric in ((9, "erll"), (9, "ce"), (0, "erll"), (0, "ce"))
        for selection in ("5", "")
    ]
    folders = [experiment(tmp_path / str(n), one, 2) for n, one in enumerate([DNN, *given[::-1], GMM])]
    results = write_results(tmp_path / "RESULTS.md", "A title", folders[:1] + folders[:0:-1], folders[0])
    names = [row[0] for row in results.errors.rows]
    assert names[:2] == ["GMM, 300 Gaussians", "DNN, 4 × 1000 tanh"]
    assert [name.split(" kernel")[0] for name in names[2::8]] == ["Laplacian", "Gaussian", "Sparse Gaussian"]
    by_erll = ["", ", bottleneck 9", ", rate by ERLL", ", bottleneck 9, rate by ERLL"]
    features = ("50 features", "50 selected features")
    assert names[2:10] == [f"Laplacian kernel, {number}{end}" for end in by_erll for number in features]


def test_combined_lattices_are_an_experiment(tmp_path: Path, folders: list[Path]) -> None:
    (tmp_path / "gmm/model.json").rename(tmp_path / "gmm/not.json")  # as of a model that Kaldi trained
    both = combined_lattices(tmp_path / "both", folders, (4, 6))
    results = write_results(tmp_path / "RESULTS.md", "A title", [folders[1], both], folders[1])
    name = "lattices: 0.40 (gmm) + 0.60 (DNN, 4 × 1000 tanh)"
    (errors,) = cells((tmp_path / "RESULTS.md").read_text(), name)  # it has no row of training
    assert (errors[2], errors[5]) == ("**0.00**", "–")
    write_page(tmp_path / "report.html", results)
    page = (tmp_path / "report.html").read_text()
    assert page.count(f"<td>2 · {name}</td>") == 1
    assert "1 · DNN" in page[page.index("Metrics and training") :]
    (tmp_path / "other").mkdir()
    shutil.copytree(folders[1] / "decode_dev", tmp_path / "other/decode_dev")
    score_directory(
        tmp_path / "other/decode_test", REFS, {Weights(9, 0.5): REFS}, UTT2SPK, tmp_path / "other/decode_dev"
    )
    with pytest.raises(KernelamError, match="other holds no trained model"):
        write_results(tmp_path / "RESULTS.md", "A title", [tmp_path / "other"], tmp_path / "other")


def test_combined_lattices_of_several_seeds_are_one_row(tmp_path: Path, folders: list[Path]) -> None:
    for seed, parts in ((1, (4, 6)), (2, (3, 7))):
        both, members = tmp_path / f"both{seed}", [tmp_path / f"{width}-{seed}" for width in (1000, 2000)]
        for width, member in zip((1000, 2000), members, strict=True):
            shutil.copytree(folders[1], member)
            about = json.loads((member / "model.json").read_text())
            about["config"]["width"] = width
            about["training"] |= {"settings": {"width": width}, "options": {"seed": seed}, "data": []}
            (member / "model.json").write_text(json.dumps(about | {"seed": seed}))
        combined_lattices(both, members, parts)
    write_results(tmp_path / "RESULTS.md", "A title", [folders[1], tmp_path / "both1", tmp_path / "both2"], folders[1])
    (row,) = [line for line in (tmp_path / "RESULTS.md").read_text().splitlines() if line.startswith("| lattices:")]
    assert row.startswith("| lattices: 0.30–0.40 (DNN, 4 × 1000 tanh) + 0.60–0.70 (DNN, 4 × 2000 tanh) |")


def test_combined_lattices_are_called_by_the_models_they_are_of(
    tmp_path: Path, folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another working directory too; where one was trained anew since, nothing is told of another."""
    monkeypatch.chdir(tmp_path)
    both = combined_lattices(tmp_path / "both", [Path("gmm"), Path("dnn")], (4, 6))

    def name() -> str:
        return write_results(tmp_path / "RESULTS.md", "A title", [both], both).errors.rows[0][0]

    monkeypatch.chdir("/")
    assert name() == "lattices: 0.40 (GMM, 300 Gaussians) + 0.60 (DNN, 4 × 1000 tanh)"
    other = {**GMM, "config": {"gaussians": 400}, "provenance": {}}
    for decoded in (folders[0], folders[0] / "decode_dev", folders[0] / "decode_test"):  # as one that is decoded again
        (decoded / "model.json").write_text(json.dumps(other))
    with pytest.raises(
        KernelamError, match=r"both/decode_dev was made of lattices of another model than the one that is now in .*/gmm"
    ):
        name()
    for part in ("dev", "test"):  # as an earlier version wrote
        path = both / f"decode_{part}/scoring_kaldi/result.json"
        told = json.loads(path.read_text())
        path.write_text(json.dumps(told | {"systems": [{"folder": one["folder"]} for one in told["systems"]]}))
    assert name() == "lattices: 0.40 (gmm) + 0.60 (dnn)"


def test_names_of_kernels_are_those_of_expressions():
    projected = Composition(Gaussian(1.0), Linear(), 440, "fda:200")
    kernel = Sum((0.5, 0.5), (projected, Product((Gaussian(1.0), Composition(ArcCosine(1), Laplacian(1.0), 50)))))
    assert kernel_name(kernel.settings()) == "gaussian o fda:200 + gaussian * arccos1 o laplacian"
    inner = Composition(Sum((1.0, 1.0), (Gaussian(1.0), Laplacian(1.0))), Composition(ArcCosine(0), Linear(), 9), 5)
    assert kernel_name(inner.settings()) == "(gaussian + laplacian) o (arccos0)"


def test_a_combination_is_named_by_its_members():
    members = [DNN, {"kind": "kernel", "config": {"kernel": {"name": "gaussian"}, "features": 50, "bottleneck": 9}}]
    about = {"kind": "combination", "config": {"weights": [0.25, 0.75], "members": members}}
    assert system(about) == "0.25 (DNN, 4 × 1000 tanh) + 0.75 (Gaussian kernel, 50 features, bottleneck 9)"


def test_models_of_their_own_stay_apart_when_their_figures_are_kept(tmp_path: Path) -> None:
    """Two that have one name, in two places; and one beside its own figures, which counts once."""
    for place in "xy":
        (tmp_path / place).mkdir()
    twins = [experiment(tmp_path / place / "gmm", GMM, wrong) for place, wrong in (("x", 3), ("y", 5))]
    first = write_results(tmp_path / "FIRST.md", "A title", twins, twins[0])
    kept = tmp_path / "FIRST.json"
    both = write_results(tmp_path / "SECOND.md", "A title", [kept, *twins], twins[1])
    assert [row[:4] for row in both.errors.rows] == [row[:4] for row in first.errors.rows]
    with pytest.raises(KernelamError, match=r"there are 2 experiments called .*FIRST.json/gmm: make another"):
        write_results(tmp_path / "THIRD.md", "A title", [kept], kept / "gmm")


def test_combinations_of_crossed_seeds_are_one_row(tmp_path: Path) -> None:
    for name, seed in (("a_1", 1), ("b_1", 1), ("b_2", 2)):
        seeded(tmp_path / name, seed, settings={"name": name[0]})

    def both(folder: str, members: tuple[str, str], seed: object) -> Path:
        told = [{"model.safetensors": f"digest of {name}"} for name in members]
        config = {"weights": [0.5, 0.5], "members": [{"kind": "dnn", "config": DNN["config"]}] * 2}
        training = {"weights": "fitted", "seconds": 1.0, "members": told}
        places = [{"folder": str(tmp_path / name)} for name in members]
        about = {"kind": "combination", "config": config, "training": training, "members": places, "seed": seed}
        return experiment(tmp_path / folder, about, 3)

    crossed = [both("one", ("a_1", "b_2"), [1, 2]), both("two", ("a_1", "b_1"), 1)]
    (runs,) = write_results(tmp_path / "RESULTS.md", "A title", crossed, crossed[0]).experiments
    assert [run.folder.name for run in runs] == ["two", "one"]


def test_systems_that_differ_in_their_training_alone_have_their_directory_beside_their_name(tmp_path: Path) -> None:
    folders = [seeded(tmp_path / name, 1, settings={"name": name}) for name in ("sgd", "a|b")]
    write_results(tmp_path / "RESULTS.md", "A title", folders, folders[1])
    page = (tmp_path / "RESULTS.md").read_text()
    for name in ("sgd", r"a\|b"):
        assert page.count(f"| DNN, 4 × 1000 tanh ({name}) | ") == 2
    assert "against DNN, 4 × 1000 tanh (a|b) (10,000 replicates)" in page


def test_figures_of_elsewhere_are_told_from_a_system_of_the_same_name(tmp_path: Path, folders: list[Path]) -> None:
    kept = tmp_path / "theirs.json"
    write_results(kept.with_suffix(".md"), "A title", folders, folders[0])
    other = shutil.copytree(folders[1], tmp_path / "exp/dnn")
    about = json.loads((other / "model.json").read_text())
    (other / "model.json").write_text(json.dumps({**about, "seed": 8}))
    results = write_results(tmp_path / "RESULTS.md", "A title", [kept, other], other)
    names = ["GMM, 300 Gaussians", "DNN, 4 × 1000 tanh (theirs.json/dnn)", "DNN, 4 × 1000 tanh (exp/dnn)"]
    assert [row[0] for row in results.errors.rows] == names
    write_page(tmp_path / "report.html", results)
    page = (tmp_path / "report.html").read_text().replace("/<wbr>", "/")
    for number, name in enumerate(names, 1):
        assert page.count(f"<td>{number} · {name}</td>") == 2
