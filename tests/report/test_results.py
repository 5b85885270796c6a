"""The results page of two small experiments."""

import json
import shutil
from pathlib import Path

import pytest
from small_experiments import REFS, UTT2SPK, cells, seeded

from kernelam.errors import KernelamError
from kernelam.report.page import write_page
from kernelam.report.results import write_results
from kernelam.scoring.directory import score_directory
from kernelam.scoring.tuning import Weights


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
    assert "against GMM, 300 Gaussians (10,000 replicates)" in page
    assert "- torch 1.2.3; commit abc\n- a processor, 2 cores, Linux\n" in page


def test_lattices_of_a_model_that_was_replaced_are_refused(tmp_path: Path) -> None:
    folder = seeded(tmp_path / "model", 1)
    for name in ("dev", "test"):
        shutil.copy(folder / "model.json", folder / f"decode_{name}")
    write_results(tmp_path / "RESULTS.md", "A title", [folder], folder)
    record = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**record, "fingerprint": "another"}))
    with pytest.raises(KernelamError, match=r"decode_dev was decoded with another model than the one that is now in"):
        write_results(tmp_path / "RESULTS.md", "A title", [folder], folder)


@pytest.mark.parametrize(("units", "rate", "name"), [("characters", "CER", "characters"), ("a map", "TER", "tokens")])
def test_rates_are_called_by_what_was_scored(
    tmp_path: Path, folders: list[Path], units: str, rate: str, name: str
) -> None:
    for number, folder in enumerate(folders):
        path = folder / "decode_test/scoring_kaldi/result.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"units": units}))
        if not number:
            with pytest.raises(KernelamError, match=f"gmm was scored in {units}, .*dnn in words: score both alike"):
                write_results(tmp_path / "RESULTS.md", "A title", folders, folders[0])
    results = write_results(tmp_path / "RESULTS.md", "A title", folders, folders[0])
    write_page(tmp_path / "report.html", results)
    tables, page = ((tmp_path / file).read_text() for file in ("RESULTS.md", "report.html"))
    assert f"| dev {rate} % | test {rate} % |" in tables
    assert f"There are 40 {name} in dev, 40 in test." in tables
    assert f"{rate} is the share of errors in {name}." in tables
    for text in (f"test {rate} %", f"<th>{name}</th>", f"<th>{rate} %</th>", f"Most confused {name}"):
        assert text in page
    assert "WER" not in tables + page


def test_an_experiment_that_cannot_be_reported_is_a_sentence(tmp_path: Path, folders: list[Path]) -> None:
    page = tmp_path / "RESULTS.md"
    score_directory(folders[1] / "decode_test", REFS, {Weights(9, 0.5): REFS}, UTT2SPK)
    with pytest.raises(
        KernelamError, match=r"dnn/decode_test was scored with weights tuned on .*; score it again with"
    ):
        write_results(page, "A title", folders, folders[0])
    path = folders[1] / "decode_test/scoring_kaldi/result.json"
    path.write_text(
        json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != "tuned_on"})
    )
    with pytest.raises(KernelamError, match="dnn/decode_test was scored with weights tuned on an unknown set"):
        write_results(page, "A title", folders, folders[0])
    (folders[1] / "decode_dev/scoring_kaldi/result.json").unlink()
    with pytest.raises(KernelamError, match="decode_dev is not scored"):
        write_results(page, "A title", folders, folders[0])
    with pytest.raises(KernelamError, match="nope does not exist: name model directories"):
        write_results(page, "A title", [folders[0], tmp_path / "nope"], folders[0])
    assert not page.exists()


def test_places_of_tuning_are_compared_as_places(
    tmp_path: Path, folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folders[1] / "decode_test/scoring_kaldi/result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tuned_on": "./dnn/../dnn/decode_dev/"}))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(folders[1])
    write_results(tmp_path / "RESULTS.md", "A title", [folders[0], Path("link")], folders[0])


