"""The systems of ridge regression against dense solves in double precision and scikit-learn."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as SklearnRidge

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.kernels import FeatureMap, Gaussian
from kernelam.memory import keep_no_gaps
from kernelam.training import gram, krylov, ridge_solvers
from kernelam.training.gram import Grams, Sums, accumulate, assemble, units
from kernelam.training.ridge_solvers import Solver, blocks, pairs_of, solve_pairs, solve_rest
from kernelam.training.triangles import Triangle

CPU = torch.device("cpu")
COUNTS = np.array([80, 120, 0, 90, 1, 60, 70])
PAIRED = [0, 1, 3, 5, 6]
D = 50


def summed(folder: Path, sizes: np.ndarray) -> tuple[Grams, np.ndarray, np.ndarray]:
    """Sums of frames; z of all frames in double precision, and their labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(COUNTS)), COUNTS).astype(np.int32)
    frames = (rng.standard_normal((len(labels), 8)) + rng.standard_normal((7, 8))[labels]).astype(np.float32)
    store = FrameStore.build(folder / "train", [("u", frames)], {"u": labels})
    train = Batches(store, (0, 0), np.zeros(8, np.float32), np.ones(8, np.float32), CPU)
    features: FeatureMap = Gaussian(3.0).feature_map(8, D, 1)
    every = units(sizes)
    sums = Sums(folder / "sums", "f")
    accumulate(every, train, features, sums)
    z = features(torch.from_numpy(frames)).double().numpy()
    return assemble(every, D, COUNTS, sums, CPU), z, labels


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Grams, np.ndarray, np.ndarray]:
    """A matrix of each class."""
    return summed(tmp_path_factory.mktemp("one"), COUNTS)


def dense(z: np.ndarray, labels: np.ndarray, ridge: float) -> np.ndarray:
    """β of all pairs, by the normal equations in double precision."""
    found = []
    for i, j in combinations(PAIRED, 2):
        here = (labels == i) | (labels == j)
        y = np.where(labels[here] == i, 1.0, -1.0)
        found.append(np.linalg.solve(z[here].T @ z[here] + ridge * np.eye(D), z[here].T @ y))
    return np.stack(found)


@pytest.mark.parametrize("ridge", [1.0, 0.01])
@pytest.mark.parametrize("name", ["cholesky", "cg", "gmres"])
def test_pairs_are_those_of_a_dense_solve(problem, tmp_path: Path, name: str, ridge: float) -> None:
    grams, z, labels = problem
    found = solve_pairs(grams, ridge, Solver(name, 2e-6), tmp_path, "f")
    exact = dense(z, labels, ridge)
    share = 1e-4 if name == "cholesky" else 2e-3  # what a residual of 2e-6 leaves
    np.testing.assert_allclose(found.beta, exact, rtol=0, atol=share * np.abs(exact).max())
    assert found.beta.shape == (10, D)
    iterations = found.iterations[:, -1].numpy()
    assert (iterations == 0).all() if name == "cholesky" else (iterations > 3).all()


@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_the_residual_is_below_the_tolerance(problem, tmp_path: Path, name: str) -> None:
    grams, z, labels = problem
    steps = []
    for tolerance in (1e-1, 1e-2, 1e-3):
        found = solve_pairs(grams, 0.1, Solver(name, tolerance), tmp_path / str(tolerance), "f")
        steps.append(found.iterations[:, -1])
        for (i, j), beta in zip(combinations(PAIRED, 2), found.beta.double().numpy(), strict=True):
            here = (labels == i) | (labels == j)
            g = z[here].T @ np.where(labels[here] == i, 1.0, -1.0)
            residual = z[here].T @ (z[here] @ beta) + 0.1 * beta - g
            assert np.linalg.norm(residual) < 1.2 * tolerance * np.linalg.norm(g)
    assert steps[0].double().mean() < steps[1].double().mean() < steps[2].double().mean()
    assert torch.equal(torch.stack(steps, dim=1), found.iterations)  # what each would have taken


def test_gmres_is_that_of_scipy(problem, tmp_path: Path) -> None:
    """As many iterations, to the same solution."""
    from scipy.sparse.linalg import gmres

    grams, z, labels = problem
    found = solve_pairs(grams, 0.1, Solver("gmres", 1e-3), tmp_path, "f")
    for number, (i, j) in enumerate(combinations(PAIRED, 2)):
        here = (labels == i) | (labels == j)
        g = z[here].T @ np.where(labels[here] == i, 1.0, -1.0)
        norms: list[float] = []
        A = z[here].T @ z[here] + 0.1 * np.eye(D)
        exact, _ = gmres(A, g, rtol=1e-3, restart=D, callback=norms.append, callback_type="pr_norm")
        assert abs(len(norms) - int(found.iterations[number, -1])) <= 1
        if len(norms) == int(found.iterations[number, -1]):
            np.testing.assert_allclose(found.beta[number], exact, rtol=0, atol=1e-3 * np.abs(exact).max())


