"""What a data directory is: reading, typing, validation."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelam.errors import KernelamError
from kernelam.kaldi.datadir import DataDir, Segment

SEGMENTED = {
    "utt2spk": "a-1 a\na-2 a\nb-1 b\n",
    "spk2utt": "a a-1 a-2\nb b-1\n",
    "text": "a-1 one two\na-2\nb-1 drei größer\n",
    "segments": "a-1 r1 0 1.5\na-2 r1 1.5 3\nb-1 r2 0.25 2\n",
    "wav.scp": 'r1 sox "my file.flac" -t wav - |\nr2 wav/r2.wav\n',
    "feats.scp": "a-1 f.ark:5\na-2 f.ark:90\nb-1 f.ark:180[0:9]\n",
    "utt2dur": "a-1 1.5 \na-2 1.5 \nb-1 1.75 \n",
    "utt2num_frames": "a-1 148\na-2 148\nb-1 173\n",
    "spk2gender": "a f\nb m\n",
    "cmvn.scp": "a c.ark:2\nb c.ark:80\n",
    "reco2file_and_channel": "r1 r1 A\nr2 r2 B\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode())
    return folder


def test_typed_tables(tmp_path: Path) -> None:
    data = DataDir(write(tmp_path / "d", SEGMENTED))
    data.validate()
    assert data.utts == ["a-1", "a-2", "b-1"]
    assert data.spks == ["a", "b"]
    assert data.spk2utt == {"a": ["a-1", "a-2"], "b": ["b-1"]}
    assert data.text == {"a-1": ["one", "two"], "a-2": [], "b-1": ["drei", "größer"]}
    assert data.segments["b-1"] == Segment("r2", 0.25, 2.0)
    assert data.wav_scp["r1"] == 'sox "my file.flac" -t wav - |'
    assert data.feats_scp["b-1"] == "f.ark:180[0:9]"
    assert data.utt2dur["b-1"] == 1.75
    assert data.utt2num_frames["a-2"] == 148
    assert data.spk2gender == {"a": "f", "b": "m"}
    assert data.cmvn_scp["b"] == "c.ark:80"
    assert data.reco2file_and_channel["r2"] == ("r2", "B")


# What is wrong, in which file, and the words that the sentence must have.
BAD = [
    ("utt2spk", "a-2 a\na-1 a\nb-1 b\n", ["utt2spk, line 2", "a-1 comes after a-2", "fix_data_dir.sh"]),
    ("utt2spk", "a-1 a\na-1 a\na-2 a\nb-1 b\n", ["utt2spk, line 2", "a-1 occurs twice", "fix_data_dir.sh"]),
    ("utt2spk", "a-1 a\na-2 a x\nb-1 b\n", ["utt2spk", "a-2", "one speaker", "'a x'"]),
    ("utt2spk", "a-1 a\na-2\nb-1 b\n", ["utt2spk, line 2", "a-2 has no value"]),
    ("utt2spk", "a-1 a\n\na-2 a\nb-1 b\n", ["utt2spk, line 2", "empty line"]),
    ("utt2spk", "a-1 z\na-2 z\nb-1 b\n", ["not sorted by speaker", "a-2 of z", "b-1 of b"]),
    ("utt2spk", "", ["utt2spk is empty"]),
    ("utt2spk", None, ["not a data directory", "utt2spk"]),
    ("spk2utt", None, ["spk2utt", "fix_data_dir.sh"]),
    ("spk2utt", "a a-1\nb a-2 b-1\n", ["spk2utt", "speaker a", "a-2", "fix_data_dir.sh"]),
    ("spk2utt", "a a-2 a-1\nb b-1\n", ["spk2utt", "speaker a", "order"]),
    ("spk2utt", "a a-1 a-2\n", ["spk2utt lacks the speaker b", "utt2spk"]),
    ("text", "a-1 one\nb-1 x\n", ["text lacks the utterance a-2", "utt2spk", "fix_data_dir.sh"]),
    ("text", "a-1 one\na-2 x\na-3 x\nb-1 x\n", ["utt2spk lacks the utterance a-3", "text"]),
    ("text", "a-1 one\na-2 <s> x </s>\nb-1 x\n", ["text", "a-2", "<s>"]),
    ("text", "a-1 one\na-2 x\nb-1 #0\n", ["text", "b-1", "#0"]),
    ("text", "a-1 one\na-2 x\nb-1 x\u00a0y\n", ["text", "b-1", "plain spaces"]),
    ("text", "a-1 one\r\na-2 x\r\nb-1 x\r\n", ["text", "Windows line ends", "fix_data_dir.sh"]),
    ("text", "a-1 one\na-2 x\nb-1 x", ["text", "newline"]),
    ("text", None, ["text", "--no-text"]),
    ("text", "", ["text is empty"]),
    ("feats.scp", "a-1 f.ark:5\na-2 f.ark:90\n", ["feats.scp lacks the utterance b-1"]),
    ("feats.scp", "a-1 f.ark:5\na-2\nb-1 f.ark:9\n", ["feats.scp, line 2", "a-2 has no value"]),
    ("feats.scp", None, ["feats.scp", "--no-feats"]),
    ("wav.scp", None, ["wav.scp", "segments needs it"]),
    ("wav.scp", "r1 x.wav\n", ["wav.scp lacks the recording r2", "segments"]),
    ("wav.scp", "r1 x.wav\nr2 ~/x.wav\n", ["wav.scp", "r2", "~"]),
    ("wav.scp", "r1 x.wav\nr2 x.wav\nr3 y.wav\n", ["segments lacks the recording r3", "wav.scp"]),
    ("segments", "a-1 r1 0 1.5\na-2 r1 3 3\nb-1 r2 0 2\n", ["segments", "a-2", "later end"]),
    ("segments", "a-1 r1 0 1.5\na-2 r1 -1 3\nb-1 r2 0 2\n", ["segments", "a-2"]),
    ("segments", "a-1 r1 0 1.5\na-2 r1 1 nan\nb-1 r2 0 2\n", ["segments", "a-2"]),
    ("segments", "a-1 r1 0 1.5\na-2 r1 3\nb-1 r2 0 2\n", ["segments", "a-2"]),
    ("segments", "a-1 r1 0 1.5\nb-1 r2 0 2\n", ["segments", "a-2"]),
    ("segments", "a-1 r1 0 1.5\na-2 r9 1 3\nb-1 r2 0 2\n", ["wav.scp lacks the recording r9"]),
    ("utt2dur", "a-1 1.5\na-2 long\nb-1 2\n", ["utt2dur", "a-2", "seconds", "'long'"]),
    ("utt2dur", "a-1 1.5\na-2 0\nb-1 2\n", ["utt2dur", "a-2"]),
    ("utt2num_frames", "a-1 15\na-2 1.5\nb-1 2\n", ["utt2num_frames", "a-2", "frames"]),
    ("utt2num_frames", "a-1 15\na-2 1_0\nb-1 2\n", ["utt2num_frames", "a-2"]),
    ("spk2gender", "a f\nb x\n", ["spk2gender", "b", "m or f"]),
    ("cmvn.scp", "a c.ark:2\n", ["cmvn.scp lacks the speaker b"]),
    ("reco2file_and_channel", "r1 r1 A\nr2 r2 C\n", ["reco2file_and_channel", "r2", "A or B"]),
    ("reco2file_and_channel", "r1 r1 A\n", ["reco2file_and_channel lacks the recording r2"]),
]


@pytest.mark.parametrize(
    ("name", "content", "words"), BAD, ids=lambda value: None if isinstance(value, list) else value
)
def test_bad_input_is_a_sentence(tmp_path: Path, name: str, content: str | None, words: list[str]) -> None:
    folder = write(tmp_path / "d", {**SEGMENTED, **({name: content} if content is not None else {})})
    if content is None:
        (folder / name).unlink()
    with pytest.raises(KernelamError) as error:
        DataDir(folder).validate()
    for word in [str(folder), *words]:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_not_utf8(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", SEGMENTED)
    (folder / "text").write_bytes(b"a-1 gr\xfcn\na-2\nb-1\n")
    with pytest.raises(KernelamError, match="text is not UTF-8"):
        DataDir(folder).validate()


def test_what_may_be_missing(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", {"utt2spk": "a-1 z\nb-1 b\n", "spk2utt": "b b-1\nz a-1\n"})
    DataDir(folder).validate(feats=False, text=False, wav=False, spk_sort=False)
    (folder / "wav.scp").write_text("a-1 x.wav\n")  # not needed, but checked
    with pytest.raises(KernelamError, match=r"wav\.scp lacks the utterance b-1"):
        DataDir(folder).validate(feats=False, text=False, spk_sort=False)


def test_c_order_is_byte_order(tmp_path: Path) -> None:
    ids = ["Z", "a-b", "a1", "aa", "é", "\uffee", "\U0001f600"]
    assert ids == sorted(ids, key=str.encode)
    files = {"utt2spk": "".join(f"{i} {i}\n" for i in ids), "spk2utt": "".join(f"{i} {i}\n" for i in ids)}
    DataDir(write(tmp_path / "d", files)).validate(feats=False, text=False, wav=False)


def test_command_line(tmp_path: Path, kernelam: Callable) -> None:
    write(tmp_path / "d", SEGMENTED)
    good = kernelam("validate", "d", cwd=tmp_path)
    assert good.returncode == 0
    assert "3 utterances of 2 speakers" in good.stderr
    (tmp_path / "d" / "feats.scp").unlink()
    bad = kernelam("validate", "d", cwd=tmp_path)
    assert bad.returncode == 1
    assert bad.stderr.count("\n") == 1
    assert "d/feats.scp" in bad.stderr
    assert kernelam("validate", "--no-feats", "d", cwd=tmp_path).returncode == 0
    (tmp_path / "empty").mkdir()
    for missing in ("empty", "nowhere"):
        assert kernelam("validate", missing, cwd=tmp_path).returncode == 1


def test_real_directories(corpora: Path) -> None:
    folders = [*corpora.glob("kaldi-timit-sample/data/*"), *corpora.glob("kaldi-iban/data-fbank/*")]
    folders = [folder for folder in folders if (folder / "utt2spk").exists()]
    assert len(folders) >= 6
    for folder in folders:
        data = DataDir(folder)
        data.validate(wav=False)
        assert sum(map(len, data.spk2utt.values())) == len(data.utts) == len(data.text) == len(data.feats_scp)
