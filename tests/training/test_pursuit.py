"""Kernel gradient matching pursuit, against explicit features, finite differences and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import ArcCosine, Composition, Gaussian, Laplacian, Linear, Polynomial, SparseGaussian
from kernelam.training import pursuit
from kernelam.training.log_linear import LogLinear
from kernelam.training.preimages import Target, best_preimage, joint_preimages
from kernelam.training.pursuit import METHODS, Pursuit, PursuitOptions, pursue
from kernelam.training.subspace import LEAST, Subspace, check_differentiable

CPU = torch.device("cpu")
KERNELS = [Gaussian(1.5), Polynomial(2), Polynomial(3), Linear()]


class Table:
    """Samples of four classes on two rings and two discs."""

    device = CPU

    def __init__(self, count: int, seed: int = 0, dim: int = 5) -> None:
        rng = np.random.default_rng(seed)
        self.labels = torch.from_numpy(rng.integers(4, size=count))
        x = rng.standard_normal((count, dim))
        x[:, :2] *= (1.0 + self.labels.numpy())[:, None] / np.linalg.norm(x[:, :2], axis=1, keepdims=True)
        self.x = torch.from_numpy(x.astype(np.float32))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        return self.x[frames], self.labels[frames]


def quadratic(x: Tensor) -> Tensor:
    """φ of (1 + x·y)²: 1, √2 x, all products."""
    products = (x[:, :, None] * x[:, None]).flatten(1)
    return torch.cat([torch.ones(len(x), 1, dtype=x.dtype), 2**0.5 * x, products], dim=1)


def spanned(kernel, y: Tensor) -> Subspace:
    made = Subspace(kernel, y.shape[1], CPU)
    assert all(made.add(row) for row in y)
    return made


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_basis_of_a_subspace_is_orthonormal(kernel):
    y = Table(5).x
    made = spanned(kernel, y)
    gram = kernel.by_products(y.double(), y.double())
    q = torch.linalg.inv(made.factor)
    torch.testing.assert_close(q @ gram @ q.T, torch.eye(5, dtype=torch.float64), atol=1e-10, rtol=0)
    torch.testing.assert_close(made.coordinates(y), made.factor)
    torch.testing.assert_close(made.residual(y), torch.zeros(5, dtype=torch.float64), atol=1e-12, rtol=0)
    weights = torch.randn(5, 3, dtype=torch.float64)
    x = Table(7, seed=1).x.double()
    both = made.coordinates(x) @ weights, kernel.by_products(x, y.double()) @ made.coefficients(weights)
    torch.testing.assert_close(*both, rtol=1e-8, atol=1e-8)
    assert made.condition() == pytest.approx(np.linalg.cond(gram / gram.diagonal().outer(gram.diagonal()).sqrt()))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_basis_is_that_of_the_recursion_as_it_is_written(kernel):
    """Eq. 7, one unit vector after the other."""
    y = Table(5).x.double()
    gram, rows = kernel.by_products(y, y), []
    for e in torch.eye(5, dtype=torch.float64):
        q = e - sum(((e @ gram @ other) * other for other in rows), torch.zeros_like(e))
        rows.append(q / (q @ gram @ q).sqrt())
    torch.testing.assert_close(torch.linalg.inv(spanned(kernel, y.float()).factor), torch.stack(rows))


def test_a_basis_of_near_duplicates_is_orthonormal_still():
    """Each new vector is all but in the span of those before it: the Gram matrix has a condition of 10⁹ or so."""
    kernel = Gaussian(1.5)
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.standard_normal((1, 5)) + 0.02 * rng.standard_normal((40, 5))).float()
    made = Subspace(kernel, 5, CPU)
    y = torch.stack([row for row in y if made.add(row)]).double()
    gram, q = kernel.by_products(y, y), torch.linalg.inv(made.factor)
    assert 5 < len(made) < 40
    assert np.linalg.cond(gram) > 1e6
    torch.testing.assert_close(q @ gram @ q.T, torch.eye(len(y), dtype=torch.float64), atol=1e-8, rtol=0)


def test_what_a_subspace_has_already_is_not_added():
    made = spanned(Linear(), torch.eye(3)[:2])
    assert not made.add(torch.tensor([2.0, -1.0, 0.0]))
    assert not made.add(torch.tensor([1.0, 1.0, 0.5 * LEAST**0.5]))
    assert not made.add(torch.zeros(3))
    assert made.add(torch.tensor([1.0, 1.0, 0.1]))
    assert len(made) == 3


def test_the_model_is_that_of_scikit_learn():
    data, penalty = Table(400), 0.7
    psi = torch.from_numpy(np.random.default_rng(1).standard_normal((6, 400))).double()
    model = LogLinear(psi, data.labels, 4, penalty)
    fitted = model.fit(torch.zeros(6, 4, dtype=torch.float64), 1e-12, 500)
    theirs = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-10, max_iter=1000).fit(psi.T, data.labels)
    ours = fitted.weights - fitted.weights.mean(dim=1, keepdim=True)
    np.testing.assert_allclose(ours, theirs.coef_.T, atol=1e-4)
    weights = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    logits = (psi.T @ weights).log_softmax(1).gather(1, data.labels[:, None]).sum()
    value = logits - penalty / 2 * weights.square().sum()
    found, gradient = model.value_and_gradient(weights.detach())
    assert found == pytest.approx(value.item())
    torch.testing.assert_close(gradient, torch.autograd.grad(value, weights)[0])
    assert fitted.objective > found


@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_fits_that_know_of_squares_get_further_in_fewer_steps(penalty):
    """Features that vary by 3 in one direction and by 0.01 in another, as pixels do."""
    rng = np.random.default_rng(2)
    psi = torch.from_numpy(rng.standard_normal((30, 600)) * np.geomspace(3, 0.01, 30)[:, None])
    labels = torch.from_numpy(rng.integers(4, size=600)) * (psi[-1] > 0) + (psi[-2] > 0)
    model, start = LogLinear(psi, labels, 5, penalty), torch.zeros(30, 5, dtype=torch.float64)
    plain, scaled = (model.fit(start, 1e-3, 200, squares) for squares in (None, psi @ psi.T))
    assert scaled.objective > plain.objective
    assert scaled.steps < 0.5 * plain.steps
    ends = [model.fit(start, 1e-12, 3000, squares).objective for squares in (None, psi @ psi.T)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-4)


def target(kernel, count: int = 30) -> Target:
    data = Table(count, seed=3)
    coefficients = torch.from_numpy(np.random.default_rng(4).standard_normal((count, 3)))
    return Target(kernel, data.x.double(), coefficients)


def test_gradients_in_feature_space_are_those_of_explicit_features():
    given, y = target(Polynomial(2)), Table(4, seed=5).x.double()
    g, phi = quadratic(given.x).T @ given.coefficients, quadratic(y)
    torch.testing.assert_close(given.along(y), phi @ g)
    residuals = torch.linalg.lstsq(phi.T, g).solution
    gained = g.square().sum() - (g - phi.T @ residuals).square().sum()
    torch.testing.assert_close(given.explained_together(y), gained, rtol=1e-4, atol=0)
    alone = torch.stack([(row @ g).square().sum() / row.square().sum() for row in phi])
    torch.testing.assert_close(given.explained(y), alone)
    basis = quadratic(Table(6, seed=6).x.double()).T
    left = g - basis @ torch.linalg.lstsq(basis, g).solution
    torch.testing.assert_close(given.without(spanned(Polynomial(2), Table(6, seed=6).x)).along(y), phi @ left)


def test_a_gradient_is_orthogonal_to_all_that_was_added():
    """What is known to be along the vectors is not asked for again, and neither is −cθ, which lies in their span."""
    given, made = target(Gaussian(1.5)), spanned(Gaussian(1.5), Table(6, seed=6).x)
    y = Table(4, seed=5).x.double()
    left = given.without(made, given.along(made.y.double()))
    torch.testing.assert_close(left.along(y), given.without(made).along(y))
    torch.testing.assert_close(left.along(made.y.double()), torch.zeros(6, 3, dtype=torch.float64), atol=1e-6, rtol=0)
    shrunk = given.and_of(made.y, -0.7 * torch.ones(6, 3, dtype=torch.float64))
    torch.testing.assert_close(shrunk.without(made).along(y), left.along(y), atol=1e-6, rtol=1e-5)


def test_few_samples_stand_for_the_gradient_of_all():
    data, rng = Table(500), np.random.default_rng(0)
    psi = torch.nn.functional.one_hot(data.labels, 4).double().T + torch.from_numpy(0.3 * rng.standard_normal((4, 500)))
    model = LogLinear(psi, data.labels, 4, 0.7)
    weights = model.fit(torch.zeros(4, 4, dtype=torch.float64), 1e-3, 20).weights
    (d,) = [difference for _, _, difference in model.differences(weights)]
    order, shares = pursuit._weighty(model, weights, 500, rng)
    assert sorted(order.tolist()) == list(range(500))
    assert (shares == 1.0).all()
    sums, errors = [], {"ours": [], "uniform": []}
    for _ in range(400):
        order, shares = pursuit._weighty(model, weights, 50, rng)
        assert len(order.unique()) == 50
        sums.append(psi[:, order] @ (d[order] * shares[:, None]))
        some = torch.from_numpy(rng.permutation(500)[:50])
        for name, one in (("ours", sums[-1]), ("uniform", 10 * psi[:, some] @ d[some])):
            errors[name].append(float((one - psi @ d).square().sum()))
    torch.testing.assert_close(torch.stack(sums).mean(0), psi @ d, atol=0.15 * float((psi @ d).abs().max()), rtol=0)
    assert np.mean(errors["ours"]) < 0.8 * np.mean(errors["uniform"])


@pytest.mark.parametrize("kernel", [*KERNELS, Polynomial(1)])
def test_gradients_of_pre_images_are_those_of_finite_differences(kernel):
    given = target(kernel)
    y = Table(3, seed=7).x.double().requires_grad_()
    assert torch.autograd.gradcheck(given.explained, y)
    assert torch.autograd.gradcheck(given.explained_together, y)
    assert torch.autograd.gradcheck(given.without(spanned(kernel, Table(4, seed=8).x)).explained, y)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Polynomial(2)])
def test_pre_images_are_better_than_any_sample(kernel):
    given = target(kernel)
    found = best_preimage(given, given.x)
    assert float(given.explained(found[None])) > float(given.explained(given.x).max())
    some = given.x[:5]
    assert float(given.explained_together(joint_preimages(given, some))) > 1.05 * float(given.explained_together(some))
    still = torch.zeros(1, 5, dtype=torch.float64)
    nowhere = Target(kernel, given.x, torch.zeros_like(given.coefficients))
    torch.testing.assert_close(best_preimage(nowhere, still), still[0])


SMALL = PursuitOptions(basis=30, first=6, added=6, penalty=0.1, searched=200, tolerance=1e-5, max_steps=200)


def error(found: Pursuit, data: Table) -> float:
    logits = found.subspace.kernel.by_products(data.x.double(), found.subspace.y.double()) @ found.beta
    return float((logits.argmax(1) != data.labels).double().mean())


def test_rounds_raise_the_objective_and_pursuit_beats_random_samples():
    train, test = Table(600), Table(2000, seed=9)
    found = {
        name: pursue(train, 4, Gaussian(1.5), PursuitOptions(**{**vars(SMALL), "method": name})) for name in METHODS
    }
    for name, one in found.items():
        assert [row["basis"] for row in one.rounds] == ([30] if name == "nystrom" else [6, 12, 18, 24, 30])
        objectives = [row["objective"] for row in one.rounds]
        assert objectives == sorted(objectives)
    last = {name: one.rounds[-1] for name, one in found.items()}
    assert last["nystrom"]["objective"] < min(last["joint"]["objective"], last["orthogonal"]["objective"])
    assert last["orthogonal"]["condition"] < last["joint"]["condition"]
    assert error(found["orthogonal"], test) < error(found["nystrom"], test)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Polynomial(2, 5.0)])
def test_the_fit_of_a_round_is_that_of_its_kernel_matrix(kernel):
    """β maximises eq. 5 as it stands, with k_n and G."""
    train = Table(300)
    options = {**vars(SMALL), "basis": 18, "tolerance": 1e-12, "max_steps": 2000}
    found = pursue(train, 4, kernel, PursuitOptions(**options))
    y, beta = found.subspace.y.double(), found.beta.clone().requires_grad_()
    log_p = (kernel.by_products(train.x.double(), y) @ beta).log_softmax(1).gather(1, train.labels[:, None])
    value = log_p.sum() - SMALL.penalty / 2 * (beta * (kernel.by_products(y, y) @ beta)).sum()
    assert value.item() == pytest.approx(found.fitted.objective, rel=1e-5)
    (gradient,) = torch.autograd.grad(value, beta)
    unit = gradient / kernel.diagonal(y).sqrt()[:, None]
    assert float(unit.abs().max()) < 1e-2 * len(train) ** 0.5


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Polynomial(1), Polynomial(3, 10.0)])
def test_coordinates_in_single_precision_are_those_in_double(kernel):
    """As the basis grows until it spans all that there is."""
    data, made = Table(300), Subspace(kernel, 5, CPU)
    design = pursuit.Design(data, 60, None)
    for part in data.x[:80].split(7):
        for y in part:
            if len(made) < 60:
                made.add(y)
        design.extend(made)
    assert design.rows == len(made) == (6 if kernel == Polynomial(1) else 56 if kernel == Polynomial(3, 10.0) else 60)
    exact = made.coordinates(data.x).T
    errors = (design.done - exact).norm(dim=0) / kernel.diagonal(data.x).sqrt()
    assert float(errors.max()) < 1e-3
    expected = design.done.double() @ design.done.double().T
    torch.testing.assert_close(design.squares, expected, rtol=0, atol=1e-5 * float(expected.max()))


def test_one_sample_far_out_does_not_drown_the_others():
    """As a damaged frame is, by whose deviation all are divided: sums in single precision have no Cholesky factor."""
    data = Table(8000, dim=30)
    data.x[7] *= 1000.0
    data.x /= data.x.std(dim=0)
    found = pursue(data, 4, Polynomial(2, 3.0), PursuitOptions(basis=100, method="nystrom"))
    assert found.fitted.objective > 8000 * np.log(1 / 4)
    design = pursuit.Design(data, 100, None)
    design.extend(found.subspace)
    exact = design.done.double() @ design.done.double().T
    scale = exact.diagonal().outer(exact.diagonal()).sqrt()
    torch.testing.assert_close(design.squares / scale, exact / scale, rtol=0, atol=1e-12)


def test_penalties_are_tried_on_one_basis():
    data, options = Table(300), PursuitOptions(**{**vars(SMALL), "method": "nystrom", "tolerance": 1e-7})
    found = [
        (c, one.beta, one.fitted) for c, one in pursuit.try_penalties(data, 4, Gaussian(1.5), options, (0.1, 10, 1))
    ]
    assert [c for c, _, _ in found] == [10, 1, 0.1]
    alone = pursue(data, 4, Gaussian(1.5), options)
    assert found[-1][2].objective == pytest.approx(alone.fitted.objective, rel=1e-5)
    torch.testing.assert_close(found[-1][1], alone.beta, rtol=0.05, atol=0.05)


def test_a_pursuit_ends_at_its_goal():
    rows = pursue(Table(300), 4, Gaussian(1.5), SMALL).rounds
    found = pursue(Table(300), 4, Gaussian(1.5), SMALL, goal=rows[2]["objective"] - 1e-6)
    assert [row["objective"] for row in found.rounds] == [row["objective"] for row in rows[:3]]


def test_random_samples_may_be_fewer_than_a_pursuit_begins_with():
    options = PursuitOptions(**{**vars(SMALL), "method": "nystrom", "basis": 5})
    assert options.first > options.basis
    assert len(pursue(Table(100), 4, Gaussian(1.5), options).subspace) == 5


def test_a_subspace_that_is_all_there_is_ends_the_pursuit():
    found = pursue(Table(100), 4, Linear(), SMALL)
    assert len(found.subspace) == 5
    assert [row["basis"] for row in found.rounds] == [5]


@pytest.mark.parametrize("method", ["orthogonal", "joint"])
def test_blank_samples_are_no_pre_images(method):
    """φ of them is zero for a linear kernel, and they are among the worst classified."""
    data, options = Table(400), PursuitOptions(**{**vars(SMALL), "method": method, "basis": 5, "first": 1, "added": 1})
    data.x[:300] = 0.0
    found = pursue(data, 4, Linear(), options)
    assert bool((found.subspace.y.norm(dim=1) > 0.0).all())
    assert [row["basis"] for row in found.rounds] == [1, 2, 3, 4, 5]


def test_a_blank_sample_explains_nothing_of_a_gradient():
    data = Table(100)
    target = Target(Linear(), data.x, torch.randn(100, 4))
    explained = target.explained(torch.cat([torch.zeros(1, 5), data.x]))
    assert explained[0] == 0.0
    assert bool(torch.isfinite(explained).all())
    assert torch.equal(joint_preimages(target, torch.zeros(2, 5)), torch.zeros(2, 5))


@pytest.mark.parametrize("method", METHODS)
def test_samples_that_are_all_blank_are_refused(method):
    data = Table(100)
    data.x.zero_()
    with pytest.raises(KernelamError, match="all samples are zero in the feature space of the kernel"):
        pursue(data, 4, Linear(), PursuitOptions(**{**vars(SMALL), "method": method}))


def test_the_blocks_of_coordinates_are_there_before_they_are_written_to(tmp_path):
    """On a disk that fills up, what has none would end the process without a word."""
    pursuit.Design(Table(20_000), 30, tmp_path)
    (table,) = tmp_path.iterdir()
    assert 512 * table.stat().st_blocks >= table.stat().st_size == 4 * 30 * 20_000


def test_coordinates_that_do_not_fit_are_a_sentence(tmp_path):
    with pytest.raises(KernelamError, match=r"table of coordinates takes .* GiB, .*; a smaller --basis takes less"):
        pursuit.Design(Table(1000), 10**14, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["orthogonal", "joint"])
def test_a_run_that_was_killed_ends_where_it_would_have(tmp_path, method, monkeypatch):
    data, options = Table(500), PursuitOptions(**{**vars(SMALL), "method": method})
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    expected = pursue(data, 4, Gaussian(1.5), options, whole, "x")
    keep, left = pursuit._keep, [2]

    def dying(*args):
        keep(*args)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(pursuit, "_keep", dying)
    with pytest.raises(KeyboardInterrupt):
        pursue(data, 4, Gaussian(1.5), options, killed, "x")
    monkeypatch.setattr(pursuit, "_keep", keep)
    found = pursue(data, 4, Gaussian(1.5), options, killed, "x")
    assert torch.equal(found.subspace.y, expected.subspace.y)
    assert torch.equal(found.fitted.weights, expected.fitted.weights)
    assert [row["objective"] for row in found.rounds] == [row["objective"] for row in expected.rounds]


@pytest.mark.parametrize("kernel", [Laplacian(1.0), SparseGaussian(1.0, 2), ArcCosine(0), ArcCosine(1)])
def test_kernels_without_pre_images_are_refused(kernel):
    with pytest.raises(KernelamError, match=f"with the {kernel.name} kernel, which is not a differentiable function"):
        check_differentiable(kernel)
    with pytest.raises(KernelamError, match="not a differentiable"):
        pursue(Table(50), 4, kernel, SMALL)


@pytest.mark.parametrize("kernel", [*KERNELS, Polynomial(1000), Composition(Polynomial(1000), Gaussian(1.0))])
def test_kernels_with_pre_images_are_not(kernel):
    check_differentiable(kernel)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "other"}, "no way to find basis vectors is called other"),
        ({"first": 0}, "begins with 1 to 30 vectors, not 0"),
        ({"first": 31}, "begins with 1 to 30 vectors, not 31"),
        ({"added": 0}, "a round of pursuit adds 0: it takes at least 1"),
        ({"searched": 0}, "a round of pursuit searches by 0 samples"),
        ({"penalty": -1.0}, "a penalty is a number from 0 on, not -1"),
        ({"penalty": float("inf")}, "a penalty is a number from 0 on, not inf"),
        ({"basis": 101}, "101 basis vectors are more than the 100 samples"),
    ],
)
def test_options_that_cannot_be(options, sentence):
    with pytest.raises(KernelamError, match=sentence):
        pursue(Table(100), 4, Gaussian(1.5), PursuitOptions(**{**vars(SMALL), **options}))
