"""The exact functions against SciPy, scikit-learn, brute force and numerical integration."""

import itertools
import json
import math

import numpy as np
import pytest
import torch
from scipy.integrate import dblquad, quad
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise

from kernelam.errors import KernelamError
from kernelam.kernels import (
    ArcCosine,
    Composition,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Posteriors,
    Product,
    SparseGaussian,
    Sum,
    kernel_from,
)

G, L, S = Gaussian(1.7), Laplacian(4.0), SparseGaussian(1.2, 3)
NESTED = [
    G,
    L,
    S,
    ArcCosine(1),
    Polynomial(3),
    Linear(),
    Sum((0.3, 0.7), (G, Product((L, S)))),
    Composition(Gaussian(0.8), Composition(ArcCosine(2), Sum((1.0, 2.0), (G, L)), 20, "pca:3"), 30),
    Posteriors(Composition(G, L, 10), "linear"),
    Posteriors(None, "tanh"),
]


@pytest.fixture(scope="module")
def points() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.standard_normal((n, 6), np.float32)) for n in (40, 30))
    return x, y


def test_shift_invariant_kernels_are_their_formulas(points):
    x, y = points
    np.testing.assert_allclose(G(x, y), np.exp(-(cdist(x, y) ** 2) / (2 * 1.7**2)), atol=1e-6)
    np.testing.assert_allclose(G(x, y), pairwise.rbf_kernel(x, y, gamma=1 / (2 * 1.7**2)), atol=1e-6)
    np.testing.assert_allclose(L(x, y), pairwise.laplacian_kernel(x, y, gamma=1 / 4.0), atol=1e-6)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_sparse_gaussian_is_the_mean_over_all_subsets(points, k):
    x, y = points
    subsets = list(itertools.combinations(range(6), k))
    expected = np.mean([np.exp(-(cdist(x[:, s], y[:, s]) ** 2) / (2 * 1.2**2)) for s in map(list, subsets)], axis=0)
    np.testing.assert_allclose(SparseGaussian(1.2, k)(x, y), expected, atol=1e-6)


def test_sparse_gaussian_of_many_coordinates_neither_overflows_nor_vanishes():
    """Equal coordinates: every subset has the same kernel."""
    x, y = torch.zeros(1, 440), torch.full((1, 440), 0.3)
    assert float(SparseGaussian(1.2, 200)(x, y)) == pytest.approx(math.exp(-200 * 0.09 / (2 * 1.2**2)), rel=1e-5)


