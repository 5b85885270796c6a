"""NIST's sclite, where it is installed: Debian's `sctk sclite`, or sclite and csrfilt.sh on the PATH."""

import re
import shutil
import subprocess
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.scoring.alignment import ErrorCounts

_ROW = re.compile(r"\|\s*Sum\s*\|(.*)\|\s*$", re.MULTILINE)


def program(name: str) -> list[str] | None:
    """The command of one of NIST's programs, such as sclite or csrfilt.sh."""
    if shutil.which(name):
        return [name]
    return ["sctk", name] if shutil.which("sctk") else None


def sclite(stm: Path, ctm: Path, glm: Path | None) -> ErrorCounts:
    """Score `ctm` against `stm`, both after the rules of `glm`. Its reports are beside `ctm`."""
    score, filtering = program("sclite"), program("csrfilt.sh")
    if score is None or filtering is None:
        raise KernelamError("there is no program sclite, with csrfilt.sh, nor sctk")
    for source, name, kind, side in ((stm, "ref.stm", "stm", "ref"), (ctm, "hyp.ctm", "ctm", "hyp")):
        made = ctm.parent / name
        if glm:
            command = [*filtering, "-i", kind, "-t", side, "-dh", str(glm)]
            made.write_bytes(_run(command, ctm.parent, source.read_bytes()))
        elif source != made:
            shutil.copyfile(source, made)
    command = [*score, "-F", "-D", "-r", "ref.stm", "stm", "-h", "hyp.ctm", "ctm", "-o", "sum", "rsum", "pralign"]
    _run(command, ctm.parent)
    rows = _ROW.findall((ctm.parent / "hyp.ctm.raw").read_text(encoding="utf-8", errors="replace"))
    if not rows:
        raise KernelamError(f"sclite wrote no sum into {ctm.parent / 'hyp.ctm.raw'}")
    _, words, _, substitutions, deletions, insertions, *_ = map(int, re.findall(r"\d+", rows[-1]))
    return ErrorCounts(insertions, deletions, substitutions, words)


def _run(command: list[str], folder: Path, text: bytes | None = None) -> bytes:
    done = subprocess.run([*command], cwd=folder, input=text, capture_output=True)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise KernelamError(f"{' '.join(command[:2])} ended with status {done.returncode}: {' '.join(said[-2:])}")
    return done.stdout
