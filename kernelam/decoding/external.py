"""Decoding by Kaldi's own latgen-faster-mapped, where there is one."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, BinaryIO, cast

from kernelam.decoding.likelihoods import check_likelihoods
from kernelam.decoding.search import Beams
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.ark import write_matrix
from kernelam.kaldi.lattices import read_lattices
from kernelam.models.base import AcousticModel
from kernelam.progress import progress, say, warn

PROGRAM = "latgen-faster-mapped"


def find_program() -> str:
    """Kaldi's decoder, on the PATH or where KALDI_ROOT is compiled."""
    root = os.environ.get("KALDI_ROOT")
    found = shutil.which(PROGRAM) or (shutil.which(PROGRAM, path=f"{root}/src/bin") if root else None)
    if found is None:
        place = f"{root}/src/bin" if root else "a KALDI_ROOT, which is not set"
        raise KernelamError(f"--decoder kaldi: there is no {PROGRAM} on the PATH, nor in {place}")
    return found


def decode_by_kaldi(
    data: Path, model: AcousticModel, transitions: Path, graph: Path, scale: float, beams: Beams, out: Path
) -> None:
    """Write the lattices that latgen-faster-mapped makes of the model's likelihoods; those it lost are named."""
    features = model.open(data)
    command = [
        find_program(),
        f"--acoustic-scale={scale}",
        f"--beam={beams.beam}",
        f"--lattice-beam={beams.lattice_beam}",
        f"--max-active={beams.max_active}",
        f"--min-active={beams.min_active}",
        "--allow-partial=true",
        f"--word-symbol-table={graph / 'words.txt'}",
        *map(str, (transitions, graph / "HCLG.fst")),
        *("ark:-", "ark:-"),
    ]
    with replacing(out) as lattices:
        with _running(command, lattices) as likelihoods:
            for utt in progress(features, f"decoding {data} by Kaldi"):
                matrix = model.log_likelihoods(features[utt])
                check_likelihoods(utt, matrix, model.num_classes)
                write_matrix(likelihoods, utt, matrix)
    found = {utt for utt, _ in read_lattices(out)}
    if lost := [utt for utt in features if utt not in found]:
        warn(f"{PROGRAM} made no lattice of {len(lost)} of {len(features)} utterances: {' '.join(lost)}")
    if not found:
        raise KernelamError(f"no utterance of {data} could be decoded: see the warnings above")


@contextmanager
def _running(command: list[str], out: IO[bytes]) -> Iterator[BinaryIO]:
    """A process whose output is copied to `out` while its input is written; it ends well, or that is an error."""
    say(" ".join(command))
    handler = signal.signal(
        signal.SIGPIPE, signal.SIG_IGN
    )  # a process that ends early is an error to be told, not ours
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    failures: list[Exception] = []

    def copy(source: IO[bytes]) -> None:
        try:
            shutil.copyfileobj(source, out)
        except Exception as error:  # handed to the thread that waits
            failures.append(error)
            process.kill()

    reader = Thread(target=copy, args=(process.stdout,))
    reader.start()
    try:
        yield cast(BinaryIO, process.stdin)
        process.stdin.close()
    except BrokenPipeError:
        pass  # it ended before its input did: its status says why
    except BaseException:
        process.kill()
        raise
    finally:
        reader.join()
        status = process.wait()
        signal.signal(signal.SIGPIPE, handler)
    if failures:
        raise failures[0]
    if status < 0:
        raise KernelamError(f"{Path(command[0]).name} was killed by {signal.Signals(-status).name}")
    if status:
        raise KernelamError(f"{Path(command[0]).name} ended with status {status}; its last lines above say why")
