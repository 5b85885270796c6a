"""The sums of ridge regression as a share of the machine's own matrix product, the symmetric half counted once."""

from typing import Any

import torch

from kernelam.kernels import Gaussian
from kernelam.training.bench import SIGMA, Stopwatch
from kernelam.training.gram import chunk_of
from kernelam.training.triangles import Triangle


def gram(watch: Stopwatch, count: int, dim: int) -> dict[str, Any]:
    """A += ZᵀZ of a chunk of frames with `count` features, D(D + 1) flops a frame; and with z(x) of `dim` inputs,
    cosines and sines of D/2 projections, which take dD more."""
    frames, triangle = chunk_of(count), Triangle(count)
    x = torch.randn(frames, dim, generator=torch.Generator().manual_seed(1))
    features = Gaussian(SIGMA).feature_map(dim, count, 1)
    z, packed = features(x), torch.zeros(triangle.size)
    times = watch(
        f"sums at D = {count}",
        {"sums": lambda: triangle.add(packed, z.T), "all": lambda: triangle.add(packed, features(x, z).T)},
    )
    flops = frames * count * (count + 1)
    return {
        "D": count,
        "frames_per_second": round(frames / times.median["all"], 1),
        "gemm_share": round(times.share("sums", flops), 4),
        "with_features": round(times.share("all", flops + frames * count * dim), 4),
    }
