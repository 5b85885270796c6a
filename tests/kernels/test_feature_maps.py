"""Random features tend to the exact function, in blocks that do not depend on who draws them, on any device."""

import copy
import math

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from kernelam.errors import KernelamError
from kernelam.kernels import (
    ArcCosine,
    Composition,
    FeatureMap,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Posteriors,
    Product,
    SparseGaussian,
    Sum,
    kernel_from,
)
from kernelam.kernels.base import BLOCK, Draw, part_of
from kernelam.kernels.composition import CompositeFeatures
from kernelam.kernels.loops import FEW_THREADS, cosine, cosine_and_sine, sparse_projection
from kernelam.kernels.sum import SumFeatures
from kernelam.ranks import Shard

DIM = 6
G, L, S = Gaussian(3.0), Laplacian(8.0), SparseGaussian(1.5, 3)
GENERATOR = torch.Generator().manual_seed(0)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR)


CASES: list[tuple[Kernel, str]] = [
    *((kernel, plan) for kernel in (G, L, S) for plan in ("paired", "independent")),
    (G, "orthogonal"),
    *((ArcCosine(degree), "paired") for degree in (0, 1, 2)),
    (ArcCosine(1), "orthogonal"),
    (Sum((0.3, 0.7), (G, L)), "paired"),
    (Sum((1.0, 0.5, 2.0), (S, ArcCosine(1), Product((G, L)))), "paired"),
    (Product((G, L)), "paired"),
    (Product((Gaussian(2.0), SparseGaussian(2.0, 2))), "independent"),
]
MAPS: list[FeatureMap] = [
    *(kernel.feature_map(DIM, 24, 1, plan) for kernel, plan in CASES),
    Linear().feature_map(DIM, 24, 1),
    Composition(G, L, 10).feature_map(DIM, 24, 1),
    CompositeFeatures(
        S.feature_map(4, 8, 1), G.feature_map(DIM, 12, 1), {"matrix": normal(12, 4), "offset": normal(4)}
    ),
    Posteriors(G, "linear").map_of(
        {
            **{f"features.{key}": value for key, value in G.feature_map(DIM, 12, 1).arrays.items()},
            **{"W0": normal(12, 3), "b0": torch.zeros(3), "W1": normal(3, 7), "b1": normal(7)},
        }
    ),
    Posteriors(None, "tanh").map_of({"W0": normal(DIM, 3), "b0": torch.zeros(3), "W1": normal(3, 7), "b1": normal(7)}),
]


@pytest.fixture(scope="module")
def points() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.standard_normal((n, DIM), np.float32)) for n in (40, 30))
    return x / 2, y / 2


