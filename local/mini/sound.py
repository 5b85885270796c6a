"""From clean speech to a recording: resampling, pauses, a channel, noise, a level."""

import hashlib

import numpy as np
from numpy.random import Generator, Philox

RATE = 16000
SNR_DB = (-2.0, 12.0)
CHANNEL_HZ = np.array([0, 250, 500, 1000, 2000, 3000, 4500, 8000])
CHANNEL_DB = 3.0  # standard deviation of a speaker's channel at each of its frequencies
LEVEL_DB = (-32.0, -20.0)  # speech, relative to full scale
PAUSE_S = (0.1, 0.4)  # before and after the speech
NEAR_SNR_DB = 30.0


def generator(seed: int, name: str) -> Generator:
    """Random numbers that depend on nothing but the seed and the name."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return Generator(Philox(key=int.from_bytes(digest[:16], "little")))


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """16-bit samples at `rate` as floating point at RATE, full scale 1, by cutting the spectrum at half of RATE."""
    up, down = RATE // np.gcd(rate, RATE), rate // np.gcd(rate, RATE)
    blocks = -(-len(samples) // down) + 2  # two blocks of silence: the transform is periodic
    padded = np.zeros(blocks * down)
    padded[: len(samples)] = samples / 32768
    spectrum = np.fft.rfft(padded)[: blocks * up // 2 + 1]
    return np.fft.irfft(spectrum, blocks * up)[: -(-len(samples) * up // down)] * (up / down)


def power(signal: np.ndarray) -> float:
    return float(np.mean(signal**2))


def channel(rng: Generator) -> np.ndarray:
    """Gains in dB at CHANNEL_HZ, around 0."""
    gains = rng.normal(0, CHANNEL_DB, len(CHANNEL_HZ))
    return gains - gains.mean()


def filtered(signal: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """The signal with `gains` at CHANNEL_HZ and between them dB by dB; the phase is left alone."""
    count = 1 << (len(signal) + RATE // 10).bit_length()
    frequencies = np.fft.rfftfreq(count, 1 / RATE)
    response = 10 ** (np.interp(frequencies, CHANNEL_HZ, gains) / 20)
    return np.fft.irfft(np.fft.rfft(signal, count) * response, count)[: len(signal)]


def noise(rng: Generator, count: int, babble: np.ndarray) -> np.ndarray:
    """White, pink or babble noise of power 1, each as likely."""
    kind = rng.integers(3)
    if kind == 2:
        result = babble[(rng.integers(len(babble)) + np.arange(count)) % len(babble)]
    else:
        result = rng.standard_normal(1 << count.bit_length())  # the transform is fast for powers of 2
        if kind == 1:
            spectrum = np.fft.rfft(result)
            spectrum /= np.sqrt(np.maximum(np.fft.rfftfreq(len(result), 1 / RATE), 50))  # flat below 50 Hz
            result = np.fft.irfft(spectrum)
        result = result[:count]
    return result / np.sqrt(power(result))


def record(speech: np.ndarray, gains: np.ndarray, babble: np.ndarray, rng: Generator) -> tuple[np.ndarray, float]:
    """16-bit samples of the speech as a microphone heard it, and the seconds of pause in front of it."""
    before, after = (rng.uniform(*PAUSE_S, 2) * RATE).astype(int)
    heard = filtered(speech, gains)
    signal = np.pad(heard, (before, after))
    snr = rng.uniform(*SNR_DB)
    signal += noise(rng, len(signal), babble) * np.sqrt(power(heard) / 10 ** (snr / 10))
    signal *= 10 ** (rng.uniform(*LEVEL_DB) / 20) / np.sqrt(power(heard))
    signal *= min(1.0, 0.98 / np.max(np.abs(signal)))  # never clipped
    return np.rint(signal * 32767).astype("<i2"), before / RATE


def near(speech: np.ndarray, name: str) -> tuple[np.ndarray, int]:
    """The speech as a microphone close by heard it in a silent room, and the samples of pause before and behind it."""
    pause = RATE // 5
    signal = np.pad(speech, pause)
    noise = generator(1, name).standard_normal(len(signal))
    signal += noise * np.sqrt(power(speech) / 10 ** (NEAR_SNR_DB / 10))
    return signal * (0.3 / np.abs(signal).max()), pause


def sphere(samples: np.ndarray, rate: int = RATE) -> bytes:
    """A NIST file: a header of 1024 bytes, then 16-bit samples."""
    fields = [
        "NIST_1A",
        "   1024",
        "channel_count -i 1",
        f"sample_count -i {len(samples)}",
        f"sample_rate -i {rate}",
        "sample_n_bytes -i 2",
        "sample_byte_format -s2 01",
        "sample_sig_bits -i 16",
        "end_head",
    ]
    return "\n".join([*fields, ""]).encode().ljust(1024) + samples.astype("<i2").tobytes()
