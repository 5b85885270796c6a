"""The results page of two small experiments."""

import json
import shutil
from pathlib import Path

import pytest

from kernelam.errors import KernelamError
from kernelam.kernels import ArcCosine, Composition, Gaussian, Laplacian, Linear, Product, Sum
from kernelam.report.experiments import kernel_name, system
from kernelam.report.page import write_page
from kernelam.report.results import write_results
from kernelam.scoring.directory import score_directory
from kernelam.scoring.tuning import Weights

REFS = {f"s{i % 2}-{i:02d}": ["one", "two"] for i in range(20)}
UTT2SPK = {utt: utt[:2] for utt in REFS}
PROVENANCE = {
    "versions": {"torch": "1.2.3"},
    "git": "abc",
    "machine": {"processor": "a processor", "cores": 2, "system": "Linux"},
}
GMM = {"kind": "gmm", "config": {"gaussians": 300}, "training": {"frames": 5000, "seconds": 61.4}}
DNN = {
    "kind": "dnn",
    "config": {"layers": 4, "width": 1000, "activation": "tanh"},
    "training": {
        "frames": 5000,
        "seconds": 7.0,
        "epochs": 6,
        "search_frames": 1000,
        "flops": 1.25e12,
        "memory": 2**29,
        "options": {"rates": [0.1, 0.2]},
    },
    "heldout": {"ce": 1.2345, "entropy": 1.5, "erll": 2.7345, "frame_error": 0.25},
}


def experiment(folder: Path, about: dict, wrong: int) -> Path:
    """A model whose test hypotheses lack a word of the first `wrong` utterances, and whose dev ones are right."""
    folder.mkdir()
    record = {**about, "num_parameters": 12345, "seed": 7, "provenance": PROVENANCE}
    (folder / "model.json").write_text(json.dumps(record))
    hyps = {utt: ["one"] if number < wrong else words for number, (utt, words) in enumerate(REFS.items())}
    weights = Weights(9, 0.5)
    score_directory(folder / "decode_dev", REFS, {weights: REFS}, UTT2SPK)
    score_directory(folder / "decode_test", REFS, {weights: hyps}, UTT2SPK, tuned_on=folder / "decode_dev")
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [experiment(tmp_path / "gmm", GMM, 20), experiment(tmp_path / "dnn", DNN, 4)]


def cells(page: str, start: str) -> list[list[str]]:
    return [[c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith(f"| {start}")]


def test_page(tmp_path: Path, folders: list[Path]) -> None:
    write_results(tmp_path / "RESULTS.md", "A title", folders, folders[0])
    page = (tmp_path / "RESULTS.md").read_text()
    assert page.startswith("# A title\n")
    errors, training = cells(page, "GMM, 300 Gaussians")
    assert errors[1:] == ["0.00", "**50.00**", "50.00 – 50.00", "", "9, 0.5", "50.00"]
    assert training[1:] == ["12,345", "5,000", "–", "–", "61", *"––––––", "7"]
    errors, training = cells(page, "DNN, 4 × 1000 tanh")
    assert errors[2] == "**10.00**"
    assert float(errors[4]) < 0.01
    assert training[1:] == [
        "12,345",
        "5,000",
        "6",
        "2 × 1,000",
        "7",
        "1.25",
        "0.5",
        "1.234",
        "1.500",
        "2.735",
        "25.00",
        "7",
    ]
    assert "over 20 utterances" in page
    assert "against GMM, 300 Gaussians (10000 replicates)" in page
    assert "- torch 1.2.3; commit abc\n- a processor, 2 cores, Linux\n" in page


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


def test_combinations_of_models_that_differ_in_their_seed_make_one_row(tmp_path: Path) -> None:
    def member(seed: int, width: int) -> Path:
        told = {"settings": {"width": width}, "options": {"rates": [0.1], "seed": seed}, "data": ["x"]}
        return experiment(tmp_path / f"{width}_{seed}", {**DNN, "training": {**DNN["training"], **told}}, 4)

    def combination(seed: int) -> Path:
        members = [{"folder": str(member(seed, width)), "weight": 0.5} for width in (10, 20)]
        config = {"weights": [0.5, 0.5], "members": [DNN, DNN]}
        training = {"frames": 100, "seconds": 1.0}
        about = {"kind": "combination", "config": config, "training": training, "members": members}
        return experiment(tmp_path / f"both_{seed}", about, 2 * seed)

    combined = [combination(seed) for seed in (1, 2)]
    page = tmp_path / "RESULTS.md"
    write_results(page, "A title", combined, combined[0])
    assert [row[2] for row in cells(page.read_text(), "0.50")[:-1]] == ["**7.50** ± 3.54"]
    (tmp_path / "10_2/model.json").unlink()  # what it was made of is no longer known
    write_results(page, "A title", combined, combined[0])
    assert [row[2] for row in cells(page.read_text(), "0.50")[:2]] == ["**5.00**", "**10.00**"]


def test_an_experiment_that_cannot_be_reported_is_a_sentence(tmp_path: Path, folders: list[Path]) -> None:
    page = tmp_path / "RESULTS.md"
    score_directory(folders[1] / "decode_test", REFS, {Weights(9, 0.5): REFS}, UTT2SPK)
    with pytest.raises(
        KernelamError, match=r"dnn/decode_test was scored with weights tuned on .*; score it again with"
    ):
        write_results(page, "A title", folders, folders[0])
    (folders[1] / "decode_dev/scoring_kaldi/result.json").unlink()
    with pytest.raises(KernelamError, match="decode_dev is not scored"):
        write_results(page, "A title", folders, folders[0])
    assert not page.exists()


def test_combined_lattices_are_an_experiment(tmp_path: Path, folders: list[Path]) -> None:
    (tmp_path / "gmm/model.json").rename(tmp_path / "gmm/not.json")  # as of a model that Kaldi trained
    both = tmp_path / "both"
    for part, tuned_on in (("dev", None), ("test", both / "decode_dev")):
        systems = [{"folder": str(folder / f"decode_{part}"), "lmwt": 9, "wip": 0.5} for folder in folders]
        hyps = {Weights(1, 0.0, (4, 6)): REFS}
        score_directory(both / f"decode_{part}", REFS, hyps, UTT2SPK, tuned_on, systems=systems)
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
