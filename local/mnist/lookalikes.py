"""Sets like rectangles-image, convex, mnist-back-rand and mnist-back-image (cho2009), which are no longer distributed.

They are of the same description and sizes, 28 × 28 pixels of a byte each, and the same on every run. The texture of
natural images is that of `textures`; training and test images have their textures from different pictures.
"""

from pathlib import Path

import numpy as np
from idx import read_mnist
from textures import patches, pictures

from kernelam.errors import KernelamError
from kernelam.randomness import stream

SIDE = 28
TEST = 50_000
HELDOUT = 2000
"""Training images at the end that settings are chosen by (cho2009, section 2.4)."""
SEED = 1
PICTURES = 32  # of a set, whose patches are textures
LEGS = (8, 25)  # the shortest and longest sides of rectangles,
DIFFERENCE = 4  # and how much those of one differ at least
AREAS = np.arange(100, 421, 40)  # edges of classes of areas, equally frequent in convex and other regions
NOTCH = 6  # pixels that a region lacks between two of its own, or it is taken for convex by too many
BATCH = 4000  # regions drawn at once
PLANES = 8  # half-planes, at most, that a convex region is what is common of

Set = tuple[np.ndarray, np.ndarray]
"""Images, one a row, from 0 to 1, and their classes."""


def rectangles(train: int = 12_000, test: int = TEST) -> dict[str, Set]:
    """Is the rectangle, of one texture on another, taller than wide?"""
    return _split(*(_textured(count, name) for count, name in ((train, "train"), (test, "test"))))


def _textured(count: int, name: str) -> Set:
    rng = stream(SEED, f"rectangles.{name}")
    mask, labels = draw_rectangles(count, rng)
    inside, outside = (patches(pictures(PICTURES, rng), count, SIDE, rng) for _ in range(2))
    return np.where(mask, inside, outside), labels


def draw_rectangles(count: int, rng: np.random.Generator) -> Set:
    """Masks of rectangles anywhere in the image, and whether they are taller than wide."""
    legs = np.mgrid[LEGS[0] : LEGS[1] + 1, LEGS[0] : LEGS[1] + 1].reshape(2, -1)
    legs = legs[:, abs(legs[0] - legs[1]) >= DIFFERENCE]
    height, width = legs[:, rng.integers(legs.shape[1], size=count)]
    spans = []
    for leg in (height, width):
        start = rng.integers(SIDE - leg + 1)[:, None]
        spans.append((np.arange(SIDE) >= start) & (np.arange(SIDE) < start + leg[:, None]))
    return spans[0][:, :, None] & spans[1][:, None, :], (height > width).astype(np.int64)


def convex(train: int = 8000, test: int = TEST) -> dict[str, Set]:
    """Is the white region convex?"""
    return _split(*(_regions(count, name) for count, name in ((train, "train"), (test, "test"))))


def _regions(count: int, name: str) -> Set:
    rng = stream(SEED, f"convex.{name}")
    labels = rng.integers(2, size=count)
    masks = np.empty((count, SIDE, SIDE), bool)
    for label, make in enumerate((draw_unions, draw_convex)):
        masks[labels == label] = _of_all_areas(make, int((labels == label).sum()), rng)
    return np.where(masks, np.uint8(255), np.uint8(0)), labels


def _of_all_areas(make, count: int, rng: np.random.Generator) -> np.ndarray:  # type: ignore[no-untyped-def]
    """As many regions of `make` with areas that are equally often in each class of AREAS: how large a region is then
    tells nothing of whether it is convex."""
    wanted = rng.integers(len(AREAS) - 1, size=count)
    masks, waiting = np.empty((count, SIDE, SIDE), bool), [np.flatnonzero(wanted == k) for k in range(len(AREAS) - 1)]
    while any(map(len, waiting)):
        some = make(rng)
        classes = np.digitize(some.sum(axis=(1, 2)), AREAS) - 1
        for k, places in enumerate(waiting):
            own = np.flatnonzero(classes == k)[: len(places)]
            masks[places[: len(own)]] = some[own]
            waiting[k] = places[len(own) :]
    return masks


