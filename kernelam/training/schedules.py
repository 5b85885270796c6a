"""How the learning rate falls, when weights go back, and when training ends."""

from dataclasses import dataclass
from typing import Protocol


class Schedule(Protocol):
    """The state of a schedule is its fields, which a checkpoint keeps."""

    rate: float
    halvings: int

    def rate_at(self, share: float) -> float:
        """The learning rate when `share` of the running epoch is done."""

    def judge(self, metric: float) -> tuple[bool, bool]:
        """(are the weights kept, was the rate halved), given the heldout metric after an epoch. NaN is the worst."""

    @property
    def averages(self) -> bool:
        """Whether the running epoch ends with the mean of the weights that it saw."""

    @property
    def ended(self) -> bool: ...


@dataclass
class Halving:
    """After an epoch the rate is halved if the heldout metric improved by less than 1 %, and the weights go back to
    the start of the epoch if it got worse (may2017, section 6.2). Training ends with the `max_halvings`-th halving, or
    after `max_epochs`.

    The paper does not say when it ends. After k halvings the rate is 2⁻ᵏ of the first one, and what an epoch can still
    gain shrinks with it.
    """

    rate: float
    best: float
    max_epochs: int
    max_halvings: int = 6
    min_gain: float = 0.01
    epochs: int = 0
    halvings: int = 0

    @property
    def averages(self) -> bool:
        return False

    def rate_at(self, share: float) -> float:
        return self.rate

    def judge(self, metric: float) -> tuple[bool, bool]:
        kept = metric <= self.best
        halved = not (self.best - metric) >= self.min_gain * abs(self.best)
        if halved:
            self.rate /= 2.0
            self.halvings += 1
        if kept:
            self.best = metric
        self.epochs += 1
        return kept, halved

    @property
    def ended(self) -> bool:
        return self.halvings >= self.max_halvings or self.epochs >= self.max_epochs


@dataclass
class Decay:
    """The rate falls in a straight line from `rate` to zero over `max_epochs`, which averages the noise of the
    gradients away as the halving rule does in many more epochs. An epoch that ends worse than `untrained` has diverged;
    it is done again at half the rate.
    """

    rate: float
    untrained: float
    max_epochs: int
    max_halvings: int = 6
    epochs: int = 0
    halvings: int = 0

    @property
    def averages(self) -> bool:
        return False

    def rate_at(self, share: float) -> float:
        return self.rate * (1.0 - (self.epochs + share) / self.max_epochs)

    def judge(self, metric: float) -> tuple[bool, bool]:
        if not metric < self.untrained:
            self.rate /= 2.0
            self.halvings += 1
            return False, True
        self.epochs += 1
        return True, False

    @property
    def ended(self) -> bool:
        return self.halvings >= self.max_halvings or self.epochs >= self.max_epochs


@dataclass
class Average(Decay):
    """The rate stays as it is, and the last of `max_epochs` ends with the mean of its weights."""

    @property
    def averages(self) -> bool:
        return self.epochs == self.max_epochs - 1

    def rate_at(self, share: float) -> float:
        return self.rate
