"""Images as utterances of one frame: files of MNIST and CIFAR-10, directories, and errors in classes."""

import gzip
import importlib
import json
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.kaldi.ark import MatrixScp

HERE = Path(__file__).resolve().parents[2] / "local" / "mnist"


@pytest.fixture
def idx(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module("idx")


def idx_bytes(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_mnist(folder: Path, train: int = 12, test: int = 4) -> None:
    rng = np.random.default_rng(0)
    for part, count in (("train", train), ("t10k", test)):
        images, labels = rng.integers(256, size=(count, 28, 28)), np.arange(count) % 10
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as stream:
            stream.write(idx_bytes(images.astype(np.uint8)))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(labels.astype(np.uint8)))


def test_mnist_is_read_gzipped_or_not(idx, tmp_path):
    write_mnist(tmp_path)
    x, y = idx.read_mnist(tmp_path, "train")
    expected = np.random.default_rng(0).integers(256, size=(12, 28, 28)).reshape(12, -1) / 255
    np.testing.assert_allclose(x, expected, rtol=1e-6)
    assert y.tolist() == [*range(10), 0, 1]


def test_real_mnist(corpora, idx):
    x, y = idx.read_mnist(corpora / "mnist", "t10k")
    assert (x.shape, y[:5].tolist(), round(float(x.mean()), 4)) == ((10_000, 784), [7, 2, 1, 0, 4], 0.1325)


MISTAKES = {
    "magic": (b"\0\0\x0d\x03", "is no idx file of bytes with 3 axes: it begins with 00 00 0d 03, not 00 00 08 03"),
    "axes": (b"\0\0\x08\x01", "is no idx file of bytes with 3 axes"),
    "empty": (b"", "it begins with nothing, not"),
    "head": (bytes((0, 0, 8, 3, 0, 0)), "is cut short: its head of 16 bytes has 6"),
    "short": (bytes((0, 0, 8, 3)) + struct.pack(">3I", 2, 28, 28) + b"x" * 5, "says that it has 1568 bytes of 2 × 28"),
    "huge": (bytes((0, 0, 8, 3)) + b"\xff" * 12, "and has 0"),
    "gzip": (gzip.compress(b"x" * 1000)[:-20], "is cut short"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_files_that_are_no_idx(idx, tmp_path, name):
    data, sentence = MISTAKES[name]
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(KernelamError, match=sentence):
        idx.read_idx(tmp_path / "file", 3)


def test_sets_that_do_not_fit(idx, tmp_path):
    with pytest.raises(KernelamError, match=r"no such file .*train-images-idx3-ubyte"):
        idx.read_mnist(tmp_path, "train")
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(5, np.uint8)))
    with pytest.raises(KernelamError, match=r"has 12 images, .* 5 labels"):
        idx.read_mnist(tmp_path, "train")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(12, dtype=np.uint8)))
    with pytest.raises(KernelamError, match="train-labels-idx1-ubyte: image 11 is of class 11, which is no digit"):
        idx.read_mnist(tmp_path, "train")
    write_mnist(tmp_path, test=0)
    with pytest.raises(KernelamError, match=r"t10k-images-idx3-ubyte\.gz has no images"):
        idx.read_mnist(tmp_path, "t10k")
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((12, 32, 30), np.uint8)))
    with pytest.raises(KernelamError, match="train-images-idx3-ubyte has images of 32 × 30, not those of MNIST, of 28"):
        idx.read_mnist(tmp_path, "train")
    (tmp_path / "train-images-idx3-ubyte").unlink()
    write_mnist(tmp_path, train=1)
    with pytest.raises(KernelamError, match="has 1 training image, and some must train and others be heldout"):
        importlib.import_module("prepare").mnist(tmp_path)


@given(data=st.binary(max_size=80), axes=st.integers(1, 3))
def test_no_bytes_end_in_anything_but_a_sentence(tmp_path_factory, data, axes):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        idx = importlib.import_module("idx")
    path = tmp_path_factory.mktemp("idx") / "file"
    for some in (data, bytes((0, 0, 8, axes)) + data):
        path.write_bytes(some)
        with suppress(KernelamError):
            assert idx.read_idx(path, axes).ndim == axes


def test_cifar(idx, tmp_path):
    rows = np.random.default_rng(0).integers(10, size=(3, 3073)).astype(np.uint8)
    (tmp_path / "batch.bin").write_bytes(rows.tobytes())
    x, y = idx.read_cifar(tmp_path / "batch.bin")
    np.testing.assert_allclose(x, rows[:, 1:] / 255, rtol=1e-6)
    assert y.tolist() == rows[:, 0].tolist()
    wrong = (b"", "is empty"), (rows.tobytes()[:-1], "no multiple of 3073"), (b"\x0a" * 3073, "has no class below 10")
    for data, sentence in wrong:
        (tmp_path / "batch.bin").write_bytes(data)
        with pytest.raises(KernelamError, match=sentence):
            idx.read_cifar(tmp_path / "batch.bin")