@pytest.mark.parametrize("name", ["cholesky", "cg", "gmres"])
def test_blocks_and_little_memory_change_nothing(problem, tmp_path: Path, monkeypatch, name: str) -> None:
    grams, _, _ = problem
    whole = solve_pairs(grams, 0.1, Solver(name, 1e-5), tmp_path / "whole", "f")
    monkeypatch.setattr(krylov, "STEPS", 4)
    small = Solver(name, 1e-5, memory=4 * D * ridge_solvers.VECTORS[name])
    parts = solve_pairs(grams, 0.1, small, tmp_path / "parts", "f")
    assert len(list((tmp_path / "parts").iterdir())) == 10
    torch.testing.assert_close(parts.beta, whole.beta, rtol=0, atol=1e-3)
    assert (parts.iterations - whole.iterations).abs().max() <= 3


def test_bases_are_kept_small(monkeypatch) -> None:
    """Where memory is short some systems wait, and are told of."""
    rng = torch.Generator().manual_seed(0)
    A = torch.eye(30).repeat(20, 1, 1) + 0.02 * torch.arange(20)[:, None, None] * torch.diag(torch.arange(30.0))
    b = torch.randn(20, 30, generator=rng)
    most = [0]
    append = krylov._Basis.append

    def watched(self: krylov._Basis, v: torch.Tensor) -> None:
        append(self, v)
        most[0] = max(most[0], sum(4 * part.numel() for part in self.parts))

    monkeypatch.setattr(krylov, "STEPS", 2)
    monkeypatch.setattr(krylov._Basis, "append", watched)
    product = lambda rows, v: torch.bmm(A[rows], v[:, :, None])[:, :, 0]  # noqa: E731
    rows, memory = torch.arange(20), 4 * 30 * 40
    found = krylov.gmres(product, rows, b, 1e-4 * b.norm(dim=1)[:, None], 100, memory)
    assert most[0] <= 1.5 * memory
    assert not found.begun.all()
    done = found.begun
    exact = torch.linalg.solve(A, b[:, :, None])[:, :, 0]
    torch.testing.assert_close(found.x[done], exact[done], rtol=0, atol=1e-3)
    assert (found.steps[~done] == 0).all()
    assert not found.x[~done].any()


@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_systems_take_the_memory_that_is_told(name: str) -> None:
    """Vectors of all systems, among them copies of those that go on when others have converged."""
    keep_no_gaps()
    systems, D, status = 500, 2000, Path("/proc/self/status")
    A = torch.linspace(1.0, 40.0, systems)[:, None] ** torch.linspace(0.0, 1.0, D)
    b = torch.randn(systems, D, generator=torch.Generator().manual_seed(0))
    held = lambda line: 1024 * int(re.search(rf"{line}:\s+(\d+)", status.read_text())[1])  # noqa: E731
    Path("/proc/self/clear_refs").write_text("5")  # the most from now on
    before = held("VmRSS")
    method, targets = ridge_solvers.METHODS[name], 1e-4 * b.norm(dim=1)[:, None]
    bases = 4 * systems * D * ridge_solvers.EXPECTED
    found = method(lambda rows, v: A[rows] * v, torch.arange(systems), b, targets, 100, bases)
    most = (held("VmHWM") - before) / (4 * systems * D)
    assert int(found.steps.max()) > ridge_solvers.EXPECTED
    assert most < ridge_solvers.VECTORS[name] - 4  # b, x and residuals of the caller


