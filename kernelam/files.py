"""Files that are either whole or not there."""

import fcntl
import gzip
import io
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kernelam.errors import KernelamError
from kernelam.progress import say


@contextmanager
def replacing(path: str | Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` and move it there at the end; after a failure nothing is left.

    `mode` is "wb" or "w" (UTF-8). A path that ends in .gz is compressed, with no time stamp inside, so that equal
    contents are equal bytes.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "wb") as raw:
            layers: list[Any] = [raw]
            if path.suffix == ".gz":
                layers.append(gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6))
            if "b" not in mode:
                layers.append(io.TextIOWrapper(layers[-1], encoding="utf-8", newline="\n"))
            yield layers[-1]
            layers[-1].flush()
            if "b" not in mode:
                layers.pop().detach()
            if len(layers) == 2:
                layers.pop().close()
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(partial, path)
    except OSError as error:
        if error.filename not in (None, str(partial), str(path.parent)):
            raise  # it is about a file that was being read
        raise KernelamError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # it is not there, or in no folder
            partial.unlink()


def copy_whole(source: Path, target: Path) -> None:
    """What cannot be written is told of `target`, of which `shutil` would name `source`."""
    data = source.read_bytes()
    with replacing(target) as stream:
        stream.write(data)


def reserve(path: Path, size: int, what: str, less: str) -> None:
    """A file of that size whose blocks are there: a write to mapped memory without one would end the process. Where it
    cannot be, `what` takes too much, and what takes `less` is told."""
    try:
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise KernelamError(f"{what}, and {path} cannot be made: {error.strerror}; {less}") from error


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`, which is gone at the end unless it was moved."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that died
    try:
        partial.mkdir(parents=True)
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_partial(folder: Path) -> None:
    """Remove what `replacing` and `beside` could not, in processes that were killed."""
    for path in folder.glob(".*.partial"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def is_name(name: Any) -> bool:
    """Whether it names something in a folder, and nothing elsewhere."""
    return isinstance(name, str) and name not in ("", ".", "..") and "/" not in name and "\0" not in name


def write_texts(texts: Mapping[Path, str]) -> None:
    """All of these files, or, where one cannot be written, none."""
    with ExitStack() as stack:
        for path, text in texts.items():
            stream = stack.enter_context(replacing(path, "w"))
            stream.write(text)
            stream.flush()


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold `folder`, made if need be, against other processes that do the same; the second one waits for the first.

    The lock is the kernel's and ends with the process, however it ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is at work in {folder}: waiting for it to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