@pytest.mark.parametrize("earlier", [False, True])
def test_results_are_the_same_wherever_the_directory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: bool
) -> None:
    """Also those of an earlier version, which told where weights were tuned as seen from the working directory."""
    monkeypatch.chdir(tmp_path)
    seeded(Path("model"), 1)
    if earlier:
        changed(Path("model") / RESULT, lambda told: told.update(tuned_on="model/decode_dev"))
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copytree("model", tmp_path / "elsewhere/copy")
    for there, folder in (("/", tmp_path / "model"), (copy.parent, Path("copy")), (copy, Path("."))):
        monkeypatch.chdir(there)
        write_results(tmp_path / "RESULTS.md", "A title", [folder], folder)
    changed(copy / "decode_dev/scoring_kaldi/result.json", lambda told: told.update(lmwt=8))
    if earlier:
        with pytest.raises(KernelamError, match="copy/decode_test was scored with weights tuned on model/decode_dev;"):
            write_results(tmp_path / "RESULTS.md", "A title", [copy], copy)
    changed(copy / RESULT, lambda told: told.update(tuned_on="../../model/decode_dev"))
    with pytest.raises(KernelamError, match=f"was scored with weights tuned on {copy.parent}/model/decode_dev; score"):
        write_results(tmp_path / "RESULTS.md", "A title", [copy], copy)


def test_figures_that_were_kept_stand_for_directories(tmp_path: Path, folders: list[Path]) -> None:
    first, second = (seeded(tmp_path / f"seed{seed}", seed) for seed in (1, 2))
    whole = write_results(tmp_path / "ALL.md", "A title", [*folders, first, second], folders[0])
    early = write_results(tmp_path / "EARLY.md", "A title", [*folders, first], folders[0])
    write_page(tmp_path / "EARLY.html", early)
    for folder in (*folders, first):
        shutil.rmtree(folder)
    kept = tmp_path / "EARLY.json"
    assert str(tmp_path) not in kept.read_text()
    later = write_results(tmp_path / "LATER.md", "A title", [kept, second], kept / "gmm")
    assert (tmp_path / "LATER.md").read_text() == (tmp_path / "ALL.md").read_text()
    write_page(tmp_path / "LATER.html", later)
    assert "Worst speakers" in (tmp_path / "LATER.html").read_text()  # of the directory that is there
    alone = write_results(tmp_path / "ALONE.md", "A title", [tmp_path / "LATER.json"], tmp_path / "LATER.json/gmm")
    assert (tmp_path / "ALONE.json").read_text() == (tmp_path / "LATER.json").read_text()
    write_page(tmp_path / "ALONE.html", alone)
    assert alone.errors == whole.errors
    # a run whose figures were kept as well counts once
    again = write_results(tmp_path / "AGAIN.md", "A title", [tmp_path / "LATER.json", second], second)
    assert [len(runs) for runs in again.experiments] == [len(runs) for runs in whole.experiments]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda told: told.update(format="other"), "no file of results that kernelam report has written"),
        (lambda told: told.update(sets=["heldout", "dev"]), "reported on heldout and dev, not on dev and test"),
        (lambda told: told.pop("runs"), "kept.json is damaged"),
        (lambda told: told["runs"][0].pop("identity"), "kept.json is damaged"),
        (lambda told: told["runs"][0]["utterances"].update(new=["x"]), "kept.json is damaged"),
        (lambda told: told["runs"][0].update(more=1), "kept.json is damaged"),
    ],
)
def test_figures_that_are_none_are_refused(tmp_path: Path, folders: list[Path], change, sentence: str) -> None:
    write_results(tmp_path / "kept.md", "A title", folders, folders[0])
    told = json.loads((tmp_path / "kept.json").read_text())
    change(told)
    (tmp_path / "kept.json").write_text(json.dumps(told))
    with pytest.raises(KernelamError, match=sentence):
        write_results(tmp_path / "RESULTS.md", "A title", [tmp_path / "kept.json"], folders[0])
    assert not (tmp_path / "RESULTS.md").exists()


