import contextlib
import gzip
import io
import multiprocessing
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import kaldiio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from kaldiio.compression_header import kAutomaticMethod, kOneByteAuto, kSpeechFeature, kTwoByteAuto

from kernelam.errors import KernelamError
from kernelam.kaldi.ark import ArkWriter, MatrixScp, read_ark, read_matrix, write_matrix

matrices = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40),
    elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False),
)


def noise(rows: int, cols: int = 13, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((rows, cols)) * 20).astype(np.float32)


def archive(key: str, matrix: np.ndarray, compress: bool = False) -> bytes:
    stream = io.BytesIO()
    write_matrix(stream, key, matrix, compress=compress)
    return stream.getvalue()


def write_pairs(folder: Path, pairs: Iterable[tuple[str, np.ndarray]], compress: bool = False) -> Path:
    with ArkWriter(folder / "a.ark", folder / "a.scp", compress=compress) as writer:
        for key, matrix in pairs:
            writer.write(key, matrix)
    return folder / "a.scp"


def write(folder: Path, table: dict[str, np.ndarray], compress: bool = False) -> Path:
    return write_pairs(folder, table.items(), compress)


@given(matrices)
def test_float_round_trip_is_exact(matrix: np.ndarray) -> None:
    ((key, read),) = read_ark(io.BytesIO(archive("utt", matrix)))
    assert key == "utt"
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, matrix)


@given(matrices)
def test_compression_error_is_within_half_a_step(matrix: np.ndarray) -> None:
    ((_, read),) = read_ark(io.BytesIO(archive("utt", matrix, compress=True)))
    span = float(matrix.max()) - float(matrix.min()) or 1 + abs(float(matrix.max()))
    grid = span / 65535
    bound = np.full(matrix.shape, 0.51 * grid)
    if len(matrix) > 8:
        quarter = len(matrix) // 4
        p0, p25, p75, p100 = np.sort(matrix.astype(np.float64), axis=0)[[0, quarter, 3 * quarter, -1]]

        def step(x: np.ndarray) -> np.ndarray:
            return np.where(x < p25, (p25 - p0) / 64, np.where(x < p75, (p75 - p25) / 128, (p100 - p75) / 63))

        near = [step(matrix + shift) for shift in (-4 * grid, 0, 4 * grid)]  # the quartiles are on the grid themselves
        bound = np.max(near, axis=0) / 2 + 4 * grid
    rounding = 4 * np.finfo(np.float32).eps * max(abs(float(matrix.min())), abs(float(matrix.max())), span) + 1e-40
    assert np.all(np.abs(read.astype(np.float64) - matrix) <= bound + rounding)


@pytest.mark.parametrize("rows", [1, 4, 8, 9, 300])
def test_compressed_bytes_are_those_of_kaldiio(rows: int) -> None:
    theirs = io.BytesIO()
    kaldiio.save_ark(theirs, {"utt": noise(rows)}, compression_method=kAutomaticMethod)
    assert archive("utt", noise(rows), compress=True) == theirs.getvalue()


@pytest.mark.parametrize("method", [None, kSpeechFeature, kTwoByteAuto, kOneByteAuto])
@pytest.mark.parametrize("rows", [9, 100])
def test_reads_what_kaldiio_writes(method: int | None, rows: int) -> None:
    stream = io.BytesIO()
    kaldiio.save_ark(stream, {"a": noise(rows), "b": noise(rows, seed=1)}, compression_method=method)
    stream.seek(0)
    theirs = dict(kaldiio.load_ark(io.BytesIO(stream.getvalue())))
    ours = dict(read_ark(stream))
    assert list(ours) == ["a", "b"]
    for key, matrix in ours.items():
        np.testing.assert_allclose(matrix, theirs[key], atol=1e-4)


@pytest.mark.parametrize("compress", [False, True])
def test_kaldiio_reads_what_we_write(tmp_path: Path, compress: bool) -> None:
    scp = write(tmp_path, {"a": noise(5), "b": noise(70)}, compress)
    theirs, ours = kaldiio.load_scp(str(scp)), MatrixScp(scp)
    for key in ("a", "b"):
        np.testing.assert_allclose(ours[key], theirs[key], atol=1e-4)


def test_a_constant_matrix_survives_compression() -> None:
    ((_, read),) = read_ark(io.BytesIO(archive("utt", np.full((20, 3), 7.0, np.float32), compress=True)))
    np.testing.assert_allclose(read, 7.0, atol=1e-3)


