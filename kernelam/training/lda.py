"""Linear discriminant analysis of spliced frames, and the maximum likelihood linear transform on top of it."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.models.gmm import DiagGmms
from kernelam.training.gmm import posteriors_by_pdf

ROUNDS = 200  # of row by row updates
Floats = NDArray[np.float64]


def fit_lda(spliced: Iterable[tuple[NDArray[np.float32], NDArray[np.int32]]], num_classes: int, dim: int) -> Floats:
    """The `dim` directions of frames, given by utterance with their classes (−1: none), that tell classes apart best.

    Rows maximise the scatter of class means where that within classes is the identity: M W Mᵀ = I.
    """
    count, sums, second = np.zeros(num_classes), np.zeros((num_classes, 0)), np.zeros((0, 0))
    for x, classes in spliced:
        if not sums.size:
            size = x.shape[1]
            sums, second = np.zeros((num_classes, size)), np.zeros((size, size))
            if not 0 < dim <= size:
                raise KernelamError(f"LDA to {dim} dimensions of {size}: --dim is from 1 to {size}")
        wide, labels = x[classes >= 0].astype(np.float64), classes[classes >= 0]
        second += wide.T @ wide
        count += np.bincount(labels, minlength=num_classes)
        np.add.at(sums, labels, wide)
    total = count.sum()
    mean = sums.sum(axis=0) / total
    seen = count > 0
    means = sums[seen] / count[seen, None]
    between = (means.T * (count[seen] / total)) @ means - np.outer(mean, mean)
    within = second / total - np.outer(mean, mean) - between
    try:
        whiten = np.linalg.inv(np.linalg.cholesky(within))
    except np.linalg.LinAlgError:
        raise KernelamError(
            f"the scatter of {int(total)} frames within {int(seen.sum())} classes is singular: LDA needs more frames,"
            " or features that are not constant"
        ) from None
    values, vectors = np.linalg.eigh(whiten @ between @ whiten.T)
    return vectors[:, np.argsort(-values)[:dim]].T @ whiten


def fit_mllt(gmms: DiagGmms, x: NDArray[np.float32], pdfs: NDArray[np.int32]) -> tuple[Floats, float]:
    """The square matrix A for which diagonal Gaussians suit A x best, and the gain in log-likelihood a frame.

    With the statistics G_i = Σ_g 1/σ²_gi Σ_t γ_g(t) (x_t − μ_g)(x_t − μ_g)ᵀ, rows are updated in turn:
    a_i ← √(β / c_i G_i⁻¹ c_iᵀ) c_i G_i⁻¹, where c_i is row i of the cofactors of A (Gales, 1999).
    """
    G, beta = _scatter(gmms, x, pdfs)
    inverse = np.linalg.inv(G)
    A = np.eye(gmms.dim)
    before = _mllt_objective(A, G, beta)
    for _ in range(ROUNDS):
        for i in range(gmms.dim):
            cofactors = np.linalg.inv(A)[:, i]
            row = inverse[i] @ cofactors
            A[i] = row * np.sqrt(beta / (row @ cofactors))
    return A, (_mllt_objective(A, G, beta) - before) / beta


def _mllt_objective(A: Floats, G: Floats, beta: float) -> float:
    return float(beta * np.linalg.slogdet(A)[1] - 0.5 * np.einsum("ij,ijk,ik->", A, G, A))


def _scatter(gmms: DiagGmms, x: NDArray[np.float32], pdfs: NDArray[np.int32]) -> tuple[Floats, float]:
    dim = gmms.dim
    G, beta = np.zeros((dim, dim * dim)), 0.0
    for part, frames, posterior, _ in posteriors_by_pdf(gmms, x, pdfs):
        inverse, means = 1.0 / gmms.variances[part], gmms.means[part]
        scatters = np.empty((len(means), dim * dim))
        for g in range(len(means)):
            away = x[frames] - means[g].astype(np.float32)
            scatters[g] = ((away * posterior[:, g : g + 1]).T @ away).ravel()
        G += inverse.T @ scatters
        beta += float(posterior.sum(dtype=np.float64))
    return G.reshape(dim, dim, dim), beta
