"""Sums, systems, maps and scores of ridge regression on a GPU that is not there: they are those of the CPU."""

from pathlib import Path

import numpy as np
import pytest
import torch
from pretended_gpu import DEVICE, OnDevice, PretendedGpu

from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models.posterior import Inputs
from kernelam.models.ridge import SCHEMES, Ridge
from kernelam.training.gram import Grams, Sums, accumulate, assemble, units
from kernelam.training.ridge_needs import matrix_sizes
from kernelam.training.ridge_scores import calibrate_model, vote_error
from kernelam.training.ridge_solvers import Solver, solve_pairs, solve_rest

CPU = torch.device("cpu")
COUNTS = np.array([60, 80, 0, 90])
CLASSES, D, DIM = [0, 1, 3], 40, 6


@pytest.fixture
def store(tmp_path: Path) -> FrameStore:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), COUNTS).astype(np.int32)
    frames = (rng.standard_normal((len(labels), DIM)) + rng.standard_normal((4, DIM))[labels]).astype(np.float32)
    return FrameStore.build(tmp_path / "frames", [("u", frames)], {"u": labels})


def fitted(store: FrameStore, folder: Path, device: torch.device, scheme: str, solver: str) -> tuple[Grams, Ridge]:
    """All that training does with tensors."""
    inputs = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    frames = Batches(store, inputs.context, inputs.mean, inputs.scale, device)
    kernel = Gaussian(3.0)
    features = kernel.feature_map(DIM, D, 1).to(device)
    every = units(matrix_sizes(COUNTS, scheme))
    sums = Sums(folder, "f")
    accumulate(every, frames, features, sums)
    grams = assemble(every, D, COUNTS, sums, device)
    one = scheme == "one-vs-one"
    solved = solve_pairs(grams, 0.1, Solver(solver, 1e-5), folder / "pairs", "f") if one else solve_rest(grams, 0.1)
    common = (Pipeline(), inputs, COUNTS.astype(float), device)
    model = Ridge(kernel, features, scheme, torch.tensor(CLASSES), solved.beta, *common)
    assert calibrate_model(model, frames) > 0
    assert vote_error(model, frames) < 0.5
    return grams, model


@pytest.mark.parametrize(
    ("scheme", "solver"), [*((SCHEMES[0], name) for name in ("gmres", "cg", "cholesky")), (SCHEMES[1], "")]
)
def test_everything_stays_on_the_device(store: FrameStore, tmp_path: Path, scheme: str, solver: str) -> None:
    _, expected = fitted(store, tmp_path / "cpu", CPU, scheme, solver)
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((9, DIM)).astype(np.float32))
    with PretendedGpu():
        grams, model = fitted(store, tmp_path / "gpu", DEVICE, scheme, solver)
        assert isinstance(grams.packed(0), OnDevice)
        assert all(isinstance(array, OnDevice) for array in model.parameters.values())
        logits = model.logits(x.to(DEVICE))
        assert isinstance(logits, OnDevice)
        found = logits.cpu()
        with pytest.raises(RuntimeError, match="on the device and on the CPU"):
            model.logits(x)
    torch.testing.assert_close(found, expected.logits(x), rtol=1e-3, atol=1e-3)
