"""Pictures with edges and a 1/f spectrum, as natural ones have them: leaves that lie upon each other, their sizes by a
power law, on 1/f noise that is also their grain."""

import numpy as np

SIDE = 256  # of a picture
LEAVES = 250  # of a picture, which cover nearly all of it
RADII = (12.0, 200.0)  # of leaves, with a density of r⁻³: then pictures look alike from near and far. With a least
# radius of 6, 12 and 20 an arc-cosine machine of 3000 rectangles was wrong about 36, 30 and 27 % of others; with 12,
# one of 10,000 about 25 %, as in cho2009 with natural images.
GRAIN = 0.06  # the deviation of the noise on a leaf


def pictures(count: int, rng: np.random.Generator) -> np.ndarray:
    """count × SIDE × SIDE bytes."""
    noise = fractal(count, rng)
    found = 0.5 + 0.2 * noise
    for picture in found:
        _cover(picture, rng)
    return np.rint(255 * np.clip(found + GRAIN * noise, 0.0, 1.0)).astype(np.uint8)


def fractal(count: int, rng: np.random.Generator) -> np.ndarray:
    """Noise whose amplitude falls as 1/f, with mean 0 and variance 1 in each picture."""
    f = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE)[None])
    f[0, 0] = np.inf
    found = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((count, SIDE, SIDE))) / f, s=(SIDE, SIDE))
    return found / found.std(axis=(1, 2), keepdims=True)


def _cover(picture: np.ndarray, rng: np.random.Generator) -> None:
    """Lay leaves, discs and rectangles turned by any angle, each with its shade and a light from one side."""
    low, high = (radius**-2 for radius in RADII)
    radii = (low + rng.random(LEAVES) * (high - low)) ** -0.5
    centres, angles = rng.uniform(0, SIDE, (LEAVES, 2)), rng.uniform(0, np.pi, LEAVES)
    shades, lights, widths = (rng.uniform(*ends, LEAVES) for ends in ((0.0, 0.85), (-0.15, 0.15), (0.3, 1.0)))
    for (y, x), r, angle, shade, light, width, round_one in zip(
        centres, radii, angles, shades, lights, widths, rng.random(LEAVES) < 0.5, strict=True
    ):
        reach = 1.5 * r  # the corner of a square
        rows, columns = (slice(max(0, int(at - reach)), int(at + reach) + 2) for at in (y, x))
        part = picture[rows, columns]
        v = (np.arange(rows.start, rows.start + part.shape[0]) - y)[:, None] / r
        u = (np.arange(columns.start, columns.start + part.shape[1]) - x)[None] / r
        along, across = u * np.cos(angle) + v * np.sin(angle), (v * np.cos(angle) - u * np.sin(angle)) / width
        inside = along**2 + across**2 <= 1.0 if round_one else np.maximum(abs(along), abs(across)) <= 1.0
        np.copyto(part, shade + light * along, where=inside)


def patches(from_pictures: np.ndarray, count: int, side: int, rng: np.random.Generator) -> np.ndarray:
    """count × side × side bytes of random places of random pictures."""
    number = rng.integers(len(from_pictures), size=(count, 1, 1))
    rows, columns = (rng.integers(SIDE - side + 1, size=(count, 1, 1)) for _ in range(2))
    step = np.arange(side)
    return from_pictures[number, rows + step[:, None], columns + step]
