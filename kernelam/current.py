"""What is current: a command is run again only when its inputs, its words or its outputs have changed.

The record of a command stands in `.once/` of the current folder: the digests of the files it read and of the files it
made. Time stamps decide nothing, so that an input that was made again with the same contents starts nothing.
"""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.progress import say
from kernelam.records import read_record

RECORDS = Path(".once")
_PASSED_OVER = re.compile(r"^(\..*|log|q|split\d+(utt)?|.*\.partial|__pycache__)$")
_OPTIONS_WITHOUT_EFFECT = {"--nj", "--cmd", "--num-threads"}  # they decide where and how fast, not what


class Digests:
    """SHA-256 of files, remembered by size, time of change and inode."""

    def __init__(self) -> None:
        self.path = RECORDS / "digests.json"
        try:
            self.known: dict[str, Any] = read_record(self.path, "nothing is known")
        except KernelamError:
            self.known = {}

    def file(self, path: Path) -> str:
        stat = path.stat()
        key = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        known = self.known.get(str(path))
        if not isinstance(known, list) or len(known) != 4 or known[:3] != key:
            with open(path, "rb") as stream:
                self.known[str(path)] = known = [*key, hashlib.file_digest(stream, "sha256").hexdigest()]
        return known[3]

    def tree(self, paths: Iterable[Path]) -> dict[str, str]:
        """Every file under `paths` with its digest."""
        return {str(file): self.file(file) for path in paths for file in files_under(path)}

    def save(self) -> None:
        with replacing(self.path, "w") as stream:
            stream.write(json.dumps(self.known))


def files_under(path: Path) -> Iterator[Path]:
    """A file itself, or the files of a folder in order, without logs, splits and hidden files."""
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not _PASSED_OVER.match(name))
        yield from (Path(folder) / name for name in sorted(names) if not _PASSED_OVER.match(name))


def run_once(
    inputs: Sequence[Path], outputs: Sequence[Path], command: Sequence[str], force: bool, mark: Path | None = None
) -> None:
    """Run `command` unless `outputs` are what it made of `inputs` as they are now; its failure is an error.

    `mark` is a file that is no longer true once the command runs.
    """
    if missing := [path for path in inputs if not path.exists()]:
        raise KernelamError(f"{missing[0]}, which {command[0]} reads, is not there: run the stage that makes it")
    digests = Digests()
    record = RECORDS / (re.sub(r"[^\w.-]", "_", str(outputs[0])) + ".json")
    told = {"inputs": digests.tree(inputs), "command": _essence(command)}
    made = _read(record)
    if not force and made.get("told") == told and _are_made(digests, made["outputs"], outputs):
        digests.save()
        say(f"{' '.join(map(str, outputs))}: current")
        return
    for path in [mark] if force else [record, mark]:
        if path is not None:
            path.unlink(missing_ok=True)
    every = [path for path in (*map(Path, made.get("outputs", [])), *outputs) if _is_of(path, outputs)]
    with _aside([path for path in dict.fromkeys([record, *every]) if path.is_file()] if force else []):
        status = subprocess.run(command, check=False).returncode
        if status != 0:
            raise KernelamError(f"{command[0]} failed with status {status}")
    if missing := [path for path in outputs if not path.exists()]:
        raise KernelamError(f"{command[0]} ended well but did not make {missing[0]}")
    result = {"told": told, "outputs": digests.tree(outputs)}
    with replacing(record, "w") as stream:
        stream.write(json.dumps(result, indent=1))
    digests.save()


@contextmanager
def _aside(paths: Sequence[Path]) -> Iterator[None]:
    """Files out of the way of what would find its own work done and leave it; back in their place if it fails."""
    moved = {path: path.with_name(f".{path.name}.before") for path in paths}
    for path, place in moved.items():
        path.replace(place)
    try:
        yield
    except BaseException:
        for path, place in moved.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            place.replace(path)
        raise
    for place in moved.values():
        place.unlink(missing_ok=True)


def _is_of(path: Path, outputs: Sequence[Path]) -> bool:
    """Whether it is one of them, or in one: what else a record names is not the command's."""
    return ".." not in path.parts and any(path.is_relative_to(output) for output in outputs)


def _read(record: Path) -> dict:
    try:
        made = read_record(record, "nothing was run")
    except KernelamError:
        return {}
    return made if isinstance(made.get("outputs"), dict) else {}


def _are_made(digests: Digests, made: dict[str, str], outputs: Sequence[Path]) -> bool:
    """Whether all that was made is as it was, and something of each of `outputs` that is there was made."""
    told = all(any(Path(name).is_relative_to(path) for name in made) for path in outputs if any(files_under(path)))
    return told and all(_same(digests, *item) for item in made.items())


def _same(digests: Digests, path: str, digest: str) -> bool:
    return Path(path).is_file() and digests.file(Path(path)) == digest


def _essence(command: Sequence[str]) -> list[str]:
    """The words of a command without those options, and their values, that do not change what it makes."""
    words: list[str] = []
    skip = False
    for word in command:
        if not skip and word not in _OPTIONS_WITHOUT_EFFECT:
            words.append(word)
        skip = not skip and word in _OPTIONS_WITHOUT_EFFECT
    return words
