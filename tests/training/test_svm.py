"""Support vector machines against scikit-learn's own, without it where they are used, and the command."""

import builtins
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from test_combine_models import write_data, write_states

from kernelam.cli.train import command
from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import ArcCosine, Gaussian
from kernelam.kernels.composition import arc_cosine_layers
from kernelam.kernels.linear import Linear
from kernelam.models import load_model
from kernelam.models import svm as model
from kernelam.models.description import describe
from kernelam.models.posterior import Inputs
from kernelam.models.svm import Svm
from kernelam.report.experiments import system
from kernelam.training import svm
from kernelam.training.svm import SvmOptions, check_gram, fit_slopes, fit_svm, gram, train_svm

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = load_digits(return_X_y=True)
    return torch.from_numpy((x / 16).astype(np.float32)), torch.from_numpy(y)


def test_the_matrix_is_that_of_the_exact_kernel(digits, monkeypatch):
    x = digits[0][:60]
    monkeypatch.setattr(svm, "ELEMENTS", 700)
    for kernel in (Gaussian(1.5), arc_cosine_layers([0, 1, 0])):
        exact = kernel(x.double(), x.double()).numpy()
        found = gram(kernel, x)
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, exact, atol=1e-4)
        np.testing.assert_allclose(found.diagonal(), exact.diagonal(), rtol=1e-6)


@pytest.mark.parametrize("classes", [[3, 8], [1, 4, 9], range(10)])
@pytest.mark.parametrize("kernel", [Gaussian(1.5), ArcCosine(1), arc_cosine_layers([0, 1])], ids=str)
def test_decisions_and_votes_are_those_of_scikit_learn(digits, kernel, classes, monkeypatch):
    x, labels = digits
    some = torch.isin(labels, torch.tensor(list(classes)))
    x, labels = x[some], labels[some]
    train, test = slice(0, 300), slice(300, 600)
    theirs = SVC(C=2.0, kernel="precomputed", decision_function_shape="ovo")
    theirs.fit(kernel(x[train].double(), x[train].double()), labels[train])
    rows = kernel(x[test].double(), x[train].double())
    monkeypatch.setattr(model, "ELEMENTS", 20_000)
    ours = fit_svm(kernel, x[train], labels[train], 2.0)
    expected = theirs.decision_function(rows).reshape(len(rows), -1)
    sign = -1.0 if len(classes) == 2 else 1.0
    np.testing.assert_allclose(ours.decisions(x[test]), sign * expected, atol=0.02)
    assert np.mean(ours.predict(x[test]).numpy() == theirs.predict(rows)) > 0.995
    assert ours.vectors.shape == (len(theirs.support_), 64)


@pytest.mark.parametrize("classes", [[3, 8], [1, 4, 9]])
def test_a_linear_machine_has_the_least_squared_hinges(digits, classes):
    """By a general minimiser, pair by pair; and errors are about those of libsvm, whose hinges are not squared."""
    some = torch.isin(digits[1], torch.tensor(classes))
    x, labels = digits[0][some], digits[1][some]
    ours = fit_svm(Linear(), x[:300], labels[:300], 0.5)
    for pair, (i, j) in enumerate(combinations(classes, 2)):
        own = torch.isin(labels[:300], torch.tensor([i, j]))
        points, signs = x[:300][own].double().numpy(), np.where(labels[:300][own] == i, 1.0, -1.0)
        centred = np.hstack([points - points.mean(axis=0), np.ones((len(points), 1))])

        def loss(w, centred=centred, signs=signs):
            hinges = np.maximum(0.0, 1.0 - signs * (centred @ w))
            return 0.5 * w @ w + 0.5 * (hinges**2).sum(), w - centred.T @ (signs * hinges)

        best = minimize(loss, np.zeros(65), jac=True, tol=1e-10).x
        expected = (x[300:].double().numpy() - points.mean(axis=0)) @ best[:-1] + best[-1]
        np.testing.assert_allclose(ours.decisions(x[300:])[:, pair], expected, atol=5e-3)
    theirs = SVC(C=0.5, kernel="linear").fit(x[:300], labels[:300])
    assert np.mean(ours.predict(x[300:]).numpy() == theirs.predict(x[300:])) > 0.97
    assert len(ours.vectors) == len(classes) * (len(classes) - 1) // 2


def test_a_gaussian_machine_is_that_of_scikit_learns_own_kernel(digits):
    x, labels = digits[0], (digits[1] >= 5).long()
    theirs = SVC(C=3.0, kernel="rbf", gamma=1 / (2 * 1.5**2)).fit(x[:400], labels[:400])
    ours = fit_svm(Gaussian(1.5), x[:400], labels[:400], 3.0)
    np.testing.assert_allclose(-ours.decisions(x[400:])[:, 0], theirs.decision_function(x[400:]), atol=0.02)
    assert np.mean(ours.predict(x[400:]).numpy() == theirs.predict(x[400:])) > 0.998


