"""From clean speech to a recording: resampling, pauses, a channel, noise, a level."""

import hashlib

import numpy as np
from scipy.signal import fftconvolve, firwin2, resample_poly

RATE = 16000
SNR_DB = (5.0, 20.0)  # the difficulty of the corpus: each utterance draws its signal-to-noise ratio from this range
CHANNEL_DB = 3.0  # standard deviation of a speaker's channel at each of its frequencies
LEVEL_DB = (-32.0, -20.0)  # speech, relative to full scale
PAUSE_S = (0.1, 0.4)  # before and after the speech


def generator(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on nothing but the seed and the name."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """16-bit samples at `rate` as floating point at RATE, full scale 1."""
    common = np.gcd(rate, RATE)
    return resample_poly(samples.astype(np.float64) / 32768, RATE // common, rate // common)


def power(signal: np.ndarray) -> float:
    return float(np.mean(signal**2))


def channel(rng: np.random.Generator) -> np.ndarray:
    """A linear-phase filter with smooth random gains."""
    frequencies = np.array([0, 250, 500, 1000, 2000, 3000, 4500, 8000])
    gains = 10 ** (rng.normal(0, CHANNEL_DB, len(frequencies)) / 20)
    return firwin2(129, frequencies, gains, fs=RATE)


def noise(rng: np.random.Generator, count: int, babble: np.ndarray) -> np.ndarray:
    """White, pink or babble noise of power 1, each as likely."""
    kind = rng.integers(3)
    if kind == 2:
        result = np.roll(babble, -rng.integers(len(babble)))[np.arange(count) % len(babble)]
    else:
        result = rng.standard_normal(count)
        if kind == 1:
            spectrum = np.fft.rfft(result)
            spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), count * 50 / RATE))  # flat below 50 Hz
            result = np.fft.irfft(spectrum, count)
    return result / np.sqrt(power(result))


def record(speech: np.ndarray, filter_: np.ndarray, babble: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """16-bit samples of the speech as a microphone heard it, and the seconds of pause in front of it."""
    before, after = (rng.uniform(*PAUSE_S, 2) * RATE).astype(int)
    heard = fftconvolve(speech, filter_, mode="same")
    signal = np.pad(heard, (before, after))
    snr = rng.uniform(*SNR_DB)
    signal += noise(rng, len(signal), babble) * np.sqrt(power(heard) / 10 ** (snr / 10))
    signal *= 10 ** (rng.uniform(*LEVEL_DB) / 20) / np.sqrt(power(heard))
    signal *= min(1.0, 0.98 / np.max(np.abs(signal)))  # never clipped
    return np.rint(signal * 32767).astype("<i2"), before / RATE
