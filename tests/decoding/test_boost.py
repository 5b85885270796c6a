"""Boosting silence, as Kaldi's alignment scripts do."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelam.decoding.align import silence_bonus


def test_pdfs_of_optional_silence_are_boosted_unless_speech_has_them() -> None:
    """Phone 1 is the optional silence, 2 another silence that shares pdf 0 with it, 3 speech that shares pdf 2."""
    sets = {"optional_silence": [1], "silence": [1, 2], "nonsilence": [3]}
    lang: Any = SimpleNamespace(phone_list=sets.__getitem__)
    phone, pdf = np.array([-1, 1, 1, 1, 2, 2, 3, 3]), np.array([-1, 0, 1, 2, 0, 3, 2, 4])
    transitions: Any = SimpleNamespace(phone=phone, pdf=pdf, num_pdfs=5)
    np.testing.assert_allclose(np.exp(silence_bonus(lang, transitions, 1.5)), [1.5, 1.5, 1, 1, 1])
