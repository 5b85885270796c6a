"""Places on a plane, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score

from kernelam.report.embedding import PERPLEXITY, neighbourhoods, principal_components, tsne


@pytest.fixture
def points() -> tuple[np.ndarray, np.ndarray]:
    """Six clusters of 25 in ten dimensions."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 25)
    return 4.0 * rng.standard_normal((6, 10))[labels] + rng.standard_normal((150, 10)), labels


def divergence(points: np.ndarray, y: np.ndarray) -> float:
    near = 1.0 / (1.0 + np.square(y[:, None] - y[None]).sum(axis=2))
    np.fill_diagonal(near, 0.0)
    p, q = neighbourhoods(points), near / near.sum()
    off = ~np.eye(len(y), dtype=bool)
    return float((p[off] * np.log(p[off] / q[off])).sum())


def test_principal_components(points: tuple[np.ndarray, np.ndarray]) -> None:
    found, expected = principal_components(points[0]), PCA(2).fit_transform(points[0])
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


def test_neighbourhoods_have_the_perplexity(points: tuple[np.ndarray, np.ndarray]) -> None:
    p = neighbourhoods(points[0])
    np.testing.assert_allclose(p.sum(), 1.0, atol=1e-6)
    np.testing.assert_array_equal(p, p.T)
    sklearn_manifold = pytest.importorskip("sklearn.manifold._t_sne")
    distances = np.square(points[0][:, None] - points[0][None]).sum(axis=2).astype(np.float32)
    packed = sklearn_manifold._joint_probabilities(distances, PERPLEXITY, 0)
    np.testing.assert_allclose(p[np.triu_indices(len(p), 1)], packed, atol=1e-7)


def test_tsne_is_as_good_as_theirs(points: tuple[np.ndarray, np.ndarray]) -> None:
    start = principal_components(points[0])
    found = tsne(points[0], start)
    theirs = TSNE(init=start / start.std() * 1e-4, method="exact", perplexity=PERPLEXITY).fit(points[0])
    assert divergence(points[0], found) < 1.02 * theirs.kl_divergence_
    assert silhouette_score(found, points[1]) > 0.6
    np.testing.assert_array_equal(found, tsne(points[0], start))


def test_points_that_coincide_have_places_too() -> None:
    points = np.repeat(np.eye(3), 5, axis=0)
    assert np.isfinite(tsne(points, principal_components(points))).all()
    assert np.isfinite(tsne(np.zeros((12, 4)), principal_components(np.zeros((12, 4))))).all()
