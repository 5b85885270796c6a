import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.transforms import splice

LENGTHS = {"a": 7, "b": 1, "c": 12}


@pytest.fixture
def matrices() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {utt: rng.standard_normal((length, 3)).astype(np.float32) for utt, length in LENGTHS.items()}


@pytest.fixture
def labels() -> dict[str, np.ndarray]:
    return {utt: np.arange(length, dtype=np.int32) % 4 for utt, length in LENGTHS.items()}


@pytest.fixture
def store(tmp_path, matrices, labels) -> FrameStore:
    return FrameStore.build(tmp_path / "frames", matrices.items(), labels)


def test_store_holds_what_was_packed(store, matrices, labels):
    assert len(store) == 20
    assert store.utts == ["a", "b", "c"]
    for utt in LENGTHS:
        np.testing.assert_array_equal(store[utt], matrices[utt])
    np.testing.assert_array_equal(store.labels, np.concatenate(list(labels.values())))
    mean, deviation = store.moments(chunk=6)
    everything = np.concatenate(list(matrices.values()))
    np.testing.assert_allclose(mean, everything.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(deviation, everything.std(axis=0), rtol=1e-5)


def test_batches_splice_within_utterances_as_the_transform_does(store, matrices):
    mean, scale = np.full(3, 0.5, np.float32), np.array([1, 2, 3], np.float32)
    batches = Batches(store, (2, 4), mean, scale, torch.device("cpu"))
    expected = np.concatenate([splice((m - mean) * scale, 2, 4) for m in matrices.values()])
    got = torch.cat([x for x, _ in batches.in_order(6)])
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_shuffled_batches_are_all_frames_once_and_repeat(store):
    batches = Batches(store, (0, 0), np.zeros(3, np.float32), np.ones(3, np.float32), torch.device("cpu"))

    def epoch(seed: int, number: int) -> np.ndarray:
        return torch.cat([batches.take(part)[0] for part in batches.shuffled(6, seed, number)]).numpy()

    one = epoch(1, 1)
    assert len(one) == 20  # the last, short batch is not dropped
    np.testing.assert_array_equal(np.sort(one, axis=0), np.sort(np.asarray(store.features), axis=0))
    np.testing.assert_array_equal(one, epoch(1, 1))
    assert not np.array_equal(one, epoch(1, 2))
    assert not np.array_equal(one, epoch(2, 1))
    assert sum(map(len, batches.shuffled(6, 1, 1, frames=8))) == 8


def test_lengths_that_differ_are_named_and_nothing_is_left(tmp_path, matrices, labels):
    labels["c"] = labels["c"][:-1]
    with pytest.raises(KernelamError, match="utterance c has 12 frames of features but an alignment of 11 frames"):
        FrameStore.build(tmp_path / "frames", matrices.items(), labels)
    assert list(tmp_path.iterdir()) == []


def test_dimensions_that_differ_are_named(tmp_path, matrices):
    matrices["b"] = np.zeros((1, 4), np.float32)
    with pytest.raises(KernelamError, match="utterance b has 4 features a frame, others have 3"):
        FrameStore.build(tmp_path / "frames", matrices.items())


def test_digest_tells_contents_apart(tmp_path, matrices, labels):
    one = FrameStore.build(tmp_path / "1", matrices.items(), labels).digest
    assert one == FrameStore.build(tmp_path / "2", matrices.items(), labels).digest
    labels["a"] = labels["a"][::-1].copy()
    assert one != FrameStore.build(tmp_path / "3", matrices.items(), labels).digest
