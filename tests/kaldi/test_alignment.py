from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.kaldi.alignment import read_alignment_dir, read_alignments, write_alignments

ALIGNMENTS = {"b": np.array([5, 6, 70000], np.int32), "a": np.array([1], np.int32), "c": np.array([], np.int32)}


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("name", ["ali.1.gz", "ali.1"])
def test_round_trip_in_c_order(tmp_path: Path, binary: bool, name: str) -> None:
    write_alignments(tmp_path / name, ALIGNMENTS, binary)
    back = dict(read_alignments(tmp_path / name))
    assert list(back) == ["a", "b", "c"]
    assert all(np.array_equal(back[key], ALIGNMENTS[key]) for key in back)
    first = (tmp_path / name).read_bytes()
    write_alignments(tmp_path / name, ALIGNMENTS, binary)
    assert (tmp_path / name).read_bytes() == first


def test_layouts_are_kaldis(tmp_path: Path) -> None:
    write_alignments(tmp_path / "b", {"u": np.array([2, 3], np.int32)})
    assert (tmp_path / "b").read_bytes() == b"u \0B\x04\x02\0\0\0\x04\x02\0\0\0\x04\x03\0\0\0"
    write_alignments(tmp_path / "t", {"u": np.array([2, 3], np.int32)}, binary=False)
    assert (tmp_path / "t").read_bytes() == b"u 2 3 \n"


@pytest.mark.parametrize("binary", [True, False])
def test_truncation_is_a_sentence(tmp_path: Path, binary: bool) -> None:
    path = tmp_path / "ali.1"
    write_alignments(path, {"utt1": np.arange(9, dtype=np.int32)}, binary)
    data = path.read_bytes()
    for length in range(1, len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(KernelamError, match=r"ali\.1"):
            list(read_alignments(path))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"u 1 2\nu 3\n", "utterance u occurs twice"),
        (b"u 1 x\n", "the alignment of u is not a list of integers"),
        (b"u 1 99999999999\n", "the alignment of u is not a list of integers"),
        (b"\n", "no utterance id"),
        (b"\xff\xfe 1\n", "no utterance id"),
        (b"u \0B\x04\x01\0\0\0\x08\x01\0\0\0", "no 32-bit integers"),
        (b"u \0B\x04\xff\xff\xff\x7f", "impossible length of u"),
    ],
)
def test_bad_files(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "ali").write_bytes(data)
    with pytest.raises(KernelamError, match=message):
        list(read_alignments(tmp_path / "ali"))


def test_an_empty_gzip_file(tmp_path: Path) -> None:
    """No job that ended leaves one; a text archive of no utterances is empty by right."""
    (tmp_path / "num_jobs").write_text("2\n")
    write_alignments(tmp_path / "ali.1.gz", {})
    (tmp_path / "ali.2").write_bytes(b"")
    assert read_alignment_dir(tmp_path) == {}
    (tmp_path / "ali.2.gz").write_bytes(b"")
    with pytest.raises(KernelamError, match=r"ali\.2\.gz is empty, which no gzip file is; make it again"):
        read_alignment_dir(tmp_path)


def test_directory(tmp_path: Path) -> None:
    (tmp_path / "num_jobs").write_text("2\n")
    write_alignments(tmp_path / "ali.1.gz", {"a": ALIGNMENTS["a"]})
    with pytest.raises(KernelamError, match=r"no such file .*ali\.2\.gz"):
        read_alignment_dir(tmp_path)
    write_alignments(tmp_path / "ali.2", {"b": ALIGNMENTS["b"]}, binary=False)
    assert list(read_alignment_dir(tmp_path)) == ["a", "b"]
    write_alignments(tmp_path / "ali.2", {"a": ALIGNMENTS["b"]})
    with pytest.raises(KernelamError, match="also in an earlier file"):
        read_alignment_dir(tmp_path)
    (tmp_path / "num_jobs").write_text("some\n")
    with pytest.raises(KernelamError, match="does not hold a number of jobs"):
        read_alignment_dir(tmp_path)
