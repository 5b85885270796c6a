"""Ranking and cutting off of features, against direct counts and scikit-learn."""

import time

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import mutual_info_score
from sklearn.neighbors import KNeighborsClassifier

from kernelam.errors import KernelamError
from kernelam.training import pruning
from kernelam.training.pruning import choose_width, discretise, mutual_information, neighbour_errors, ranking


@pytest.fixture(scope="module")
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    return torch.from_numpy(x[order].astype(np.float32)), torch.from_numpy(y[order])


def test_bins_hold_equally_many():
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((1000, 3)) ** 3)
    bins = discretise(x)
    for place in range(3):
        assert torch.bincount(bins[:, place]).tolist() == [50] * 20
        order = x[:, place].argsort()
        assert (bins[order, place].diff() >= 0).all()
    mostly = torch.cat([torch.zeros(950, 1), torch.arange(1.0, 51.0)[:, None]])
    assert torch.bincount(discretise(mostly)[:, 0])[-1] == 50
    assert len(discretise(torch.ones(40, 1)).unique()) == 1


def test_mutual_information_is_that_of_direct_counts(digits):
    x, labels = digits
    bins = discretise(x)
    found = mutual_information(bins, labels)
    for place in (0, 5, 20, 36, 63):
        assert float(found[place]) == pytest.approx(mutual_info_score(bins[:, place], labels), abs=1e-10)
    total = 0.0
    for b in range(20):
        for y in range(10):
            p, p_b, p_y = (
                float(one.double().mean())
                for one in ((bins[:, 36] == b) & (labels == y), bins[:, 36] == b, labels == y)
            )
            total += p * np.log(p / (p_b * p_y)) if p else 0.0
    assert float(found[36]) == pytest.approx(total, abs=1e-10)
    order = ranking(x, labels)
    assert (found[order].diff() <= 0).all()


def test_what_tells_more_is_ranked_first():
    rng = np.random.default_rng(1)
    labels = torch.from_numpy(rng.integers(4, size=2000))
    x = torch.from_numpy(rng.standard_normal((2000, 6)))
    x[:, 4] += 3 * labels
    x[:, 1] += labels
    x[:, 2] = x[:, 2] ** 3 + 0.3 * (labels == 2)
    assert ranking(x, labels)[:2].tolist() == [4, 1]


@pytest.mark.parametrize("block", [7, 64])
def test_errors_for_all_k_and_w_are_those_of_scikit_learn(digits, monkeypatch, block):
    monkeypatch.setattr(pruning, "BLOCK", block)
    x, labels = digits
    x = x + 0.01 * torch.from_numpy(np.random.default_rng(2).standard_normal(x.shape).astype(np.float32))  # no ties
    found = neighbour_errors(x[:500], labels[:500], x[500:800], labels[500:800])
    assert found.shape == (64, 15)
    for w, k in ((1, 1), (1, 15), (3, 2), (10, 5), (33, 4), (64, 1), (64, 15)):
        theirs = KNeighborsClassifier(k, algorithm="brute").fit(x[:500, :w].double(), labels[:500])
        error = 1 - theirs.score(x[500:800, :w].double(), labels[500:800])
        assert found[w - 1, k - 1] == pytest.approx(error, abs=1e-12), (w, k)
    np.testing.assert_array_equal(neighbour_errors(x[:500], labels[:500], x[500:800], labels[500:800], 20), found[19:])


def test_neighbours_at_one_distance_come_by_their_numbers():
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 2.0], [0.5, 5.0]])
    labels = torch.tensor([2, 1, 0, 3])
    new = torch.tensor([[0.0, 1.0]])
    for truth, expected in ((2, [[1, 0, 1, 1], [0, 1, 1, 1]]), (3, [[0, 1, 1, 1], [1, 1, 1, 1]])):
        found = neighbour_errors(x, labels, new, torch.tensor([truth]), most=4)
        assert found.tolist() == expected
    found = neighbour_errors(x, labels, new, torch.tensor([1]), most=4)
    assert found[1].tolist() == [1, 0, 1, 1]  # two votes each: the least label


def test_one_pass_is_much_cheaper_than_one_for_each_width(digits):
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.standard_normal((2100, 150)).astype(np.float32))
    labels = torch.from_numpy(rng.integers(10, size=2100))
    neighbour_errors(x[:50], labels[:50], x[50:60], labels[50:60])  # compiled
    start = time.process_time()
    neighbour_errors(x[:2000], labels[:2000], x[2000:], labels[2000:])
    ours = time.process_time() - start
    start = time.process_time()
    for w in (50, 100, 150):
        theirs = KNeighborsClassifier(15, algorithm="brute").fit(x[:2000, :w], labels[:2000])
        theirs.kneighbors(x[2000:, :w])
    assert ours < 0.5 * (time.process_time() - start) * 50


def test_the_width_with_the_fewest_errors_is_chosen(digits):
    x, labels = digits
    rng = np.random.default_rng(4)
    noise = torch.from_numpy(8 * rng.standard_normal((len(x), 100)).astype(np.float32))
    mixed = torch.cat([noise, x], dim=1)
    order = ranking(mixed[:900], labels[:900])
    assert (order[:30] >= 100).all()
    found = choose_width(mixed[:900, order], labels[:900], mixed[900:1300, order], labels[900:1300])
    errors = neighbour_errors(mixed[:900, order], labels[:900], mixed[900:1300, order], labels[900:1300])[9:]
    assert found.error == errors.min() == errors[found.features - 10, found.neighbours - 1]
    assert 20 <= found.features <= 70
    few = choose_width(x[:50, :4], labels[:50], x[50:90, :4], labels[50:90])
    assert few.features == 4


def test_what_cannot_be_is_a_sentence(digits):
    x, labels = digits
    with pytest.raises(KernelamError, match="there are 9 examples, fewer than the 15 neighbours"):
        neighbour_errors(x[:9], labels[:9], x[9:20], labels[9:20])
    with pytest.raises(KernelamError, match="by 65 features are looked for where there are 64"):
        neighbour_errors(x[:50], labels[:50], x[50:], labels[50:], 65)
