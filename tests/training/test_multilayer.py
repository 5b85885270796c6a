"""Multilayer kernel machines, and the command that trains them."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from sklearn.datasets import load_digits
from test_combine_models import write_data, write_states

from kernelam.cli.train import command
from kernelam.errors import KernelamError
from kernelam.kaldi.ark import ArkWriter, MatrixScp
from kernelam.models import load_model
from kernelam.models.description import describe
from kernelam.models.multilayer import Multilayer
from kernelam.report.experiments import system
from kernelam.training import kernel_pca, layers
from kernelam.training.layers import LayerOptions, Steps, build_layers, build_metric
from kernelam.training.lmnn import MetricOptions, energies
from kernelam.training.pruning import choose_width, neighbour_errors, ranking

SMALL = "--examples 300 --pca-examples 120 --components 20 --splice 1 --targets 2"
NOISE = 256


@pytest.fixture(scope="module")
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """After NOISE pixels that tell nothing."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    noise = np.random.default_rng(1).uniform(0, 16, (len(x), NOISE))
    mixed = np.concatenate([noise, x], axis=1)[order].astype(np.float32) / 16
    return torch.from_numpy(mixed), torch.from_numpy(y[order])


def test_machines_of_any_depth_are_less_lost_in_noise_than_neighbours_of_their_inputs(digits):
    x, labels = (part[:900] for part in digits)
    others = tuple(part[750:900] for part in digits)
    x, labels = x[:750], labels[:750]
    new, truth = (part[900:] for part in digits)
    plain = neighbour_errors(x, labels, new, truth, NOISE + 64)[0].min()
    errors = {}
    for depth in (0, 1, 2):
        options = LayerOptions("arccos1", depth, examples=750, pca_examples=400, components=60)
        found = build_layers(x, labels, options, Steps(None, ""), others)
        metric, _ = build_metric(found.hidden, labels, MetricOptions(), Steps(None, ""))
        hidden = new[:, found.kept]
        for layer in found.layers:
            hidden = layer(hidden)
        rule = energies(found.hidden, labels, metric, MetricOptions())
        errors[depth] = float((rule(hidden).argmin(dim=1) != truth).double().mean())
    assert max(errors.values()) < 0.75 * plain, errors


def test_without_layers_there_is_no_kernel_pca_to_be_too_large():
    assert LayerOptions(layers=0, examples=100, pca_examples=6000, components=7000).examples == 100


def test_layers_that_others_choose_are_made_once(digits):
    x, labels = (part[:400] for part in digits)
    others = tuple(part[400:600] for part in digits)
    options = LayerOptions("arccos0", 1, examples=400, pca_examples=200, components=40)
    found = build_layers(x, labels, options, Steps(None, ""), others)
    order = ranking(x, labels)
    width = choose_width(x[:, order], labels, others[0][:, order], others[1])
    assert torch.equal(found.kept, order[: width.features])
    assert found.chosen[0]["error"] == width.error
    hidden, new = (found.layers[0](one[:, found.kept]) for one in (x, others[0]))
    assert torch.equal(hidden, found.hidden)
    (layer,) = found.layers
    assert (found.kept >= NOISE).double().mean() > 0.9
    assert layer.vectors.shape == (200, width.features)
    assert found.text == f"{width.features}-{layer.matrix.shape[1]}"
    assert torch.isin(layer.vectors, x).all()
    errors = neighbour_errors(hidden, labels, new, others[1], hidden.shape[1])[0]
    assert errors[found.chosen[1]["neighbours"] - 1] == found.chosen[1]["error"]


def test_the_width_of_gaussian_layers_is_chosen_in_each(digits):
    x, labels = (part[:300] for part in digits)
    options = LayerOptions("gaussian", 2, (1e-4, 1.0), examples=300, pca_examples=150, components=30)
    found = build_layers(x, labels, options, Steps(None, ""), tuple(part[300:400] for part in digits))
    assert [row["bandwidth"] for row in found.chosen[1:]] == [1.0, 1.0]
    assert found.layers[0].kernel.sigma != found.layers[1].kernel.sigma


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_data(folder, write_states(folder / "ali"))
    return folder


