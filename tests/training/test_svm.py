"""Support vector machines against scikit-learn's own, without it where they are used."""

import builtins

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from kernelam.errors import KernelamError
from kernelam.kernels import ArcCosine, Gaussian
from kernelam.kernels.composition import arc_cosine_layers
from kernelam.models import svm as model
from kernelam.models.svm import KernelSvm
from kernelam.training import svm
from kernelam.training.svm import SvmOptions, fit_svm, gram, train_svm


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
def test_decisions_and_votes_are_those_of_scikit_learn(digits, kernel, classes, monkeypatch, tmp_path):
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
    ours.save(tmp_path / "svm.safetensors")
    again = KernelSvm.load(tmp_path / "svm.safetensors")
    assert torch.equal(again.decisions(x[test]), ours.decisions(x[test]))
    assert again.vectors.shape == (len(theirs.support_), 64)


def test_the_last_examples_choose_and_all_are_trained_on(digits):
    x, labels = (part[:800] for part in digits)
    options = SvmOptions("gaussian", bandwidths=(0.01, 0.5), penalties=(1e-3, 5.0), validation=200)
    machine, trials = train_svm(x, labels, options)
    assert [len(trials), trials[0]["bandwidth"], trials[0]["penalty"]] == [4, 0.5, 5.0]
    alone = fit_svm(machine.kernel, x[:600], labels[:600], 5.0)
    assert trials[0]["error"] == pytest.approx(float((alone.predict(x[600:]) != labels[600:]).double().mean()))
    whole = fit_svm(machine.kernel, x, labels, 5.0)
    assert torch.equal(machine.alpha, whole.alpha)
    error = float((machine.predict(digits[0][800:]) != digits[1][800:]).double().mean())
    assert error < 0.06


def test_without_scikit_learn_a_machine_is_used_but_not_trained(digits, monkeypatch, tmp_path):
    x, labels = (part[:100] for part in digits)
    fit_svm(ArcCosine(1), x, labels, 1.0).save(tmp_path / "svm")
    imported = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert float((KernelSvm.load(tmp_path / "svm").predict(x) == labels).double().mean()) > 0.9
    with pytest.raises(KernelamError, match="which is not installed: pip install scikit-learn"):
        fit_svm(ArcCosine(1), x, labels, 1.0)


def test_what_cannot_be_is_a_sentence(digits, monkeypatch, tmp_path):
    x, labels = digits
    with pytest.raises(KernelamError, match="2000 examples that choose C do not leave any of 1797"):
        train_svm(x, labels, SvmOptions())
    with pytest.raises(KernelamError, match="above zero, not 0"):
        SvmOptions(penalties=(0.0, 1.0))
    with pytest.raises(KernelamError, match=r"a kernel .* is missing"):
        SvmOptions("arccos3")
    with pytest.raises(KernelamError, match="examples of two classes"):
        fit_svm(ArcCosine(1), x[:9], torch.zeros(9), 1.0)
    monkeypatch.setattr(svm, "available", lambda: 1 << 20)
    with pytest.raises(KernelamError, match=r"the kernel matrix of 1797 examples takes 0.2 GiB of memory"):
        gram(ArcCosine(1), x)
    (tmp_path / "not").write_bytes(b"nothing")
    with pytest.raises(KernelamError, match="is damaged"):
        KernelSvm.load(tmp_path / "not")