def draw_convex(rng: np.random.Generator, largest: float = 16.0) -> np.ndarray:
    """Masks of what 3 to PLANES half-planes, each at some distance from a centre, have in common."""
    centre, angle = rng.uniform(4, SIDE - 5, (BATCH, 2, 1)), rng.uniform(0, 2 * np.pi, (BATCH, PLANES))
    distance = rng.uniform(0.3, 1.0, (BATCH, 1)) * rng.uniform(largest / 8, largest, (BATCH, PLANES))
    distance[np.arange(PLANES) >= rng.integers(3, PLANES + 1, (BATCH, 1))] = np.inf
    rows, columns = ((np.arange(SIDE) - centre[:, axis]).astype(np.float32) for axis in range(2))
    mask = np.ones((BATCH, SIDE, SIDE), bool)
    for plane in range(PLANES):
        y, x = (
            one * turn(angle[:, plane, None]).astype(np.float32) for one, turn in ((rows, np.sin), (columns, np.cos))
        )
        mask &= y[:, :, None] + x[:, None, :] <= distance[:, plane, None, None]
    return mask


def draw_unions(rng: np.random.Generator) -> np.ndarray:
    """Masks of two convex regions that have pixels in common, and lack NOTCH between two of theirs."""
    one, other = (draw_convex(rng, 12.0) for _ in range(2))
    area = (one | other).sum(axis=(1, 2))
    mask = (one | other)[(one & other).any(axis=(1, 2)) & (area >= AREAS[0]) & (area < AREAS[-1])]
    return mask[lacking(mask).sum(axis=(1, 2)) >= NOTCH]


def lacking(mask: np.ndarray) -> np.ndarray:
    """Pixels that are not of a region, but halfway between two that are: there are 2m = p + q with p and q of the
    region where its convolution with itself is not 0."""
    spectrum = np.fft.rfft2(mask.astype(np.float32), s=(2 * SIDE, 2 * SIDE))
    pairs = np.fft.irfft2(spectrum**2, s=(2 * SIDE, 2 * SIDE))[:, ::2, ::2]
    return ~mask & (pairs > 0.5)


def back_rand(corpus: Path) -> dict[str, Set]:
    """Digits of MNIST on noise."""
    return _split(*_digits(corpus, "back-rand"))


def back_image(corpus: Path) -> dict[str, Set]:
    """Digits of MNIST on patches of pictures."""
    return _split(*_digits(corpus, "back-image"))


def _digits(corpus: Path, task: str) -> list[Set]:
    """12,000 of the 70,000 images, and 50,000 others; of a smaller corpus, as large shares."""
    parts = [read_mnist(corpus, part) for part in ("train", "t10k")]
    ink, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
    train, test = 12 * len(ink) // 70, 50 * len(ink) // 70
    if train < 2:
        raise KernelamError(f"{corpus} has {len(ink)} images, too few for a set of them with other backgrounds")
    order = stream(SEED, "digits").permutation(len(ink))
    found = []
    for name, own in (("train", order[:train]), ("test", order[train : train + test])):
        back = _background(task, len(own), stream(SEED, f"{task}.{name}")).reshape(len(own), -1)
        found.append((np.rint(255 * ink[own] + (1 - ink[own]) * back).astype(np.uint8), labels[own]))
    return found


def _background(task: str, count: int, rng: np.random.Generator) -> np.ndarray:
    if task == "back-rand":
        return rng.integers(256, size=(count, SIDE, SIDE), dtype=np.uint8)
    return patches(pictures(PICTURES, rng), count, SIDE, rng)


def _split(train: Set, test: Set) -> dict[str, Set]:
    """The last 2000 training images are heldout; of a small set, a quarter."""
    sets = [(x.reshape(len(x), -1).astype(np.float32) / 255, y) for x, y in (train, test)]
    (x, y), cut = sets[0], len(train[0]) - min(HELDOUT, -(-len(train[0]) // 4))
    return {"train": (x[:cut], y[:cut]), "heldout": (x[cut:], y[cut:]), "test": sets[1]}
