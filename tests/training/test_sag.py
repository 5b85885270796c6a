"""SAG against scikit-learn's solution of the same convex problem, and against SGD."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training.sag import Sag

L2, CLASSES, DIM, N = 1e-2, 3, 4, 300


def common() -> tuple:
    inputs = Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    return Pipeline(), inputs, np.ones(CLASSES), torch.device("cpu")


def model(bottleneck: int = 0) -> KernelSoftmax:
    kernel = Gaussian(2.0)
    made = KernelSoftmax(kernel, kernel.feature_map(DIM, 30, 1), bottleneck, *common())
    made.initialise(1)
    return made


@pytest.fixture
def problem() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=N)
    x = rng.standard_normal((N, DIM)) + 0.8 * y[:, None]
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)


def objective(trained: KernelSoftmax, x: torch.Tensor, y: torch.Tensor, l2: float) -> float:
    ce = torch.nn.functional.cross_entropy(trained.logits(x), y)
    return float(ce + l2 / 2 * trained.parameters["theta"].square().sum())


def run(
    trained: KernelSoftmax, x, y, folder: Path, epochs: int, rate: float, half: bool = False, batch: int = 20
) -> Sag:
    sag = Sag(trained, N, folder, L2, half)
    for epoch in range(1, epochs + 1):
        sag.begin(epoch)
        for frames in torch.randperm(N, generator=torch.Generator().manual_seed(epoch)).split(batch):
            sag.step(frames, x[frames], y[frames], rate)
        sag.end(epoch)
    return sag


@pytest.mark.parametrize("half", [False, True])
def test_the_solution_is_scikit_learns(problem, tmp_path, half):
    x, y = problem
    trained = model()
    run(trained, x, y, tmp_path, 150, 0.5, half)
    z = trained.feature_map(x).numpy().astype(np.float64)
    reference = LogisticRegression(C=1 / (N * L2), tol=1e-10, max_iter=10_000).fit(z, y)
    theta = trained.arrays()["theta"].numpy()
    tolerance = 2e-3 if half else 1e-4
    np.testing.assert_allclose(theta - theta.mean(1, keepdims=True), reference.coef_.T, atol=tolerance)
    p = torch.softmax(trained.logits(x), dim=1)
    np.testing.assert_allclose(p, reference.predict_proba(z), atol=tolerance)


def test_the_memory_is_the_sum_over_the_table(problem, tmp_path):
    x, y = problem
    trained = model()
    sag = run(trained, x, y, tmp_path, 3, 2.0, half=True)
    table = np.memmap(tmp_path / "posteriors.3.table", np.float16, "r", shape=(N, CLASSES)).astype(np.float32)
    residual = table - np.eye(CLASSES)[y.numpy()]
    expected = trained.feature_map(x).numpy().T @ residual
    np.testing.assert_allclose(sag.state["theta"][:, :CLASSES], expected, atol=1e-4)
    assert int(sag.state["seen"]) == N
    assert len(list(tmp_path.iterdir())) == 2  # that of the last epoch, and the one it was made from


def test_it_goes_lower_than_the_best_sgd_in_as_many_epochs(problem, tmp_path):
    x, y = problem

    def sgd(rate: float) -> float:
        trained = model()
        for epoch in range(1, 21):
            for frames in torch.randperm(N, generator=torch.Generator().manual_seed(epoch)).split(20):
                trained.step(x[frames], y[frames], rate, L2)
        return objective(trained, x, y, L2)

    def sag(rate: float) -> float:
        trained = model()
        run(trained, x, y, tmp_path, 20, rate)
        return objective(trained, x, y, L2)

    rates = (0.5, 1.0, 2.0, 4.0, 8.0)
    assert min(map(sag, rates)) < min(map(sgd, rates))


def test_what_is_not_convex_is_refused(tmp_path):
    for made in (model(bottleneck=2), Dnn(Network(1, 5), *common())):
        with pytest.raises(KernelamError, match="SAG is for the convex problem"):
            Sag(made, N, tmp_path, 0.0, False)


def test_a_table_that_does_not_fit_is_a_sentence(tmp_path):
    sag = Sag(model(), 10**14, tmp_path, 0.0, False)
    with pytest.raises(KernelamError, match=r"table of posteriors takes 1117587\.1 GiB.*--sag-table half"):
        sag.begin(1)
    assert not list(tmp_path.iterdir())


def test_the_blocks_of_a_table_are_there_before_they_are_written_to(tmp_path):
    """On a disk that fills up, what has none would end the process without a word."""
    sag = Sag(model(), 100_000, tmp_path, 0.0, False)
    sag.begin(1)
    (table,) = tmp_path.iterdir()
    assert 512 * table.stat().st_blocks >= table.stat().st_size > 0
