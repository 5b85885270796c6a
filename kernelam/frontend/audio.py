"""The sound of a data directory: wav.scp, with or without segments."""

import io
import math
import os
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.kaldi.datadir import DataDir, pick
from kernelam.kaldi.datatables import Segment
from kernelam.kaldi.pipes import is_pipe, output_of
from kernelam.progress import warn

Samples = NDArray[np.float32]

BLOCK = 1 << 22  # numbers read at once
SLOWEST, FASTEST = 100, 1_000_000  # Hz
LOUDEST = 1e6  # of samples in floating point, where 1 is the largest of others
ZEROS = 24  # of the filter that resamples
MAX_OVERSHOOT = 0.5  # a segment may end so many seconds behind its recording and is cut, as in Kaldi

# libsndfile reads what is there of a WAV file, and says in its log that more should be. A program that writes into a
# pipe does not know the size, and puts a number near the largest into the header.
_WRONG_SIZE = re.compile(r"^data : (\d+) \(should be (\d+)\)", re.MULTILINE)
_UNKNOWN_SIZE = 0x7FF00000


def utterances(
    data: str | Path, *, rate: float | None = None, resample: bool = False
) -> Iterator[tuple[str, Samples, float]]:
    """Utterance, samples in the scale of 16-bit integers, sampling rate; in the order of utt2spk.

    A recording of another rate than `rate` is an error, or, with `resample`, brought to it and named.
    """
    directory = DataDir(data)
    wav = directory.path / "wav.scp"
    channels = directory.reco2file_and_channel if directory.has("reco2file_and_channel") else {}

    @lru_cache(maxsize=1)  # segments of one recording follow each other
    def recording(name: str) -> tuple[Samples, float]:
        place = pick(directory.wav_scp, [name], wav)[name]
        where = f"{wav}, {name}: {place}"
        sound, own_rate = _read(place, where)
        if rate is not None and own_rate != rate and resample:
            warn(f"{where} is sampled at {own_rate:g} Hz, and resampled to {rate:g}")
            return resampled(_channel(sound, channels.get(name), where), int(own_rate), int(rate)), rate
        if rate is not None and own_rate != rate:
            raise KernelamError(
                f"{where} is sampled at {own_rate:g} Hz, but the configuration says --sample-frequency={rate:g};"
                " resample it or change the configuration"
            )
        return _channel(sound, channels.get(name), where), own_rate

    segments = directory.segments if directory.has("segments") else {}
    for utt in directory.utts:
        segment = pick(segments, [utt], directory.path / "segments")[utt] if segments else None
        samples, own_rate = recording(segment.recording if segment else utt)
        if segment:
            samples = cut(samples, own_rate, segment, f"{directory.path / 'segments'}, {utt}")
        yield utt, samples, own_rate


def _read(place: str | bytes, where: str) -> tuple[NDArray[np.float32], float]:
    """Samples × channels and the rate of a file, of the output of a command, or of what a file contains."""
    import soundfile

    source: str | io.BytesIO
    if isinstance(place, bytes) or is_pipe(place):
        content = place if isinstance(place, bytes) else output_of(place, where)
        source, size = io.BytesIO(content), len(content)
    elif os.path.isfile(place):  # also of a name that is too long to be one
        source = place
        size = Path(place).stat().st_size
    else:
        raise KernelamError(f"{where}: no such file")
    if size == 0:
        raise KernelamError(f"{where} is empty, there is no sound in it")
    try:
        with soundfile.SoundFile(source) as file:
            sound, rate, log = _samples(file), file.samplerate, file.extra_info
    except (soundfile.SoundFileError, OSError) as error:
        reason = (
            str(getattr(error, "error_string", error)).removeprefix("Error : ").rstrip(".")
            or "it is damaged or cut short"
        )
        raise KernelamError(f"{where} cannot be read as sound: {reason}") from None
    if (sizes := _WRONG_SIZE.search(log)) and int(sizes[2]) < int(sizes[1]) < _UNKNOWN_SIZE:
        raise KernelamError(f"{where} is cut short: it has {sizes[2]} of the {sizes[1]} bytes that its header promises")
    if len(sound) == 0:
        raise KernelamError(f"{where} has no samples")
    if not SLOWEST <= rate <= FASTEST:
        raise KernelamError(f"{where} is sampled at {rate} Hz, which is no rate of sound: its header is damaged")
    if not np.abs(sound).max() <= LOUDEST:  # nor if it is no number
        raise KernelamError(f"{where} has samples that are beyond all bounds, or no numbers: it is damaged")
    sound *= np.float32(32768)
    return sound, float(rate)