def test_new_examples_choose_and_all_are_trained_on(digits):
    x, labels = (part[:800] for part in digits)
    options = SvmOptions("gaussian", bandwidths=(0.01, 0.5), penalties=(1e-3, 5.0))
    found = train_svm(x[:600], labels[:600], x[600:], labels[600:], options)
    best = found.trials[0]
    assert [len(found.trials), best["bandwidth"], best["penalty"]] == [4, 0.5, 5.0]
    alone = fit_svm(found.machine.kernel, x[:600], labels[:600], best["C"])
    assert torch.equal(alone.alpha, found.chosen.alpha)
    assert best["error"] == pytest.approx(float((alone.predict(x[600:]) != labels[600:]).double().mean()))
    whole = fit_svm(found.machine.kernel, x, labels, best["C"])
    assert torch.equal(found.machine.alpha, whole.alpha)
    matrix = gram(found.machine.kernel, x[:600])
    assert best["C"] == pytest.approx(5.0 / (matrix.diagonal().mean() - matrix.mean()))
    error = float((found.machine.predict(digits[0][800:]) != digits[1][800:]).double().mean())
    assert error < 0.06


def test_penalties_mean_the_same_for_kernels_of_any_scale(digits):
    x, labels = (part[:600] for part in digits)
    sets = (x[:400], labels[:400], x[400:], labels[400:])
    found = [train_svm(*(part * scale for part in sets[:1]), sets[1], sets[2] * scale, sets[3], SvmOptions("arccos2"))
             for scale in (1.0, 8.0)]  # fmt: skip
    assert [row["error"] for row in found[0].trials] == [row["error"] for row in found[1].trials]


def test_the_matrix_of_a_width_is_computed_once(digits, monkeypatch):
    x, labels = (part[:300] for part in digits)
    sizes = []
    monkeypatch.setattr(svm, "gram", lambda kernel, x: sizes.append(len(x)) or gram(kernel, x))
    options = SvmOptions("gaussian", (0.5, 1.0), (1.0, 10.0, 100.0))
    train_svm(x[:200], labels[:200], x[200:], labels[200:], options)
    assert sizes == [200, 200, 300]


def model_of(machine, classes: int) -> Svm:
    inputs = Inputs((0, 0), np.zeros(64, np.float32), np.ones(64, np.float32))
    return Svm(machine, Pipeline(), inputs, np.ones(classes), CPU)


def test_slopes_are_of_maximum_likelihood_and_leave_decisions(digits):
    x, labels = digits[0], (digits[1] >= 5).long()
    machine = fit_svm(ArcCosine(0), x[:150], labels[:150], 0.3)
    (slope,) = fit_slopes(machine, x[150:], labels[150:]).tolist()
    f, sign = machine.decisions(x[150:])[:, 0].double(), 1.0 - 2.0 * labels[150:].double()
    losses = [float(-torch.nn.functional.logsigmoid(a * sign * f).mean()) for a in (0.99 * slope, slope, 1.01 * slope)]
    assert losses[1] < min(losses[0], losses[2])
    found = model_of(machine, 2)
    found.calibrate(torch.tensor([slope]))
    assert torch.equal(found.logits(x[150:]).argmax(dim=1), machine.predict(x[150:]))
    torch.testing.assert_close(found.logits(x[150:]).exp().sum(dim=1), torch.ones(len(x) - 150))


def test_probabilities_of_ten_classes_are_as_good_as_votes(digits):
    x, labels = digits
    machine = fit_svm(Gaussian(1.5), x[:700], labels[:700], 5.0)
    found = model_of(machine, 11)
    found.calibrate(fit_slopes(machine, x[700:1000], labels[700:1000]))
    log_p = found.logits(x[1000:])
    votes, best = (
        float((one != labels[1000:]).double().mean()) for one in (machine.predict(x[1000:]), log_p.argmax(1))
    )
    assert best <= votes + 0.01
    assert float(-log_p.gather(1, labels[1000:, None]).mean()) < 0.5
    torch.testing.assert_close(log_p[:, 10].exp(), torch.full((len(log_p),), 1 / 11))  # which has no vectors


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_data(folder, write_states(folder / "ali"))
    return folder


def train(made: Path, folder: Path, *options: str) -> str:
    places = [made / name for name in ("data", "data", "lang", "ali", "ali")]
    result = CliRunner().invoke(command, ["svm", "--splice", "1", *options, *map(str, places), str(folder)])
    if isinstance(result.exception, KernelamError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_models_are_loaded_as_they_were_trained_and_need_no_scikit_learn(made, tmp_path, monkeypatch):
    said = train(made, tmp_path / "model", "--kernel", "arccos1 o arccos0", "--penalty", "1 10")
    assert "takes 0.2 GiB of memory" in said
    about = describe(tmp_path / "model")
    assert len(about["training"]["trials"]) == 2
    assert about["heldout"]["frame_error"] < 0.5
    imported = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    found = load_model(tmp_path / "model")
    assert isinstance(found, Svm)
    vectors = len(found.parameters["vectors"])
    assert system(about) == f"Arccos1 o arccos0 support vector machine, {vectors} vectors"
    features = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32)
    log_p = found.log_posteriors(features)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=1e-5)
    assert (
        train(made, tmp_path / "model", "--kernel", "arccos1 o arccos0", "--penalty", "1 10")
        .strip()
        .endswith("holds the model of these data and settings already")
    )
    with pytest.raises(KernelamError, match="which is not installed: pip install scikit-learn"):
        train(made, tmp_path / "another", "--penalty", "1")