@pytest.mark.parametrize("degree", [2, 3])
def test_polynomial_and_linear_are_their_formulas(points, degree):
    x, y = points
    expected = pairwise.polynomial_kernel(x, y, degree=degree, gamma=1.0, coef0=1.0)
    np.testing.assert_allclose(Polynomial(degree)(x, y), expected, rtol=1e-4, atol=1e-4)
    expected = pairwise.polynomial_kernel(x, y, degree=degree, gamma=0.25, coef0=1.0)
    np.testing.assert_allclose(Polynomial(degree).with_width(4.0)(x, y), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(Linear()(x, y), pairwise.linear_kernel(x, y), atol=1e-5)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("angle", [0.0, 0.4, 1.9, math.pi])
def test_arc_cosine_is_its_integral(degree, angle):
    """2 ∫ N(w; 0, I) Θ(w·x) Θ(w·y) (w·x)ⁿ (w·y)ⁿ dw (cho2009, equation 1), in polar coordinates in the plane."""
    a, b = 1.3, 0.7
    low, high = angle - math.pi / 2, math.pi / 2  # where both cosines are positive
    radial = quad(lambda r: r ** (2 * degree + 1) * math.exp(-r * r / 2), 0, math.inf)[0]
    turn = quad(lambda t: (math.cos(t) * math.cos(t - angle)) ** degree, low, high)[0]
    expected = 2 * (a * b) ** degree * radial * turn / (2 * math.pi)
    x = torch.tensor([[a, 0.0]])
    y = torch.tensor([[b * math.cos(angle), b * math.sin(angle)]])
    assert float(ArcCosine(degree)(x, y)) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_arc_cosine_of_large_norms_in_single_precision(degree):
    """As layers of degree 2 have them, whose products are beyond it."""
    kernel, xy = ArcCosine(degree), torch.tensor(0.3)
    one, large = kernel.from_products(torch.tensor(1.0), torch.tensor(1.0), xy), torch.tensor(1e25)
    norms = 1e25**degree
    if norms < 1e38:
        assert float(kernel.from_products(large, large, xy * large)) == pytest.approx(float(one) * norms, rel=1e-5)
    small = torch.tensor(1e-25)
    if degree < 2:
        assert float(kernel.from_products(small, small, xy * small)) == pytest.approx(float(one) / norms, rel=1e-5)


def test_arc_cosine_in_the_plane_without_polar_coordinates():
    def density(v: float, u: float) -> float:
        return math.exp(-(u * u + v * v) / 2) / (2 * math.pi) * max(u, 0.0) * max(0.6 * u + 0.8 * v, 0.0)

    expected = 2 * dblquad(density, 0, 8, lambda u: -0.75 * u, 8)[0]
    assert float(ArcCosine(1)(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]]))) == pytest.approx(
        expected, abs=1e-5
    )


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_arc_cosine_is_stable_at_no_angle_and_zero_vectors(degree):
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((50, 9), np.float32)) * 1e3
    exact = ArcCosine(degree)
    norm = x.double().norm(dim=1)
    scale = norm ** (2 * degree) * {0: 1, 1: 1, 2: 3}[degree]
    torch.testing.assert_close(exact(x, x).diagonal().double(), scale, rtol=1e-6, atol=0)
    torch.testing.assert_close(exact.diagonal(x).double(), scale, rtol=1e-6, atol=0)
    with_zero = exact(torch.cat([x[:2], torch.zeros(1, 9)]), torch.cat([x[:2], torch.zeros(1, 9)]))
    assert torch.equal(with_zero[2], torch.full((3,), 0.5 if degree == 0 else 0.0))


def test_sums_and_products_are_sums_and_products(points):
    x, y = points
    torch.testing.assert_close(Sum((0.3, 0.7), (G, L))(x, y), 0.3 * G(x, y) + 0.7 * L(x, y))
    torch.testing.assert_close(Product((G, L, S))(x, y), G(x, y) * L(x, y) * S(x, y))
    mixed = Sum((1.0, 2.0), (Polynomial(2), Product((G, ArcCosine(1)))))
    torch.testing.assert_close(mixed(x, y), Polynomial(2)(x, y) + 2 * G(x, y) * ArcCosine(1)(x, y))
    torch.testing.assert_close(mixed.diagonal(x), mixed(x, x).diagonal())
    xx, yy = x.square().sum(1)[:, None], y.square().sum(1)[None]
    torch.testing.assert_close(mixed.from_products(xx, yy, x @ y.T), mixed(x, y), rtol=1e-4, atol=1e-4)


def layers(degrees: list[int], x: np.ndarray, y: np.ndarray) -> float:
    """cho2009, equations 9 and 10, for one pair, in the paper's notation: degrees from the input up."""
    kxx, kyy, kxy = x @ x, y @ y, x @ y
    for n in degrees:
        theta = math.acos(max(-1.0, min(1.0, kxy / math.sqrt(kxx * kyy))))
        J = [
            lambda t: math.pi - t,
            lambda t: math.sin(t) + (math.pi - t) * math.cos(t),
            lambda t: 3 * math.sin(t) * math.cos(t) + (math.pi - t) * (1 + 2 * math.cos(t) ** 2),
        ][n]
        kxy = (kxx * kyy) ** (n / 2) * J(theta) / math.pi
        kxx, kyy = (k**n * J(0.0) / math.pi for k in (kxx, kyy))
    return kxy


