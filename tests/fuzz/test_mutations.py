"""Damaged files: each copy is refused in one sentence that names the file, or gives an object that holds up in use.

200 copies of each format; KERNELAM_MUTATIONS=10000 makes it ten thousand.
"""

import os
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from formats import FORMATS
from mutations import mutated, watched, wind_up

from kernelam.errors import KernelamError

COPIES = int(os.environ.get("KERNELAM_MUTATIONS", "200"))


@pytest.mark.parametrize("name", FORMATS)
def test_damage_is_a_sentence_or_a_sound_object(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].make(tmp_path)
    use, named = FORMATS[name].use, FORMATS[name].named or path.stem
    data = path.read_bytes()
    use(path)  # the sound file is sound; and what reading imports is imported
    outcomes: Counter[str] = Counter()
    with watched():
        for copy in range(COPIES):
            path.write_bytes(mutated(data, np.random.default_rng((zlib.crc32(name.encode()), copy))))
            wind_up()
            try:
                use(path)
                outcomes["read"] += 1
            except KernelamError as error:
                sentence = str(error)
                assert named in sentence, sentence
                assert "\n" not in sentence, sentence
                assert len(sentence) < 1000, sentence
                outcomes["refused"] += 1
            except Exception as error:
                error.add_note(f"{name}, copy {copy}")
                raise
    assert outcomes["refused"] > 0
    print(f"{name}: {dict(outcomes)}")