def _samples(file: Any) -> NDArray[np.float32]:
    """Samples × channels, block by block: memory is taken for what is there, and not for what a header promises."""
    size, blocks = max(1, BLOCK // file.channels), []
    while len(block := file.read(size, dtype="float32", always_2d=True)):
        blocks.append(block)
    return blocks[0] if len(blocks) == 1 else np.concatenate([np.zeros((0, file.channels), np.float32), *blocks])


def _channel(sound: NDArray[np.float32], file_and_channel: tuple[str, str] | None, where: str) -> Samples:
    """The one channel, or the one that reco2file_and_channel names: A or 1 is the first."""
    count = sound.shape[1]
    if count == 1:
        return sound[:, 0]
    if file_and_channel is None:
        raise KernelamError(
            f"{where} has {count} channels; name the one to use in reco2file_and_channel (A or B), or let a command"
            " in wav.scp take it out"
        )
    index = "A1B2".index(file_and_channel[1]) // 2
    if index >= count:
        raise KernelamError(f"{where} has {count} channels, but reco2file_and_channel asks for {file_and_channel[1]}")
    return np.ascontiguousarray(sound[:, index])


def resampled(samples: Samples, old: int, new: int) -> Samples:
    """The sound at another rate, without what lies above half of the lower one, by a sinc of ZEROS zeros a side."""
    up, down = new // math.gcd(old, new), old // math.gcd(old, new)
    band = min(1.0, up / down)
    half = math.ceil(ZEROS / band)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(samples, (half, half + 1)), 2 * half + 1)
    result = np.empty(-(-len(samples) * up // down), np.float32)
    for phase in range(up):  # every so manyth sample lies alike between two of the old ones
        whole, part = divmod(phase * down, up)
        t = np.arange(-half, half + 1) - part / up
        taps = band * np.sinc(band * t) * np.cos(0.5 * np.pi * t / (half + 1)) ** 2
        own = result[phase::up]
        own[:] = (around[whole::down] @ taps.astype(np.float32))[: len(own)]
    return result


def played(place: str | bytes, where: str, factor: float) -> bytes:
    """The sound of a file, or of what one contains, `factor` times as fast, as WAV of 16 bits."""
    import soundfile

    sound, rate = _read(place, where)
    ratio = Fraction(factor).limit_denominator(1000)
    columns = [resampled(column, ratio.numerator, ratio.denominator) for column in sound.T]
    whole = io.BytesIO()
    soundfile.write(whole, np.clip(np.stack(columns, axis=1) / 32768, -1, 1), int(rate), "PCM_16", format="WAV")
    return whole.getvalue()


def cut(samples: Samples, rate: float, segment: Segment, where: str) -> Samples:
    """The samples from ⌊start · rate⌋ to ⌊end · rate⌋."""
    first, last = int(segment.start * rate), int(segment.end * rate)
    if first >= len(samples) or last >= len(samples) + MAX_OVERSHOOT * rate:
        raise KernelamError(
            f"{where} is {segment.start:g}–{segment.end:g} s of {segment.recording}, which is only"
            f" {len(samples) / rate:g} s long"
        )
    return samples[first:last]
