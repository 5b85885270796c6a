"""Commands in scp files: `gunzip -c a.wav.gz |`."""

import subprocess

from kernelam.errors import KernelamError


def is_pipe(place: str) -> bool:
    """Whether an scp entry is a command whose output is meant."""
    return place.rstrip().endswith("|")


def output_of(place: str, where: str) -> bytes:
    """What the command of the scp entry `place` prints; any part of it that fails is an error."""
    command = place.rstrip().removesuffix("|").strip()
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], stdin=subprocess.DEVNULL, capture_output=True)
    if run.returncode != 0:
        said = run.stderr.decode(errors="replace").strip().splitlines()
        raise KernelamError(
            f"{where}: the command {command!r} failed with status {run.returncode}" + (f": {said[-1]}" if said else "")
        )
    return run.stdout
