"""Feature-space maximum likelihood linear regression: for each speaker the affine map of frames that suits a model best
(Gales, 1998)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.models.gmm import DiagGmms
from kernelam.training.gmm import posteriors_by_pdf

ROUNDS = 40  # of row by row updates
MIN_FRAMES = 500.0  # a speaker with fewer keeps the features as they are
CHUNK = 1 << 12
Floats = NDArray[np.float64]


@dataclass
class FmllrStats:
    """Of frames ξ = [x, 1]: K = Σ_t Σ_g γ_g(t) μ_g/σ²_g ξᵀ, G_i = Σ_t Σ_g γ_g(t)/σ²_gi ξ ξᵀ, and β = Σ γ."""

    K: Floats  # d × (d + 1)
    G: Floats  # d × (d + 1) × (d + 1)
    beta: float

    @classmethod
    def empty(cls, dim: int) -> "FmllrStats":
        return cls(np.zeros((dim, dim + 1)), np.zeros((dim, dim + 1, dim + 1)), 0.0)


class Collector:
    """Statistics with respect to `gmms`; `judge`, of as many Gaussians, has their posteriors if it is another model."""

    def __init__(self, gmms: DiagGmms, judge: DiagGmms | None = None) -> None:
        self.judge, self.dim = judge or gmms, gmms.dim
        inverse = 1.0 / gmms.variances
        self.inverse, self.aims = inverse.astype(np.float32), (gmms.means * inverse).astype(np.float32)
        if len(self.judge.weights) != len(gmms.weights):
            raise KernelamError(
                f"the two models have {len(self.judge.weights)} and {len(gmms.weights)} Gaussians:"
                " they are not of one training"
            )

    def add(self, stats: FmllrStats, x: NDArray[np.float32], occupied: "Occupied") -> None:
        """What `x`, frames of the speaker, add."""
        precise, wanted = np.zeros((2, len(x), self.dim), np.float32)
        for part, entries, posterior, _ in posteriors_by_pdf(self.judge, x[occupied.frame], occupied.pdf):
            posterior *= occupied.weight[entries, None]
            frames = occupied.frame[entries]
            precise[frames] += posterior @ self.inverse[part]
            wanted[frames] += posterior @ self.aims[part]
        stats.beta += float(occupied.weight.sum(dtype=np.float64))
        rows, columns = np.triu_indices(self.dim + 1)
        for start in range(0, len(x), CHUNK):
            part = slice(start, start + CHUNK)
            extended = np.concatenate([x[part], np.ones((len(x[part]), 1), np.float32)], axis=1)
            stats.K += wanted[part].T @ extended
            upper = precise[part].T @ (extended[:, rows] * extended[:, columns])
            stats.G[:, rows, columns] += upper
            stats.G[:, columns, rows] += np.where(rows == columns, 0.0, upper)


class Occupied(NamedTuple):
    """Which pdfs some frames are in, with which probability; a frame may be in several, and in each once."""

    frame: NDArray[np.int64]
    pdf: NDArray[np.int32]
    weight: NDArray[np.float32]


def objective(stats: FmllrStats, W: Floats) -> float:
    """β log |det A| + Σ_i (w_i k_iᵀ − ½ w_i G_i w_iᵀ) of W = [A b]."""
    quadratic = np.einsum("ij,ijk,ik->", W, stats.G, W)
    return float(stats.beta * np.linalg.slogdet(W[:, :-1])[1] + (W * stats.K).sum() - 0.5 * quadratic)


def fit_fmllr(stats: FmllrStats) -> tuple[Floats, float]:
    """[A b], and the gain in log-likelihood a frame; the identity where there are fewer than MIN_FRAMES frames.

    Row i is (α c + k_i) G_i⁻¹ with the cofactors c of A (0 for b), where α solves α² c G⁻¹ cᵀ + α c G⁻¹ k_iᵀ = β.
    """
    dim = len(stats.K)
    W = np.eye(dim, dim + 1)
    if stats.beta < MIN_FRAMES:
        return W, 0.0
    before = objective(stats, W)
    inverse = np.linalg.inv(stats.G)
    for _ in range(ROUNDS):
        for i in range(dim):
            cofactors = np.append(np.linalg.inv(W[:, :-1])[:, i], 0.0)
            towards = inverse[i] @ cofactors
            a, b = cofactors @ towards, towards @ stats.K[i]
            root = np.sqrt(b * b + 4.0 * a * stats.beta)
            alphas = np.array([-b + root, -b - root]) / (2.0 * a)
            best = alphas[np.argmax(stats.beta * np.log(np.abs(alphas * a + b)) - 0.5 * alphas**2 * a)]
            W[i] = best * towards + inverse[i] @ stats.K[i]
    return W, (objective(stats, W) - before) / stats.beta


def composed(second: Floats, first: Floats) -> Floats:
    """The affine map that does `first`, then `second`."""
    A, b = second[:, :-1], second[:, -1]
    made = A @ first
    made[:, -1] += b
    return made
