"""Damaged files: each copy is refused in one sentence that names the file, or gives an object that holds up in use.

200 copies of each format; KERNELAM_MUTATIONS=10000 makes it ten thousand.
"""

import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from formats import FORMATS, KALDI, Format
from mutations import mutated, watched, wind_up

from kernelam.errors import KernelamError

COPIES = int(os.environ.get("KERNELAM_MUTATIONS", "200"))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format(tmp_path: Path, name: str) -> None:
    damage(name, FORMATS[name], FORMATS[name].make(tmp_path))


@pytest.mark.parametrize("name", KALDI)
def test_files_of_kaldi(corpora: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / Path(name).name
    shutil.copyfile(corpora / "kaldi-timit-sample" / name, path)
    damage(name, Format(Path, KALDI[name]), path)


def damage(name: str, kind: Format, path: Path) -> None:
    data = path.read_bytes()
    kind.use(path)  # the sound file is sound; and what reading imports is imported
    outcomes: Counter[str] = Counter()
    with watched():
        for copy in range(COPIES):
            path.write_bytes(mutated(data, Random(f"{name} {copy}")))
            wind_up()
            try:
                outcomes[outcome(kind, path)] += 1
            except Exception as error:
                error.add_note(f"{name}, copy {copy}")
                raise
    print(f"{name}: {dict(outcomes)}")
    assert outcomes["refused"] > 0


def outcome(kind: Format, path: Path) -> str:
    try:
        kind.use(path)
    except KernelamError as error:
        sentence = str(error)
        assert (kind.named or path.stem) in sentence, sentence
        assert "\n" not in sentence, sentence
        assert len(sentence) < 1000, sentence
        return "refused"
    return "read"
