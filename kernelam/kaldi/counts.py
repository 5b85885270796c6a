"""ali_train_pdf.counts: how many training frames each pdf has."""

from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.binary import KaldiReader


def read_counts(path: str | Path) -> np.ndarray:
    """Frames of each class in the training alignment: a vector in Kaldi's form."""
    reader = KaldiReader.open(path)
    with np.errstate(invalid="ignore"):  # checked below
        counts = reader.vector().astype(np.float64)
    if not reader.at_end():
        reader.fail("something behind the vector of counts")
    if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.any()):
        raise KernelamError(f"{path} does not hold counts: numbers from 0 up, not all of them 0")
    return counts


def write_counts(path: Path, counts: np.ndarray) -> None:
    with replacing(path) as stream:
        stream.write(b"[ " + b"".join(b"%d " % int(count) for count in counts) + b"]\n")
