"""Every kernel: its random features tend to its exact function, in blocks that do not depend on who draws them."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from kernelam.errors import KernelamError
from kernelam.kernels import Gaussian, kernel_class
from kernelam.kernels.base import BLOCK

KERNELS = [Gaussian(3.0)]


@pytest.fixture
def points() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.standard_normal((40, 6), np.float32)), torch.from_numpy(
        rng.standard_normal((30, 6), np.float32)
    )


def test_gaussian_is_its_formula(points):
    x, y = points
    expected = np.exp(-(cdist(x, y) ** 2) / (2 * 1.7**2))
    np.testing.assert_allclose(Gaussian(1.7)(x, y), expected, atol=1e-6)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.settings()["name"])
def test_random_features_are_unbiased_and_their_error_falls_as_the_root_of_their_number(kernel, paired, points):
    x, y = points
    exact = kernel(x, y)
    errors = []
    counts = (256, 1024, 4096)
    for count in counts:
        products = [z(x) @ z(y).T for z in (kernel.feature_map(6, count, seed, paired=paired) for seed in range(8))]
        errors.append(float(torch.stack([(p - exact).square().mean() for p in products]).mean().sqrt()))
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(slope + 0.5) < 0.1
    mean = torch.stack(
        [z(x) @ z(y).T for z in (kernel.feature_map(6, 4096, s, paired=paired) for s in range(40))]
    ).mean(0)
    assert float((mean - exact).abs().max()) < 5 * errors[-1] / 40**0.5


def test_pairs_are_more_accurate_than_phases(points):
    x, y = points
    exact = Gaussian(3.0)(x, y)

    def error(paired: bool) -> float:
        maps = [Gaussian(3.0).feature_map(6, 512, seed, paired=paired) for seed in range(20)]
        return float(torch.stack([(z(x) @ z(y).T - exact).square().mean() for z in maps]).mean())

    assert error(True) < error(False)


def test_features_with_a_phase_are_the_papers_formula(points):
    x, _ = points
    z = Gaussian(2.0).feature_map(6, 10, seed=3, paired=False)
    omega, b = z.arrays["omega"], z.arrays["b"]
    assert z.count == 10
    torch.testing.assert_close(z(x), (2 / 10) ** 0.5 * torch.cos(x @ omega + b))


def test_frequencies_are_drawn_block_by_block():
    """A larger map begins with the smaller one: what a rank draws does not depend on the others."""
    few = Gaussian(2.0).feature_map(5, BLOCK, seed=1).arrays["omega"]
    many = Gaussian(2.0).feature_map(5, 4 * BLOCK + 6, seed=1).arrays["omega"]
    torch.testing.assert_close(few, many[:, : few.shape[1]], rtol=0, atol=0)
    assert not torch.equal(few, Gaussian(2.0).feature_map(5, BLOCK, seed=2).arrays["omega"])


def test_median_bandwidth():
    rng = np.random.default_rng(1)
    x, y = (torch.from_numpy(rng.standard_normal((5001, 3), np.float32)) for _ in range(2))
    median = np.median(((x - y) ** 2).sum(1))
    assert Gaussian.from_pairs(x, y, 0.5).sigma == pytest.approx((0.5 * median / 2) ** 0.5, rel=1e-5)


def test_bad_settings_are_sentences():
    same = torch.ones(10, 3)
    with pytest.raises(KernelamError, match="features are constant"):
        Gaussian.from_pairs(same, same, 1.0)
    with pytest.raises(KernelamError, match="bandwidth above zero"):
        Gaussian(0.0)
    with pytest.raises(KernelamError, match="even number"):
        Gaussian(1.0).feature_map(3, 7, seed=1)
    with pytest.raises(KernelamError, match="no kernel is called gausian; there are gaussian"):
        kernel_class("gausian")
