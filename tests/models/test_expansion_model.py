"""Kernel expansions whose coefficients are large and cancel."""

import numpy as np
import pytest
import torch

from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian, Kernel, Polynomial
from kernelam.models.posterior import Inputs
from kernelam.models.pursuit import KernelExpansion
from kernelam.training.subspace import Subspace

CPU, DIM, CLASSES = torch.device("cpu"), 20, 3


def model(kernel: Kernel, y: torch.Tensor) -> KernelExpansion:
    """With weights of 30 or so along orthonormal vectors."""
    made = Subspace(kernel, DIM, CPU)
    for row in y:
        made.add(row)
    weights = torch.from_numpy(30 * np.random.default_rng(1).standard_normal((len(made), CLASSES)))
    inputs = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    common = (Pipeline(), inputs, np.ones(CLASSES), CPU)
    return KernelExpansion(kernel, "nystrom", made.y, made.coefficients(weights), *common)


@pytest.mark.parametrize(
    ("kernel", "spread", "dtype"),
    [(Polynomial(1), 0.003, torch.float64), (Gaussian(10.0), 0.03, torch.float64), (Gaussian(5.0), 1.0, torch.float32)],
)
def test_logits_are_those_in_double_precision(kernel, spread, dtype):
    """Vectors that vary little around one of them are nearly dependent."""
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.standard_normal(DIM) + spread * rng.standard_normal((18, DIM))).float()
    made = model(kernel, y)
    assert made.parameters["beta"].dtype == dtype
    x = torch.from_numpy(rng.standard_normal((50, DIM))).float()
    exact = kernel(x.double(), made.parameters["y"].double()) @ made.parameters["beta"].double()
    assert made.logits(x).dtype == torch.float32
    torch.testing.assert_close(made.logits(x).double(), exact, atol=2e-3, rtol=1e-5)
    common = (made.pipeline, made.inputs, made.counts, CPU)
    again = KernelExpansion.restore(made.config(), made.arrays(), *common)
    assert torch.equal(again.logits(x), made.logits(x))
