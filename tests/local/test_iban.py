"""The Iban corpus: its layouts, what is missing in them, folders that are something else, and how it is fetched."""

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from kernelam.kaldi.datadir import DataDir

SPEAKERS = ("ibf_002", "ibf_006", "ibf_008", "ibf_014", "ibm_001", "ibm_003")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "iban"
    for part, speakers in {"train": SPEAKERS, "dev": ("ibm_009",)}.items():
        utts = [f"{speaker}_{number:03}" for speaker in speakers for number in (1, 2)]
        (folder / "data" / part).mkdir(parents=True)
        (folder / "data" / part / "text").write_text("".join(f"{utt}  aku datai  \n" for utt in reversed(utts)))
        (folder / "data" / part / "utt2spk").write_text("".join(f"{utt}\t{utt[:7]}\n" for utt in utts))
        for utt in utts:
            (folder / "data/wav" / utt[:7]).mkdir(parents=True, exist_ok=True)
            (folder / "data/wav" / utt[:7] / f"{utt}.wav").touch()
    (folder / "lang/dict").mkdir(parents=True)
    (folder / "lang/dict/lexicon.txt").write_text("<sil>\tSIL\n<UNK>\tSIL\naku\ta k u\ndatai\td a t aj \naku\ta KK u\n")
    (folder / "LM").mkdir()
    (folder / "LM/iban-bp-2012.txt").write_text("aku datai ari kuching\n")
    return folder


def call(root: Path, script: str, *args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [root / "local/iban" / script, *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_sets_by_speaker(root, corpus, tmp_path):
    done = call(root, "prepare.sh", corpus, "data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    speakers = {x: sorted(DataDir(tmp_path / "data" / x).spk2utt) for x in ("train", "heldout", "dev", "test")}
    assert speakers == {
        "train": ["ibf_002", "ibm_001"],
        "heldout": ["ibf_008", "ibm_003"],
        "dev": ["ibf_006", "ibf_014"],
        "test": ["ibm_009"],
    }
    data = DataDir(tmp_path / "data/test")
    assert data.text["ibm_009_002"] == ["aku", "datai"]
    assert data.wav_scp["ibm_009_002"] == str(corpus / "data/wav/ibm_009/ibm_009_002.wav")
    assert (tmp_path / "data/test/spk2gender").read_text() == "ibm_009 m\n"
    entries = (tmp_path / "data/local/dict/lexicon.txt").read_text().splitlines()
    assert entries == ["!SIL SIL", "<UNK> SPN", "aku a KK u", "aku a k u", "datai d a t aj"]
    phones = (tmp_path / "data/local/dict/nonsilence_phones.txt").read_text().split()
    assert phones == ["KK", "a", "aj", "d", "k", "t", "u"]
    assert (tmp_path / "data/local/text").read_text() == "aku datai ari kuching\n"


def test_other_layouts(root, corpus, tmp_path):
    """In a folder, the last set called test, sound in the folders of the sets."""
    for part, speakers in {"train": SPEAKERS, "dev": ("ibm_009",)}.items():
        for speaker in speakers:
            shutil.move(corpus / "data/wav" / speaker, corpus / "data" / part)
    (corpus / "data/dev").rename(corpus / "data/test")
    done = call(root, "prepare.sh", tmp_path, "data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert DataDir(tmp_path / "data/test").wav_scp["ibm_009_001"] == str(corpus / "data/test/ibm_009/ibm_009_001.wav")


def test_missing_sound_is_counted(root, corpus, tmp_path):
    (corpus / "data/wav/ibf_002/ibf_002_002.wav").unlink()
    done = call(root, "prepare.sh", corpus, "data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of 12 utterances have no sound and are left out: ibf_002_002" in done.stderr
    assert "ibf_002_002" not in DataDir(tmp_path / "data/train").utts


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (
            "rm -r iban; mkdir -p iban/dta",
            "iban is not the Iban corpus: neither it nor a folder in it has data/train/text",
        ),
        ("rm -r iban", "no such directory iban"),
        ("rm -r iban/data/dev", "has no data/dev or data/test"),
        ("rm -r iban/lang", "has no lang/dict/lexicon.txt or lang/lexicon.txt"),
        ("rm -r iban/LM", "has no LM/iban-bp-2012.txt"),
        (
            "rm -r iban/data/wav/ibf_006 iban/data/wav/ibf_014",
            "has nothing of ibf_006 and ibf_014, who are the dev set",
        ),
        ("sed -i 2d iban/data/train/utt2spk", "utt2spk does not have the utterance ibf_002_002 of"),
        ("echo pulai >> iban/lang/dict/lexicon.txt", "lexicon.txt, line 6: pulai has no phones"),
        (
            r"printf '\377\n' >> iban/LM/iban-bp-2012.txt",
            "iban-bp-2012.txt is not UTF-8 text (invalid start byte at byte 1 of line 2)",
        ),
    ],
)
def test_what_is_wrong_is_a_sentence(root, corpus, tmp_path, harm, sentence):
    subprocess.run(harm, shell=True, cwd=tmp_path, check=True)
    done = call(root, "prepare.sh", "iban", "data", cwd=tmp_path)
    assert done.returncode == 1
    assert sentence in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs the program curl")
def test_fetched_once_and_whole(root, corpus, tmp_path):
    with tarfile.open(tmp_path / "iban.tar.gz", "w:gz") as archive:
        archive.add(corpus, "iban")
    url = f"file://{tmp_path}/iban.tar.gz"
    done = call(root, "download.sh", "--url", url, "fetched", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fetched/data/train/text").read_text() == (corpus / "data/train/text").read_text()
    assert sorted(path.name for path in (tmp_path / "fetched").iterdir() if path.is_dir()) == ["LM", "data", "lang"]
    (tmp_path / "iban.tar.gz").unlink()
    assert "fetched is there" in call(root, "download.sh", "--url", url, "fetched", cwd=tmp_path).stderr
    done = call(root, "download.sh", "--url", url, "again", cwd=tmp_path)
    assert done.returncode == 1
    assert f"cannot fetch {url}" in done.stderr
    (tmp_path / "iban.tar.gz").write_bytes(b"no archive")
    done = call(root, "download.sh", "--url", url, "again", cwd=tmp_path)
    assert (done.returncode, "again/iban.tar.gz is damaged" in done.stderr) == (1, True)
    assert not (tmp_path / "again/data").exists()
