"""Noise that training adds to its inputs, new in every epoch (lu2014, section 5.2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.randomness import stream


@dataclass(frozen=True)
class Augmentation:
    """mask:p sets each coordinate of an input to 0, its mean, with probability p; noise:s adds N(0, s²) to each."""

    kind: str
    amount: float

    @classmethod
    def parse(cls, text: str) -> "Augmentation":
        kind, _, amount = text.partition(":")
        try:
            parsed = cls(kind, float(amount))
        except ValueError:
            parsed = cls(kind, -1.0)
        if not (0.0 < parsed.amount < (1.0 if kind == "mask" else float("inf")) and kind in ("mask", "noise")):
            raise KernelamError(f"no augmentation is called {text}; say mask:p with 0 < p < 1, or noise:s with s > 0")
        return parsed

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """`x` with the noise, in place."""
        if self.kind == "mask":
            return x.mul_(torch.rand(x.shape, generator=generator, device=x.device) >= self.amount)
        return x.add_(torch.randn(x.shape, generator=generator, device=x.device), alpha=self.amount)


def generator_for(device: torch.device, seed: int, epoch: int) -> torch.Generator:
    """The generator of an epoch's noise."""
    generator = torch.Generator(device)
    return generator.manual_seed(int(stream(seed, "augmentation", epoch).integers(2**63)))
