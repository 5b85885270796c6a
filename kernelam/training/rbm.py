"""Restricted Boltzmann machines, by one step of contrastive divergence (Hinton 2002)."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

MOMENTUM, LATER = 0.5, 0.9  # in the first epochs, and from epoch CHANGE on
CHANGE = 5
L2 = 2e-4
RATE, GAUSSIAN_RATE = 0.1, 0.005  # with up to WIDE hidden units
WIDE = 1000


class Rbm:
    """p(v, h) ∝ exp(−E) with binary h: E = −aᵀv − cᵀh − vᵀWh for binary v, or, for real v of variance 1,
    E = |v − a|²/2 − cᵀh − vᵀWh."""

    def __init__(self, weights: Tensor, gaussian: bool, seed: int, halvings: int = 0) -> None:
        self.weights, self.gaussian = weights, gaussian
        gentle = min(1.0, WIDE / weights.shape[1]) ** 2  # at the full rate more units saturate
        self.rate = (GAUSSIAN_RATE if gaussian else RATE) * gentle / 2**halvings
        self.visible, self.hidden = weights.new_zeros(weights.shape[0]), weights.new_zeros(weights.shape[1])
        self.velocity = [torch.zeros_like(array) for array in (weights, self.visible, self.hidden)]
        self.generator = torch.Generator(weights.device).manual_seed(seed)

    def up(self, v: Tensor) -> Tensor:
        """p(h = 1 | v)."""
        return torch.sigmoid(torch.addmm(self.hidden, v, self.weights))

    def down(self, h: Tensor) -> Tensor:
        """The mean of v given h."""
        mean = torch.addmm(self.visible, h, self.weights.T)
        return mean if self.gaussian else torch.sigmoid(mean)

    def free_energy(self, v: Tensor) -> Tensor:
        """−log Σ_h exp(−E(v, h)) of each row."""
        field = (v - self.visible).square().sum(1) / 2.0 if self.gaussian else -(v @ self.visible)
        return field - softplus(torch.addmm(self.hidden, v, self.weights)).sum(1)

    def statistics(self, v: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Sums over the rows of v: vᵀh, v and h of the data minus those of their reconstruction, and its squared error.

        The reconstruction is the mean of v given a sample of h, and its h a probability.
        """
        first = self.up(v)
        drawn = torch.rand(first.shape, generator=self.generator, device=v.device)
        again = self.down((drawn < first).to(v.dtype))
        second = self.up(again)
        error = (v - again).square().sum(dtype=torch.float64)
        return v.T @ first - again.T @ second, (v - again).sum(0), (first - second).sum(0), error

    def step(self, v: Tensor, epoch: int) -> Tensor:
        """Climb by one batch; returns the squared error of its reconstruction."""
        *gradients, error = self.statistics(v)
        momentum, rate = MOMENTUM if epoch < CHANGE else LATER, self.rate
        for array, velocity, gradient in zip(
            (self.weights, self.visible, self.hidden), self.velocity, gradients, strict=True
        ):
            velocity.mul_(momentum).add_(gradient, alpha=rate / len(v))
            if array is self.weights:
                velocity.add_(array, alpha=-rate * L2)
            array.add_(velocity)
        return error
