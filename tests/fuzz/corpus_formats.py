"""What corpora come in: data directories, sound, images; and how features are made of them."""

import gzip
import io
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile
from formats import Format, put

from kernelam.frontend.audio import utterances
from kernelam.frontend.features import Extractor
from kernelam.frontend.pipeline import Pipeline
from kernelam.kaldi.ark import ArkWriter, MatrixScp, save_matrix
from kernelam.kaldi.datachange import fix
from kernelam.kaldi.datadir import DataDir, pick
from kernelam.scoring.units import token_map

sys.path.append(str(Path(__file__).parents[2] / "local/mnist"))
from idx import read_cifar, read_mnist

RNG = np.random.default_rng(0)
RATE = 8000
UTTS = ("ann-1", "ann-2", "bob-1")
WORDS = "ann-1 a b\nann-2\nbob-1 b ß\n"


# Data directories


def per_utt(*values: object) -> str:
    return "".join(f"{utt} {value}\n" for utt, value in zip(UTTS, values, strict=True))


TABLES = {
    "utt2spk": per_utt("ann", "ann", "bob"),
    "spk2utt": "ann ann-1 ann-2\nbob bob-1\n",
    "text": WORDS,
    "segments": per_utt("r1 0 0.1", "r1 0.1 0.25", "r2 0.05 0.2"),
    "wav.scp": "r1 r1.wav\nr2 r2.wav\n",
    "reco2file_and_channel": "r1 r1 A\nr2 r2 B\n",
    "utt2dur": per_utt(0.1, 0.15, 0.15),
    "utt2num_frames": per_utt(4, 5, 6),
    "spk2gender": "ann f\nbob m\n",
    "feats.scp": "",
    "cmvn.scp": "",
}
FIXED = ("utt2spk", "text", "segments", "wav.scp")
READ = [name for name in TABLES if name != "spk2utt"]  # which is made of utt2spk where it is not checked


