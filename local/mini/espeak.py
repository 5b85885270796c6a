"""Speech from the espeak-ng library in the espeakng-loader wheel.

What espeak says depends on what it said before: call `say` once in a process, through processes.each_alone.
"""

import bisect
import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError

# Constants of speak_lib.h
_SYNCHRONOUS, _PHONEME_EVENTS, _UTF8 = 2, 1, 1
_RATE, _PITCH, _RANGE, _WORDGAP = 1, 3, 4, 7
_EVENT_END, _EVENT_PHONEME = 0, 7


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("name", ctypes.c_char * 8),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


@dataclass(frozen=True)
class Voice:
    """A variant of a language's voice; rate in words a minute, gap between words in units of 10 ms."""

    variant: str
    pitch: int
    rate: int
    range: int
    gap: int = 0
    language: str = field(default="en-us", kw_only=True)


@dataclass(frozen=True)
class Phone:
    """An espeak mnemonic without stress, the sample it starts at, and the word (counted from 0) it belongs to.

    espeak fuses some pairs such as "on the": then the phones of both belong to the first. Pauses have word -1.
    """

    mnemonic: str
    start: int
    word: int


@dataclass(frozen=True)
class Speech:
    samples: np.ndarray  # 16-bit
    rate: int
    phones: list[Phone]


def paths() -> tuple[Path, Path]:
    """The library and its data."""
    try:
        import espeakng_loader
    except ImportError:
        raise KernelamError(
            "the synthetic corpus needs espeak-ng (GPL), which is not installed: pip install espeakng-loader==0.2.4"
        ) from None
    return Path(espeakng_loader.get_library_path()), Path(espeakng_loader.get_data_path())


def say(words: Sequence[str], voice: Voice) -> Speech:
    """Synthesise a sentence; a word may end in a comma, which is a short pause."""
    path, data = paths()
    if not (data / "voices" / "!v" / voice.variant).is_file():  # espeak would take its default instead
        raise KernelamError(f"espeak-ng has no voice variant {voice.variant}; correct speakers.txt")
    library = ctypes.CDLL(str(path))
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, str(data).encode(), _PHONEME_EVENTS)
    if rate <= 0:
        raise KernelamError(f"espeak-ng cannot read its data in {data}; reinstall espeakng-loader")
    library.espeak_ng_SetRandSeed(ctypes.c_long(1))  # it was the time of day
    ctypes.CDLL(None).srand(1)  # the library also calls rand()
    sound: list[bytes] = []
    events: list[tuple[bytes, int, int]] = []

    def receive(samples: ctypes._Pointer, count: int, queue: ctypes._Pointer) -> int:
        """Only collects: an exception in here would not be seen."""
        if samples and count > 0:
            sound.append(ctypes.string_at(samples, 2 * count))
        for event in map(queue.__getitem__, itertools.count()):
            if event.type == _EVENT_END:
                break
            if event.type == _EVENT_PHONEME:
                events.append((event.name, event.sample, event.text_position))
        return 0

    callback = _Callback(receive)
    library.espeak_SetSynthCallback(callback)
    if library.espeak_SetVoiceByName(f"{voice.language}+{voice.variant}".encode()) != 0:
        raise KernelamError(f"espeak-ng has no voice {voice.language} in {data}; reinstall espeakng-loader")
    for parameter, value in ((_RATE, voice.rate), (_PITCH, voice.pitch), (_RANGE, voice.range), (_WORDGAP, voice.gap)):
        library.espeak_SetParameter(parameter, value, 0)
    text = " ".join(words).encode()
    library.espeak_Synth(text, len(text) + 1, 0, 0, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return Speech(np.frombuffer(b"".join(sound), dtype=np.int16), rate, _phones(words, events))


def _phones(words: Sequence[str], events: list[tuple[bytes, int, int]]) -> list[Phone]:
    starts = list(itertools.accumulate((len(word) + 1 for word in words[:-1]), initial=1))  # espeak counts from 1
    phones = []
    for name, sample, position in events:
        mnemonic = name.decode().lstrip("',%=")  # marks of stress
        word = -1 if mnemonic.startswith("_") else bisect.bisect(starts, position) - 1
        phones.append(Phone(mnemonic, sample, word))
    return phones
