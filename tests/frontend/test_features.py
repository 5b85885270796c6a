from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.frontend.features import Extractor


def speech(seconds: float = 1.0, rate: int = 16000) -> np.ndarray:
    """Something with formants, silence and noise."""
    rng = np.random.default_rng(0)
    t = np.arange(int(seconds * rate)) / rate
    voice = sum(np.sin(2 * np.pi * 120 * k * t) / k for k in range(1, 25)) * (np.sin(2 * np.pi * 3 * t) > 0)
    return np.round(3000 * voice + 20 * rng.standard_normal(len(t)) + 50).astype(np.float32)


def frames_of(samples: np.ndarray, length: int, shift: int, snip_edges: bool) -> np.ndarray:
    if snip_edges:
        count = 1 + (len(samples) - length) // shift if len(samples) >= length else 0
        index = np.arange(count)[:, None] * shift + np.arange(length)
        return samples[index]
    count = (len(samples) + shift // 2) // shift
    index = np.arange(count)[:, None] * shift + shift // 2 - length // 2 + np.arange(length)
    index = np.where(index < 0, -index - 1, index)
    return samples[np.where(index >= len(samples), 2 * len(samples) - 1 - index, index)]


def log_mel(
    samples: np.ndarray, bins: int, rate: int, low: float = 20, high: float = 0, snip_edges: bool = True
) -> np.ndarray:
    """Mean removed, pre-emphasis 0.97, Povey window, power spectrum, triangles equally spaced in mel, log."""
    length, shift = rate // 40, rate // 100
    fft = 1 << (length - 1).bit_length()
    frames = frames_of(samples.astype(np.float64), length, shift, snip_edges)
    frames = frames - frames.mean(axis=1, keepdims=True)
    frames = frames - 0.97 * np.hstack([frames[:, :1], frames[:, :-1]])
    frames = frames * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))) ** 0.85
    power = np.abs(np.fft.rfft(frames, fft)) ** 2

    def mel(hertz: np.ndarray | float) -> np.ndarray:
        return 1127 * np.log(1 + np.asarray(hertz) / 700)

    edges = np.linspace(mel(low), mel(rate / 2 + high if high <= 0 else high), bins + 2)
    position = mel(np.arange(fft // 2) * rate / fft)
    triangles = np.array([np.interp(position, edges[i : i + 3], [0, 1, 0], 0, 0) for i in range(bins)])
    return np.log(np.maximum(power[:, : fft // 2] @ triangles.T, np.finfo(np.float32).eps))


def cepstra(logs: np.ndarray, count: int, lifter: float = 22) -> np.ndarray:
    bins = logs.shape[1]
    k, n = np.arange(count)[:, None], np.arange(bins)
    dct = np.sqrt(2 / bins) * np.cos(np.pi / bins * (n + 0.5) * k)
    dct[0] = np.sqrt(1 / bins)
    return logs @ dct.T * (1 + 0.5 * lifter * np.sin(np.pi * np.arange(count) / lifter))


def config(folder: Path, *options: str) -> Path:
    path = folder / "x.conf"
    path.write_text("".join(f"{option}\n" for option in options))
    return path


@pytest.mark.parametrize("snip_edges", [True, False])
@pytest.mark.parametrize("rate", [8000, 16000])
def test_fbank_against_numpy(tmp_path: Path, rate: int, snip_edges: bool) -> None:
    conf = config(
        tmp_path,
        "# a comment",
        "",
        f"--sample-frequency={rate}",
        "--num_mel_bins=30  # underscores are Kaldi's too",
        f"--snip-edges={str(snip_edges).lower()}",
    )
    samples = speech(rate=rate)
    expected = log_mel(samples, 30, rate, snip_edges=snip_edges)
    np.testing.assert_allclose(Extractor("fbank", conf)(samples), expected, atol=1e-3)


def test_default_is_kaldis(tmp_path: Path) -> None:
    feats = Extractor("fbank")(speech())
    assert feats.dtype == np.float32
    np.testing.assert_allclose(feats, log_mel(speech(), 23, 16000), atol=1e-3)


@pytest.mark.parametrize(("ceps", "bins", "low", "high"), [(13, 23, 20, 0), (40, 40, 20, -400), (20, 30, 64, 7000)])
def test_mfcc_against_numpy(tmp_path: Path, ceps: int, bins: int, low: float, high: float) -> None:
    options = [f"--num-ceps={ceps}", f"--num-mel-bins={bins}", f"--low-freq={low}", f"--high-freq={high}"]
    feats = Extractor("mfcc", config(tmp_path, "--use-energy=false", "--dither=0", *options))(speech())
    np.testing.assert_allclose(feats, cepstra(log_mel(speech(), bins, 16000, low, high), ceps), atol=1e-3)


def test_dither_is_noise_that_repeats(tmp_path: Path) -> None:
    silence = np.zeros(16000, np.float32)
    once, again = (Extractor("fbank", config(tmp_path, "--dither=2"))(silence) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert not silence.any()
    noise = 2 * np.random.default_rng(1).standard_normal(160000)
    assert abs(once.mean() - log_mel(noise, 23, 16000).mean()) < 0.05


def test_energy_replaces_c0(tmp_path: Path) -> None:
    with_energy, without = (
        Extractor("mfcc", config(tmp_path, option))(speech()) for option in ("--use-energy", "--use-energy=false")
    )
    np.testing.assert_array_equal(with_energy[:, 1:], without[:, 1:])
    frames = frames_of(speech().astype(np.float64), 400, 160, True)
    energy = np.square(frames - frames.mean(axis=1, keepdims=True)).sum(axis=1)
    np.testing.assert_allclose(with_energy[:, 0], np.log(energy), atol=1e-3)


def test_repeats_and_does_not_depend_on_what_came_before() -> None:
    extract = Extractor("mfcc")
    first = extract(speech())
    extract(speech(0.5) * 2)
    np.testing.assert_array_equal(extract(speech()), first)


@pytest.mark.parametrize("snip_edges", ["true", "false"])
def test_long_sound_is_fed_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snip_edges: str) -> None:
    extract = Extractor("mfcc", config(tmp_path, f"--snip-edges={snip_edges}"))
    whole = extract(speech())
    monkeypatch.setattr("kernelam.frontend.features._CHUNK", 777)
    np.testing.assert_array_equal(extract(speech()), whole)


@pytest.mark.parametrize(("samples", "frames"), [(0, 0), (399, 0), (400, 1), (559, 1), (560, 2)])
def test_number_of_frames(samples: int, frames: int) -> None:
    assert Extractor("mfcc")(speech()[:samples]).shape == (frames, 13)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--num-mell-bins=40", "--num-mell-bins is not an option of mfcc features"),
        ("--use-log-fbank=true", "--use-log-fbank is not an option of mfcc features"),
        ("num-ceps=13", "'num-ceps=13' is not --name=value"),
        ("--num-ceps=1.5", "--num-ceps must be an integer, not '1.5'"),
        ("--low-freq=nan", "--low-freq must be a number, not 'nan'"),
        ("--use-energy=yes", "--use-energy must be true or false, not 'yes'"),
    ],
)
def test_bad_lines_name_file_and_line(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(KernelamError) as error:
        Extractor("mfcc", config(tmp_path, "# features", line))
    assert str(error.value).startswith(f"{tmp_path}/x.conf, line 2: ")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--dither=-1", "--dither=-1 is negative"),
        ("--sample-frequency=0", "--sample-frequency must be positive"),
        ("--frame-shift=0", "--frame-shift"),
        ("--frame-length=0.05", "--frame-length must cover two samples"),
        ("--window-type=round", "--window-type must be one of"),
        ("--high-freq=9000", "is not a band below 8000 Hz"),
        ("--low-freq=8000", "is not a band below 8000 Hz"),
        ("--num-mel-bins=2", "--num-mel-bins=2 is too few"),
        ("--num-mel-bins=250", "--num-mel-bins=250 is too few, or too many"),
        ("--num-ceps=24", "--num-ceps=24 must lie between 1 and --num-mel-bins"),
        ("--num-ceps=0", "--num-ceps=0 must lie"),
    ],
)
def test_values_without_meaning_name_the_file(tmp_path: Path, option: str, sentence: str) -> None:
    with pytest.raises(KernelamError) as error:
        Extractor("mfcc", config(tmp_path, option))
    assert str(error.value).startswith(f"{tmp_path}/x.conf: ")
    assert sentence in str(error.value)


def test_odd_window_without_rounding(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match="needs an even number of samples, not 401"):
        Extractor("fbank", config(tmp_path, "--frame-length=25.0625", "--round-to-power-of-two=false"))


def test_missing_config(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match=r"no such file .*y\.conf"):
        Extractor("mfcc", tmp_path / "y.conf")


@pytest.mark.parametrize(("kind", "dim"), [("mfcc", 13), ("fbank", 40)])
def test_configurations_of_the_recipe(root: Path, kind: str, dim: int) -> None:
    extract = Extractor(kind, root / f"egs/mini/s5/conf/{kind}.conf")
    assert (extract.rate, extract.frame_shift) == (16000, 0.01)
    assert extract(speech()).shape == (98, dim)
