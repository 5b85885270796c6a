"""Exact kernels of expressions, their widths by medians."""

import numpy as np
import pytest
import torch
from test_pursuit import Table

from kernelam.errors import KernelamError
from kernelam.kernels import ArcCosine, Composition, Gaussian, Laplacian, Polynomial, Product, SparseGaussian, Sum
from kernelam.training.exact import fit_kernel, unit_kernel
from kernelam.training.subspace import check_differentiable


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("arccos2", ArcCosine(2)),
        ("arccos1 o arccos1 o arccos0", Composition(ArcCosine(1), Composition(ArcCosine(1), ArcCosine(0)))),
        ("(arccos1 o arccos2) o arccos0", Composition(Composition(ArcCosine(1), ArcCosine(2)), ArcCosine(0))),
        ("gaussian o laplacian", Composition(Gaussian(), Laplacian())),
        ("0.5*gaussian + 2*arccos1", Sum((0.5, 2.0), (Gaussian(), ArcCosine(1)))),
        ("gaussian * polynomial:3", Product((Gaussian(), Polynomial(3)))),
        ("sparse-gaussian:9", SparseGaussian(k=9)),
    ],
)
def test_expressions_are_exact_kernels(text, kernel):
    assert unit_kernel(text) == kernel


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("laplacian o arccos1", "the laplacian kernel is no function of inner products"),
        ("gaussian o pca:5 o gaussian", "pca:5 is fitted to random features"),
        ("arccos1 o posteriors:exp/dnn", "no closed form: it is features of a model"),
        ("arccos3", "a kernel .* is missing"),
    ],
)
def test_what_has_no_closed_form_is_refused(text, sentence):
    with pytest.raises(KernelamError, match=sentence):
        unit_kernel(text)


def test_widths_are_medians_of_distances_in_the_space_below():
    data = Table(500)
    squared = torch.cdist(data.x.double(), data.x.double()).square()
    off = ~torch.eye(500, dtype=torch.bool)
    kernel = fit_kernel("gaussian@2", 1.0, data, 1)
    assert 2 * kernel.sigma**2 == pytest.approx(2 * float(squared[off].median()), rel=0.03)
    outer = fit_kernel("gaussian o arccos1", 0.5, data, 1).outer
    k = ArcCosine(1)(data.x.double(), data.x.double())
    squared = k.diagonal()[:, None] + k.diagonal()[None] - 2 * k
    assert 2 * outer.sigma**2 == pytest.approx(0.5 * float(squared[off].median()), rel=0.03)
    deep = fit_kernel("(gaussian o arccos1) o arccos0", 1.0, data, 1)
    z = Composition(ArcCosine(1), ArcCosine(0))
    kk = z(data.x.double(), data.x.double())
    assert 2 * deep.outer.outer.sigma**2 == pytest.approx(float(2 - 2 * kk[off].median()), rel=0.03)


def test_inputs_that_are_all_equal_leave_no_width():
    data = Table(50)
    data.x = torch.zeros_like(data.x)
    for text in ("gaussian", "gaussian o arccos1"):
        with pytest.raises(KernelamError, match="leaves the gaussian kernel no width"):
            fit_kernel(text, 1.0, data, 1)


def test_pre_images_of_layers():
    check_differentiable(unit_kernel("gaussian o polynomial:2"))
    for text in ("arccos1 o gaussian", "gaussian o arccos1", "gaussian + arccos1", "gaussian + laplacian"):
        with pytest.raises(KernelamError, match="not a differentiable function of inner products"):
            check_differentiable(unit_kernel(text))
    assert np.isfinite(float(unit_kernel("gaussian o polynomial:2").by_products(*torch.ones(2, 1, 3))))