def make_data(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        data = folder / "data"
        data.mkdir()
        for channels in (1, 2):
            soundfile.write(f"r{channels}.wav", RNG.uniform(-0.5, 0.5, (RATE // 4, channels)), RATE)
        for table, text in TABLES.items():
            (data / table).write_text(text)
        with ArkWriter("feats.ark", data / "feats.scp") as feats, ArkWriter("cmvn.ark", data / "cmvn.scp") as stats:
            for number, utt in enumerate(UTTS):
                feats.write(utt, RNG.standard_normal((4 + number, 3)))
            for speaker in ("ann", "bob"):
                stats.write(speaker, np.array([[1.0, 2, 3, 9], [99, 99, 99, 0]]))
        (data / "feats.scp").write_text((data / "feats.scp").read_text()[:-1] + "[0:3]\n")
        return data / name

    return make


def use_data(path: Path) -> None:
    DataDir(path.parent).validate()
    use_unchecked(path)


def use_unchecked(path: Path) -> None:
    """As programs do that are not `validate`."""
    data = DataDir(path.parent)
    assert len(pick(data.text, data.utts, data.path / "text")) == len(data.utts)
    assert all(duration > 0 for duration in data.utt2dur.values())
    assert sum(data.utt2num_frames.values()) > 0
    assert set(data.spk2gender.values()) <= {"f", "m"}
    extract = Extractor("mfcc", put("mfcc.conf", b"--sample-frequency=8000\n--high-freq=3800\n")(path.parents[1]))
    for _, samples, _ in utterances(path.parent, rate=RATE, resample=True):
        assert np.isfinite(extract(samples)).all()
    features = Pipeline(norm_means=True, deltas=1).open(path.parent)
    assert all(np.isfinite(features[utt]).all() for utt in features)


def use_fixed(path: Path) -> None:
    """What is not refused is whole when it was fixed."""
    copy = path.parents[1] / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path.parent, copy / "data")
    fix(copy / "data")
    DataDir(copy / "data").validate()


def use_feats(path: Path) -> None:
    table = MatrixScp(path)
    for key in table:
        assert table[key].shape == (table.num_frames(key), table.dim)


def use_map(path: Path) -> None:
    assert len(token_map(str(path))(["a", "b", "c"])) <= 3


# Sound


def sound(container: str, subtype: str, channels: int = 1) -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, RNG.uniform(-0.5, 0.5, (1000, channels)), RATE, subtype, format=container)
    return stream.getvalue()


def use_sound(path: Path) -> None:
    """At another rate than its own."""
    data = path.parent / "sounds"
    data.mkdir(exist_ok=True)
    tables = {"wav.scp": str(path), "utt2spk": "u", "reco2file_and_channel": "u A"}
    for name, value in tables.items():
        (data / name).write_text(f"u {value}\n")
    ((_, samples, rate),) = utterances(data, rate=16000, resample=True)
    assert (samples.ndim, rate) == (1, 16000)
    assert np.isfinite(Extractor("mfcc")(samples)).all()


# Features


def use_config(kind: str) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        assert np.isfinite(Extractor(kind, path)(np.float32(1e3) * RNG.standard_normal(RATE, np.float32))).all()

    return use


def make_options(name: str, text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        model = folder / "model"
        model.mkdir(exist_ok=True)
        with ArkWriter("feats.ark", model / "feats.scp") as feats, ArkWriter("cmvn.ark", model / "cmvn.scp") as stats:
            feats.write("utt", RNG.standard_normal((6, 3)))
            stats.write("utt", np.array([[1.0, 2, 3, 6], [9, 9, 9, 0]]))
        (model / "utt2spk").write_text("utt utt\n")
        (model / name).write_text(text)
        return model / name

    return make


def use_options(path: Path) -> None:
    features = Pipeline.of_directory(path.parent).open(path.parent)
    assert features["utt"].shape == (6, features.dim)


def make_spliced(folder: Path) -> Path:
    save_matrix(folder / "model/final.mat", np.ones((2, 12)))
    return make_options("splice_opts", "--left-context=1 --right-context=2\n")(folder)


# Images


def idx(shape: tuple[int, ...], most: int) -> bytes:
    values = RNG.integers(0, most, shape).astype(np.uint8)
    return bytes((0, 0, 8, len(shape))) + struct.pack(f">{len(shape)}I", *shape) + values.tobytes()


def make_mnist(name: str, zipped: bool = False) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        files = {"train-images-idx3-ubyte": idx((3, 28, 28), 256), "train-labels-idx1-ubyte": idx((3,), 10)}
        for each, data in files.items():
            (folder / (f"{each}.gz" if zipped else each)).write_bytes(gzip.compress(data) if zipped else data)
        return folder / (f"{name}.gz" if zipped else name)

    return make


def use_mnist(path: Path) -> None:
    images, digits = read_mnist(path.parent, "train")
    assert images.shape == (len(digits), 784)
    assert 0 <= images.min(initial=0) <= images.max(initial=0) <= 1
    assert np.bincount(digits, minlength=10).size == 10


def use_cifar(path: Path) -> None:
    images, classes = read_cifar(path)
    assert images.shape == (len(classes), 3072)
    assert classes.max() < 10


MFCC = b"--use-energy=false   # as ever\n--num-mel-bins=23\n--num-ceps=13\n--sample-frequency=8000\n--low-freq=20\n"
MFCC += (
    b"--high-freq=-400\n--frame-length=25\n--frame-shift=10\n--dither=0.0\n--window-type=povey\n--cepstral-lifter=22\n"
)
MFCC += b"--snip-edges=true\n--energy-floor=1.0\n--preemphasis-coefficient=0.97\n--blackman-coeff=0.42\n"
FBANK = b"--num-mel-bins=20\n--sample-frequency=8000\n--use-log-fbank=true\n--use-power=true\n--htk-compat=false\n"
CIFAR = b"".join(bytes((label,)) + RNG.integers(0, 256, 3072).astype(np.uint8).tobytes() for label in (1, 9))

CORPUS = {
    **{f"{name} of a data directory": Format(make_data(name), use_data, "data/", text=True) for name in TABLES},
    **{f"{name}, not validated": Format(make_data(name), use_unchecked, "data/", text=True) for name in READ},
    **{f"{name}, fixed": Format(make_data(name), use_fixed, "data", text=True) for name in FIXED},
    "places of features": Format(make_data("feats.scp"), use_feats, text=True),
    "map of tokens": Format(put("map.txt", b"a x\nb y\nsil\n"), use_map, text=True),
    "RIFF": Format(put("sound.wav", sound("WAV", "PCM_16")), use_sound, "sound"),
    "RIFF of floats": Format(put("sound.wav", sound("WAV", "FLOAT", 2)), use_sound, "sound"),
    "RIFF of 24 bits": Format(put("sound.wav", sound("WAVEX", "PCM_24", 2)), use_sound, "sound"),
    "SPHERE": Format(put("sound.sph", sound("NIST", "PCM_16")), use_sound, "sound"),
    "SPHERE, µ-law": Format(put("sound.sph", sound("NIST", "ULAW", 2)), use_sound, "sound", text=True),
    "FLAC": Format(put("sound.flac", sound("FLAC", "PCM_16")), use_sound, "sound"),
    "MFCC options": Format(put("mfcc.conf", MFCC), use_config("mfcc"), text=True),
    "filterbank options": Format(put("fbank.conf", FBANK), use_config("fbank"), text=True),
    "CMVN options": Format(make_options("cmvn_opts", "--norm-means=true --norm-vars=true\n"), use_options, text=True),
    "delta options": Format(make_options("delta_opts", "--delta-order=2 --delta-window=3\n"), use_options, text=True),
    "splicing options": Format(make_spliced, use_options, "model/", text=True),
    "MNIST images": Format(make_mnist("train-images-idx3-ubyte"), use_mnist),
    "MNIST labels": Format(make_mnist("train-labels-idx1-ubyte"), use_mnist),
    "MNIST images, gzipped": Format(make_mnist("train-images-idx3-ubyte", zipped=True), use_mnist, "train-images"),
    "CIFAR batch": Format(put("data_batch_1.bin", CIFAR), use_cifar),
}
