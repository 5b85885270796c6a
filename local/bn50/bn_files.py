"""Sound, transcripts and other files of Broadcast News in folders that may be laid out in any way."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hub4_sgml import is_episode, read_episode, show_of

from kernelam.corpora import found_instead, some
from kernelam.errors import KernelamError
from kernelam.scoring.stm import Reference, read_stm

SOUNDS, TEXTS = (".sph", ".wav"), (".txt", ".sgml", ".sgm", ".stm")


def files(folders: Iterable[Path], endings: Sequence[str], without: Iterable[Path] = ()) -> Iterator[Path]:
    """Those of these endings, in any case, in the folders and all that is in them."""
    apart = [folder.resolve() for folder in without]
    for folder in folders:
        if not folder.is_dir():
            raise KernelamError(f"no such directory {folder}")
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in endings and not any(path.resolve().is_relative_to(one) for one in apart):
                yield path


def refuse(folders: Sequence[Path], wanted: str, like: str) -> KernelamError:
    """What was looked for in folders, what they have, and what comes nearest."""
    inside = sorted({path.name for folder in folders for path in folder.rglob("*") if not path.name.startswith(".")})
    return KernelamError(
        f"{' '.join(map(str, folders))}: there is no {wanted}, such as {like}; {found_instead(inside, like)}"
    )


def sounds_of(folders: Sequence[Path], without: Sequence[Path] = ()) -> dict[str, Path]:
    found = {show_of(path): path for path in files(folders, SOUNDS, without)}
    if not found:
        raise refuse(folders, "sound of Broadcast News", "a960523.sph")
    return found


def transcripts_of(
    folders: Sequence[Path], without: Sequence[Path], sounds: Container[str]
) -> dict[str, list[Reference]]:
    """By show. Where there are both, STM comes before SGML. What has no sound, as examples in papers, is not read."""
    episodes: dict[str, list[Reference]] = {}
    timed: dict[str, list[Reference]] = {}
    for path in files(folders, TEXTS, without):
        if path.suffix.lower() == ".stm":
            for one in read_stm(path):
                show = show_of(f"{one.recording}.stm")
                timed.setdefault(show, []).append(replace(one, recording=show))
        elif is_episode(path):
            show = show_of(path)
            if show in episodes and show in sounds:
                raise KernelamError(f"{path}: there is another transcript of {show}")
            episodes[show] = read_episode(path) if show in sounds else []
    if not (episodes or timed):
        raise refuse(folders, "transcript: SGML with an <Episode>, or STM", "a960523.txt")
    return episodes | timed


def found_in(folders: Sequence[Path], pattern: str, what: str) -> Path:
    """The one file or folder in `folders` whose name is like `pattern`; `what` is asked for otherwise."""
    inside = [path for folder in folders for path in sorted(folder.iterdir())]
    found = [path for path in inside if re.fullmatch(pattern, path.name.lower())]
    if len(found) != 1:
        names = some(path.name for path in found) or "none"
        raise KernelamError(f"{what} is needed: {' '.join(map(str, folders))} has {names}")
    return found[0]