@pytest.mark.parametrize("degrees", [[1, 1], [0, 1, 2], [2, 0, 1], [1, 1, 1, 1]])
def test_composed_arc_cosines_are_the_recursion_over_layers(points, degrees):
    x, y = points
    kernel = ArcCosine(degrees[0])
    for degree in degrees[1:]:
        kernel = Composition(ArcCosine(degree), kernel, 10)
    expected = [[layers(degrees, a, b) for b in y.double().numpy()] for a in x.double().numpy()]
    np.testing.assert_allclose(kernel(x, y), expected, rtol=1e-5)
    np.testing.assert_allclose(kernel.diagonal(x), kernel(x, x).diagonal(), rtol=1e-5)
    double = x.double()
    xx = double.square().sum(1)
    again = kernel.from_products(xx[:, None], xx[None], double @ double.T)
    np.testing.assert_allclose(again, kernel(x, x), rtol=1e-5)


def test_a_gaussian_of_any_kernel_has_a_closed_form(points):
    """exp(−[k₁(x, x) + k₁(y, y) − 2 k₁(x, y)] / 2σ²) (lu2014, section 4.2)."""
    x, y = points
    expected = np.exp(-(2.0 - 2.0 * pairwise.laplacian_kernel(x, y, gamma=1 / 4.0)) / (2 * 0.8**2))
    np.testing.assert_allclose(Composition(Gaussian(0.8), L, 10)(x, y), expected, atol=1e-6)


@pytest.mark.parametrize(
    "kernel", [Composition(L, G, 10), Composition(S, G, 10), Composition(Sum((1.0,), (L,)), G, 10)]
)
def test_a_composition_without_a_closed_form_says_so(points, kernel):
    with pytest.raises(KernelamError, match=r"no function of inner products, as .* in closed form"):
        kernel(*points)


@pytest.mark.parametrize("kernel", [Composition(G, G, 10, "pca:3"), Composition(G, Posteriors(None, "tanh"), 10)])
def test_a_fitted_composition_has_no_closed_form(points, kernel):
    with pytest.raises(KernelamError, match="no closed form"):
        kernel(*points)
    with pytest.raises(KernelamError, match="no closed form"):
        kernel.diagonal(points[0])


@pytest.mark.parametrize("kernel", NESTED, ids=str)
def test_settings_make_the_kernel_again(kernel):
    assert kernel_from(json.loads(json.dumps(kernel.settings()))) == kernel


def test_kernel_matrices_are_positive_definite(points):
    x, _ = points
    for kernel in (*NESTED[:7], Composition(ArcCosine(1), G, 10)):
        assert float(torch.linalg.eigvalsh(kernel(x, x).double()).min()) > -1e-5 * float(kernel(x, x).max())


def test_bad_settings_are_sentences(points):
    for bad in (lambda: Gaussian(0.0), lambda: Laplacian(-1.0), lambda: SparseGaussian(float("nan"))):
        with pytest.raises(KernelamError, match="bandwidth above zero"):
            bad()
    with pytest.raises(KernelamError, match="degree 0, 1 and 2, not 3"):
        ArcCosine(3)
    with pytest.raises(KernelamError, match="a degree of at least 1"):
        Polynomial(0)
    with pytest.raises(KernelamError, match="a scale above zero, not 0"):
        Polynomial(2, 0.0)
    with pytest.raises(KernelamError, match="not negative nor all zero"):
        Sum((0.5, -0.1), (G, L))
    with pytest.raises(KernelamError, match="a sum of 2 kernels with 1 weights"):
        Sum((0.5,), (G, L))
    with pytest.raises(KernelamError, match="chooses 7 coordinates, its inputs have 6"):
        SparseGaussian(1.0, 7)(*points)
    with pytest.raises(KernelamError, match="no kernel is called gausian; there are arccos, composition, gaussian"):
        kernel_from({"name": "gausian"})
