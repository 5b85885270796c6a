"""Folders and sound files of a corpus: what sentences about them say, and how long a recording is."""

import difflib
import re
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

from kernelam.errors import KernelamError

NAMED = 10


def some(names: Iterable[str]) -> str:
    """Of many names, the first."""
    every = list(names)
    return " ".join(every[:NAMED]) + (" …" if len(every) > NAMED else "")


def found_instead(names: Iterable[str], *like: str) -> str:
    """The names that are there, and one that resembles the first of `like` that any does."""
    every = {name.lower(): name for name in sorted(names)}
    near = [every[match] for one in like for match in difflib.get_close_matches(one.lower(), every, 1, 0.4)]
    return (f"it has {some(every.values())}" if every else "it is empty") + "".join(
        f"; {name} comes nearest" for name in near[:1]
    )


def seconds_of(path: Path) -> tuple[float, str]:
    """How long a sound file is, and what stands in wav.scp for it."""
    import soundfile

    with path.open("rb") as stream:
        head = stream.read(1024)
    if not head.startswith(b"NIST_1A"):
        try:
            return soundfile.info(path).duration, str(path.resolve())
        except soundfile.SoundFileError as error:
            raise KernelamError(f"{path} cannot be read as sound: {error}") from None
    fields = dict(re.findall(r"^(\w+) -\w+ (.*)$", head.decode("ascii", "replace"), re.MULTILINE))
    try:
        seconds = int(fields["sample_count"]) / int(fields["sample_rate"])
    except (KeyError, ValueError, ZeroDivisionError):
        raise KernelamError(f"{path}: its SPHERE header does not tell sample_count and sample_rate") from None
    if "embedded" not in fields.get("sample_coding", "pcm"):
        return seconds, str(path.resolve())
    if not shutil.which("sph2pipe"):
        raise KernelamError(f"{path} is compressed ({fields['sample_coding']}): sph2pipe is needed on the PATH")
    return seconds, f"sph2pipe -f wav {shlex.quote(str(path.resolve()))} |"