def test_many_steps_take_few_vectors_more_than_they_need(problem, tmp_path: Path, monkeypatch) -> None:
    """Once it is known how many, no pair is begun that there is no memory for; but all of the first block are."""
    grams, z, labels = problem
    multiply, vectors = Triangle.multiply, [0]

    def counted(self: Triangle, packed: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        vectors[0] += len(v)
        return multiply(self, packed, v)

    monkeypatch.setattr(Triangle, "multiply", counted)
    monkeypatch.setattr(ridge_solvers, "EXPECTED", 4)
    monkeypatch.setattr(krylov, "STEPS", 2)
    for memory in (1 << 30, 4 * D * ridge_solvers.VECTORS["gmres"] * 4):  # one block, or six
        vectors[0] = 0
        found = solve_pairs(grams, 0.01, Solver("gmres", 1e-5, memory=memory), tmp_path / str(memory), "f")
        steps = found.iterations[:, -1]
        assert steps.min() > 25
        assert vectors[0] < 1.35 * 2 * int(steps.sum())
    exact = dense(z, labels, 0.01)
    np.testing.assert_allclose(found.beta, exact, rtol=0, atol=1e-2 * np.abs(exact).max())


def test_a_pair_near_its_last_iteration_does_not_end_the_others(problem, tmp_path: Path, monkeypatch) -> None:
    """It has a single step left when they begin, which they do not converge in."""
    grams, z, labels = problem
    limits = []

    def method(*args) -> krylov.Progress:
        limits.append(args[4])
        found = krylov.gmres(*args)
        if len(limits) == 1:  # the first pair needs a second start, the others have not begun
            found.x[0] *= 0.88
            found.x[1:], found.steps[1:], found.begun[1:] = 0.0, 0, False
            found.steps[0, -1] = 99
        return found

    monkeypatch.setitem(ridge_solvers.METHODS, "gmres", method)
    found = solve_pairs(grams, 1.0, Solver("gmres", 0.1, max_iterations=100), tmp_path, "f")
    assert limits[:2] == [100, 1]
    for (i, j), beta in zip(combinations(PAIRED, 2), found.beta.double().numpy(), strict=True):
        here = (labels == i) | (labels == j)
        g = z[here].T @ np.where(labels[here] == i, 1.0, -1.0)
        assert np.linalg.norm(z[here].T @ (z[here] @ beta) + beta - g) < 0.12 * np.linalg.norm(g)


def test_a_kill_costs_a_block(problem, tmp_path: Path, monkeypatch) -> None:
    grams, _, _ = problem
    solver = Solver("gmres", memory=4 * D * 100 * 4)
    whole = solve_pairs(grams, 0.1, solver, tmp_path / "whole", "f")
    solve, calls = ridge_solvers._solve, [0]

    def count(*args: object) -> object:
        calls[0] += 1
        if calls[0] == 3:
            raise KeyboardInterrupt
        return solve(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(ridge_solvers, "_solve", count)
    with pytest.raises(KeyboardInterrupt):
        solve_pairs(grams, 0.1, solver, tmp_path / "parts", "f")
    again = solve_pairs(grams, 0.1, solver, tmp_path / "parts", "f")
    assert calls[0] == 1 + len(list(blocks(5, ridge_solvers.side_of(solver, D))))
    assert torch.equal(again.beta, whole.beta)
    assert torch.equal(again.iterations, whole.iterations)
    solve_pairs(grams, 0.2, solver, tmp_path / "parts", "f")
    assert calls[0] > 6  # another ridge is another system


@pytest.mark.parametrize(("classes", "side"), [(5, 2), (5, 1), (7, 3), (7, 4), (5, 4), (4, 64)])
def test_blocks_are_all_pairs_once(classes: int, side: int) -> None:
    found = torch.cat(list(blocks(classes, side)))
    assert sorted(found.tolist()) == list(range(len(pairs_of(classes))))
    assert max(map(len, blocks(classes, side))) == ridge_solvers.largest_block(classes, side)
    assert pairs_of(classes).tolist() == [list(pair) for pair in combinations(range(classes), 2)]


def test_the_matrices_of_a_block_fit_into_memory(problem, tmp_path: Path, monkeypatch) -> None:
    """Those of 147 classes with 20,000 features do not all; where memory has changed, old blocks are not taken."""
    for memory, side in ((512 << 30, 10), (24 << 30, 7), (1 << 30, 1)):
        monkeypatch.setattr(ridge_solvers, "installed", lambda memory=memory: memory)
        assert ridge_solvers.side_of(Solver(memory=1 << 28), 20_000) == side
        assert side == 1 or 2 * side * 4 * Triangle(20_000).size <= memory // 2
    grams, _, _ = problem
    solver = Solver(tolerance=1e-5)
    few = solve_pairs(grams, 0.1, solver, tmp_path, "f")
    monkeypatch.undo()
    torch.testing.assert_close(solve_pairs(grams, 0.1, solver, tmp_path, "f").beta, few.beta, rtol=0, atol=1e-3)


def test_one_vs_rest_is_that_of_scikit_learn(tmp_path: Path, monkeypatch) -> None:
    """From one matrix, in units that have the frames of several classes."""
    monkeypatch.setattr(gram, "UNIT", 50)
    grams, z, labels = summed(tmp_path, np.array([COUNTS.sum()]))
    assert len(list((tmp_path / "sums").glob("*.f32"))) == 1
    found = solve_rest(grams, 0.5)
    targets = np.where(labels[:, None] == np.array(PAIRED), 1.0, -1.0)
    exact = SklearnRidge(alpha=0.5, fit_intercept=False, solver="cholesky").fit(z, targets).coef_
    np.testing.assert_allclose(found.beta, exact, rtol=0, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_a_tolerance_below_rounding_is_met_as_far_as_it_goes(problem, tmp_path: Path, name: str, capsys) -> None:
    grams, z, labels = problem
    found = solve_pairs(grams, 0.1, Solver(name, 1e-12), tmp_path, "f")
    assert 1e-12 < found.residual < 1e-5
    np.testing.assert_allclose(found.beta, dense(z, labels, 0.1), rtol=0, atol=2e-3)
    said = capsys.readouterr().err
    assert f"residuals ended at up to {found.residual:.1e} of their right-hand sides, above the --tolerance" in said
    again = solve_pairs(grams, 0.1, Solver(name, 1e-12), tmp_path, "f")  # of what was kept
    assert again.residual == found.residual
    assert solve_pairs(grams, 0.1, Solver(name, 1e-3), tmp_path / "other", "f").residual <= 1.1e-3
    assert "residuals" not in capsys.readouterr().err.split("residuals", 2)[-1]


def test_what_cannot_be_solved_is_a_sentence(problem, tmp_path: Path) -> None:
    grams, _, _ = problem
    with pytest.raises(KernelamError, match=r"gmres did not converge for 10 pairs, classes \d and \d worst: after 2"):
        solve_pairs(grams, 0.1, Solver("gmres", max_iterations=2), tmp_path, "f")
    with pytest.raises(KernelamError, match=r"cg did not converge .* relative residual is 0\.\d+, not 0\.001; choose"):
        solve_pairs(grams, 0.1, Solver("cg", max_iterations=2), tmp_path, "f")
    with pytest.raises(KernelamError, match=r"gmres did not converge .* relative residual is nan"):
        solve_pairs(grams, 1e30, Solver(max_iterations=3), tmp_path, "f")  # |λv|² is beyond single precision
    with pytest.raises(KernelamError, match="no solver is called lu"):
        Solver("lu")
    with pytest.raises(KernelamError, match="between 0 and 1, not 0"):
        Solver("cg", 0.0)
    assert not list(tmp_path.iterdir())


def test_a_singular_system_is_a_sentence(problem, tmp_path: Path) -> None:
    """By the number of frames for every solver; by its pivots for Cholesky."""
    grams, _, _ = problem
    few = replace_counts(grams, np.array([80, 120, 0, 20, 1, 60, 25]))
    for name in ("cholesky", "cg", "gmres"):
        with pytest.raises(KernelamError, match=r"of classes 3 and 6 is singular: 45 frames for 50 features"):
            solve_pairs(few, 0.0, Solver(name), tmp_path, "f")
    with pytest.raises(KernelamError, match=r"of all classes is singular: 45 frames"):
        solve_rest(replace_counts(grams, np.array([0, 0, 0, 20, 0, 0, 25])), 0.0)
    rank_one = torch.ones(5, 5)
    for dtype in (torch.float32, torch.float64):
        with pytest.raises(KernelamError, match="of x is singular: a ridge of 0 is below"):
            ridge_solvers.factorise(rank_one.to(dtype), 0.0, "x")
    factor = ridge_solvers.factorise(torch.ones(5, 5), 1e-6, "x")
    assert factor.dtype == torch.float64  # what single precision cannot tell from 0
    assert not list(tmp_path.iterdir())


def replace_counts(grams: Grams, counts: np.ndarray) -> Grams:
    changed = Grams.__new__(Grams)
    changed.__dict__.update({**vars(grams), "counts": counts})
    return changed


def test_levels_that_a_second_start_reaches() -> None:
    found = ridge_solvers._later(
        torch.tensor([[2, 0, 5], [2, 0, 5], [0, 0, 0]]), torch.tensor([[0, 3, 4], [0, 0, 9], [1, 2, 6]])
    )
    assert found.tolist() == [[2, 8, 9], [2, 0, 14], [1, 2, 6]]
