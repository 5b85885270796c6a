"""What steps/align_si.sh asks of kernelam align."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelam.cli.align import Boosted, pdfs_of_silence
from kernelam.models.base import AcousticModel


class Flat(AcousticModel):
    num_classes = 4

    def log_likelihoods(self, features: np.ndarray, classes: np.ndarray | None = None) -> np.ndarray:
        scores = -np.arange(4, dtype=np.float32) * features
        return scores if classes is None else scores[:, classes]


def test_boost_is_a_factor_on_likelihoods() -> None:
    features = np.array([[1.0], [2.0]], np.float32)
    boosted = Boosted(Flat(), np.array([1, 3]), 1.5)
    expected = np.exp(Flat().log_likelihoods(features)) * [1, 1.5, 1, 1.5]
    np.testing.assert_allclose(np.exp(boosted.log_likelihoods(features)), expected, rtol=1e-6)
    some = np.array([3, 0])
    np.testing.assert_allclose(np.exp(boosted.log_likelihoods(features, some)), expected[:, some], rtol=1e-6)


def test_pdfs_of_optional_silence_are_boosted_unless_speech_has_them() -> None:
    """Phone 1 is the optional silence, 2 another silence that shares pdf 0 with it, 3 speech that shares pdf 2."""
    sets = {"optional_silence": [1], "silence": [1, 2], "nonsilence": [3]}
    lang: Any = SimpleNamespace(phone_list=sets.__getitem__)
    transitions: Any = SimpleNamespace(
        phone=np.array([-1, 1, 1, 1, 2, 2, 3, 3]), pdf=np.array([-1, 0, 1, 2, 0, 3, 2, 4])
    )
    assert pdfs_of_silence(lang, transitions).tolist() == [0, 1]