def products(kernel: Kernel, count: int, plan: str, seeds: range, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    maps = (kernel.feature_map(DIM, count, seed, plan) for seed in seeds)
    return torch.stack([(z(x) @ z(y).T).double() for z in maps])


@pytest.mark.parametrize(("kernel", "plan"), CASES, ids=str)
def test_random_features_are_unbiased_and_their_error_falls_as_the_root_of_their_number(kernel, plan, points):
    x, y = points
    exact = kernel(x, y).double()
    counts, repeats = (60, 240, 960), 60
    errors = []
    for count in counts:
        found = products(kernel, count, plan, range(repeats), x, y)
        errors.append(float((found - exact).square().mean().sqrt()))
        # entries share their features, and 1200 of them are looked at: five standard errors
        spread = found.std(dim=0) / repeats**0.5
        assert float(((found.mean(dim=0) - exact).abs() / spread.clamp(min=1e-6)).max()) < 5.5
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(slope + 0.5) < 0.1


def test_the_default_plan_is_more_accurate_than_the_papers_and_orthogonal_more_than_that(points):
    x, y = points
    error = {
        plan: float((products(G, 240, plan, range(60), x, y) - G(x, y)).square().mean())
        for plan in ("independent", "paired", "orthogonal")
    }
    assert error["independent"] > 1.05 * error["paired"] > 1.1 * error["orthogonal"]


@pytest.mark.parametrize("kernel", [G, L, S, Product((G, L))], ids=str)
def test_features_with_a_phase_are_the_papers_formula(points, kernel):
    x, _ = points
    z = kernel.feature_map(DIM, 10, 3, "independent")
    torch.testing.assert_close(z(x), math.sqrt(2 / 10) * torch.cos(x @ dense(z) + z.arrays["b"]), rtol=1e-5, atol=1e-6)
    assert z.count == z.columns == 10


@pytest.mark.parametrize("kernel", [G, L, S], ids=str)
def test_pairs_are_cosines_then_sines(points, kernel):
    x, _ = points
    z = kernel.feature_map(DIM, 10, 3)
    p = x @ dense(z)
    torch.testing.assert_close(z(x), math.sqrt(2 / 10) * torch.cat([p.cos(), p.sin()], dim=1), rtol=1e-5, atol=1e-6)
    assert (z.count, z.columns) == (10, 5)


def dense(z: FeatureMap) -> torch.Tensor:
    if "omega" in z.arrays:
        return z.arrays["omega"]
    index, value = z.arrays["index"].long(), z.arrays["value"]
    return torch.zeros(DIM, index.shape[1]).scatter_(0, index, value)


def test_sparse_frequencies_choose_coordinates_evenly_and_never_twice():
    z = SparseGaussian(2.0, 4).feature_map(9, 8000, 1)
    index, value = z.arrays["index"].long(), z.arrays["value"]
    assert index.shape == value.shape == (4, 4000)
    assert all(len(set(column)) == 4 for column in index.T.tolist())
    assert torch.bincount(index.flatten(), minlength=9).sub(16000 / 9).abs().max() < 150  # 5 standard deviations
    assert float(value.std()) == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("dim", [3, 200, 700])
def test_orthogonal_frequencies_are_orthogonal_with_norms_of_gaussian_vectors(dim):
    omega = Gaussian(2.0).feature_map(dim, 2 * BLOCK, 5, "orthogonal").arrays["omega"].double()
    size = min(dim, BLOCK)
    gram = omega[:, :size].T @ omega[:, :size]
    torch.testing.assert_close(gram, torch.diag(gram.diagonal()), rtol=0, atol=1e-4)
    squares = omega.square().sum(dim=0) * 4.0
    assert float(squares.mean()) == pytest.approx(dim, abs=5 * math.sqrt(2 * dim / BLOCK))
    assert float(squares.var()) == pytest.approx(2 * dim, rel=0.4)


@pytest.mark.parametrize("kernel", [L, S, Product((G, G)), Sum((1.0, 1.0), (G, L))], ids=str)
def test_where_orthogonal_features_are_not_defined_is_a_sentence(kernel):
    with pytest.raises(KernelamError, match="orthogonal features are defined for the gaussian and arccos kernels, not"):
        kernel.feature_map(DIM, 12, 1, "orthogonal")


BLOCKWISE = [G, L, S, ArcCosine(1), Product((G, S)), Composition(G, ArcCosine(0), 16)]


@pytest.mark.parametrize(
    ("kernel", "plan"),
    [
        *((kernel, plan) for kernel in BLOCKWISE for plan in ("paired", "independent")),
        *((kernel, "orthogonal") for kernel in (G, ArcCosine(1))),
    ],
    ids=str,
)
def test_blocks_are_the_same_whoever_draws_them(kernel, plan):
    """A larger map begins with the smaller one, and one drawn from block 2 on is a part of it."""
    per_column = 2 if plan != "independent" and kernel != ArcCosine(1) else 1
    size = per_column * BLOCK
    many = kernel.feature_map(DIM, 4 * size + 6, 1, plan).arrays
    few = kernel.feature_map(DIM, size, 1, plan).arrays
    later = kernel.feature_map(DIM, size + 6, 1, plan, first_block=2).arrays
    other = kernel.feature_map(DIM, size, 2, plan).arrays
    for name, array in many.items():
        if name.startswith("inner."):
            assert torch.equal(array, few[name])
            assert torch.equal(array, later[name])
        else:
            assert torch.equal(array[..., :BLOCK], few[name])
            assert torch.equal(array[..., 2 * BLOCK : 3 * BLOCK + 6 // per_column], later[name])
        assert not torch.equal(few[name], other[name])


def test_the_parts_of_a_sum_and_the_layers_of_a_composition_draw_different_numbers():
    both = Sum((1.0, 1.0), (G, G)).feature_map(DIM, 40, 1).arrays
    assert not torch.equal(both["0.omega"], both["1.omega"])
    layers = Composition(G, G, DIM).feature_map(DIM, 40, 1).arrays
    assert not torch.equal(layers["inner.omega"], layers["outer.omega"][:, : DIM // 2])


def test_a_composition_converges_to_its_outer_kernel_given_the_inner_features(points):
    x, y = points
    kernel = Composition(Gaussian(0.9), L, 50)
    errors = []
    for count in (200, 3200):
        squares = []
        for seed in range(20):
            z = kernel.feature_map(DIM, count, seed)
            exact = kernel.outer(z.hidden(x), z.hidden(y))
            squares.append(float((z(x) @ z(y).T - exact).square().mean()))
        errors.append(np.mean(squares) ** 0.5)
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.2)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        (Gaussian(0.9), L),
        (ArcCosine(1), ArcCosine(1)),
        (ArcCosine(0), Composition(ArcCosine(1), ArcCosine(2), 1000)),
        (Gaussian(0.9), Sum((0.5, 0.5), (G, L))),
    ],
    ids=str,
)
def test_a_composition_converges_to_its_closed_form_as_both_layers_grow(points, outer, inner):
    x, y = points
    exact = Composition(outer, inner, 1)(x, y)
    errors = []
    for count in (100, 1600):
        maps = [Composition(outer, inner, count).feature_map(DIM, count, seed) for seed in range(12)]
        errors.append(float(torch.stack([(z(x) @ z(y).T - exact).square().mean() for z in maps]).mean().sqrt()))
    assert errors[1] < errors[0] / 2.5
    assert errors[1] < 0.05 * float(exact.abs().max())


def test_log_posteriors_are_those_of_the_network(points):
    x, _ = points
    z = MAPS[-1]
    W0, b0, W1, b1 = (z.arrays[name] for name in ("W0", "b0", "W1", "b1"))
    torch.testing.assert_close(z(x), torch.log_softmax(torch.tanh(x @ W0 + b0) @ W1 + b1, dim=1))
    z = MAPS[-2]
    W0, b0, W1, b1 = (z.arrays[name] for name in ("W0", "b0", "W1", "b1"))
    inner = G.map_of(part_of(z.arrays, "features"))
    torch.testing.assert_close(z(x), torch.log_softmax((inner(x) @ W0 + b0) @ W1 + b1, dim=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("plan", ["paired", "independent"])
@pytest.mark.parametrize("kernel", [G, L, S, ArcCosine(2)], ids=str)
def test_selected_and_joined_maps_have_the_columns_and_the_scale_of_their_number(points, kernel, plan):
    x, _ = points
    per = 2 if plan == "paired" and kernel != ArcCosine(2) else 1
    z, other = (kernel.feature_map(DIM, 20 * per, seed, plan) for seed in (1, 2))
    unscaled = z(x).view(40, per, 20) * z.count**0.5
    chosen = torch.tensor([3, 17, 4])
    part = z.select(chosen)
    assert (part.columns, part.count, z.columns) == (3, 3 * per, 20)
    torch.testing.assert_close(part(x).view(40, per, 3) * part.count**0.5, unscaled[..., chosen])
    whole = part.joined(other)
    assert (whole.columns, whole.count) == (23, 23 * per)
    both = torch.cat([unscaled[..., chosen], other(x).view(40, per, 20) * z.count**0.5], dim=2)
    torch.testing.assert_close(whole(x).view(40, per, 23) * whole.count**0.5, both)
    norms = torch.arange(z.count) + 1.0
    torch.testing.assert_close(z.column_norms(norms), norms.view(per, 20).sum(0))


def test_selection_where_there_is_nothing_to_choose_from_is_a_sentence():
    for z in MAPS[-6:]:
        if "omega" in z.arrays:
            continue
        for act in (lambda z=z: z.columns, lambda z=z: z.select(torch.arange(2)), lambda z=z: z.joined(z)):
            with pytest.raises(KernelamError, match="features are selected one by one only for a single kernel"):
                act()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (G.feature_map(DIM, 4, 1), G.feature_map(DIM, 4, 1, "independent")),
        (G.feature_map(DIM, 4, 1), G.feature_map(DIM + 1, 4, 1)),
        (G.feature_map(DIM, 4, 1), S.feature_map(DIM, 4, 1)),
        (G.feature_map(DIM, 4, 1), Sum((1.0,), (G,)).feature_map(DIM, 4, 1)),
        (ArcCosine(0).feature_map(DIM, 4, 1), ArcCosine(1).feature_map(DIM, 4, 1)),
        (S.feature_map(DIM, 4, 1), SparseGaussian(1.0, 4).feature_map(DIM, 4, 1)),
    ],
)
def test_only_maps_of_one_kind_are_joined(one, other):
    with pytest.raises(KernelamError, match="only maps of one kernel and one sampling plan can be joined"):
        one.joined(other)


def test_the_features_of_a_sum_are_shared_out_evenly():
    z = Sum((1.0, 1.0, 1.0), (G, L, S)).feature_map(DIM, 100, 1)
    assert [part.count for part in z.parts.values()] == [34, 34, 32]
    assert z.count == 100


@pytest.mark.parametrize("number", range(len(MAPS)))
def test_memory_can_be_used_again_and_a_map_is_made_again_from_its_arrays(points, number):
    x, y = points
    z = MAPS[number]
    first = z(x)
    memory = torch.full_like(first, math.nan)
    again = z(x, out=memory)
    assert again.data_ptr() == memory.data_ptr()
    assert torch.equal(again, first)
    assert z(y, out=memory).shape == (30, z.count)  # another size: other memory
    assert torch.equal(memory, first)
    assert not first.requires_grad
    assert first.T.is_contiguous()


@pytest.mark.parametrize(
    ("kernel", "plan"),
    [*CASES, (Composition(Sum((1.0, 2.0), (G, S)), Composition(ArcCosine(0), L, 10), 12), "paired")],
    ids=str,
)
def test_a_map_is_made_again_from_its_arrays_and_the_settings_of_its_kernel(points, kernel, plan):
    x, _ = points
    z = kernel.feature_map(DIM, 24, 1, plan)
    arrays = {name: array.clone() for name, array in z.arrays.items()}
    assert torch.equal(kernel_from(kernel.settings()).map_of(arrays)(x), z(x))


@pytest.mark.parametrize("number", range(len(MAPS)))
def test_every_map_runs_on_a_gpu(number):
    """A fake device refuses what mixes it with the CPU."""
    z = MAPS[number]
    with FakeTensorMode():
        found = on_fake_gpu(z)(torch.empty(32, DIM, device="cuda"))
    assert found.device.type == "cuda"
    assert found.shape == (32, z.count)


def on_fake_gpu(z: FeatureMap) -> FeatureMap:
    made = copy.copy(z)
    made.own = {name: torch.empty(array.shape, dtype=array.dtype, device="cuda") for name, array in z.own.items()}
    made.parts = {name: on_fake_gpu(part) for name, part in z.parts.items()}
    return made


@pytest.mark.parametrize("threads", [1, 2 * FEW_THREADS], ids=["compiled", "torch"])
def test_inner_loops(threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    x = normal(33, 7) * 40
    index, value = torch.randint(7, (3, 50), dtype=torch.int32, generator=GENERATOR), normal(3, 50)
    p = sparse_projection(x, index, value, torch.empty(50, 33))
    expected = torch.stack([sum(value[k, j] * x[:, index[k, j]] for k in range(3)) for j in range(50)])
    torch.testing.assert_close(p, expected, rtol=1e-5, atol=1e-4)  # of terms around 40
    z = torch.cat([p, torch.empty_like(p)])
    cosine_and_sine(z[:50], 0.5, z)
    torch.testing.assert_close(z.double(), 0.5 * torch.cat([p.double().cos(), p.double().sin()]), rtol=0, atol=1e-6)
    z, phase = p.clone(), torch.linspace(0.0, 6.0, 50)
    cosine(z, phase, 0.5, z)
    torch.testing.assert_close(z.double(), 0.5 * (p + phase[:, None]).double().cos(), rtol=0, atol=1e-6)


def test_the_compiled_cosine_keeps_nan_and_bounds_what_has_no_digits(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    z = torch.tensor([[0.0, math.nan, math.inf, 1e4, 1e7, 1e9, 1e20, -1e38], [0.0] * 8])
    cosine_and_sine(z[:1], 1.0, z)
    assert torch.isnan(z[:, 1:3]).all()
    assert float(z[0, 0]) == pytest.approx(1.0, abs=1e-6)
    assert float(z[1, 3]) == pytest.approx(math.sin(1e4), abs=2e-5)
    assert (z[:, 3:].abs() <= 1.0 + 1e-5).all()


@pytest.mark.parametrize("number", range(len(MAPS)))
def test_double_precision_agrees(points, number):
    """Which also is the way without compiled loops."""
    x, _ = points
    z = MAPS[number]
    torch.testing.assert_close(in_double(z)(x.double()).float(), z(x), rtol=1e-4, atol=1e-5)


def in_double(z: FeatureMap) -> FeatureMap:
    made = copy.copy(z)
    made.own = {name: array.double() if array.is_floating_point() else array for name, array in z.own.items()}
    made.parts = {name: in_double(part) for name, part in z.parts.items()}
    return made


def test_bad_requests_are_sentences():
    with pytest.raises(KernelamError, match="7 random features: cosine-and-sine pairs need an even number"):
        G.feature_map(3, 7, 1)
    with pytest.raises(KernelamError, match="at least 2"):
        G.feature_map(3, 0, 1)
    with pytest.raises(KernelamError, match="0 random features"):
        L.feature_map(3, 0, 1, "independent")
    with pytest.raises(KernelamError, match="no sampling plan is called pared; there are paired, independent"):
        G.feature_map(3, 8, 1, "pared")
    with pytest.raises(KernelamError, match="the polynomial kernel has no random features: use its exact"):
        Polynomial(2).feature_map(3, 8, 1)
    with pytest.raises(KernelamError, match="a product are those of shift-invariant kernels, which arccos is not"):
        Product((G, ArcCosine(1))).feature_map(3, 8, 1)
    with pytest.raises(KernelamError, match="must be fitted to data"):
        Composition(G, L, 10, "pca:2").feature_map(3, 8, 1)
    with pytest.raises(KernelamError, match="chooses 5 coordinates, its inputs have 3"):
        SparseGaussian(1.0).feature_map(3, 8, 1)


@pytest.mark.parametrize("number", range(len(MAPS)))
def test_a_part_of_a_sum_is_scaled(points, number):
    x, _ = points
    z = MAPS[number]
    twice = SumFeatures((4.0, 0.25), [z, z])(x)
    torch.testing.assert_close(twice, torch.cat([2.0 * z(x), 0.5 * z(x)], dim=1))


def test_the_step_of_degree_0_is_a_half_at_zero():
    z = ArcCosine(0).feature_map(3, 8, 1)(torch.zeros(1, 3))
    torch.testing.assert_close(z, torch.full((1, 8), 0.25))


@pytest.mark.parametrize("count", [2 * BLOCK + 302, 26])
@pytest.mark.parametrize(("kernel", "plan"), CASES)
def test_slices_that_processes_draw_make_the_whole_map(kernel, plan, count):
    whole = kernel.feature_map(DIM, count, 3, plan)
    x, seen = normal(5, DIM), torch.zeros(count, dtype=torch.int64)
    z = whole(x)
    for index in range(3):
        shard = Shard(index, 3)
        drawn, cut = kernel.draw(DIM, count, Draw(3, plan, shard=shard)), whole.slice(shard)
        assert drawn.total == cut.total == count
        assert drawn.places.equal(cut.places)
        assert drawn.arrays.keys() == cut.arrays.keys() == drawn.sliced
        assert all(array.equal(cut.arrays[name]) for name, array in drawn.arrays.items())
        assert torch.allclose(drawn(x), z[:, drawn.places], atol=1e-6)
        seen[drawn.places] += 1
    assert bool((seen == 1).all())


def test_slices_of_a_composition_share_its_inner_map():
    whole = Composition(G, L, 10).feature_map(DIM, 24, 1)
    drawn = Composition(G, L, 10).draw(DIM, 24, Draw(1, shard=Shard(1, 2)))
    x = normal(5, DIM)
    assert drawn.sliced == {"outer.omega"}
    assert torch.allclose(drawn(x), whole(x)[:, drawn.places], atol=1e-6)
    assert torch.allclose(whole.slice(Shard(1, 2))(x), drawn(x))


@pytest.mark.parametrize("kernel", [Linear(), Sum((1.0, 1.0), (G, Linear()))])
def test_features_that_are_not_drawn_are_not_shared(kernel):
    with pytest.raises(KernelamError, match="several processes share random features"):
        kernel.draw(DIM, 24, Draw(1, shard=Shard(0, 2)))
