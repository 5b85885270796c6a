"""local/timit/prepare.sh: the sets of TIMIT from its file names, in any layout; what it says of other folders."""

import shutil
import subprocess
from pathlib import Path

import pytest

PHN = "0 1600 h#\n1600 2400 q\n2400 4000 ao\n4000 4800 dcl\n4800 5600 d\n5600 8000 h#\n"
SENTENCES = ["sa1", "sa2", "si649", "si1027", "si1657", "sx37", "sx127", "sx217", "sx307", "sx397"]


def listed(root: Path, name: str) -> list[str]:
    return (root / f"local/timit/{name}_spk.list").read_text().split()


def write_corpus(folder: Path, root: Path, upper: bool = False, train: int = 462, others: int = 94) -> Path:
    """The names of the whole corpus; speakers other than those of the lists are made up, of five letters as all."""
    speakers = {"train": [f"{'fm'[n % 2]}{n:03}0" for n in range(train)]}
    speakers["test"] = [*listed(root, "dev"), *listed(root, "test"), *(f"mxx{n:02}" for n in range(others))]
    for part, names in speakers.items():
        for number, speaker in enumerate(names):
            place = f"{part}/dr{number % 8 + 1}/{speaker}"
            home = folder / (place.upper() if upper else place)
            home.mkdir(parents=True)
            for sentence in SENTENCES:
                for ending, text in ((".wav", ""), (".phn", PHN), (".txt", "0 8000 Or.\n"), (".wrd", "")):
                    name = sentence + ending
                    (home / (name.upper() if upper else name)).write_text(text)
    return folder


@pytest.fixture(scope="module")
def timit(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    return write_corpus(tmp_path_factory.mktemp("ldc") / "timit", root)


def prepare(root: Path, corpus: Path, data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(root / "local/timit/prepare.sh"), *options, str(corpus), str(data)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_sets_have_the_sizes_of_timit(root, timit, tmp_path):
    done = prepare(root, timit, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    rows = {
        x: (tmp_path / "data" / x / "utt2spk").read_text().splitlines() for x in ("train", "heldout", "dev", "test")
    }
    assert len(rows["train"]) + len(rows["heldout"]) == 3696
    assert (len(rows["dev"]), len(rows["test"])) == (400, 192)
    speakers = {x: {row.split()[1].lower() for row in lines} for x, lines in rows.items()}
    assert speakers["dev"] == set(listed(root, "dev"))
    assert speakers["test"] == set(listed(root, "test"))
    assert not speakers["train"] & speakers["heldout"]
    assert len(speakers["heldout"]) == 57
    assert not any("_SA" in row for lines in rows.values() for row in lines)
    units = [line.split()[0] for line in (tmp_path / "data/local/dict/lexicon.txt").read_text().splitlines()]
    assert len(units) == 48


@pytest.mark.parametrize(("units", "text"), [("48", "sil ao vcl d sil"), ("49", "sil q ao vcl d sil")])
def test_the_glottal_stop(root, timit, tmp_path, units, text):
    assert prepare(root, timit, tmp_path, "--units", units).returncode == 0
    assert (tmp_path / "dev/text").read_text().splitlines()[0] == f"FADG0_SI1027 {text}"
    assert len((tmp_path / "local/dict/lexicon.txt").read_text().splitlines()) == int(units)
    assert (tmp_path / "dev/phones.ctm").read_text().startswith("FADG0_SI1027 1 0.0000 0.1000 sil\n")
    assert (tmp_path / "dev/spk2gender").read_text().startswith("FADG0 f\n")


@pytest.mark.parametrize("inside", ["", "TIMIT", "timit", "timit/TIMIT", "data"])
def test_layouts(root, tmp_path, inside):
    """As it is, in a folder, as LDC93S1 is unpacked, and as copies of it are."""
    corpus = write_corpus(tmp_path / "ldc" / inside, root, upper=inside != "timit", train=9, others=0)
    for path in list(corpus.rglob("*.WAV")):
        shutil.move(path, f"{path}.wav")  # as RIFF copies of it are named
    done = prepare(root, tmp_path / "ldc", tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: ") == 1
    assert "warning: train has 72 of TIMIT's 3696 sentences" in done.stderr
    first = (tmp_path / "data/test/wav.scp").read_text().splitlines()[0]
    assert Path(first.split()[1]).is_file()


def test_folders_that_are_not_timit(root, tmp_path):
    (tmp_path / "corpora/TIMT").mkdir(parents=True)
    for folder, sentence in (
        ("nosuch", "no such directory"),
        ("corpora", "has folders train, with dr1 in it, and test; it has TIMT; TIMT comes nearest"),
        ("corpora/TIMT", "; it is empty"),
    ):
        done = prepare(root, tmp_path / folder, tmp_path / "data")
        assert done.returncode == 1
        assert sentence in done.stderr
        assert not (tmp_path / "data").exists()


def test_what_is_missing_is_listed_and_what_is_wrong_named(root, tmp_path):
    corpus = write_corpus(tmp_path / "timit", root, train=9, others=0)
    shutil.rmtree(corpus / "test/dr1/faks0")
    lost = next(corpus.glob("train/*/*/sx37.phn"))
    lost.unlink()
    done = prepare(root, corpus, tmp_path / "data")
    assert done.returncode == 0
    assert "1 of the 50 dev speakers are not there: FAKS0" in done.stderr
    assert f"1 sentences are left out, for want of {lost}" in done.stderr
    bad = next(corpus.glob("train/*/*/sx127.phn"))
    for text, sentence in (
        ("0 100 h#\n100 x aa\n", "line 2: expected two sample numbers and a phone, found '100 x aa'"),
        ("0 100 zzz\n", "line 1: zzz is no phone of TIMIT"),
        ("0 100 q\n", "has no phones"),
    ):
        bad.write_text(text)
        done = prepare(root, corpus, tmp_path / "other")
        assert done.returncode == 1
        assert f"{bad}" in done.stderr
        assert sentence in done.stderr


def test_times_that_overlap_are_cut_and_the_phones_stay(root, tmp_path):
    corpus = write_corpus(tmp_path / "timit", root, train=9, others=0)
    odd = corpus / "test/dr1/faks0/sx37.phn"
    odd.write_text("0 1600 h#\n1500 3200 ao\n3200 3200 r\n3000 4800 iy\n4800 6400 h#\n")
    done = prepare(root, corpus, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert f"1 files have phones that begin before others end, which phones.ctm has cut: {odd}" in done.stderr
    assert "FAKS0_SX37 sil ao r iy sil" in (tmp_path / "data/dev/text").read_text().splitlines()
    times = [line.split() for line in (tmp_path / "data/dev/phones.ctm").open() if line.startswith("FAKS0_SX37 ")]
    assert [row[2:] for row in times] == [
        ["0.0000", "0.1000", "sil"],
        ["0.1000", "0.1000", "ao"],
        ["0.2000", "0.1000", "iy"],
        ["0.3000", "0.1000", "sil"],
    ]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "--corpus is needed: the folder of LDC93S1"),
        (("--corpus", "nosuch"), "no such file"),
        (("--corpus", ".", "--size", "huge"), "--size is papers, laptop or lookalike, not huge"),
        (("--corpus", ".", "--states", "five"), "--states is phones or context, not five"),
        (("--corpus", ".", "--frame-shift", "7"), "--frame-shift is 5 or 10, not 7"),
    ],
)
def test_the_recipe_refuses_at_once(root, tmp_path, args, sentence):
    command = [str(root / "egs/timit/s5/run.sh"), *args]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert sentence in done.stderr
