"""Models of blocks of random features, averaged into one (lu2014, eq. 8)."""

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian, Kernel, Laplacian, SparseGaussian, Sum
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax, averaged

CLASSES, DIM = 11, 6


def model(kernel: Kernel, number: int, plan: str = "paired", count: int = 40, bottleneck: int = 0) -> KernelSoftmax:
    inputs = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    features = kernel.feature_map(DIM, count, 1, plan, first_block=number)
    made = KernelSoftmax(kernel, features, bottleneck, Pipeline(), inputs, np.ones(CLASSES), torch.device("cpu"))
    made.initialise(1)
    generator = torch.Generator().manual_seed(number)
    for _ in range(3):
        x, y = torch.randn(50, DIM, generator=generator), torch.randint(CLASSES, (50,), generator=generator)
        made.step(x, y, 5.0)
    return made


@pytest.mark.parametrize("plan", ["paired", "independent"])
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(3.0), SparseGaussian(1.5, 3)], ids=lambda k: k.name)
def test_the_logits_are_the_mean_of_those_of_the_blocks(kernel, plan):
    blocks = [model(kernel, number, plan, count) for number, count in enumerate((40, 40, 20))]
    joined = averaged(blocks)
    x = torch.randn(30, DIM, generator=torch.Generator().manual_seed(9))
    expected = torch.stack([block.logits(x) for block in blocks]).mean(dim=0)
    assert joined.feature_map.count == 100
    torch.testing.assert_close(joined.logits(x), expected, rtol=1e-4, atol=1e-5)
    restored = KernelSoftmax.restore(
        *(joined.config(), joined.arrays(), joined.pipeline, joined.inputs, joined.counts, joined.device)
    )
    assert torch.equal(restored.logits(x), joined.logits(x))


def test_what_cannot_be_one_model_is_a_sentence():
    with pytest.raises(KernelamError, match="without a bottleneck"):
        averaged([model(Gaussian(2.0), 0, bottleneck=3), model(Gaussian(2.0), 1, bottleneck=3)])
    with pytest.raises(KernelamError, match="of one kernel"):
        averaged([model(Gaussian(2.0), 0), model(Gaussian(2.5), 1)])
    both = Sum((0.5, 0.5), (Gaussian(2.0), Laplacian(3.0)))
    with pytest.raises(KernelamError, match="not for sums"):
        averaged([model(both, 0), model(both, 1)])
