"""Alignments: by utterance a vector of integers (transition-ids), in text or in binary, usually gzipped."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.binary import KaldiReader, read_bytes
from kernelam.kaldi.tables import whole_number
from kernelam.progress import warn

Alignment = NDArray[np.int32]
_ITEM = np.dtype([("size", "i1"), ("value", "<i4")])


def read_alignments(path: str | Path) -> Iterator[tuple[str, Alignment]]:
    """Utterance and integers of a file `utt 1 2 3` or `utt \\0B` with the length and the items, each after its size."""
    data = read_bytes(path)
    seen: set[str] = set()
    for utterance, alignment in _entries(data, path):
        if utterance in seen:
            raise KernelamError(f"{path}: utterance {utterance} occurs twice")
        seen.add(utterance)
        yield utterance, alignment


def aligned(features: Collection[str], alignments: Collection[str], data: Path, ali: Path) -> list[str]:
    """The utterances of both; those of `data` alone are counted and named."""
    utts = [utt for utt in features if utt in alignments]
    if not utts:
        raise KernelamError(f"{data} and {ali} have no utterance in common")
    if missing := [utt for utt in features if utt not in alignments]:
        warn(f"{len(missing)} of {len(features)} utterances of {data} are not aligned in {ali}, {missing[0]} first")
    return utts


def _entries(data: bytes, path: str | Path) -> Iterator[tuple[str, Alignment]]:
    reader = KaldiReader(data, path)
    while reader.position < len(data):
        end = _key_end(reader)
        try:
            utterance = data[reader.position : end].decode()
        except UnicodeDecodeError:
            reader.fail("no utterance id")
        reader.position = min(end + 1, len(data)) if data[end : end + 1] != b"\n" else end
        reader.start()
        yield utterance, _binary(reader, utterance) if reader.binary else _line(reader, utterance)


def _key_end(reader: KaldiReader) -> int:
    ends = [reader.data.find(mark, reader.position, reader.position + 4096) for mark in (b" ", b"\t", b"\n")]
    end = min((end for end in ends if end >= 0), default=-1)
    if end <= reader.position:
        reader.fail("no utterance id")
    return end


def _binary(reader: KaldiReader, utterance: str) -> Alignment:
    length = reader.count(_ITEM.itemsize, f"length of {utterance}")
    items = np.frombuffer(reader.take(length * _ITEM.itemsize, f"alignment of {utterance}"), _ITEM)
    if (items["size"] != 4).any():
        reader.fail(f"no 32-bit integers in the alignment of {utterance}")
    return items["value"].astype(np.int32)


def _line(reader: KaldiReader, utterance: str) -> Alignment:
    end = reader.data.find(b"\n", reader.position)
    if end < 0:
        reader.fail(f"the line of {utterance} has no end")
    line, reader.position = reader.data[reader.position : end], end + 1
    try:
        return np.array(line.split(), dtype=np.int32)
    except (ValueError, OverflowError):
        raise KernelamError(f"{reader.name}: the alignment of {utterance} is not a list of integers") from None


def read_alignment_dir(directory: str | Path) -> dict[str, Alignment]:
    """All utterances of ali.1.gz … ali.<num_jobs>.gz (or the same without .gz) in `directory`."""
    directory = Path(directory)
    alignments: dict[str, Alignment] = {}
    for job in range(1, num_jobs(directory) + 1):
        path = directory / f"ali.{job}.gz"
        if not path.exists() and path.with_suffix("").exists():
            path = path.with_suffix("")
        for utterance, alignment in read_alignments(path):
            if utterance in alignments:
                raise KernelamError(f"{path}: utterance {utterance} is also in an earlier file of {directory}")
            alignments[utterance] = alignment
    return alignments


def num_jobs(directory: str | Path) -> int:
    """The number in <directory>/num_jobs."""
    path = Path(directory) / "num_jobs"
    try:
        jobs = whole_number(read_bytes(path).decode().strip())
    except ValueError:
        jobs = 0
    if not jobs:
        raise KernelamError(f"{path} does not hold a number of jobs")
    return jobs


def write_alignments(path: str | Path, alignments: Mapping[str, Alignment], binary: bool = True) -> None:
    """Write in C order of the utterances, whole or not at all; equal alignments give equal bytes."""
    with replacing(path) as stream:
        for utterance in sorted(alignments, key=str.encode):
            alignment = alignments[utterance]
            if binary:
                items = np.empty(len(alignment), _ITEM)
                items["size"], items["value"] = 4, alignment
                length = b"\x04" + len(alignment).to_bytes(4, "little")
                stream.write(utterance.encode() + b" \0B" + length + items.tobytes())
            else:
                stream.write(f"{utterance} {''.join(f'{value} ' for value in alignment)}\n".encode())
