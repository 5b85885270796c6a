"""Kernels fitted to training frames: bandwidths, projections, posteriors of a first model; saved and restored."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import ArcCosine, FeatureMap, Gaussian, Kernel, Laplacian, Product, SparseGaussian, Sum
from kernelam.kernels.expression import parse
from kernelam.models import load_model
from kernelam.models.directory import save_model
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training import exact
from kernelam.training import features as module
from kernelam.training.features import build_features, features_of
from kernelam.training.projection import fit_projection

CPU, CLASSES, DIM = torch.device("cpu"), 4, 5
INPUTS = Inputs((1, 0), np.full(DIM, 0.1, np.float32), np.full(DIM, 0.5, np.float32))

SOME = torch.linspace(-2.0, 2.0, 50 * 2 * DIM).view(50, 2 * DIM).sin(), torch.arange(50) % CLASSES


def frames(folder: Path, constant: bool = False) -> Batches:
    rng = np.random.default_rng(0)
    labels = {f"u{i}": rng.integers(CLASSES, size=200, dtype=np.int32) for i in range(6)}
    shape = rng.standard_normal((DIM, DIM))
    matrices = {
        utt: np.ones((200, DIM), np.float32)
        if constant
        else (rng.standard_normal((200, DIM)) @ shape + np.eye(CLASSES, DIM)[y]).astype(np.float32)
        for utt, y in labels.items()
    }
    store = FrameStore.build(folder, matrices.items(), labels)
    return Batches(store, INPUTS.context, INPUTS.mean, INPUTS.scale, CPU)


@pytest.fixture(scope="module")
def train(tmp_path_factory) -> Batches:
    return frames(tmp_path_factory.mktemp("frames"))


def build(train: Batches, expression: str, count: int = 40, plan: str = "paired", **more) -> tuple[Kernel, FeatureMap]:
    return build_features(expression, 1.0, count, plan, train, INPUTS, 3, CPU, **more)


def everything(train: Batches) -> tuple[torch.Tensor, torch.Tensor]:
    return train.take(torch.arange(len(train)))


def sample(train: Batches) -> tuple[torch.Tensor, torch.Tensor]:
    """The frames that directions are found on."""
    return train.take(torch.from_numpy(module.stream(3, "sample").permutation(len(train))[: 3 * len(train) // 4]))


def test_bandwidths_are_multiples_of_median_distances_of_all_pairs(train):
    x = everything(train)[0].double()
    i, j = torch.triu_indices(len(x), len(x), 1)
    squares = (x[i] - x[j]).square().sum(1).median()
    absolute = (x[i] - x[j]).abs().sum(1).median()
    gaussian, _ = build(train, "gaussian@0.5")
    assert 2 * gaussian.sigma**2 == pytest.approx(0.5 * float(squares), rel=0.05)
    laplacian, _ = build(train, "laplacian")
    assert laplacian.scale == pytest.approx(float(absolute), rel=0.05)
    by_caller, _ = build_features("laplacian", 3.0, 40, "paired", train, INPUTS, 3, CPU)
    assert by_caller.scale == pytest.approx(3 * laplacian.scale)


def test_the_bandwidth_of_a_sparse_kernel_is_of_sub_vectors(train):
    x = everything(train)[0].double()
    rng = np.random.default_rng(0)
    found = []
    for _ in range(200):
        chosen = rng.choice(2 * DIM, 3, replace=False)
        rows, others = rng.integers(len(x), size=(2, 200))
        found.append((x[rows][:, chosen] - x[others][:, chosen]).square().sum(1))
    kernel, _ = build(train, "sparse-gaussian:3@2")
    assert kernel.k == 3
    assert 2 * kernel.sigma**2 == pytest.approx(2 * float(torch.cat(found).median()), rel=0.05)


def test_nested_kernels_are_as_asked_for(train):
    kernel, z = build(train, "0.25*arccos1 + 0.75*gaussian * laplacian")
    assert isinstance(kernel, Sum)
    assert kernel.weights == (0.25, 0.75)
    assert kernel.kernels[0] == ArcCosine(1)
    assert isinstance(kernel.kernels[1], Product)
    assert [type(factor) for factor in kernel.kernels[1].kernels] == [Gaussian, Laplacian]
    assert z.count == 40
    kernel, z = build(train, "sparse-gaussian:2 o arccos1#30 o laplacian")
    assert isinstance(kernel.outer, SparseGaussian)
    assert (kernel.features, kernel.inner.features) == (30, 40)
    assert z.count == 40


def test_the_outer_bandwidth_is_of_the_projected_inner_features(train):
    kernel, z = build(train, "gaussian o pca:3 o laplacian#60")
    hidden = z.hidden(everything(train)[0]).double()
    assert hidden.shape[1] == 3
    i, j = torch.triu_indices(len(hidden), len(hidden), 1)
    assert 2 * kernel.outer.sigma**2 == pytest.approx(float((hidden[i] - hidden[j]).square().sum(1).median()), rel=0.05)


def test_pca_is_that_of_scikit_learn(train):
    _, z = build(train, "gaussian o pca:4 o laplacian#60")
    x = sample(train)[0]
    inner = z.parts["inner"](x).double().numpy()
    expected = PCA(4).fit_transform(inner)
    hidden = z.hidden(x).numpy()
    signs = np.sign((expected * hidden).sum(axis=0))
    np.testing.assert_allclose(hidden, expected * signs, atol=2e-4)
    matrix = z.arrays["matrix"].numpy()
    assert all(column[np.abs(column).argmax()] > 0 for column in matrix.T)
    assert torch.equal(build(train, "gaussian o pca:4 o laplacian#60")[1].arrays["matrix"], z.arrays["matrix"])


def test_fda_is_that_of_scikit_learn(train, monkeypatch):
    """Up to the scale of each direction; without the ridge, which scikit-learn does not have."""
    monkeypatch.setattr("kernelam.training.projection.RIDGE", 0.0)
    _, z = build(train, "gaussian o fda:2 o laplacian#20")
    x, labels = sample(train)
    inner = z.parts["inner"](x).double().numpy()
    expected = LinearDiscriminantAnalysis(solver="eigen", n_components=2).fit(inner, labels).transform(inner)
    hidden = z.hidden(x).double().numpy()
    for found, known in zip(hidden.T, expected.T, strict=True):
        assert abs(np.corrcoef(found, known)[0, 1]) > 1 - 1e-5


def test_fda_weighs_directions_by_what_they_tell_on_frames_they_were_not_chosen_on(train):
    _, z = build(train, "gaussian o fda:2 o laplacian#20")
    order = module.stream(3, "sample").permutation(len(train))
    x, labels = train.take(torch.from_numpy(order[3 * len(order) // 4 :]))
    hidden = z.hidden(x).double().numpy()
    means = np.stack([hidden[labels == c].mean(axis=0) for c in range(4)])[labels]
    between, within = means.var(axis=0), (hidden - means).var(axis=0)
    ratio = between / within - 3 / (len(hidden) - 4)
    np.testing.assert_allclose(hidden.var(axis=0), (ratio / (1 + ratio)) ** 1.5, rtol=1e-3)


@pytest.mark.parametrize(("classes", "size"), [(100, 6), (20, 60)])
def test_fda_ignores_directions_that_tell_no_classes_apart(classes, size):
    """Also where the inputs are more than the classes, so that some direction tells those that were looked at."""
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(rng.integers(classes, size=10_000))
    x = torch.from_numpy(rng.standard_normal((10_000, size)))
    x[:, 0] += labels % 5
    halves = ([(x[:5000], labels[:5000])], [(x[5000:], labels[5000:])])
    matrix = fit_projection("fda", 6, size, classes, *halves)["matrix"]
    variances = (x.float() @ matrix).var(dim=0)
    assert variances[0] == pytest.approx((2 / 3) ** 1.5, rel=0.05)  # the variance of means, (5² − 1)/12 = 2, over 2 + 1
    assert (variances[1:] < 0.002).all()


def test_fda_of_what_tells_nothing_is_a_sentence():
    x, labels = torch.eye(4, dtype=torch.float64).repeat(100, 1), torch.arange(400) // 4 % 10
    with pytest.raises(
        KernelamError, match="fda has too few frames, or finds no direction of its inputs that tells classes apart"
    ):
        fit_projection("fda", 2, 4, 10, [(x, labels)], [(x, labels)])


def test_only_a_bounded_sample_is_looked_at(train, monkeypatch):
    monkeypatch.setattr(module, "ELEMENTS", 1000)
    monkeypatch.setattr(module, "CHUNK", 30)
    monkeypatch.setattr(exact, "PAIRS", 90)
    _, z = build(train, "gaussian o pca:2 o laplacian#10")
    order = module.stream(3, "sample").permutation(len(train))[:75]
    inner = z.parts["inner"](train.take(torch.from_numpy(order))[0]).double()
    torch.testing.assert_close(
        inner.mean(0) @ z.arrays["matrix"].double(), -z.arrays["offset"].double(), rtol=1e-4, atol=1e-5
    )


def test_parts_of_one_map_share_all_but_the_outer_features(train):
    whole, first, second = (
        build(train, "gaussian o pca:3 o laplacian#60", count, first_block=block)[1].arrays
        for count, block in ((2000, 0), (1000, 0), (1000, 1))
    )
    for name in ("matrix", "offset", "inner.omega"):
        assert torch.equal(whole[name], first[name])
        assert torch.equal(whole[name], second[name])
    both = torch.cat([first["outer.omega"], second["outer.omega"]], dim=1)
    assert torch.equal(whole["outer.omega"], both)


def model_of(kernel: Kernel, z: FeatureMap, bottleneck: int = 0) -> KernelSoftmax:
    model = KernelSoftmax(kernel, z, bottleneck, Pipeline(), INPUTS, np.ones(CLASSES), CPU)
    model.initialise(1)
    model.step(*SOME, 1.0)
    return model


@pytest.fixture
def first_models(tmp_path, train) -> dict[str, Path]:
    """Trained models: of kernels, without and with a bottleneck, and a network."""
    models = {
        "kernel": model_of(*build(train, "sparse-gaussian:2 o laplacian#10")),
        "bottleneck": model_of(*build(train, "gaussian"), bottleneck=2),
        "dnn": Dnn(Network(2, 7), Pipeline(), INPUTS, np.ones(CLASSES), CPU),
        "low-rank": Dnn(Network(2, 7, "sigmoid", bottleneck=2), Pipeline(), INPUTS, np.ones(CLASSES), CPU),
        "normalised": Dnn(Network(2, 7, normalise=True), Pipeline(), INPUTS, np.ones(CLASSES), CPU),
    }
    for name in ("dnn", "low-rank", "normalised"):
        models[name].initialise(1)
        models[name].step(*SOME, 1.0)
    folders = {}
    for name, model in models.items():
        folders[name] = tmp_path / name
        folders[name].mkdir()
        save_model(folders[name], model, {})
    return folders


@pytest.mark.parametrize("kind", ["kernel", "bottleneck", "dnn", "low-rank"])
def test_posteriors_are_those_of_the_model(kind, first_models, train):
    _, z = build(train, f"gaussian o posteriors:{first_models[kind]}")
    x, _ = everything(train)
    expected = torch.log_softmax(load_model(first_models[kind]).logits(x), dim=1)
    torch.testing.assert_close(z.hidden(x), expected.detach(), rtol=1e-4, atol=1e-5)


def test_posteriors_of_networks_that_normalise_are_refused(first_models, train):
    with pytest.raises(KernelamError, match="a network that normalises its layers: its posteriors are no features"):
        build(train, f"gaussian o posteriors:{first_models['normalised']}")


def test_features_of_a_model_are_taken_as_they_are(first_models, train):
    kernel, z = features_of(first_models["kernel"], INPUTS, CPU)
    model = load_model(first_models["kernel"])
    x, _ = everything(train)
    assert kernel == model.kernel
    assert torch.equal(z(x), model.feature_map(x))
    with pytest.raises(KernelamError, match="dnn holds a dnn model, which has no random features"):
        features_of(first_models["dnn"], INPUTS, CPU)
    with pytest.raises(KernelamError, match=r"5 features in a context of \(1, 0\) frames, not 5 in \(2, 2\) as here"):
        features_of(first_models["kernel"], Inputs((2, 2), INPUTS.mean, INPUTS.scale), CPU)


EXPRESSIONS = [
    "gaussian",
    "laplacian@2",
    "sparse-gaussian:3",
    "arccos0",
    "arccos1",
    "arccos2",
    "0.3*gaussian + 0.7*laplacian",
    "gaussian * laplacian * sparse-gaussian:2",
    "gaussian o laplacian#20",
    "arccos1 o arccos1#20 o arccos2#10",
    "gaussian o pca:5 o laplacian#20",
    "laplacian o fda:3",
    "gaussian + linear",
    "sparse-gaussian:3 o fda:3 o (gaussian + laplacian)#20",
    "gaussian + laplacian o pca:4 o (arccos1 o pca:6 o gaussian#16)#30",
    "(gaussian + laplacian) o pca:3 o posteriors:{kernel}",
    "gaussian + arccos1 o posteriors:{dnn}",
    "linear",
    "posteriors:{dnn}",
    "gaussian o pca:2 o posteriors:{bottleneck}",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_model_is_saved_and_restored_whatever_its_kernel(expression, first_models, train, tmp_path):
    model = model_of(*build(train, expression.format(**first_models)))
    save_model(tmp_path, model, {})
    for folder in first_models.values():  # not needed any more
        (folder / "model.safetensors").unlink()
    loaded = load_model(tmp_path)
    assert isinstance(loaded, KernelSoftmax)
    assert loaded.kernel == model.kernel
    features = np.random.default_rng(1).standard_normal((9, DIM)).astype(np.float32)
    np.testing.assert_array_equal(loaded.log_likelihoods(features), model.log_likelihoods(features))
    first = (tmp_path / "model.safetensors").read_bytes()
    save_model(tmp_path, loaded, {})
    assert (tmp_path / "model.safetensors").read_bytes() == first


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_how_many_features_there_will_be_is_known_before(expression, first_models, train):
    expression = expression.format(**first_models)
    assert module.count_of(parse(expression), 2 * DIM, 40, 40) == build(train, expression)[1].count


@pytest.mark.parametrize("width", ["1e-40", "1e40"])
def test_widths_that_are_no_single_precision_are_a_sentence(width, train):
    with pytest.raises(KernelamError, match="that single precision has no room for: choose a --bandwidth nearer to 1"):
        build(train, f"gaussian@{width}")


MISTAKES = {
    "gausian": "cannot be read",
    "polynomial:2": "the polynomial kernel has no random features",
    "gaussian o pca:11": "pca:11 is more than the 10 dimensions that 10 features have",
    "gaussian o polynomial:2": "the polynomial kernel has no random features",
    "gaussian * arccos1": "shift-invariant kernels, which arccos is not",
    "gaussian * (gaussian o laplacian)": "not of gaussian o laplacian",
    "gaussian o pca:41 o laplacian": "pca:41 is more than the 40 dimensions that 40 features have",
    "gaussian o fda:4 o laplacian": "fda:4 is more than the 3 dimensions that 40 features have",
    "gaussian o pca:4 o laplacian#20000": "pca of 20000 features is too large: give the map inside it at most 10000",
    "sparse-gaussian:11": "chooses 11 coordinates, its inputs have 10",
    "gaussian o posteriors:none": "none",
    "gaussian + laplacian + arccos1 + gaussian + laplacian": "0 random features|even number",
}


@pytest.mark.parametrize("expression", MISTAKES)
def test_what_cannot_be_is_a_sentence(expression, train):
    with pytest.raises(KernelamError, match=MISTAKES[expression]):
        build(train, expression, 8 if expression.count("+") == 4 else 40)


def test_constant_features_have_no_bandwidth(tmp_path):
    same = frames(tmp_path, constant=True)
    for expression in ("gaussian", "laplacian", "sparse-gaussian:2", "gaussian o arccos1"):
        with pytest.raises(KernelamError, match=r"median distance of random frames is 0, .*inputs are equal"):
            build(same, expression)


def test_an_unknown_plan_is_a_sentence(train):
    with pytest.raises(KernelamError, match="no sampling plan is called twisted"):
        build(train, "gaussian", plan="twisted")


def test_posteriors_of_a_model_with_other_inputs_are_refused(first_models, train):
    folder = first_models["dnn"]
    for inputs, told in (
        (
            Inputs((2, 2), INPUTS.mean, INPUTS.scale),
            r"takes 5 features in a context of \(1, 0\) frames, not 5 in \(2, 2\)",
        ),
        (Inputs((1, 0), np.zeros(3, np.float32), np.ones(3, np.float32)), "not 3 in"),
        (Inputs((1, 0), INPUTS.mean + 1, INPUTS.scale), "was trained on frames of another mean"),
    ):
        with pytest.raises(KernelamError, match=told):
            build_features(f"gaussian o posteriors:{folder}", 1.0, 40, "paired", train, inputs, 3, CPU)
