"""Log-linear models of given features, fitted to all samples at once (kubo2012, equation 5)."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK = 8192  # samples at once
WINDOW = 5  # steps whose gain decides whether to go on: the first of L-BFGS are short


@dataclass(frozen=True)
class Fitted:
    weights: Tensor  # features × classes, in double precision
    objective: float  # F, a sum over samples
    steps: int


class LogLinear:
    """F(w) = Σ_n log p(l_n | ψ_n) − c/2 |w|² with p(l | ψ) ∝ exp(w_lᵀ ψ), for samples in columns of `features`.

    In coordinates of an orthonormal basis |w|² is the squared norm in feature space, Σ_l β_lᵀ G β_l.
    """

    def __init__(self, features: Tensor, labels: Tensor, num_classes: int, penalty: float) -> None:
        self.features, self.labels = features, labels
        self.num_classes, self.penalty = num_classes, penalty

    def _blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield from zip(self.features.split(BLOCK, dim=1), self.labels.split(BLOCK), strict=True)

    def differences(self, weights: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Of each block: its features, log p of its labels, and d_nl = δ(l, l_n) − p(l | ψ_n) (eq. 6)."""
        single = weights.to(self.features.dtype)
        for some, of_them in self._blocks():
            psi, labels = some.to(weights.device), of_them.to(weights.device)
            log_p = torch.log_softmax((single.T @ psi).T, dim=1)  # features are read in the order of memory
            own = labels[:, None]
            log_own = log_p.gather(1, own)
            difference = log_p.exp_().neg_()
            yield psi, log_own, difference.scatter_add_(1, own, torch.ones_like(log_own))

    def value_and_gradient(self, weights: Tensor) -> tuple[float, Tensor]:
        value, gradient = -0.5 * self.penalty * float(weights.square().sum()), -self.penalty * weights
        for psi, log_own, difference in self.differences(weights):
            value += float(log_own.sum(dtype=torch.float64))
            gradient += (difference.T @ psi.T).T
        return value, gradient

    def fit(self, start: Tensor, tolerance: float, max_steps: int, squares: Tensor | None = None) -> Fitted:
        """By L-BFGS from `start`, until WINDOW steps gain less than `tolerance` of |F|.

        Steps are of v = Rᵀw, where RRᵀ = (C − 1)/C² Σ_n ψ_n ψ_nᵀ + cI is the curvature of each class at w = 0; without
        `squares`, the sum, they are of w. Pixels and polynomials vary in few directions by far the most, so that L-BFGS
        by itself takes hundreds of steps.
        """
        v = Scaled(squares, self.num_classes, self.penalty)
        place = v.of(start).requires_grad_()
        optimiser = torch.optim.LBFGS([place], max_iter=1, max_eval=25, line_search_fn="strong_wolfe")
        last = (
            place.detach().clone(),
            *self.value_and_gradient(start),
        )  # which is asked for again at the start of a step

        def closure() -> Tensor:
            nonlocal last
            here = place.detach()
            if not torch.equal(here, last[0]):
                last = here.clone(), *self.value_and_gradient(v.weights(here))
            place.grad = -v.gradient(last[2])
            return torch.tensor(-last[1], dtype=torch.float64)  # a sum: PyTorch takes curvature below 1e-10 for none

        best, values = Fitted(start, last[1], 0), [last[1]]
        for step in range(1, max_steps + 1):
            optimiser.step(closure)
            values.append(-float(closure()))
            if values[-1] > best.objective:
                best = Fitted(v.weights(place.detach()).clone(), values[-1], step)
            if step >= WINDOW and not values[-1] - values[-1 - WINDOW] > tolerance * abs(values[-1]):
                break
        return best


class Scaled:
    """v = Rᵀw, or w itself."""

    def __init__(self, squares: Tensor | None, num_classes: int, penalty: float) -> None:
        self.root = None
        if squares is not None:
            curvature = (num_classes - 1) / num_classes**2 * squares
            least = 1e-6 * float(curvature.diagonal().mean())  # where there is no penalty, or none to speak of
            curvature.diagonal().add_(max(penalty, least))
            self.root = torch.linalg.cholesky(curvature)

    def of(self, weights: Tensor) -> Tensor:
        return weights.clone() if self.root is None else self.root.T @ weights

    def weights(self, v: Tensor) -> Tensor:
        return v if self.root is None else torch.linalg.solve_triangular(self.root.T, v, upper=True)

    def gradient(self, by_weights: Tensor) -> Tensor:
        """With respect to v."""
        if self.root is None:
            return by_weights
        return torch.linalg.solve_triangular(self.root, by_weights, upper=False).contiguous()