def test_values_too_far_apart_to_compress_are_kept(tmp_path: Path) -> None:
    matrix = np.array([[-3e38, 3e38]] * 10, np.float32)
    np.testing.assert_array_equal(MatrixScp(write(tmp_path, {"a": matrix}, compress=True))["a"], matrix)


def test_doubles_stay_doubles_if_asked(tmp_path: Path) -> None:
    stats = np.array([[1 / 3, 7], [2 / 3, 0]])
    scp = write(tmp_path, {"speaker": stats})
    np.testing.assert_array_equal(MatrixScp(scp, double=True)["speaker"], stats)
    assert MatrixScp(scp)["speaker"].dtype == np.float32
    ((_, read),) = read_ark(tmp_path / "a.ark", double=True)
    np.testing.assert_array_equal(read, stats)


def test_text_archives(tmp_path: Path) -> None:
    text = b"a  [\n  1 2.5 \n  -3 4e-1 ]\nb  [\n  5 6 ]\n"
    (tmp_path / "t.ark").write_bytes(text)
    read = dict(read_ark(tmp_path / "t.ark"))
    np.testing.assert_array_equal(read["a"], np.float32([[1, 2.5], [-3, 0.4]]))
    (tmp_path / "t.scp").write_text(f"b {tmp_path}/t.ark:{text.index(b'b ') + 2}\n")
    scp = MatrixScp(tmp_path / "t.scp")
    np.testing.assert_array_equal(scp["b"], [[5, 6]])
    assert (scp.dim, scp.num_frames("b")) == (2, 1)


def test_scp_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    matrix = noise(10, 4)
    with ArkWriter("data/a:b.ark", "a.scp") as writer:  # relative, and with a colon in it
        writer.write("utt", matrix)
    place = (tmp_path / "a.scp").read_text().split(" ", 1)[1].strip()
    assert place == "data/a:b.ark:4"
    (tmp_path / "m.mat").write_bytes(archive("k", matrix)[2:])
    (tmp_path / "b.scp").write_text(
        f"columns {place}[2:5,1:3]\nall {place}[:,:]\n"
        f"only-columns {place}[:,0:2]\npipe tail -c +5 'data/a:b.ark' | cat |\n"
        f"rows {place}[2:5]\nrows-of-all {place}[2:5,:]\nslack {place}[8:12]\nwhole m.mat\n"
    )
    scp = MatrixScp("b.scp")
    np.testing.assert_array_equal(scp["columns"], matrix[2:6, 1:4])
    np.testing.assert_array_equal(scp["only-columns"], matrix[:, 0:3])
    assert scp.num_frames("columns") == 4
    assert scp.num_frames("slack") == 2
    expectations = dict.fromkeys(("all", "pipe", "whole"), matrix) | dict.fromkeys(("rows", "rows-of-all"), matrix[2:6])
    for key, expected in {**expectations, "slack": matrix[8:]}.items():
        one = tmp_path / f"{key}.scp"
        one.write_text(next(line for line in (tmp_path / "b.scp").read_text().splitlines() if line.startswith(key)))
        np.testing.assert_array_equal(MatrixScp(one)[key], expected)
    np.testing.assert_array_equal(read_matrix("m.mat"), matrix)


def test_mapping(tmp_path: Path) -> None:
    table = {f"u{i}": noise(i + 1, seed=i) for i in range(20)}
    scp = MatrixScp(write(tmp_path, table))
    assert list(scp) == list(table)
    assert len(scp) == 20
    assert "u3" in scp
    assert "x" not in scp
    assert scp.dim == 13
    assert [scp.num_frames(key) for key in scp] == [len(m) for m in table.values()]
    for key, matrix in scp.items():
        np.testing.assert_array_equal(matrix, table[key])
    scp["u0"][:] = 0  # arrays are the caller's own
    np.testing.assert_array_equal(scp["u0"], table["u0"])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(scp))["u7"], table["u7"])
    with pytest.raises(KernelamError, match=r"a\.scp has no x"):
        scp["x"]


def test_few_files_are_open(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"{i}.mat").write_bytes(archive("k", noise(2))[2:])
    (tmp_path / "m.scp").write_text("".join(f"u{i:02d} {tmp_path}/{i}.mat\n" for i in range(40)))
    before = len(os.listdir("/proc/self/fd"))
    scp = MatrixScp(tmp_path / "m.scp")
    assert sum(len(m) for m in scp.values()) == 80
    assert len(os.listdir("/proc/self/fd")) - before <= 8


_shared: MatrixScp


def _sum_of(key: str) -> float:
    return float(_shared[key].sum())