def test_the_fifth_batch_of_cifar_is_heldout(root, tmp_path):
    rng, rows = np.random.default_rng(0), {}
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        rows[name] = rng.integers(256, size=(7, 3073), dtype=np.uint8)
        rows[name][:, 0] %= 10
        (tmp_path / f"{name}.bin").write_bytes(rows[name].tobytes())
    done = prepare(root, tmp_path, "--task", "cifar", "--corpus", ".")
    assert done.returncode == 0, done.stderr
    sets = {"train": [f"data_batch_{number}" for number in range(1, 5)], "heldout": ["data_batch_5"]}
    for part, names in {**sets, "test": ["test_batch"]}.items():
        expected = np.concatenate([rows[name] for name in names])
        images = MatrixScp(tmp_path / f"data/{part}/feats.scp")
        assert list(images) == [f"{part}-{number:06d}" for number in range(len(expected))]
        np.testing.assert_allclose(np.concatenate(list(images.values())), expected[:, 1:] / 255, rtol=1e-6)
        words = [line.split()[1] for line in (tmp_path / f"data/{part}/text").read_text().splitlines()]
        assert words == [str(row[0]) for row in expected]
        transitions = TransitionModel.load(tmp_path / f"exp/ali_{part}/final.mdl")
        paths = read_alignment_dir(tmp_path / f"exp/ali_{part}")
        assert [transitions.ali_to_pdf(paths[utt]).tolist() for utt in images] == [[row[0]] for row in expected]


def prepare(root: Path, cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "prepare.py"), *args, "data", "exp/ali"]
    return subprocess.run(command, cwd=cwd, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=300)


def test_images_are_trained_on_classified_and_reported(root, tmp_path, kernelam):
    done = prepare(root, tmp_path, "--binary")
    assert done.returncode == 0, done.stderr
    places = ["data/train", "data/heldout", "data/lang", "exp/ali_train", "exp/ali_heldout"]
    train = ["--basis", 30, "--splice", 0, "--scaling", "shared", "--penalty", 0.1, *places, "exp/pursuit"]
    assert kernelam("train", "pursuit", *train, cwd=tmp_path).returncode == 0
    assert kernelam("score", "classes", "data/heldout", "exp/pursuit/decode_heldout", cwd=tmp_path).returncode == 0
    more = ["--tuned-on", "exp/pursuit/decode_heldout", "data/test", "exp/pursuit/decode_test"]
    scored = kernelam("score", "classes", *more, cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    result = json.loads((tmp_path / "exp/pursuit/decode_test/scoring_kaldi/result.json").read_text())
    assert (result["units"], result["utterances"], result["ref_words"]) == ("classes", 397, 397)
    assert result["rate"] < 0.2
    frames = kernelam("score", "frames", "data/test", "exp/ali_test", "exp/pursuit", cwd=tmp_path).stdout
    assert f"| {100 * result['rate']:.2f} |" in frames  # an image is a frame
    report = ["report", "--title", "T", "--tuned", "heldout", "--baseline", "exp/pursuit", "exp/pursuit"]
    assert kernelam(*report, cwd=tmp_path).returncode == 0
    assert "| system | heldout error % | test error % |" in (tmp_path / "RESULTS.md").read_text()


def test_deformed_images_are_trained_on_and_inputs_that_are_none_refused(root, tmp_path, kernelam):
    done = prepare(root, tmp_path)
    assert done.returncode == 0, done.stderr
    places = ["data/train", "data/heldout", "data/lang", "exp/ali_train", "exp/ali_heldout"]
    train = ["--num-features", 300, "--bandwidth", 0.3, "--rates", 16, "--max-epochs", 2, "--splice", 0]
    for augment, model in (("", "plain"), ("deform:0.5", "deformed")):
        options = [*train, "--scaling", "shared", "--augment", augment, *places, model]
        assert kernelam("train", "kernel", *options, cwd=tmp_path).returncode == 0
    errors = [json.loads((tmp_path / name / "model.json").read_text())["heldout"] for name in ("plain", "deformed")]
    assert errors[0]["ce"] != errors[1]["ce"]
    assert errors[1]["frame_error"] < 0.3
    refused = kernelam("train", "kernel", *train, "--augment", "deform:0.5", *places, "each", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].endswith("it needs --splice 0 and --scaling shared")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--task", "mnist"], "--corpus is needed: the folder with the files of mnist"),
        (["--task", "x"], "not x"),
        (["--task", "back-rand"], "--corpus is needed: the folder with the files of MNIST"),
        (["--task", "convex", "--binary", "true"], "--binary is for tasks of ten classes; convex has two"),
    ],
)
def test_the_recipe_says_what_it_needs_before_anything_is_installed(root, args, sentence):
    done = subprocess.run([root / "egs/mnist/s5/run.sh", *args], capture_output=True, text=True, timeout=60)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert sentence in done.stderr


LOOK_ALIKE = ("--task", "convex", "--binary")


def test_what_is_not_there_is_a_sentence(root, tmp_path):
    for args in (("--task", "mnist", "--corpus", "nowhere"), ("--task", "cifar"), ("--task", "other"), LOOK_ALIKE):
        done = prepare(root, tmp_path, *args)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert not list(tmp_path.iterdir())
