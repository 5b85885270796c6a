"""Directions in which random features vary most, whose gradients are damped so that the rate can be higher."""

import torch
from torch import Tensor

from kernelam.frames.batches import Batches
from kernelam.models.softmax import KernelSoftmax
from kernelam.randomness import stream

FRAMES = 4096
ELEMENTS = 1 << 27  # of z held at once: fewer frames serve where features are many


@torch.no_grad()
def leading_directions(model: KernelSoftmax, train: Batches, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """The eigenvectors v_1 … v_K (columns) of the largest eigenvalues λ_i of E[z zᵀ], and 1 − λ_{K+1}/λ_i.

    With I − Σ (1 − λ_{K+1}/λ_i) v_i v_iᵀ before it, a gradient sees λ_{K+1} as its largest curvature (EigenPro: Ma and
    Belkin, NIPS 2017). They are those of the Gram matrix of random frames: v = Zᵀu / |Zᵀu|. Without a bottleneck a 1 is
    appended to z, for the bias.
    """
    features = model.feature_map
    frames = min(len(train), max(count + 1, min(FRAMES, ELEMENTS // features.count)))
    chosen = stream(seed, "precondition").permutation(len(train))[:frames]
    z = features(train.take(torch.from_numpy(chosen))[0])
    if not model.bottleneck:
        z = torch.cat([z, z.new_ones(frames, 1)], dim=1)
    count = min(count, frames - 1, z.shape[1] - 1)
    values, vectors = torch.linalg.eigh((z @ z.T).double() / frames)
    values, vectors = values.flip(0)[: count + 1].float(), vectors.flip(1)[:, :count].float()
    directions = torch.nn.functional.normalize(z.T @ vectors, dim=0)
    return directions.contiguous(), (1.0 - values[count] / values[:count]).clamp(0.0, 1.0)
