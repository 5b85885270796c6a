"""The tables of a data directory: what each is indexed by, and what its lines mean."""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import whole_number

UTT, SPK, RECO = "utterance", "speaker", "recording"
ILLEGAL_WORDS = {"<s>", "</s>", "#0"}
ODD_SPACE = re.compile(r"[^\S \t]")  # Python would split words there, Kaldi would not


class Segment(NamedTuple):
    """A stretch of a recording, in seconds."""

    recording: str
    start: float
    end: float


class Table(NamedTuple):
    """What a file is indexed by, and how the rest of a line is understood; `parse` raises ValueError."""

    kind: str
    parse: Callable[[str], Any]
    expected: str


def _location(value: str) -> str:
    if not value:
        raise ValueError
    return value


def _sound(value: str) -> str:
    if not value or value.startswith("~"):  # open() does not expand it
        raise ValueError
    return value


def _field(value: str) -> str:
    (field,) = value.split()
    return field


def _words(value: str) -> list[str]:
    words = value.split()
    if not ILLEGAL_WORDS.isdisjoint(words) or ODD_SPACE.search(value):
        raise ValueError
    return words


def _number(value: str) -> float:
    number = float(value)
    if not math.isfinite(number) or "_" in value:
        raise ValueError
    return number


def _positive(value: str) -> float:
    number = _number(value)
    if number <= 0:
        raise ValueError
    return number


def _count(value: str) -> int:
    if not (count := whole_number(value)):
        raise ValueError
    return count


def _warp(value: str) -> float:
    if not 0.5 < (warp := _number(value)) < 1.5:
        raise ValueError
    return warp


def _segment(value: str) -> Segment:
    recording, start, end = value.split()
    segment = Segment(recording, _number(start), _number(end))
    if not 0 <= segment.start < segment.end:
        raise ValueError
    return segment


def _gender(value: str) -> str:
    if value not in ("m", "f"):
        raise ValueError
    return value


def _channel(value: str) -> tuple[str, str]:
    file, channel = value.split()
    if channel not in ("A", "B", "1"):
        raise ValueError
    return file, channel


# In the order in which they are checked. Without segments, an utterance is its own recording.
TABLES = {
    "utt2spk": Table(UTT, _field, "one speaker"),
    "segments": Table(UTT, _segment, "a recording, a start and a later end in seconds"),
    "text": Table(UTT, _words, "words, none of them <s>, </s> or #0, with plain spaces between them"),
    "wav.scp": Table(RECO, _sound, "a file (not with ~) or a command and |"),
    "feats.scp": Table(UTT, _location, "the place of its features"),
    "vad.scp": Table(UTT, _location, "the place of its voice activity decisions"),
    "utt2dur": Table(UTT, _positive, "a positive number of seconds"),
    "utt2num_frames": Table(UTT, _count, "a positive number of frames"),
    "utt2lang": Table(UTT, _field, "one language"),
    "utt2uniq": Table(UTT, _field, "one identifier"),
    "utt2warp": Table(UTT, _warp, "a warping factor between 0.5 and 1.5"),
    "spk2utt": Table(SPK, str.split, "its utterances"),
    "spk2gender": Table(SPK, _gender, "m or f"),
    "spk2warp": Table(SPK, _warp, "a warping factor between 0.5 and 1.5"),
    "cmvn.scp": Table(SPK, _location, "the place of its CMVN statistics"),
    "reco2file_and_channel": Table(RECO, _channel, "a file and a channel, A or B"),
    "reco2dur": Table(RECO, _positive, "a positive number of seconds"),
}


def parsed(path: Path, table: Mapping[str, str]) -> dict[str, Any]:
    """The values of the data table `path` as their types; a sentence for the first that is malformed."""
    _, parse, expected = TABLES[path.name]
    result = {}
    for key, value in table.items():
        try:
            result[key] = parse(value)
        except ValueError:
            raise KernelamError(
                f"{path}: {key} must be followed by {expected}, not by '{value}'; correct the line,"
                f" or delete it and run {fixing(path.parent)}"
            ) from None
    return result


def fixing(path: Path) -> str:
    """The command that repairs the directory `path`."""
    return f"utils/fix_data_dir.sh {path}"
