"""From scores of classes to probabilities: p(c | x) ∝ exp(τ s_c + b_c), by maximum likelihood on heldout examples.

Without biases the classes stay in the order of their scores. |b|²/2 is taken off the likelihood of all examples: a
class that has none of them would want a bias of −∞. The maximum is that with τ ≥ 0: scores that put classes in the
wrong order are no reason to believe their opposite.
"""

import torch
from torch import Tensor

from kernelam.errors import KernelamError

STEPS = 500


def fit_temperature(scores: Tensor, labels: Tensor, biased: bool = True) -> tuple[float, Tensor]:
    """τ and b of scores, examples × classes; b is zero if it is not biased."""
    if not len(labels):
        raise KernelamError("there is no heldout example of the classes whose probabilities are to be calibrated")
    s = scores.double()
    s = s - s.mean(dim=1, keepdim=True)
    unit = float(s.square().mean().sqrt()) or 1.0
    slope, biases = _fit(s / unit, labels, True, biased)
    if slope < 0.0:
        slope, biases = _fit(s / unit, labels, False, biased) if biased else (0.0, biases)
    return slope / unit, biases.float()


def _fit(s: Tensor, labels: Tensor, sloped: bool, biased: bool) -> tuple[float, Tensor]:
    """With τ = 0 if it is not sloped, b = 0 if it is not biased."""
    slope = torch.full((1,), 1.0 if sloped else 0.0, dtype=torch.float64, device=s.device)
    biases = torch.zeros(s.shape[1], dtype=torch.float64, device=s.device)
    given = [*[slope] * sloped, *[biases] * biased]
    optimiser = torch.optim.LBFGS(
        [one.requires_grad_() for one in given], max_iter=STEPS, tolerance_grad=1e-9, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        log_p = torch.log_softmax(slope * s + biases, dim=1).gather(1, labels[:, None])
        loss = (0.5 * biases.square().sum() - log_p.sum()) / len(labels)
        loss.backward()
        return loss

    optimiser.step(closure)
    return float(slope.detach()), biases.detach()
