"""When to halve the learning rate, when to go back, when to end (may2017, section 6.2)."""

from dataclasses import dataclass


@dataclass
class Halving:
    """After an epoch the rate is halved if the heldout metric improved by less than 1 %, and the weights go back to
    the start of the epoch if it got worse. Training ends with the `max_halvings`-th halving.

    The paper does not say when it ends. After k halvings the rate is 2⁻ᵏ of the first one, and what an epoch can still
    gain shrinks with it.
    """

    rate: float
    best: float
    halvings: int = 0
    max_halvings: int = 6
    min_gain: float = 0.01

    def judge(self, metric: float) -> tuple[bool, bool]:
        """(are the weights kept, was the rate halved), given the metric after an epoch. NaN counts as worse."""
        kept = metric <= self.best
        halved = not (self.best - metric) >= self.min_gain * abs(self.best)
        if halved:
            self.rate /= 2.0
            self.halvings += 1
        if kept:
            self.best = metric
        return kept, halved

    @property
    def ended(self) -> bool:
        return self.halvings >= self.max_halvings
