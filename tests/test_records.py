from pathlib import Path

import pytest

from kernelam.errors import KernelamError
from kernelam.models.description import describe
from kernelam.records import keep, read_record, recall
from kernelam.scoring.directory import read_result


def test_an_object_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"name": "né", "values": [1, 2.5]}', encoding="utf-8")
    assert read_record(tmp_path / "x.json", "") == {"name": "né", "values": [1, 2.5]}


@pytest.mark.parametrize("contents", [b"", b'{"a": 1', b"[1, 2]", b'{"a": "\xff"}'])
def test_a_damaged_file_is_a_sentence(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "x.json").write_bytes(contents)
    with pytest.raises(KernelamError, match=r"x\.json is damaged: "):
        read_record(tmp_path / "x.json", "")


def test_a_missing_file_says_what_it_means(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match=f"no such file {tmp_path}/model.json: {tmp_path} holds no trained model"):
        describe(tmp_path)
    with pytest.raises(
        KernelamError, match=f"no such file {tmp_path}/scoring_kaldi/result.json: {tmp_path} is not scored"
    ):
        read_result(tmp_path)


def test_what_is_kept_is_recalled_only_whole(tmp_path: Path) -> None:
    path, record = tmp_path / "x.json", {"rate": 0.25, "rows": [{"ce": None}], "largest": float("inf")}
    assert recall(path) is None
    keep(path, record)
    assert recall(path) == record
    path.write_text(path.read_text().replace("0.25", "0.26"))
    assert recall(path) is None


def test_records_that_nest_without_end_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[" * 100_000)
    with pytest.raises(KernelamError, match=r"x\.json is damaged: "):
        read_record(tmp_path / "x.json", "")
