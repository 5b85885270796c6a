"""Damaged files: each copy is refused in one sentence that names the file, or gives an object that holds up in use.

200 copies of each format; KERNELAM_MUTATIONS=10000 makes it ten thousand.
"""

import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from corpus_formats import CORPUS
from formats import EXCHANGED, KALDI, Format
from mutations import edited, mutated, watched, wind_up
from own_formats import OWN
from text_formats import TEXTS

from kernelam.errors import KernelamError

FORMATS = EXCHANGED | CORPUS | TEXTS | OWN
COPIES = int(os.environ.get("KERNELAM_MUTATIONS", "200"))


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a damaged scp says is no command to run; and of small files none waits for the disk."""
    monkeypatch.setenv("KERNELAM_NO_PIPES", "1")
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
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
            rng = Random(f"{name} {copy}")
            path.write_bytes((edited if kind.text and copy % 4 else mutated)(data, rng))
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
