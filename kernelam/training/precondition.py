"""Directions in which random features vary most, whose gradients are damped so that the rate can be higher."""

import numpy as np
import torch
from torch import Tensor

from kernelam.frames.batches import Batches
from kernelam.frames.order import some
from kernelam.models.softmax import KernelSoftmax
from kernelam.randomness import stream

FRAMES = 4096
ELEMENTS = 1 << 26  # of z held at once: fewer frames serve where features are many
SPARE, ITERATIONS = 16, 8  # of the subspace iteration: directions beyond those wanted, and products with E[z zᵀ]
NOTHING = 1e-5  # of the largest eigenvalue: features do not vary there


@torch.no_grad()
def leading_directions(model: KernelSoftmax, train: Batches, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """The eigenvectors v_1 … v_K (columns) of the largest eigenvalues λ_i of E[z zᵀ], and 1 − λ_{K+1}/λ_i.

    With I − Σ (1 − λ_{K+1}/λ_i) v_i v_iᵀ before it, a gradient sees λ_{K+1} as its largest curvature (EigenPro: Ma and
    Belkin, NIPS 2017). They are found by subspace iteration on random frames. Without a bottleneck a 1 is appended to
    z, for the bias: of processes that share the features, the first one has it, and all have its row of the result.
    """
    features, ranks, rng = model.feature_map, model.ranks, stream(seed, "precondition")
    frames = min(len(train), max(count + 1, min(FRAMES, ELEMENTS // features.total)))
    z, places = features(train.take(torch.from_numpy(some(len(train), frames, rng)))[0]), features.places
    biased, total = not model.bottleneck, features.total + (not model.bottleneck)
    if biased and ranks.features.index == 0:
        z, places = torch.cat([z, z.new_ones(frames, 1)], dim=1), torch.cat([places, torch.tensor([features.total])])
    count = min(count, frames - 1, total - 1)
    size = (total, min(count + SPARE, frames, total))
    basis = torch.from_numpy(rng.standard_normal(size, dtype=np.float32)).to(z.device)
    own = places.to(z.device)
    for _ in range(ITERATIONS):
        basis = torch.linalg.qr(ranks.spread(z.T @ ranks.sum(z @ basis[own]), own, total)).Q
    seen = ranks.sum(z @ basis[own]).double()
    values, vectors = torch.linalg.eigh(seen.T @ seen / frames)
    values, vectors = ranks.same(values.flip(0)), vectors.flip(1).float()
    count = min(count, int((values > NOTHING * values[0]).sum()) - 1)  # to damp all there is would leave no gradient
    directions = ranks.same(basis @ vectors[:, :count])
    if ranks.features.count > 1:
        rows = torch.cat([features.places, torch.tensor([features.total])]) if biased else features.places
        directions = directions[rows.to(z.device)]
    return directions, (1.0 - values[count] / values[:count]).clamp(0.0, 1.0).float()
