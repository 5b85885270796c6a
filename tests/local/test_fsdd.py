"""Spoken digits: which recording is in which set, and folders that are not the dataset."""

import subprocess
from pathlib import Path

import pytest

from kernelam.kaldi.datadir import DataDir


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "fsdd/recordings"
    folder.mkdir(parents=True)
    for digit in range(10):
        for speaker in ("ann", "bob"):
            for index in range(50):
                (folder / f"{digit}_{speaker}_{index}.wav").touch()
    (folder / "notes.txt").touch()
    return tmp_path / "fsdd"


def prepare(root: Path, *args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [root / "local/fsdd/prepare.sh", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def utterances(folder: Path) -> dict[str, list[str]]:
    return {x: DataDir(folder / "data" / x).utts for x in ("train", "heldout", "dev", "test")}


def test_sets_by_index(root, corpus, tmp_path):
    done = prepare(root, corpus, "data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sets = utterances(tmp_path)
    assert {x: len(utts) for x, utts in sets.items()} == {"train": 800, "heldout": 40, "dev": 60, "test": 100}
    assert {utt[-3:] for utt in sets["test"]} == {f"00{index}" for index in range(5)}
    data = DataDir(tmp_path / "data/test")
    assert data.text["bob-7-003"] == ["seven"]
    assert data.wav_scp["bob-7-003"].endswith("fsdd/recordings/7_bob_3.wav")
    done = subprocess.run([root / "utils/validate_data_dir.sh", "--no-feats", "data/train"], cwd=tmp_path)
    assert done.returncode == 0


def test_a_speaker_who_is_only_tested(root, corpus, tmp_path):
    done = prepare(root, "--test-speaker", "ann", corpus / "recordings", "data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sets = utterances(tmp_path)
    assert {x: len(utts) for x, utts in sets.items()} == {"train": 450, "heldout": 20, "dev": 30, "test": 500}
    assert {utt.split("-")[0] for utt in sets["test"]} == {"ann"}
    assert {utt.split("-")[0] for x in ("train", "heldout", "dev") for utt in sets[x]} == {"bob"}


def test_what_is_not_the_dataset(root, corpus, tmp_path):
    (tmp_path / "empty").mkdir()
    for args, sentence in (
        (["nowhere", "data"], "no such directory nowhere"),
        (["empty", "data"], "empty has no file such as 7_jackson_32.wav"),
        (["--test-speaker", "eve", corpus, "data"], "is of eve; speakers are ann bob"),
    ):
        done = prepare(root, *args, cwd=tmp_path)
        assert done.returncode == 1
        assert sentence in done.stderr
        assert not (tmp_path / "data").exists()
    for path in corpus.glob("recordings/*_[0-4].wav"):
        path.unlink()
    done = prepare(root, corpus, "data", cwd=tmp_path)
    assert done.returncode == 1
    assert "has no file for the test set: indices go from 0 to 49" in done.stderr