@pytest.mark.parametrize("kernel", ["arccos1", "arccos2 o arccos2"])
def test_one_frame_whose_kernel_is_too_large_is_told_of(digits, kernel):
    """Of several hundred, wherever it is: libsvm would not end, or be given what is not finite."""
    x, labels = digits[0][:400].clone(), digits[1][:400]
    x[333] = 1e15
    with pytest.raises(KernelamError, match=r"too large for single precision, with inputs up to 1e\+15"):
        train_svm(x[:300], labels[:300], x[300:], labels[300:], SvmOptions(kernel))


@pytest.mark.parametrize("classes", [2, 10])
def test_frames_beyond_all_bounds_tell_nothing(digits, classes):
    x, labels = digits[0], digits[1] % classes
    machine = fit_svm(arc_cosine_layers([2, 2]), x[:200], labels[:200], 1e-3)
    far = torch.cat([x[200:210], torch.full((2, 64), 1e9), torch.full((1, 64), 1e25)])
    log_p = model_of(machine, classes).logits(far)
    assert log_p.isfinite().all()
    torch.testing.assert_close(log_p.exp().sum(dim=1), torch.ones(len(far)))
    torch.testing.assert_close(log_p[10:].exp(), torch.full((3, classes), 1 / classes))
    torch.testing.assert_close(log_p[:10], model_of(machine, classes).logits(x[200:210]))


def test_decisions_that_one_kernel_carries_beyond_all_numbers_are_none(digits):
    """As when a frame lies in the direction of one class alone: infinite, it would leave the others no posterior."""
    machine = fit_svm(arc_cosine_layers([2]), digits[0][:100], digits[1][:100] % 2, 1e-3)
    alpha = torch.zeros_like(machine.alpha).index_fill_(1, torch.tensor([0]), 1e38)
    first = replace(machine, alpha=alpha).decisions(1e8 * machine.vectors[:1])
    torch.testing.assert_close(first, torch.zeros(1, 1))


def test_heldout_frames_of_unknown_classes_are_left_out(digits, capsys):
    x, labels = digits
    old, new = (labels[:300] != 9), (labels[300:500] != 9)
    some = SvmOptions(penalties=(10.0,))
    expected = train_svm(x[:300][old], labels[:300][old], x[300:500][new], labels[300:500][new], some)
    found = train_svm(x[:300][old], labels[:300][old], x[300:500], labels[300:500], some)
    torch.testing.assert_close(found.machine.decisions(x[500:600]), expected.machine.decisions(x[500:600]))
    out = int((~new).sum())
    assert (
        f"{out} of 200 heldout frames are left out: no training frame is of their 1 classes" in capsys.readouterr().err
    )


def test_what_cannot_be_is_a_sentence(digits, made, monkeypatch, tmp_path):
    x, labels = digits
    with pytest.raises(KernelamError, match="above zero, not 0"):
        SvmOptions(penalties=(0.0, 1.0))
    with pytest.raises(KernelamError, match="a bandwidth is a number above zero, not -1"):
        SvmOptions(bandwidths=(1.0, -1.0))
    with pytest.raises(KernelamError, match=r"a kernel .* is missing"):
        SvmOptions("arccos3")
    with pytest.raises(KernelamError, match="has no closed form"):
        train(made, tmp_path / "model", "--kernel", "gaussian o pca:2")
    with pytest.raises(KernelamError, match="examples of two classes"):
        fit_svm(ArcCosine(1), x[:9], torch.zeros(9), 1.0)
    with pytest.raises(KernelamError, match="no heldout frame is of a class that training frames are of"):
        train_svm(x[:100], labels[:100] % 2, x[3:9], torch.full((6,), 7), SvmOptions())
    with pytest.raises(KernelamError, match="all examples are one in the feature space"):
        train_svm(torch.ones(6, 2), labels[:6], torch.ones(6, 2), labels[:6], SvmOptions())
    monkeypatch.setattr(svm, "available", lambda: 1 << 20)
    with pytest.raises(KernelamError, match=r"the kernel matrix of 1797 examples takes 0\.2\d? GiB of memory"):
        check_gram(1797, "arccos1")
    with pytest.raises(KernelamError, match=r"examples takes 0\.2\d? GiB of memory"):
        train(made, tmp_path / "model")
    assert not (tmp_path / "model/model.json").exists()
