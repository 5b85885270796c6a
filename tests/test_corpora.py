"""What is known of the sound files of a corpus."""

import shlex
from pathlib import Path

import pytest

from kernelam.corpora import seconds_of

HEADER = """NIST_1A
   1024
sample_count -i 24000
sample_rate -i 8000
sample_coding -s26 pcm,embedded-shorten-v2.00
end_head
"""


def test_the_command_of_a_compressed_file_names_it_whatever_its_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/sph2pipe"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    sound = tmp_path / "disc 1; echo 'oh' $(id)/a960523.sph"
    sound.parent.mkdir()
    sound.write_bytes(HEADER.encode().ljust(1024))
    seconds, entry = seconds_of(sound)
    assert seconds == 3.0
    assert entry.endswith(" |")
    assert shlex.split(entry.removesuffix("|")) == ["sph2pipe", "-f", "wav", str(sound)]
