"""local/mini/prepare.sh, in a copy of the toolkit with a smaller language, when the disk fills up."""

import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_mini_corpus import GRAMMAR, MINI, digests

from kernelam.errors import KernelamError

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def prepare(root: Path, tmp_path: Path) -> Run:
    """prepare(limit): run it in `tmp_path`, with files of at most `limit` KiB; four speakers say five sentences."""
    pytest.importorskip("espeakng_loader", reason="espeakng-loader is not installed")
    toolkit = tmp_path / "toolkit"
    for name in ("local/mini", "utils"):
        shutil.copytree(root / name, toolkit / name, symlinks=True)
    (toolkit / "kernelam").symlink_to(root / "kernelam")
    (toolkit / "path.sh").write_text(f"PATH={toolkit}/utils/bin:{Path(sys.executable).parent}:$PATH\n")
    mini = toolkit / "local/mini"
    (mini / "grammar.txt").write_text(GRAMMAR)
    lines = [line for line in (mini / "speakers.txt").read_text().splitlines(keepends=True) if line[0] != "#"]
    first_of_each_set = {line.split()[0]: line for line in reversed(lines)}
    (mini / "speakers.txt").write_text("".join(reversed(first_of_each_set.values())))
    for file, setting in (
        ("plan.py", 'UTTERANCES = {"train": 2, "heldout": 1, "dev": 1, "test": 1}'),
        ("make_corpus.py", "BABBLE_VOICES, BABBLE_SENTENCES = 1, 1"),
    ):
        name = setting.partition(" = ")[0]
        text, count = re.subn(rf"^{name} = .*", setting, (mini / file).read_text(), flags=re.MULTILINE)
        assert count == 1
        (mini / file).write_text(text)

    def run(limit: str = "unlimited") -> subprocess.CompletedProcess[str]:
        command = f"ulimit -f {limit}; exec {mini}/prepare.sh --nj 2 corpus data"
        return subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return run


def test_a_disk_that_fills_up(prepare: Run, tmp_path: Path) -> None:
    made = prepare()
    assert made.returncode == 0, made.stderr
    whole = {name: digests(tmp_path / name) for name in ("corpus", "data")}
    del whole["data"]["log/prepare.log"]
    wav = tmp_path / "corpus" / next(name for name in whole["corpus"] if name.endswith(".wav"))
    wav.write_bytes(b"RIFF")

    failed = prepare("30")
    assert failed.returncode == 1
    assert "make_corpus.py: cannot write corpus/" in failed.stderr
    assert ".wav: File too large\n" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (tmp_path / "corpus/manifest.json").exists()  # so that it does not count as made
    assert not list(tmp_path.glob("data/*/wav.scp"))  # nor is anything said about sounds that are half another corpus's
    assert not [path for folder in ("corpus", "data") for path in (tmp_path / folder).rglob(".*")]

    assert prepare().returncode == 0
    again = {name: digests(tmp_path / name) for name in ("corpus", "data")}
    del again["data"]["log/prepare.log"]
    assert again == whole


def test_tables_are_written_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MINI))
    from make_corpus import write_together

    files = {"a/text": ["short"], "b/text": ["long"] * 3000, "c/text": ["short"]}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(KernelamError, match="b/text: File too large"):
            write_together(tmp_path, files)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert digests(tmp_path) == {}
    write_together(tmp_path, files)
    assert len(digests(tmp_path)) == 3
