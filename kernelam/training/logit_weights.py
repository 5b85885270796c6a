"""Weights of the logits of fixed models by maximum likelihood: convex, with one unknown a model (lu2014, eq. 11)."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from kernelam.frames.batches import Batches
from kernelam.memory import available
from kernelam.models.combination import Combination

KEPT = 2 << 30
"""Bytes of logits, float32, that are kept in memory, or half of what is free; if there are more, every Newton step
computes them anew."""

BATCH = 512
MAX_STEPS = 50
TOLERANCE = 1e-12  # nats a frame that another step promises to gain
NEAR = 1e-3
RIDGE = 1e-10  # curvature that is added: a direction in which nothing changes, as of equal models, is left alone

Derivatives = tuple[float, np.ndarray, np.ndarray]


class HeldoutLogits:
    """Logits f_i of all members (members × batch × classes, float64) and labels, batch by batch, again and again."""

    def __init__(self, model: Combination, frames: Batches, kept: int = KEPT) -> None:
        self.model, self.frames = model, frames
        size = 4 * len(model.members) * len(frames) * model.num_classes
        self._kept = list(self._computed()) if size <= min(kept, available(frames.device) // 2) else None

    def _computed(self) -> Iterator[tuple[Tensor, Tensor]]:
        for x, labels in self.frames.in_order(BATCH):
            yield self.model.logits_of_members(x), labels

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for logits, labels in self._computed() if self._kept is None else self._kept:
            yield logits.double(), labels

    def losses(self) -> np.ndarray:
        """The mean cross-entropy of each member."""
        total = np.zeros(len(self.model.members))
        for logits, labels in self:
            log_p = torch.log_softmax(logits, dim=2)
            total -= log_p.gather(2, labels.expand(len(total), -1)[:, :, None]).sum(dim=(1, 2)).cpu().numpy()
        return total / len(self.frames)

    def derivatives(self, a: np.ndarray) -> Derivatives:
        """L = −mean log p(y_t | x_t) with the weights a, its gradient and its Hessian:

        ∂L/∂a_i = mean(E_p f_i − f_i(x_t)_{y_t}), ∂²L/∂a_i∂a_j = mean Cov_p(f_i, f_j).
        """
        loss, gradient, hessian = 0.0, np.zeros(len(a)), np.zeros((len(a), len(a)))
        for logits, labels in self:
            log_p = torch.log_softmax(torch.tensordot(torch.from_numpy(a).to(logits.device), logits, 1), dim=1)
            p = log_p.exp()
            expected = (logits * p).sum(dim=2, keepdim=True)
            of_labels = logits.gather(2, labels.expand(len(a), -1)[:, :, None])
            spread = ((logits - expected) * p.sqrt()).flatten(1)
            loss -= float(log_p.gather(1, labels[:, None]).sum())
            gradient += (expected - of_labels).sum(dim=(1, 2)).cpu().numpy()
            hessian += (spread @ spread.T).cpu().numpy()
        count = len(self.frames)
        return loss / count, gradient / count, hessian / count


def fit_weights(derivatives: Callable[[np.ndarray], Derivatives], count: int) -> np.ndarray:
    """The least of a convex function over a ≥ 0, from a_i = 1/count, by projected Newton steps.

    A weight near zero whose gradient is positive goes there; the others take the Newton step among themselves, cut off
    at zero, and halved until the function falls as its slope promises. What is near shrinks with the distance from the
    solution (Bertsekas, SIAM J. Control Optim. 1982): a step that is cut off at once would lead nowhere.
    """
    a = np.full(count, 1.0 / count)
    now = derivatives(a)
    for _ in range(MAX_STEPS):
        _, gradient, hessian = now
        near = min(NEAR, float(np.abs(a - np.maximum(a - gradient, 0.0)).max()))
        free = (a > near) | (gradient < 0)
        step = -a
        step[free] = -np.linalg.solve((hessian + RIDGE * np.eye(count))[np.ix_(free, free)], gradient[free])
        found = _descend(derivatives, a, step, now) if -gradient @ step > TOLERANCE else None
        if found is None:
            break
        a, now = found
    return a


def _descend(
    derivatives: Callable[[np.ndarray], Derivatives], a: np.ndarray, step: np.ndarray, now: Derivatives
) -> tuple[np.ndarray, Derivatives] | None:
    """Where the step, or a half, a quarter, … of it, leads; None if rounding hides what is left to gain."""
    loss, gradient, _ = now
    for halvings in range(40):
        new = np.maximum(a + step / 2**halvings, 0.0)
        promised = gradient @ (a - new)
        if promised > 0 and (then := derivatives(new))[0] <= loss - 1e-4 * promised:
            return new, then
    return None
