"""The command that trains kernel log-linear models with a basis of their own."""

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from test_combine_models import write_data, write_states

from kernelam.cli.train import command
from kernelam.errors import KernelamError
from kernelam.models import load_model
from kernelam.models.description import describe
from kernelam.models.pursuit import KernelExpansion
from kernelam.report.experiments import system
from kernelam.report.parts import identity
from kernelam.training import expansion, pursuit

SMALL = "--basis 12 --first 4 --added 4 --splice 0 --penalty 0.1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_data(folder, write_states(folder / "ali"))
    return folder


def train(made: Path, folder: Path, options: str = "") -> str:
    places = [made / name for name in ("data", "data", "lang", "ali", "ali")]
    result = CliRunner().invoke(
        command, ["pursuit", *SMALL.split(), *shlex.split(options), *map(str, places), str(folder)]
    )
    if isinstance(result.exception, KernelamError | KeyboardInterrupt):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial:1", "polynomial:2"])
def test_models_are_loaded_as_they_were_trained(made, tmp_path, kernel):
    train(made, tmp_path / "model", f"--kernel {kernel} --priors counts")
    about = describe(tmp_path / "model")
    assert about["heldout"]["ce"] < 0.9 * np.log(6)
    model = load_model(tmp_path / "model")
    assert isinstance(model, KernelExpansion)
    assert f"{about['config']['basis']} vectors, orthogonal" in system(about)
    features = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32)
    x = model.inputs.tensor(features)
    y, beta = (model.parameters[name].double() for name in ("y", "beta"))
    expected = torch.log_softmax(model.kernel(x.double(), y) @ beta, dim=1)
    np.testing.assert_allclose(model.log_posteriors(features), expected, atol=2e-3)


def test_models_that_differ_in_their_seed_are_one_experiment(made, tmp_path):
    for seed in (1, 2):
        train(made, tmp_path / str(seed), f"--seed {seed}")
    keys = [identity(tmp_path / str(seed), describe(tmp_path / str(seed))) for seed in (1, 2)]
    assert keys[0][0] == keys[1][0]
    assert [seeds for _, seeds in keys] == [[1], [2]]


def test_priors_are_uniform_as_in_the_paper(made, tmp_path):
    for priors in ("uniform", "counts"):
        train(made, tmp_path / priors, f"--priors {priors}")
    models = {name: load_model(tmp_path / name) for name in ("uniform", "counts")}
    features = np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32)
    posteriors = models["uniform"].log_posteriors(features)
    np.testing.assert_allclose(posteriors, models["counts"].log_posteriors(features))
    np.testing.assert_allclose(models["uniform"].log_likelihoods(features), posteriors + np.log(6), rtol=1e-5)
    assert np.ptp(models["counts"].log_likelihoods(features) - posteriors, axis=1).min() > 0.1


def test_heldout_frames_choose(made, tmp_path):
    said = train(made, tmp_path / "model", "--bandwidth 0.01 --bandwidth 1")
    assert "tried" not in said
    result = train(made, tmp_path / "other", "--penalty 0.1,100000 --bandwidth 0.001,1")
    assert result.count("heldout CE") == 5
    about = describe(tmp_path / "other")["training"]
    assert (about["penalty"], about["bandwidth"], about["configurations"]) == (0.1, 1.0, 4)


def test_a_training_that_was_killed_is_gone_on_with(made, tmp_path, monkeypatch):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(made, whole)
    keep, left = pursuit._keep, [2]

    def dying(*args):
        keep(*args)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pursuit, "_keep", dying)
        with pytest.raises((KeyboardInterrupt, AssertionError)):
            train(made, killed)
    assert (killed / pursuit.CHECKPOINT).exists()
    assert not (killed / "frames").exists()
    assert "going on with 8 basis vectors" in train(made, killed)
    assert (killed / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert {path.name for path in killed.iterdir()} == {path.name for path in whole.iterdir()}
    assert "holds the model of these data and settings already" in train(made, killed)


def test_the_table_of_a_run_that_was_killed_takes_no_disk_from_the_next(made, tmp_path, monkeypatch):
    table = tmp_path / "model" / pursuit.TABLE
    table.parent.mkdir()
    table.write_bytes(bytes(4 * 12 * 360))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        expansion.shutil, "disk_usage", lambda folder: usage._replace(free=1000 if table.exists() else 10**6)
    )
    train(made, tmp_path / "model")
    assert not table.exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--kernel laplacian", "with the laplacian kernel, which is not a differentiable function of"),
        ("--kernel gaussian+laplacian", "with the sum kernel, which is not a differentiable function"),
        ("--kernel arccos0", "with the arccos kernel, which is not a differentiable function of inner products"),
        ("--bandwidth -1", "a bandwidth is a number above zero, not -1"),
        ("--kernel polynomial", "a polynomial needs a degree"),
        ("--first 13", "pursuit begins with 1 to 12 vectors, not 13"),
        ("--penalty -1", "--penalty is a number from 0 to below inf, not -1"),
        ("--device cuda:9", "there is no device cuda:9"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(made, tmp_path, options, sentence):
    with pytest.raises(KernelamError, match=sentence):
        train(made, tmp_path / "model", options)
    assert not (tmp_path / "model").exists()


def test_kernels_too_large_for_single_precision_are_refused(made, tmp_path):
    for kernel in ("polynomial:99", "arccos0" + 6 * " o arccos2"):  # whose inner layers are beyond it
        with pytest.raises(KernelamError, match=r"of these frames is too large for single precision, .*: take a lower"):
            train(made, tmp_path / "model", f"--method nystrom --kernel '{kernel}' --scaling shared --splice 5")
        assert not list((tmp_path / "model").iterdir())
    with pytest.raises(KernelamError, match="polynomial:1000 of these frames is too large for single precision"):
        train(made, tmp_path / "model", "--kernel polynomial:1000")


def test_more_vectors_than_frames_or_disk_are_refused(made, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(expansion, "try_penalties", None)  # not before something has been tried
        with pytest.raises(KernelamError, match="1000000 basis vectors are more than the 360 samples"):
            train(made, tmp_path / "model", "--basis 1000000 --bandwidth '1 2'")
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(expansion.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(KernelamError, match=r"12 vectors take 0\.00 GiB of disk in .*; a smaller --basis takes less"):
        train(made, tmp_path / "model")
    assert not list((tmp_path / "model").iterdir())
