"""Kernel PCA against scikit-learn's, and Nyström's method against PCA of explicit features."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Theirs

from kernelam.errors import KernelamError
from kernelam.kernels import ArcCosine, Gaussian, Linear, Polynomial
from kernelam.kernels.composition import arc_cosine_layers
from kernelam.models import kernel_pca as model
from kernelam.training import kernel_pca
from kernelam.training.kernel_pca import fit_kernel_pca


@pytest.fixture(scope="module")
def digits() -> torch.Tensor:
    return torch.from_numpy((load_digits().data / 16)[:700].astype(np.float32))


def same_but_for_signs(found: torch.Tensor, expected: np.ndarray, tolerance: float) -> None:
    signs = np.sign((found.numpy() * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("kernel", [Gaussian(2.0), ArcCosine(0), ArcCosine(1), arc_cosine_layers([0, 1])], ids=str)
def test_exact_components_are_those_of_scikit_learn(digits, kernel, monkeypatch):
    x, new = digits[:300], digits[300:400]
    monkeypatch.setattr(model, "ELEMENTS", 10_000)
    monkeypatch.setattr(kernel_pca, "ELEMENTS", 10_000)
    found = fit_kernel_pca(kernel, x, 12)
    theirs = Theirs(12, kernel="precomputed", eigen_solver="dense").fit(kernel(x.double(), x.double()).numpy())
    expected = theirs.transform(kernel(new.double(), x.double()).numpy())
    same_but_for_signs(found(new), expected, 2e-4)
    np.testing.assert_allclose(found(x).mean(dim=0), 0, atol=1e-4)
    np.testing.assert_allclose(found(x).double().square().sum(dim=0), theirs.eigenvalues_, rtol=1e-3)
    some = torch.tensor([7, 0, 3])
    torch.testing.assert_close(found.some(some)(new), found(new)[:, some], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), ArcCosine(0), ArcCosine(1), Polynomial(2), Linear()], ids=str)
def test_few_components_of_many_examples_are_those_of_a_factorisation(kernel, monkeypatch):
    """Slowly falling eigenvalues, and kernels of fewer dimensions than the Krylov space has."""
    x = torch.from_numpy(load_digits().data / 16)[:, 20:30]
    calls, krylov = [], kernel_pca._by_krylov

    def noted(matrix, components):
        calls.append(krylov(matrix, components))
        return calls[-1]

    monkeypatch.setattr(kernel_pca, "_by_krylov", noted)
    found = fit_kernel_pca(kernel, x, 60)
    assert calls[0] is not None
    monkeypatch.setattr(kernel_pca, "_by_krylov", lambda matrix, components: None)
    expected = fit_kernel_pca(kernel, x, 60)
    assert found.matrix.shape == expected.matrix.shape
    spread = expected(x).square().sum(dim=0)
    torch.testing.assert_close(found(x).square().sum(dim=0), spread, rtol=1e-9, atol=1e-9 * float(spread[0]))
    torch.testing.assert_close(found(x) @ found(x).T, expected(x) @ expected(x).T, rtol=0, atol=1e-7 * float(spread[0]))


def quadratic(x: torch.Tensor) -> torch.Tensor:
    """φ of (1 + x·y)²: 1, √2 x, all products."""
    products = (x[:, :, None] * x[:, None]).flatten(1)
    return torch.cat([torch.ones(len(x), 1, dtype=x.dtype), 2**0.5 * x, products], dim=1)


@pytest.mark.parametrize("limit", [60, 6000])
def test_components_are_those_of_explicit_features(limit, monkeypatch):
    """60 landmarks span all quadratic features of five inputs: Nyström's method is then exact."""
    monkeypatch.setattr(kernel_pca, "LANDMARKS", limit)
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((400, 5)))
    found = fit_kernel_pca(Polynomial(2), x[:300], 8)
    assert len(found.vectors) == min(limit, 300)
    theirs = PCA(8, svd_solver="full").fit(quadratic(x[:300]))
    same_but_for_signs(found(x[300:]), theirs.transform(quadratic(x[300:])), 1e-6)


def test_landmarks_come_near_to_all_examples(digits, monkeypatch):
    exact = fit_kernel_pca(ArcCosine(1), digits, 10)(digits)
    errors = []
    for limit in (50, 200, 650):
        monkeypatch.setattr(kernel_pca, "LANDMARKS", limit)
        near = fit_kernel_pca(ArcCosine(1), digits, 10)(digits)
        errors.append(float((near @ near.T - exact @ exact.T).norm() / (exact @ exact.T).norm()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 0.05
    torch.testing.assert_close(near.mean(dim=0), torch.zeros(10), atol=1e-3, rtol=0)


def test_components_without_variance_are_left_out(digits):
    x = digits[:100, 10:14]
    assert fit_kernel_pca(Linear(), x, 20).matrix.shape[1] == 4
    with pytest.raises(KernelamError, match="its examples are all equal"):
        fit_kernel_pca(Linear(), torch.zeros(10, 3), 2)


def test_what_cannot_be_is_a_sentence(digits, monkeypatch):
    with pytest.raises(KernelamError, match="101 components are more than the 100 examples"):
        fit_kernel_pca(ArcCosine(1), digits[:100], 101)
    with pytest.raises(KernelamError, match="finds 1 component or more, not 0"):
        fit_kernel_pca(ArcCosine(1), digits[:100], 0)
    monkeypatch.setattr(kernel_pca, "available", lambda device: 1000)
    with pytest.raises(KernelamError, match=r"kernel PCA of 100 examples takes .* fewer --pca-examples take less"):
        fit_kernel_pca(ArcCosine(1), digits[:100], 5)