def test_systems_of_other_references_are_refused_by_name(tmp_path: Path, folders: list[Path]) -> None:
    """Seeds of one system, which are averaged, as well as two systems; and where weights were tuned."""
    one, two = seeded(tmp_path / "one", 1), seeded(tmp_path / "two", 2)
    text = two / "decode_test/scoring_kaldi/test_filt.txt"
    text.write_text("".join(text.read_text().splitlines(keepends=True)[1:]))
    for other in (one, folders[0]):
        with pytest.raises(KernelamError, match=rf"{other} and {two}: .* not scored on the same utterances.* s0-00"):
            write_results(tmp_path / "RESULTS.md", "A title", [other, two], two)
    changed(folders[0] / "decode_dev/scoring_kaldi/result.json", lambda told: told.update(ref_words=39))
    with pytest.raises(KernelamError, match=r"dev has 39 words where .*/gmm was scored, 40 where .*/one was"):
        write_results(tmp_path / "RESULTS.md", "A title", [folders[0], one], one)
    assert not (tmp_path / "RESULTS.md").exists()


def changed(path: Path, change) -> None:
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


RESULT = "decode_test/scoring_kaldi/result.json"


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        ("model.json", lambda told: told.pop("kind"), "it has no 'kind'"),
        ("model.json", lambda told: told.update(config={}), "it has no 'layers'"),
        ("model.json", lambda told: told.pop("provenance"), "it has no 'provenance'"),
        ("model.json", lambda told: told["heldout"].update(ce=float("nan")), "nan is no figure"),
        ("model.json", lambda told: told["heldout"].update(ce=None), "None is no figure"),
        ("model.json", lambda told: told["training"].pop("options"), "it has no 'options'"),
        (RESULT, lambda told: told.pop("oracle"), "it has no 'oracle'"),
        (RESULT, lambda told: told.update(rate=float("nan")), "nan is no figure"),
    ],
)
def test_a_record_that_is_not_whole_is_a_sentence(tmp_path: Path, file: str, change, sentence: str) -> None:
    folder = seeded(tmp_path / "model", 1)
    changed(folder / file, change)
    with pytest.raises(KernelamError, match=f"{file} is damaged: {sentence}"):
        write_results(tmp_path / "RESULTS.md", "A title", [folder], folder)


def test_a_page_that_cannot_be_made_leaves_what_an_earlier_report_wrote(tmp_path: Path, kernelam) -> None:
    folder = seeded(tmp_path / "model", 1)
    names = ("RESULTS.md", "RESULTS.json", "report.html")
    command = ("report", "--title", "T", "--baseline", folder, "--output", tmp_path / "RESULTS.md", folder)
    assert kernelam(*command).returncode == 0
    before = [(tmp_path / name).stat().st_mtime_ns for name in names]
    nowhere = kernelam(*command, "--html", tmp_path / "RESULTS.md/page.html")
    assert nowhere.returncode == 1
    assert nowhere.stderr.startswith(f"kernelam report: cannot write {tmp_path}/RESULTS.md/page.html: ")
    assert [(tmp_path / name).stat().st_mtime_ns for name in names] == before
    (folder / "epochs.jsonl").write_text("{")
    failed = kernelam(*command)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"kernelam report: {folder}/epochs.jsonl is damaged: ")
    assert [(tmp_path / name).stat().st_mtime_ns for name in names] == before


def test_figures_are_not_written_over_something_else(tmp_path: Path, folders: list[Path]) -> None:
    (tmp_path / "bench.json").write_text('{"seconds": 1}')
    with pytest.raises(KernelamError, match=r"bench.json is no file of results, and would be lost"):
        write_results(tmp_path / "bench.md", "A title", folders, folders[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "dnn", "gmm"]
    assert (tmp_path / "bench.json").read_text() == '{"seconds": 1}'