def test_forked_processes_may_share_it(tmp_path: Path) -> None:
    global _shared
    table = {f"u{i:03d}": noise(200, seed=i) for i in range(60)}
    _shared = MatrixScp(write(tmp_path, table))
    _shared["u000"]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_sum_of, table, chunksize=1) == [float(m.sum()) for m in table.values()]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("rows", [3, 12])
def test_truncation_at_every_byte_is_a_sentence(tmp_path: Path, rows: int, compress: bool) -> None:
    scp = write(tmp_path, {"first": noise(rows, 2), "second": noise(rows, 2)}, compress)
    ark = tmp_path / "a.ark"
    whole = ark.read_bytes()
    start = whole.index(b"second")
    for size in range(start, len(whole)):
        ark.write_bytes(whole[:size])
        with pytest.raises(
            KernelamError, match=r"a\.scp, second: .*a\.ark:\d+(: the offset is behind the end| is cut short)"
        ):
            MatrixScp(scp)["second"]
        if size > start:
            with pytest.raises(KernelamError, match=r"a\.ark, (second|after first)"):
                list(read_ark(ark))
    assert len(list(read_ark(io.BytesIO(whole[:start])))) == 1


@settings(max_examples=300)
@given(st.data())
def test_damage_is_a_sentence_or_a_finite_matrix(data: st.DataObject) -> None:
    damaged = bytearray(archive("utt", noise(12, 3), data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, 40))] = data.draw(st.integers(0, 255))
    try:
        for _, matrix in read_ark(io.BytesIO(bytes(damaged))):
            assert np.isfinite(matrix).all()
    except KernelamError:
        pass


@given(st.binary(max_size=200))
def test_garbage_is_a_sentence(garbage: bytes) -> None:
    with contextlib.suppress(KernelamError):
        list(read_ark(io.BytesIO(garbage)))


@given(st.text(alphabet="a [];\n0123.-en", max_size=60))
def test_text_garbage_is_a_sentence(garbage: str) -> None:
    with contextlib.suppress(KernelamError):
        list(read_ark(io.BytesIO(b"utt " + garbage.encode())))


BAD = {
    "RIFF....": (b"RIFF....", "is not a matrix"),
    "a vector": (b"\0BFV \4\1\0\0\0\0\0\0\0", "holds a vector, not a matrix"),
    "integers": (b"\0B\4\2\0\0\0\4\1\0\0\0\4\2\0\0\0", "holds an integer vector, not a matrix"),
    "no rows": (b"\0BFM \4\0\0\0\0\4\0\0\0\0", "has no rows"),
    "negative": (b"\0BFM \4\xff\xff\xff\xff\4\1\0\0\0", "damaged header"),
    "huge": (b"\0BFM \4\xff\xff\xff\x7f\4\xff\xff\xff\x7f1234", "cut short"),
    "magic": (b"\0CFM \4\1\0\0\0\4\1\0\0\0....", "binary mark is damaged"),
    "nan": (b"\0BFM \4\2\0\0\0\4\1\0\0\0" + np.float32([0, np.nan]).tobytes(), "has nan in row 1, column 0"),
    "infinity": (b"\0BDM \4\1\0\0\0\4\1\0\0\0" + np.float64([-np.inf]).tobytes(), "has -inf in row 0, column 0"),
    "ragged text": (b" [\n 1 2\n 3 ]\n", "row 2 has 1 numbers, row 1 has 2"),
    "wordy text": (b" [\n 1 x ]\n", "not a number"),
    "open text": (b" [\n 1 2\n", "no closing ]"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_matrices(tmp_path: Path, name: str) -> None:
    content, sentence = BAD[name]
    (tmp_path / "b.ark").write_bytes(b"utt " + content)
    (tmp_path / "b.scp").write_text(f"utt {tmp_path}/b.ark:4\n")
    with pytest.raises(KernelamError) as error:
        MatrixScp(tmp_path / "b.scp")["utt"]
    assert sentence in str(error.value)
    assert f"{tmp_path}/b.scp, utt: {tmp_path}/b.ark:4" in str(error.value)
    with pytest.raises(KernelamError, match=r"b\.ark, utt") as error:
        list(read_ark(tmp_path / "b.ark"))
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("/no/such.ark:4", "cannot open /no/such.ark: No such file"),
        ("/:4", "Is a directory"),
        ("{}/a.ark:999999", "the offset is behind the end of the file, which has"),
        ("true |", "the command prints nothing"),
        ("{}/a.ark:4[9:20]", "row range does not fit, there are 10 rows"),
        ("{}/a.ark:4[5:2]", "row range does not fit"),
        ("{}/a.ark:4[0:3,0:13]", "column range does not fit"),
        ("{}/a.ark:4[a:b]", "range that is not"),
        ("{}/a.ark:4[0:" + "9" * 5000 + "]", "range that is not"),
        ("echo oops >&2; exit 3 |", "failed with status 3: oops"),
        ("false | cat |", "failed with status 1"),
    ],
)
def test_bad_places(tmp_path: Path, place: str, sentence: str) -> None:
    write(tmp_path, {"utt": noise(10)})
    (tmp_path / "b.scp").write_text(f"utt {place.format(tmp_path)}\n")
    with pytest.raises(KernelamError) as error:
        MatrixScp(tmp_path / "b.scp")["utt"]
    assert sentence in str(error.value)
    assert f"{tmp_path}/b.scp, utt: " in str(error.value)