def train(made: Path, folder: Path, options: str = "", heldout: Path | None = None) -> str:
    places = [made / "data", heldout or made / "data", *(made / name for name in ("lang", "ali", "ali"))]
    arguments = ["multilayer", *SMALL.split(), *options.split(), *map(str, places), str(folder)]
    result = CliRunner().invoke(command, arguments)
    if isinstance(result.exception, KernelamError | KeyboardInterrupt):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("options", "depth", "name"),
    [("--layers 0", 0, "M"), ("--kernel gaussian", 1, "Gaussian m"), ("--layers 2", 2, "Arccos1 m")],
)
def test_models_are_loaded_as_they_were_trained(made, tmp_path, options, depth, name):
    train(made, tmp_path / "model", options)
    about = describe(tmp_path / "model")
    assert about["heldout"]["ce"] < 0.8 * np.log(6)
    assert about["heldout"]["frame_error"] < 0.5
    model = load_model(tmp_path / "model")
    assert isinstance(model, Multilayer)
    assert len(model.layers) == depth
    assert model.widths == [row["features"] for row in about["training"]["chosen"]]
    shape = f"{depth} layer{'s' * (depth != 1)}, {'-'.join(map(str, model.widths))}"
    assert system(about) == f"{name}ultilayer kernel machine, {shape} features"
    features = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32)
    x = model.inputs.tensor(features)
    expected = model.parameters["temperature"] * model.scores(x) + model.parameters["biases"]
    np.testing.assert_allclose(model.log_posteriors(features), torch.log_softmax(expected, dim=1), atol=1e-4)
    np.testing.assert_allclose(np.exp(model.log_posteriors(features)).sum(axis=1), 1, rtol=1e-5)
    assert not (tmp_path / "model/layers").exists()


def test_frames_beyond_all_bounds_tell_nothing(made, tmp_path):
    """Of heldout data, and of those that are decoded."""
    shutil.copytree(made / "data", tmp_path / "far")
    with ArkWriter(tmp_path / "far/feats.ark", tmp_path / "far/feats.scp") as writer:
        for number, (utt, matrix) in enumerate(MatrixScp(made / "data/feats.scp").items()):
            writer.write(utt, matrix * np.float32(1.0 if number else 1e12))
    train(made, tmp_path / "model", "--kernel arccos2 --layers 2", heldout=tmp_path / "far")
    about, model = describe(tmp_path / "model"), load_model(tmp_path / "model")
    assert 0.0 < about["heldout"]["ce"] < 2.0 * np.log(6)
    far = np.exp(model.log_posteriors(np.full((3, 3), 1e12, np.float32)))
    np.testing.assert_allclose(far.sum(axis=1), 1, rtol=1e-5)


def test_layers_of_a_shallower_machine_are_those_that_would_be_made(made, tmp_path, monkeypatch):
    widths = "--kernel gaussian --bandwidth 0.5,2"
    for depth in (1, 2):
        train(made, tmp_path / str(depth), f"{widths} --layers {depth}")
    fit = kernel_pca.fit_kernel_pca
    fitted = []
    monkeypatch.setattr("kernelam.training.layers.fit_kernel_pca", lambda *args: fitted.append(1) or fit(*args))
    train(made, tmp_path / "on", f"{widths} --layers 2 --layers-of {tmp_path}/1")
    assert len(fitted) == 2  # the second layer, of either width
    assert (tmp_path / "on/model.safetensors").read_bytes() == (tmp_path / "2/model.safetensors").read_bytes()
    for options, sentence in (
        (
            "--kernel gaussian --bandwidth 0.5,2 --layers 1 --layers-of {}/2",
            "is no multilayer kernel machine of 1 or fewer",
        ),
        ("--kernel gaussian --bandwidth 0.5,1 --layers 2 --layers-of {}/1", "with other options or with another seed"),
        (widths + " --layers 2 --seed 2 --layers-of {}/1", "or with another seed"),
        ("--layers-of {}/none", "no such file .*none/model.safetensors"),
    ):
        with pytest.raises(KernelamError, match=sentence):
            train(made, tmp_path / "refused", options.format(tmp_path))
        assert not (tmp_path / "refused/model.json").exists()


