"""From probabilities of pairs of classes to probabilities of all of them (chen2016, eq. 7; the second method of Wu,
Lin and Weng, JMLR 2004)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

MARGIN = 1e-7
"""μ is kept this far from 0 and 1, so that no class is cut off from the others."""


def couple(mu: Tensor, classes: int) -> Tensor:
    """argmin_p Σ_i Σ_{j≠i} (μ_ji p_i − μ_ij p_j)² with Σp = 1, p ≥ 0, of each row of μ, which has the pairs i < j in
    the order (0, 1), (0, 2), …, (1, 2), …

    The minimum under Σp = 1 alone has no negative p (Wu, Lin and Weng, theorem 2). There Qp = b·1 for some number b,
    with Q_ii = Σ_s μ_si² and Q_ij = −μ_ji μ_ij. So p is, up to its sum, the solution of (Q + 1·1ᵀ)p = 1, which takes
    a Cholesky factor of c × c where the system with b has c + 1 unknowns and is indefinite; even where all μ agree with
    one p, so that Q is singular, this matrix is not.
    """
    Q = quadratic_form(mu.clamp(MARGIN, 1.0 - MARGIN), classes).add_(1.0)
    ones = torch.ones(len(mu), classes, 1, dtype=mu.dtype, device=mu.device)
    with _one_thread():
        factor = torch.linalg.cholesky(Q.mT)  # which reads what is below the diagonal
        p = torch.cholesky_solve(ones, factor)[:, :, 0].clamp_min_(0.0)
    return p.div_(p.sum(dim=1, keepdim=True))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Matrices of some hundred rows are factored one after the other: more threads gain nothing, and where other work
    keeps them waiting for each other, take ten to a hundred times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def quadratic_form(mu: Tensor, classes: int) -> Tensor:
    """Q of each row from the diagonal on, batch × c × c, with zeros below it.

    Row by row, as the pairs of a class lie side by side: scattering them by index takes thrice as long as the rest.
    """
    behind = list(range(classes - 1, 0, -1))  # how many pairs each class is the first of
    parts = (mu * (mu - 1.0), mu.square(), (1.0 - mu).square_())
    Q = torch.zeros(len(mu), classes, classes, dtype=mu.dtype, device=mu.device)
    diagonal = torch.zeros(len(mu), classes, dtype=mu.dtype, device=mu.device)
    rows = zip(*(torch.split(part, behind, dim=1) for part in parts), strict=True)
    for i, (products, wins, losses) in enumerate(rows):
        Q.select(1, i).narrow(1, i + 1, behind[i]).add_(products)
        diagonal.select(1, i).add_(losses.sum(dim=1))
        diagonal.narrow(1, i + 1, behind[i]).add_(wins)
    Q.diagonal(dim1=1, dim2=2).add_(diagonal)
    return Q