def test_dimension_change_names_both(tmp_path: Path) -> None:
    scp = MatrixScp(write(tmp_path, {"a": noise(3, 13), "b": noise(3, 12)}))
    with pytest.raises(KernelamError, match=r"a\.scp, b: .* has 12 columns, but a has 13"):
        scp["b"]


def test_empty_and_missing_scp(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match=r"no such file .*x\.scp"):
        MatrixScp(tmp_path / "x.scp")
    (tmp_path / "x.scp").write_text("")
    with pytest.raises(KernelamError, match=r"x\.scp is empty"):
        MatrixScp(tmp_path / "x.scp").dim  # noqa: B018


@pytest.mark.parametrize(
    ("key", "matrix", "sentence"),
    [
        ("utt", np.float32([[np.inf]]), "utt has inf in row 0"),
        ("utt", np.zeros((0, 3), np.float32), "utt has no rows"),
        ("utt", np.zeros(3, np.float32), "array of 1 dimensions, not a matrix"),
        ("u t", noise(1), "cannot be a key"),
        ("", noise(1), "cannot be a key"),
        ("a", noise(1), "a would be written twice"),
    ],
)
def test_a_failed_write_leaves_nothing(tmp_path: Path, key: str, matrix: np.ndarray, sentence: str) -> None:
    with pytest.raises(KernelamError, match=sentence):
        write_pairs(tmp_path, [("a", noise(2)), (key, matrix)])
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path, root: Path) -> None:
    program = (
        "import numpy, resource, signal; from kernelam.kaldi.ark import ArkWriter\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "with ArkWriter('a.ark', 'a.scp') as writer:\n"
        "    for i in range(100): writer.write(str(i), numpy.ones((100, 13), 'f'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert "KernelamError: cannot write a.ark: File too large" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_standard_input(tmp_path: Path, root: Path) -> None:
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from kernelam.kaldi.ark import read_ark\nfor k, m in read_ark('ark:-'): print(k, m.shape)",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        input=archive("a", noise(3)) + archive("b", noise(30), compress=True),
        capture_output=True,
    )
    assert run.stdout == b"a (3, 13)\nb (30, 13)\n"


def test_records_are_copied_as_they_are(tmp_path: Path) -> None:
    scp = MatrixScp(write(tmp_path, {"a": noise(30), "b": noise(4)}, compress=True))
    with ArkWriter(tmp_path / "c.ark", tmp_path / "c.scp") as writer:
        for key in scp:
            writer.write_record(key, scp.record(key))
    assert (tmp_path / "c.ark").read_bytes() == (tmp_path / "a.ark").read_bytes()


def test_kaldi_archives(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against what Kaldi's own copy-feats and feat-to-len print: six digits."""
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    expected = Path("expected/feats")
    for scp, prints in {
        "data/dev/feats.scp": "mfcc_raw.dev2.txt",
        "data-fbank/dev/feats.scp": "fbank_raw.dev1.txt",
        "data/dev/cmvn.scp": "cmvn.dev.txt",
    }.items():
        table = MatrixScp(scp, double=True)
        for key, matrix in read_ark(expected / prints):
            np.testing.assert_allclose(table[key], matrix, rtol=6e-6, atol=1e-6)
    feats = MatrixScp("data/dev/feats.scp")
    for line in (expected / "feat-to-len.dev.txt").read_text().splitlines():
        key, frames = line.split()
        assert feats.num_frames(key) == int(frames) == len(feats[key])
    with gzip.open(expected / "mfcc_cmvn_splice5.dev1.ark.gz") as stream:
        ((_, spliced),) = read_ark(stream)
    assert spliced.shape[1] == 143
