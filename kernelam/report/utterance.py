"""One aligned utterance as a picture: waveform, spectrogram, phones, words, and what a model thinks of each frame."""

import base64
import struct
import zlib
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.words import WordAligner, read_rule
from kernelam.errors import KernelamError
from kernelam.frontend.audio import utterances
from kernelam.hmm.lang import Lang
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.kaldi.datadir import DataDir
from kernelam.kaldi.lattice import Lattice
from kernelam.models import is_posterior
from kernelam.models.directory import load_posterior_model
from kernelam.scoring.boundaries import Phone, read_segments
from kernelam.training.examination import class_phones

PIXELS = 5  # a frame
LEFT = 60  # for names
SHOWN = 0.1  # a phone that is never more probable than this is left out
FRAME_SHIFT = 0.01


class Row(NamedTuple):
    name: str
    height: int
    drawn: str  # with its upper left corner at 0, 0


@dataclass(frozen=True)
class Place:
    """Where an utterance and its alignment are."""

    data: Path
    lang: Path
    ali: Path


def picture(place: Place, utt: str, model: Path | None = None, transform_dir: Path | None = None) -> str:
    """As SVG, a file that needs nothing else."""
    alignment = read_alignment_dir(place.ali).get(utt)
    if alignment is None:
        raise KernelamError(f"utterance {utt} is not aligned in {place.ali}")
    size = len(alignment)
    rows = [
        *_sound(place.data, utt, size),
        Row("phones", 24, _segments(read_segments(place.ali)[utt])),
        Row("words", 24, _segments(_words(place, utt, alignment))),
    ]
    if model is not None:
        rows += _posteriors(place.data, utt, model, transform_dir, size)
    return _svg(f"{utt}: {' '.join(DataDir(place.data).text[utt])}", rows, size)


def _svg(title: str, rows: list[Row], size: int) -> str:
    width, top, parts = LEFT + PIXELS * size + 10, 30, []
    for row in rows:
        parts.append(
            f'<text x="{LEFT - 6}" y="{top + row.height / 2 + 4:g}" text-anchor="end">{escape(row.name)}</text>'
            f'<g transform="translate({LEFT},{top})">{row.drawn}</g>'
        )
        top += row.height + (6 if row.height > 14 else 0)
    seconds = "".join(
        f'<text x="{LEFT + PIXELS * frame}" y="{top + 16}">{frame * FRAME_SHIFT:g} s</text>'
        for frame in range(0, size, 50)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + 24}" width="{width}" height="{top + 24}"'
        ' font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="#fff"/><text x="{LEFT}" y="18" font-size="13">{escape(title)}</text>'
        f"{''.join(parts)}{seconds}</svg>\n"
    )


def _sound(data: Path, utt: str, size: int) -> list[Row]:
    """Waveform and spectrogram, where the data directory has the sound."""
    if not DataDir(data).has("wav.scp"):
        return []
    samples, rate = next((sound, rate) for name, sound, rate in utterances(data) if name == utt)
    width = PIXELS * size
    columns = np.array_split(samples, width)
    most = max(1.0, float(np.abs(samples).max()))
    strokes = "".join(
        f"M{x} {40 - 38 * part.max() / most:.1f}V{40 - 38 * part.min() / most:.1f}"
        for x, part in enumerate(columns)
        if len(part)
    )
    wave = f'<path d="{strokes}" stroke="#345" fill="none"/>'
    image = _image(_spectrogram(samples, rate, size), width, 160)
    return [Row("", 80, wave), Row(f"0–{rate / 2000:g} kHz", 160, image)]


def _spectrogram(samples: NDArray[np.float32], rate: float, size: int) -> NDArray[np.float64]:
    """Log power from 0 to 1, frequencies from high to low: frames of 25 ms."""
    length, shift = int(0.025 * rate), int(FRAME_SHIFT * rate)
    padded = np.pad(samples, (0, max(0, (size - 1) * shift + length - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, length)[: (size - 1) * shift + 1 : shift]
    power = np.log(np.abs(np.fft.rfft(frames * np.hanning(length), axis=1)) ** 2 + 1.0)
    low, high = np.percentile(power, [5, 99.5])
    return np.clip((power - low) / max(high - low, 1e-6), 0.0, 1.0).T[::-1]


def _segments(phones: list[Phone]) -> str:
    parts = []
    for phone in phones:
        x, width = PIXELS * phone.begin, PIXELS * (phone.end - phone.begin)
        parts.append(
            f'<rect x="{x:g}" width="{width:g}" height="24" fill="#eef2f6" stroke="#8898a8"/>'
            f'<text x="{x + width / 2:g}" y="16" text-anchor="middle">{escape(phone.name)}</text>'
        )
    return "".join(parts)


def _words(place: Place, utt: str, alignment: NDArray[np.int32]) -> list[Phone]:
    """The words of the transcript where their phones are."""
    lang, count = Lang(place.lang), len(DataDir(place.data).text[utt])
    final = np.full(count + 1, np.inf, np.float32)
    final[-1] = 0.0
    zeros = np.zeros(count, np.float32)
    said = Lattice(
        np.append(np.arange(count + 1), count),
        np.array(lang.words_to_ids(utt, DataDir(place.data).text[utt]), np.int32),
        *(zeros, zeros, np.arange(1, count + 1, dtype=np.int32), final, final),
        np.concatenate([np.zeros(2 * count + 1, np.int64), [len(alignment)]]),
        alignment,
    )
    aligner = WordAligner(TransitionModel.load(place.ali / "final.mdl"), read_rule(place.lang / "phones"))
    found, time = [], 0
    lattice = aligner.align(said, f"utterance {utt} of {place.ali}")
    for word, frames in zip(lattice.word.tolist(), lattice.lengths.tolist(), strict=True):
        if word:
            found.append(Phone(lang.word_of[word], time, time + frames))
        time += frames
    return found


def _posteriors(data: Path, utt: str, folder: Path, transform_dir: Path | None, size: int) -> list[Row]:
    """The probability of each phone at each frame, of those that are ever probable."""
    if not is_posterior(folder):
        raise KernelamError(f"{folder} holds no model of posteriors")
    model = load_posterior_model(folder)
    model.transform_dir = transform_dir
    frames = model.open(data)[utt]
    if len(frames) != size:
        raise KernelamError(f"utterance {utt} has {len(frames)} frames in {data}, {size} in its alignment")
    phones = class_phones(TransitionModel.load(folder / "final.mdl"), folder / "phones.txt")
    probable = np.exp(model.log_posteriors(frames))
    rows = []
    for name in dict.fromkeys(phones):
        share = probable[:, [number for number, phone in enumerate(phones) if phone == name]].sum(axis=1)
        if share.max() > SHOWN:
            rows.append(Row(name, 12, _image(share[None], PIXELS * size, 11)))
    return rows


def _image(values: NDArray[np.float64], width: int, height: int) -> str:
    """Values from 0, white, to 1, black, stretched to this size."""
    grey = np.round(255 * (1.0 - values)).astype(np.uint8)
    lines = b"".join(b"\0" + line.tobytes() for line in grey)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    text = base64.b64encode(png).decode()
    return f'<image width="{width}" height="{height}" preserveAspectRatio="none" href="data:image/png;base64,{text}"/>'