def test_layers_of_a_machine_that_does_not_tell_how_they_were_made_are_refused(made, tmp_path):
    train(made, tmp_path / "1")
    path = tmp_path / "1/model.json"
    about = json.loads(path.read_text())
    training = about.pop("training")
    rows = training["chosen"]
    for change in ({"chosen": rows[:1]}, {"chosen": [{}, {}]}, {"chosen": 3}, {"chosen": [3]}, {"settings": [1]}, None):
        path.write_text(json.dumps({**about, "training": change and training | change}))
        with pytest.raises(KernelamError, match=r"1/model.json does not tell how the layers of --layers-of were made"):
            train(made, tmp_path / "2", f"--layers 2 --layers-of {tmp_path}/1")


def test_classes_with_few_examples_have_a_fixed_share(made, tmp_path):
    said = train(made, tmp_path / "model", "--layers 0 --examples 120 --targets 19")
    model = load_model(tmp_path / "model")
    classes = model.numbers["classes"].numpy()
    assert 2 <= len(classes) < 6
    assert f"{6 - len(classes)} classes have no more than 19 examples" in said
    others = np.setdiff1d(np.arange(6), classes)
    found = np.exp(model.log_posteriors(np.zeros((2, 3), np.float32)))
    np.testing.assert_allclose(found[:, others], np.tile(model.counts[others] / model.counts.sum(), (2, 1)), rtol=1e-4)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


def test_a_training_that_was_killed_is_gone_on_with_from_any_step(made, tmp_path, monkeypatch):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    options = "--layers 2 --kernel gaussian --bandwidth 0.5,2"
    train(made, whole, options)
    write, times = layers.checkpoint.write, 0

    def dying(*args):
        write(*args)
        raise KeyboardInterrupt

    while not (killed / "model.json").exists() and times < 40:
        with monkeypatch.context() as patch:
            patch.setattr(layers.checkpoint, "write", dying)
            try:
                said = train(made, killed, options)
            except (KeyboardInterrupt, AssertionError):
                times += 1
                assert (killed / "layers").exists()
                assert not (killed / "frames").exists()
    assert times >= 8  # inputs, layers of either width, and rounds of the metric
    assert "going on with" in said
    assert (killed / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert {path.name for path in killed.iterdir()} == {path.name for path in whole.iterdir()}
    assert "holds the model of these data and settings already" in train(made, killed, options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--kernel arccos3", r"a kernel .* is missing"),
        ("--kernel laplacian+pca:3", "a projection comes after an o"),
        ("--kernel posteriors:exp", "no closed form"),
        ("--components 121", "121 components are more than the 120 examples of kernel PCA"),
        ("--pca-examples 301", "kernel PCA of 301 examples cannot be where there are 300 in all"),
        ("--device cuda:9", "there is no device cuda:9"),
        ("--kernel gaussian --bandwidth -1", "a bandwidth is a number above zero, not -1"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(made, tmp_path, options, sentence):
    with pytest.raises(KernelamError, match=sentence):
        train(made, tmp_path / "model", options)
    assert not (tmp_path / "model").exists()


def test_too_little_memory_and_too_few_examples(made, tmp_path, monkeypatch):
    with pytest.raises(KernelamError, match="0 classes have more than 99 of 300 examples"):
        train(made, tmp_path / "model", "--targets 99")
    with pytest.raises(KernelamError, match="a depth of 0 or more layers, not -1"):
        LayerOptions(layers=-1)
    monkeypatch.setattr(kernel_pca, "available", lambda device: 1000)
    with pytest.raises(KernelamError, match="fewer --pca-examples take less"):
        train(made, tmp_path / "other")
    assert not list((tmp_path / "other").iterdir())


def test_the_step_calls_the_command(root, made, tmp_path):
    places = [str(made / name) for name in ("data", "data", "lang", "ali", "ali")]
    step = [root / "steps/train_multilayer.sh", *SMALL.split(), "--num-threads", "1", *places, tmp_path / "model"]
    done = subprocess.run(list(map(str, step)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert describe(tmp_path / "model")["kind"] == "multilayer"
    train(made, tmp_path / "same")
    same = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("model", "same")]
    assert same[0] == same[1]
