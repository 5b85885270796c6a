"""Commands in scp files: `gunzip -c a.wav.gz |`. Nothing else runs them, so that they can be forbidden here."""

import os
import subprocess

from kernelam.errors import KernelamError

FORBIDDEN = "KERNELAM_NO_PIPES"
"""The variable of the environment that forbids commands: files of strangers could have any."""


def is_pipe(place: str) -> bool:
    """Whether an scp entry is a command whose output is meant."""
    return place.rstrip().endswith("|")


def forbid() -> None:
    """From now on, in this process and those that it starts."""
    os.environ[FORBIDDEN] = "1"


def output_of(place: str, where: str) -> bytes:
    """What the command of the scp entry `place` prints; any part of it that fails is an error."""
    if os.environ.get(FORBIDDEN, "0") not in ("", "0"):
        raise KernelamError(f"{where} is a command, and commands are forbidden by --no-pipes or {FORBIDDEN}")
    command = place.rstrip().removesuffix("|").strip()
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], stdin=subprocess.DEVNULL, capture_output=True)
    if run.returncode != 0:
        said = run.stderr.decode(errors="replace").strip().splitlines()
        raise KernelamError(
            f"{where}: the command {command!r} failed with status {run.returncode}" + (f": {said[-1]}" if said else "")
        )
    return run.stdout
