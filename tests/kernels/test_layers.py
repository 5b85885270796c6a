"""Arc-cosine kernels of several layers against numerical integration, wide random networks and random features."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.integrate import dblquad, quad

from kernelam.errors import KernelamError
from kernelam.kernels import ArcCosine, Composition, Gaussian, Laplacian
from kernelam.kernels.composition import arc_cosine_layers
from kernelam.training.exact import unit_kernel

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal(5), RNG.standard_normal(5)
DEGREES = [degrees for depth in (1, 2, 3) for degrees in itertools.product((0, 1, 2), repeat=depth)]


def integral(n: int, xx: float, yy: float, xy: float) -> float:
    """Equation 1 of two vectors with these inner products, in the plane that they span: over the angle t of w, where
    both w·x and w·y are above zero, and its length r."""
    angle = math.acos(max(-1.0, min(1.0, xy / math.sqrt(xx * yy))))
    turn, error = quad(lambda t: (math.cos(t) * math.cos(t - angle)) ** n, angle - math.pi / 2, math.pi / 2)
    assert error < 1e-8
    length = quad(lambda r: r ** (2 * n + 1) * math.exp(-r * r / 2), 0, math.inf)[0]
    return 2 * (xx * yy) ** (n / 2) * turn * length / (2 * math.pi)


def integrated(degrees: tuple[int, ...]) -> float:
    xx, yy, xy = X @ X, Y @ Y, X @ Y
    for n in degrees:
        xx, yy, xy = integral(n, xx, xx, xx), integral(n, yy, yy, yy), integral(n, xx, yy, xy)
    return xy


@pytest.mark.parametrize("degrees", DEGREES, ids=str)
def test_layers_are_integrals_of_the_layers_below(degrees):
    kernel, x, y = arc_cosine_layers(degrees), torch.from_numpy(X)[None], torch.from_numpy(Y)[None]
    expected = integrated(degrees)
    assert float(kernel(x, y)) == pytest.approx(expected, rel=1e-9)
    assert float(kernel.by_products(x, y)) == pytest.approx(expected, rel=1e-9)
    assert float(kernel.matrix(x.float(), y.float())) == pytest.approx(expected, rel=1e-5)
    assert unit_kernel(" o ".join(f"arccos{n}" for n in reversed(degrees))) == kernel


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_integral_in_the_plane_is_that_over_both_weights(n):
    """The same without polar coordinates."""
    a, b, xy = 1.3, 0.8, -0.3
    cos = xy / (a * b)
    sin = math.sqrt(1 - cos * cos)

    def density(v: float, u: float) -> float:
        return math.exp(-(u * u + v * v) / 2) / (2 * math.pi) * (a * u * b * (u * cos + v * sin)) ** n

    expected = 2 * dblquad(density, 0, 9, lambda u: -u * cos / sin, 9)[0]
    assert integral(n, a * a, b * b, xy) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("degrees", [(0, 1), (1, 0, 1), (1, 1, 2)])
def test_layers_are_what_wide_networks_of_random_weights_compute(degrees):
    rng, width = np.random.default_rng(1), 3000
    found = []
    for _ in range(40 // len(degrees)):
        h = np.stack([X, Y])
        for n in degrees:
            p = h @ rng.standard_normal((h.shape[1], width))
            h = math.sqrt(2 / width) * (p > 0) * p**n
        found.append(h[0] @ h[1])
    exact = float(arc_cosine_layers(degrees)(torch.from_numpy(X)[None], torch.from_numpy(Y)[None]))
    error = np.std(found) / len(found) ** 0.5
    assert error < 0.05 * exact
    assert abs(np.mean(found) - exact) < 4 * error + 0.005 * exact  # wide, not infinitely


@pytest.mark.parametrize("degrees", [(1, 1), (0, 1), (2, 1, 1), (1, 0, 0)])
def test_random_features_of_layers_tend_to_the_exact_function(degrees):
    x = torch.from_numpy(np.random.default_rng(2).standard_normal((20, 5), np.float32))
    exact = arc_cosine_layers(degrees)(x, x)
    errors = []
    for count in (100, 400, 1600):
        kernel = ArcCosine(degrees[0])
        for n in degrees[1:]:
            kernel = Composition(ArcCosine(n), kernel, count)
        assert torch.equal(kernel(x, x), exact)
        found = [kernel.feature_map(5, count, seed)(x) for seed in range(10)]
        errors.append(float(torch.stack([(z @ z.T - exact) / exact.max() for z in found]).square().mean().sqrt()))
    assert abs(np.polyfit(np.log([100, 400, 1600]), np.log(errors), 1)[0] + 0.5) < 0.12
    assert errors[-1] < 0.1


def test_many_layers_take_as_many_times_as_long_and_no_more():
    """By products, each layer asks the one below for norms: not for three times as much as it was asked itself."""
    x = torch.from_numpy(np.random.default_rng(3).standard_normal((4, 5)))
    deep = arc_cosine_layers([1] * 20)
    torch.testing.assert_close(deep.by_products(x[:2], x[2:]), deep(x[:2], x[2:]))
    torch.testing.assert_close(deep.norm_from(x.square().sum(1)), deep.diagonal(x))


def test_what_is_out_of_range_is_a_sentence():
    with pytest.raises(KernelamError, match="degree 0, 1 and 2, not 3"):
        arc_cosine_layers([1, 3])
    with pytest.raises(KernelamError, match="a depth of at least 1, not 0"):
        arc_cosine_layers([])
    with pytest.raises(KernelamError, match="only if its inner map has a number of them"):
        arc_cosine_layers([1, 1]).feature_map(5, 10, 1)


def test_the_matrix_of_any_kernel_is_its_exact_function():
    x, y = (torch.from_numpy(RNG.standard_normal((n, 4), np.float32)) for n in (7, 5))
    for kernel in (Laplacian(2.0), Gaussian(1.5), Composition(Gaussian(0.7), Laplacian(2.0))):
        torch.testing.assert_close(kernel.matrix(x, y), kernel(x, y), rtol=1e-5, atol=1e-6)
