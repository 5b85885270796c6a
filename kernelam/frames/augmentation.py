"""Noise that training adds to its inputs, new in every epoch (lu2014, section 5.2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frames.deformation import deform, side_of
from kernelam.randomness import stream

LIMITS = {"mask": 1.0, "noise": float("inf"), "deform": float("inf")}


@dataclass(frozen=True)
class Augmentation:
    """mask:p sets each coordinate of an input to 0, its mean, with probability p; noise:s adds N(0, s²) to each;
    deform:s moves the pixels of a square image by about s (see `deform`)."""

    kind: str
    amount: float

    @classmethod
    def parse(cls, text: str) -> "Augmentation":
        kind, _, amount = text.partition(":")
        try:
            parsed = cls(kind, float(amount))
        except ValueError:
            parsed = cls(kind, -1.0)
        if not (0.0 < parsed.amount < LIMITS.get(kind, 0.0)):
            raise KernelamError(
                f"no augmentation is called {text}; say mask:p with 0 < p < 1, noise:s with s > 0, or, for square"
                " images, deform:s with s > 0 pixels"
            )
        return parsed

    def check(self, dim: int, context: tuple[int, int], scaling: str) -> None:
        """Refuse inputs that are not what this is for: those of `dim` numbers from frames in some context."""
        if self.kind != "deform":
            return
        if any(context) or scaling != "shared":
            raise KernelamError(
                "--augment deform:s moves pixels to places of others, so they must be those of one image, all scaled"
                " alike: it needs --splice 0 and --scaling shared"
            )
        side_of(dim)

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """`x` with the noise, in its place but for deformed images."""
        if self.kind == "deform":
            return deform(x, self.amount, generator)
        if self.kind == "mask":
            return x.mul_(torch.rand(x.shape, generator=generator, device=x.device) >= self.amount)
        return x.add_(torch.randn(x.shape, generator=generator, device=x.device), alpha=self.amount)


def generator_for(device: torch.device, seed: int, epoch: int) -> torch.Generator:
    """The generator of an epoch's noise."""
    generator = torch.Generator(device)
    return generator.manual_seed(int(stream(seed, "augmentation", epoch).integers(2**63)))
