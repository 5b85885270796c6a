"""Small random deformations of square images, new whenever a training passes over them.

lu2014 trains on MNIST-8M, which has every digit in many deformed copies; made while training, they take no room.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate

from kernelam.errors import KernelamError

KNOTS = 6  # along a side, whose displacements are independent


def side_of(dim: int) -> int:
    """Of a square image with so many pixels."""
    side = math.isqrt(dim)
    if side * side != dim or side < 2:
        raise KernelamError(f"inputs of {dim} numbers are no square images of one colour, which deform:s is for")
    return side


def deform(x: Tensor, size: float, generator: torch.Generator) -> Tensor:
    """Images, one a row, each as seen at p + d(p) with d(p) = t + Ap + e(p) in pixels, p from −1 to 1 in both axes.

    t and A, which moves, turns, shears and stretches, have entries from −size to size; e is a smooth field of
    displacements by N(0, size²/4) at KNOTS × KNOTS points. Beyond its edges, an image goes on as it is there.
    """
    count, side = len(x), side_of(x.shape[1])
    steps = torch.linspace(-1.0, 1.0, side, device=x.device)
    p = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), dim=2)
    affine = size * (2.0 * torch.rand(count, 3, 2, generator=generator, device=x.device) - 1.0)
    knots = 0.5 * size * torch.randn(count, 2, KNOTS, KNOTS, generator=generator, device=x.device)
    smooth = interpolate(knots, (side, side), mode="bicubic", align_corners=True).permute(0, 2, 3, 1)
    shift, matrix = affine.split([1, 2], dim=1)
    moved = shift.unsqueeze(1) + torch.einsum("yxa,bac->byxc", p, matrix) + smooth
    seen = p + moved * (2.0 / (side - 1))
    images = x.view(count, 1, side, side)
    return grid_sample(images, seen, padding_mode="border", align_corners=True).view(count, -1)
