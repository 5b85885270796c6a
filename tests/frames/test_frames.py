import tracemalloc

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frames import order
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.transforms import splice
from kernelam.randomness import stream

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


@pytest.mark.parametrize("total", [1, 2, 3, 5, 64, 65, 1000, 4097])
def test_an_order_that_is_a_function_has_every_frame_once(total):
    keys = stream(1, "test").integers(2**63, size=order.ROUNDS, dtype=np.uint64)
    assert sorted(order.permuted(np.arange(total), total, keys)) == list(range(total))


def test_some_frames_of_very_many_take_memory_for_some():
    tracemalloc.start()
    found = order.some(order.LISTED + 1, 1000, stream(1, "test"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(set(found.tolist())) == 1000
    assert peak < 1_000_000
    assert sorted(order.some(7, 9, stream(1, "test"))) == list(range(7))


def test_an_order_that_is_a_function_looks_random():
    total, keys = 100_003, stream(2, "test").integers(2**63, size=order.ROUNDS, dtype=np.uint64)
    found = order.permuted(np.arange(total), total, keys)
    assert abs(np.corrcoef(np.arange(total), found)[0, 1]) < 4 / total**0.5
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4 / total**0.5
    cells, _, _ = np.histogram2d(np.arange(total), found, bins=20)
    expected = total / 400
    assert abs(((cells - expected) ** 2 / expected).sum() - 361) < 5 * (2 * 361) ** 0.5  # χ² of 19 × 19 degrees


@pytest.mark.parametrize("size", [6, 7, 100])
def test_batches_are_the_same_frames_whatever_pieces_their_order_comes_in(store, monkeypatch, size):
    batches = Batches(store, (0, 0), np.zeros(3, np.float32), np.ones(3, np.float32), torch.device("cpu"))
    monkeypatch.setattr(order, "LISTED", 0)
    monkeypatch.setattr(order, "CHUNK", 5)
    found = list(batches.shuffled(size, 3, 1))
    assert [len(part) for part in found[:-1]] == [size] * (len(found) - 1)
    assert 0 < len(found[-1]) <= size
    assert sorted(torch.cat(found).tolist()) == list(range(len(batches)))
    part = list(batches.shuffled(size, 3, 1, frames=8))
    assert torch.cat(part).tolist() == torch.cat(found).tolist()[:8]
    assert torch.cat(list(batches.shuffled(size, 3, 2))).tolist() != torch.cat(found).tolist()
