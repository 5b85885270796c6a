"""Generated sets of images: what they are said to be, checked pixel by pixel."""

import hashlib
import importlib

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from test_images import HERE, write_mnist

from kernelam.errors import KernelamError


@pytest.fixture(scope="module")
def made() -> dict:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        return {name: importlib.import_module(name) for name in ("lookalikes", "textures")}


@pytest.fixture
def small(made, monkeypatch):
    """Few textures and regions at once."""
    monkeypatch.setattr(made["lookalikes"], "PICTURES", 2)
    monkeypatch.setattr(made["lookalikes"], "BATCH", 600)
    monkeypatch.setattr(made["textures"], "LEAVES", 60)
    return made["lookalikes"]


def in_hull(mask: np.ndarray) -> np.ndarray:
    """Pixels whose centres are in the convex hull of those of a region."""
    points = np.argwhere(mask)
    planes = ConvexHull(points).equations
    places = np.argwhere(np.ones_like(mask))
    return (places @ planes[:, :2].T + planes[:, 2] <= 1e-9).all(axis=1).reshape(mask.shape)


def one_piece(mask: np.ndarray) -> bool:
    """Whether all pixels of a region are reached from its first."""
    reached = np.zeros_like(mask)
    reached[tuple(np.argwhere(mask)[0])] = True
    while True:
        wide = np.pad(reached, 1)
        near = [wide[1 + i : 29 + i, 1 + j : 29 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
        grown = np.logical_or.reduce(near) & mask
        if (grown == reached).all():
            return bool((reached == mask).all())
        reached = grown


def test_regions_are_convex_or_lack_something_of_their_hull(small):
    sets = small.convex(160, 240)
    assert [len(y) for _, y in sets.values()] == [120, 40, 240]
    x, y = (np.concatenate([one[part] for one in sets.values()]) for part in (0, 1))
    assert set(np.unique(x)) == {0.0, 1.0}
    assert abs(y.mean() - 0.5) < 0.1
    masks = x.reshape(-1, 28, 28) > 0.5
    for mask, label in zip(masks, y, strict=True):
        lacked = int((in_hull(mask) & ~mask).sum())
        assert lacked == 0 if label else lacked >= small.NOTCH
        assert one_piece(mask)
    areas = masks.sum(axis=(1, 2))
    assert (small.AREAS[0] <= areas.min()) & (areas.max() < small.AREAS[-1])
    cuts = [(areas[y == 1] < cut).mean() - (areas[y == 0] < cut).mean() for cut in range(100, 420, 10)]
    assert max(map(abs, cuts)) < 0.2  # how large it is tells little


def test_pixels_halfway_are_those_of_a_search_over_all_pairs(small):
    masks = small.draw_unions(small.stream(5, "x"))[:20]
    for mask, found in zip(masks, small.lacking(masks), strict=True):
        p = np.argwhere(mask)
        twice = (p[:, None] + p[None]).reshape(-1, 2)
        halfway = np.zeros_like(mask)
        halfway[tuple((twice[(twice % 2 == 0).all(axis=1)] // 2).T)] = True
        assert (found == (halfway & ~mask)).all()


def test_rectangles_are_taller_or_wider_as_their_labels_say(small):
    masks, labels = small.draw_rectangles(500, np.random.default_rng(0))
    for mask, label in zip(masks, labels, strict=True):
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        assert mask.sum() == len(rows) * len(columns)
        assert (np.ptp(rows), np.ptp(columns)) == (len(rows) - 1, len(columns) - 1)
        assert len(rows) - len(columns) >= 4 if label else len(columns) - len(rows) >= 4
    assert abs(labels.mean() - 0.5) < 0.1
    assert masks[:, 0].any() & masks[:, -1].any() & masks[:, :, 0].any() & masks[:, :, -1].any()


def test_rectangles_are_of_another_texture_than_what_is_around(small, monkeypatch):
    calls = iter([np.uint8(10), np.uint8(200)] * 2)
    monkeypatch.setattr(small, "patches", lambda pictures, count, side, rng: np.full((count, 28, 28), next(calls)))
    sets = small.rectangles(80, 20)
    assert {name: len(x) for name, (x, _) in sets.items()} == {"train": 60, "heldout": 20, "test": 20}
    for x, y in sets.values():
        inside = x.reshape(-1, 28, 28) < 0.5
        assert ((inside.any(axis=2).sum(axis=1) > inside.any(axis=1).sum(axis=1)) == y).all()


def test_pictures_have_edges_and_a_spectrum_that_falls(made):
    found = made["textures"].pictures(3, np.random.default_rng(0)).astype(float)
    steps = abs(np.diff(found, axis=2)).ravel()
    assert np.percentile(steps, 99) > 10 * np.percentile(steps, 70)  # flat nearly everywhere, with jumps
    power = (abs(np.fft.fft2(found - found.mean(axis=(1, 2), keepdims=True))) ** 2).mean(axis=0)
    f = np.hypot(*np.meshgrid(np.fft.fftfreq(256), np.fft.fftfreq(256)))
    some = (f > 0.02) & (f < 0.3)
    slope = np.polyfit(np.log(f[some]), np.log(power[some]), 1)[0]
    assert -3.5 < slope < -1.5  # 2 in power is 1/f in amplitude
    assert found.std() > 30


@pytest.mark.parametrize("name", ["back_rand", "back_image"])
def test_no_image_is_in_two_sets_and_ink_is_on_the_background(small, monkeypatch, tmp_path, name):
    dots = np.eye(784, dtype=np.float32)[:140]  # a dot of ink, at a place of its own in every image
    parts = {"train": (dots[:120], np.arange(120) % 10), "t10k": (dots[120:], np.arange(20) % 10)}
    monkeypatch.setattr(small, "read_mnist", lambda corpus, part: parts[part])
    sets = getattr(small, name)(tmp_path)
    assert {key: len(x) for key, (x, _) in sets.items()} == {"train": 18, "heldout": 6, "test": 100}
    monkeypatch.setattr(small, "read_mnist", lambda corpus, part: (np.zeros_like(parts[part][0]), parts[part][1]))
    without = getattr(small, name)(tmp_path)
    places = []
    for key, (x, y) in sets.items():
        changed = x != without[key][0]
        assert (changed.sum(axis=1) <= 1).all()  # a background of 255 does not change
        found = x[changed]
        assert (found == 1.0).all()
        places += changed.nonzero()[1].tolist()
        truth = np.concatenate([parts["train"][1], parts["t10k"][1]])
        assert (truth[changed.nonzero()[1]] == y[changed.nonzero()[0]]).all()
    assert len(places) == len(set(places)) > 110


def test_noise_is_uniform(small, monkeypatch, tmp_path):
    nothing = (np.zeros((700, 784), np.float32), np.zeros(700, np.int64))
    monkeypatch.setattr(small, "read_mnist", lambda corpus, part: nothing)
    x = small.back_rand(tmp_path)["test"][0]
    shares = np.bincount(np.rint(255 * x).astype(int).ravel(), minlength=256) / x.size
    np.testing.assert_allclose(shares, 1 / 256, rtol=0.1)
    assert abs(np.corrcoef(x[:, 300], x[:, 301])[0, 1]) < 0.1


def test_the_same_bytes_come_again(small):
    def digest() -> str:
        sets = [small.rectangles(20, 12), small.convex(20, 12)]
        return hashlib.sha256(b"".join(x.tobytes() + y.tobytes() for one in sets for x, y in one.values())).hexdigest()

    assert digest() == digest()
    x = small.rectangles(20, 20)
    assert not np.array_equal(x["train"][0][:5], x["test"][0][:5])


def test_a_corpus_of_hardly_any_image_is_a_sentence(small, tmp_path):
    write_mnist(tmp_path, 4, 1)
    with pytest.raises(KernelamError, match="has 5 images, too few for a set of them with other backgrounds"):
        small.back_rand(tmp_path)


def test_the_sizes_are_those_of_the_paper(small):
    assert (small.rectangles.__defaults__, small.convex.__defaults__, small.HELDOUT) == (
        (12_000, 50_000),
        (8000, 50_000),
        2000,
    )
