"""Points of many dimensions on a plane."""

import numpy as np

PERPLEXITY = 30.0
EXAGGERATION, EXAGGERATED = 12.0, 250  # of the neighbourhoods, in the first iterations
ITERATIONS = 1000


def principal_components(points: np.ndarray) -> np.ndarray:
    """The two leading ones; of each direction the largest entry is positive."""
    centred = (points - points.mean(axis=0)).astype(np.float64)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:2]
    largest = np.abs(directions).argmax(axis=1)
    return centred @ (directions * np.sign(directions[np.arange(2), largest])[:, None]).T


def tsne(points: np.ndarray, start: np.ndarray) -> np.ndarray:
    """t-SNE (van der Maaten and Hinton, 2008) without approximation, from `start` made small.

    Minimises KL(P ‖ Q), q_ij ∝ 1 / (1 + |y_i − y_j|²), by gradient descent with momentum and gains.
    """
    p = neighbourhoods(points)
    y = start / (start.std() or 1.0) * 1e-4
    velocity, gains = np.zeros_like(y), np.ones_like(y)
    rate = max(len(y) / EXAGGERATION / 4.0, 50.0)
    for iteration in range(ITERATIONS):
        early = iteration < EXAGGERATED
        gradient = _gradient(p * EXAGGERATION if early else p, y)
        gains = np.maximum(np.where(np.sign(gradient) == np.sign(velocity), gains * 0.8, gains + 0.2), 0.01)
        velocity = (0.5 if early else 0.8) * velocity - rate * gains * gradient
        y = y + velocity
    return y


def neighbourhoods(points: np.ndarray) -> np.ndarray:
    """P: Gaussians around each point, as wide as gives the conditional distribution the perplexity, symmetrised."""
    n, distances = len(points), _squared_distances(points.astype(np.float64))
    target = np.log(min(PERPLEXITY, (n - 1) / 3.0))
    low, high, beta = np.zeros(n), np.full(n, np.inf), np.full(n, 1.0 / (distances.mean() or 1.0))
    nearest = (distances + np.diag(np.full(n, np.inf))).min(axis=1, keepdims=True)
    for _ in range(64):
        p = np.exp(-beta[:, None] * (distances - nearest))
        np.fill_diagonal(p, 0.0)
        p /= p.sum(axis=1, keepdims=True)
        wide = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1) > target
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
        beta = np.where(np.isinf(high), 2.0 * beta, (low + high) / 2.0)
    return np.maximum((p + p.T) / (2.0 * n), 1e-12)


def _gradient(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """4 Σ_j (p_ij − q_ij) (y_i − y_j) / (1 + |y_i − y_j|²)."""
    near = 1.0 / (1.0 + _squared_distances(y))
    np.fill_diagonal(near, 0.0)
    pull = (p - near / near.sum()) * near
    return 4.0 * (pull.sum(axis=1)[:, None] * y - pull @ y)


def _squared_distances(points: np.ndarray) -> np.ndarray:
    norms = np.square(points).sum(axis=1)
    distances = np.maximum(norms[:, None] + norms[None] - 2.0 * points @ points.T, 0.0)
    np.fill_diagonal(distances, 0.0)
    return distances
