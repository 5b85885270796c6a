"""Archives of lattices: Kaldi's own bytes, text, and damaged files."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.lattices import read_lattices, write_lattice


def encoded(entries: dict[str, Lattice], binary: bool = True) -> bytes:
    stream = io.BytesIO()
    for utt, lattice in entries.items():
        write_lattice(stream, utt, lattice, binary)
    return stream.getvalue()


def small(compact: bool = True) -> Lattice:
    """Words 5 and 6 between three states, the end of which has costs."""
    costs = np.array([0.5, -1.25, 0.0], np.float32)
    inf = np.inf
    return Lattice(
        *(np.array([0, 2, 3, 3]), np.array([5, 6, 0], np.int32), costs, -3 * costs, np.array([1, 2, 2], np.int32)),
        *(np.array([inf, inf, 0.25], np.float32), np.array([inf, inf, 0.0], np.float32)),
        *(np.array([0, 1, 1, 2, 2, 2, 2 + compact]), np.array([9, 8, 7][: 2 + compact], np.int32)),
        compact=compact,
    )


@pytest.fixture
def archive(tmp_path: Path):
    def write(data: bytes, name: str = "lat.1.gz") -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def test_kaldi_bytes_come_back(corpora: Path) -> None:
    sample = corpora / "kaldi-timit-sample"
    for path in (*sample.glob("exp/tri3/decode_*/lat.*.gz"), *sample.glob("expected/tri1/*/E_*/lat.gz")):
        assert encoded(dict(read_lattices(path, sort=False))) == gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("name", ["lat.1.gz", "lat.1"])
def test_what_is_written_is_read(archive, compact: bool, binary: bool, name: str) -> None:
    entries = {"utt-1": small(compact), "utt-2": small(compact)}
    data = encoded(entries, binary)
    found = dict(read_lattices(archive(data, name)))
    assert list(found) == list(entries)
    assert encoded(found, binary) == data
    assert found["utt-1"].compact == compact


def test_text_as_kaldi_writes_it(archive) -> None:
    assert encoded({"u": small()}, False) == (
        b"u \n0\t1\t5\t0.5,-1.5,9\n0\t2\t6\t-1.25,3.75,\n1\t2\t0\t0.0,-0.0,8\n2\t0.25,0.0,7\n\n"
    )
    ((_, lattice),) = read_lattices(archive(b"u \n3\t1\t5\t7\n1\t0.5,2\n\n"))
    assert not lattice.compact
    assert (lattice.word.tolist(), lattice.ids.tolist(), lattice.graph.tolist()) == ([7], [5], [0.0])


def test_states_in_any_order(archive) -> None:
    ((_, lattice),) = read_lattices(archive(b"u \n2\t0\t5\t1,2,3\n1\t0,0,\n0\t1\t6\t1,2,4_4\n\n"))
    assert lattice.word.tolist() == [5, 6]
    assert (lattice.next > lattice.source).all()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"u \n\n", "the lattice of u in .* has no states"),
        (b"u \n0\t1\t5\t1,2,3\n\n", "no path to a final state"),
        (b"u \n0\t1\t5\t1,2,3\n1\t0\t5\n1\n\n", "has a cycle"),
        (b"u \n0\t1\t5\t1,2,3\n1\t1,2,3", "ends inside the lattice of u"),
        (b"u \n0\tx\t5\t1,2,3\n\n", "is damaged"),
        (b"u \n0\t1\t-5\t1,2,3\n1\n\n", "is damaged"),
        (b"u \n0\t1\t5\tnan,2,3\n1\n\n", "a cost is not a number"),
        (b"u \n0\t1\t5\t1,2,3\n1\n\nu \n0\n\n", "utterance u occurs twice"),
        (b"\xff\xfe u", "no utterance id"),
    ],
)
def test_bad_text(archive, text: bytes, sentence: str) -> None:
    with pytest.raises(KernelamError, match=sentence):
        list(read_lattices(archive(text)))


def test_truncation_anywhere_is_a_sentence(archive) -> None:
    data = encoded({"utt": small()})
    for end in range(1, len(data)):
        with pytest.raises(KernelamError, match=r"lat\.1\.gz"):
            list(read_lattices(archive(data[:end])))
    path = archive(data)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(KernelamError, match=r"lat\.1\.gz cannot be read to its end"):
        list(read_lattices(path))


@pytest.mark.parametrize("binary", [True, False])
def test_damage_is_a_sentence_or_a_sound_lattice(archive, binary: bool) -> None:
    data = encoded({"one": small(), "two": small(False)}, binary)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        mutated = bytearray(data)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            mutated[place] = rng.integers(256)
        try:
            for _, lattice in read_lattices(archive(bytes(mutated), "lat")):
                assert (lattice.next > lattice.source).all()
                assert encoded({"u": lattice})
        except KernelamError:
            refused += 1
    assert 100 < refused < 400


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match="no such file"):
        list(read_lattices(tmp_path / "none"))
