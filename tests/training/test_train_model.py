"""The command from data directories to a model directory: what is refused first, and what is left behind."""

import multiprocessing
import os
import shlex
import signal
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from test_combine_models import DIM, write_data, write_states

from kernelam import records
from kernelam.cli.train import command
from kernelam.errors import KernelamError
from kernelam.frames.store import FrameStore
from kernelam.hmm.transitions import TransitionModel
from kernelam.models.description import describe
from kernelam.training import acoustic, packing
from kernelam.training.metrics import evaluate

SMALL = {
    "kernel": "--num-features 20 --rates 1 --max-epochs 2 --splice 0",
    "dnn": "--layers 1 --width 8 --rates 0.1 --max-epochs 1 --splice 0",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_data(folder, write_states(folder / "ali"))
    return folder


def train(made: Path, folder: Path, options: str, kind: str = "kernel") -> str:
    """What training says."""
    places = [made / name for name in ("data", "data", "lang", "ali", "ali")]
    words = [kind, *SMALL.get(kind, "").split(), *shlex.split(options), *map(str, places), str(folder)]
    result = CliRunner().invoke(command, words)
    if isinstance(result.exception, KernelamError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("kernel", "--rates 0", "--rates are numbers above zero, not 0"),
        ("kernel", "--rates '1 -1'", "--rates are numbers above zero, not -1"),
        ("kernel", "--device cuda:99", "there is no device cuda:99"),
        ("kernel", "--precision tf32", "--precision tf32 is for GPUs"),
        ("kernel", "--bottleneck 6", "no narrower than the 6 classes"),
        ("kernel", "--optimiser sag --precondition 2", "not of sag"),
        ("kernel", "--features-of nowhere", "nowhere holds no trained model"),
        ("kernel", "--selection '5 5'", "does not increase"),
        ("dnn", "--pretraining rbm", "is for sigmoid units"),
        ("dnn", "--optimiser adamw --momentum '0 0.9'", "--momentum is that of sgd"),
        ("dnn", "--pretraining none --rbm-epochs 3", "--rbm-epochs is that of --pretraining rbm, not of none"),
        ("dnn", "--rbm-epochs 3", "--rbm-epochs is that of --pretraining rbm, not of discriminative"),
        ("dnn", "--bottleneck 6", "no narrower than 6 classes and 8 units"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_made(made, tmp_path, kind, options, sentence):
    with pytest.raises(KernelamError, match=sentence):
        train(made, tmp_path / "model", options, kind)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("kind", ["kernel", "dnn", "ridge", "pursuit", "multilayer", "svm"])
def test_a_model_of_another_kind_is_not_replaced(made, tmp_path, kind):
    old = '{"kind": "combination"}'
    for name in ("final.mdl", "model.safetensors", "model.json"):
        (tmp_path / name).write_text(old)
    with pytest.raises(KernelamError, match=f"^{tmp_path} has a model of kind combination, which would be lost"):
        train(made, tmp_path, "", kind)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("final.mdl", "model.safetensors", "model.json"), old
    )


def test_mixed_precision_is_for_processors_that_multiply_it(made, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": False})
    with pytest.raises(KernelamError, match="--precision mixed would be slower than single on this CPU"):
        train(made, tmp_path / "model", "--precision mixed")
    assert not (tmp_path / "model").exists()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": True})
    for kind in SMALL:
        ce = []
        for precision in ("mixed", "single"):
            train(made, tmp_path / kind / precision, f"--precision {precision}", kind)
            ce.append(describe(tmp_path / kind / precision)["heldout"]["ce"])
        assert ce[0] != ce[1]
        assert ce[0] == pytest.approx(ce[1], rel=0.01)


def test_a_seed_that_no_generator_takes_is_refused(made, tmp_path):
    with pytest.raises(AssertionError, match="is not in the range 0<=x<=9223372036854775807"):
        train(made, tmp_path / "model", f"--seed {2**63}")
    train(made, tmp_path / "model", f"--seed {2**63 - 1}")


def test_what_fails_after_frames_are_packed_leaves_none(made, tmp_path):
    with pytest.raises(KernelamError, match="pca:50 is more than the 3 dimensions"):
        train(made, tmp_path / "model", "--kernel 'gaussian o pca:50'")
    assert not list((tmp_path / "model").iterdir())


def test_what_killed_trainings_left_is_removed(made, tmp_path):
    folder = tmp_path / "model"
    train(made, folder, "")
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    leavings = ("checkpoint.safetensors", "search.json", "seconds.json", "posteriors.3.table", ".model.json.7.partial")
    for name in leavings:  # killed after the model was saved
        (folder / name).write_text("{}")
    assert "holds the model of these data and settings already" in train(made, folder, "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole


def test_a_model_whose_states_have_changed_is_trained_again(made, tmp_path):
    folder = tmp_path / "model"
    train(made, folder, "")
    transitions = TransitionModel.load(made / "ali/final.mdl")
    before, stored = describe(folder), (made / "ali/final.mdl").read_bytes()
    replace(transitions, log_probs=np.log(np.full_like(transitions.log_probs, 0.5))).save(made / "ali/final.mdl")
    try:
        train(made, folder, "")
        assert (folder / "final.mdl").read_bytes() == (made / "ali/final.mdl").read_bytes() != stored
        assert describe(folder)["fingerprint"] == before["fingerprint"]
    finally:
        (made / "ali/final.mdl").write_bytes(stored)


@pytest.mark.parametrize("failing", ["--l2 1e6", "--l2 1e6 --rates '0.1 0.2'", "--selection 3 --l2 1e6"])
def test_a_training_that_fails_leaves_the_model_and_its_story(made, tmp_path, failing):
    folder = tmp_path / "model"
    train(made, folder, "--selection 3")
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {"epochs.jsonl", "selection.json", "class_means.safetensors"} <= whole.keys()
    with pytest.raises(KernelamError, match="try lower --rates or --l2"):
        train(made, folder, failing)
    assert whole.items() <= {path.name: path.read_bytes() for path in folder.iterdir()}.items()
    train(made, folder, "")
    assert {path.name for path in folder.iterdir()} == whole.keys() - {"selection.json"}


def test_epochs_are_judged_against_where_training_starts(made, tmp_path, monkeypatch):
    """With a bottleneck that is a random place, another one once features have been selected."""
    real, seen = acoustic.fit, []

    def fit(model, train, heldout, options, rate, first, *place):
        seen.append((first["ce"], evaluate(model, heldout)["ce"]))
        return real(model, train, heldout, options, rate, first, *place)

    monkeypatch.setattr(acoustic, "fit", fit)
    train(made, tmp_path / "model", "--bottleneck 3 --selection 3")
    told, found = seen[0]
    assert told == found != pytest.approx(np.log(6), rel=1e-4)


def test_seconds_of_a_training_that_was_killed_are_in_the_cost(made, tmp_path, monkeypatch):
    folder = tmp_path / "model"

    def killed(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(acoustic, "fit", killed)
        with pytest.raises(AssertionError):
            train(made, folder, "--selection 3")
    records.keep(folder / "seconds.json", (records.recall(folder / "seconds.json") or {}) | {"seconds": 1000.0})
    train(made, folder, "--selection 3")
    assert 1000.0 <= describe(folder)["training"]["seconds"] < 1100.0


def test_a_coordinate_that_never_changes_in_training_is_left_out_whatever_its_value(tmp_path, capsys):
    x = np.random.default_rng(0).standard_normal((5000, DIM)).astype(np.float32)
    x[:, 1], x[:, 2] = 0.1, 1e-42 * (x[:, 0] > 0)  # rounding, and what is too small to be divided by
    inputs = packing.fit_inputs(FrameStore.build(tmp_path / "frames", [("u", x)]), (0, 0))
    assert "2 of 3 features never change" in capsys.readouterr().err
    assert inputs.scale[1] == inputs.scale[2] == 1.0
    np.testing.assert_allclose(inputs.mean, x.astype(np.float64).mean(axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(inputs.scale[0], 1.0 / x[:, 0].astype(np.float64).std(), rtol=1e-6)


def test_labels_are_counted_where_they_are(tmp_path):
    frames = np.zeros((3 * packing.COUNTED + 5, 1), np.float32)
    labels = np.arange(len(frames)) % 7
    store = FrameStore.build(tmp_path / "frames", [("u", frames)], {"u": labels})
    tracemalloc.start()
    counts = packing.count_classes(store, 8)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.tolist() == np.bincount(labels, minlength=8).tolist()
    assert peak < 2 * 8 * packing.COUNTED


def test_inputs_may_share_one_scale(made, tmp_path):
    x = np.random.default_rng(0).random((500, DIM)).astype(np.float32)
    inputs = packing.fit_inputs(FrameStore.build(tmp_path / "frames", [("u", x)]), (0, 0), "shared")
    assert not inputs.mean.any()
    np.testing.assert_allclose(inputs.scale, 1.0 / np.sqrt(np.square(x.astype(np.float64)).mean()), rtol=1e-6)
    with pytest.raises(KernelamError, match=r"all features in .*zeros are zero"):
        packing.fit_inputs(FrameStore.build(tmp_path / "zeros", [("u", 0 * x)]), (0, 0), "shared")
    for scaling in ("each", "shared"):
        train(made, tmp_path / scaling, f"--scaling {scaling}")
    assert len({describe(tmp_path / scaling)["fingerprint"] for scaling in ("each", "shared")}) == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--l2 1e6", "above that of the untrained model: try lower --rates or --l2"),
        ("--rates 1e6 --momentum 0.9", "above that of the untrained model: try lower --rates or --momentum"),
        (
            "--rates '0.1 0.2' --l2 '1000 2000'",
            "no learning rate of 0.1, 0.2 with l2 1000, 2000 lowered .* try lower --rates or --l2",
        ),
        ("--layers 3 --activation relu --rates 1e6", "is not finite where training starts, pre-training has diverged"),
        ("--layers 3 --activation relu --rates 1e19", "pre-training diverged in layer 2 of 3: try lower --rates"),
    ],
)
def test_what_diverges_says_which_options_to_lower(made, tmp_path, options, sentence):
    with pytest.raises(KernelamError, match=sentence):
        train(made, tmp_path / "model", options, "dnn")
    assert not list((tmp_path / "model").iterdir())  # which would only be resumed to fail again


def test_a_rate_at_the_edge_is_told_with_what_it_is_of(made, tmp_path):
    said = train(made, tmp_path / "model", "--layers 2 --rates '1e-5 1e-4'", "dnn")
    warnings = [line for line in said.splitlines() if line.startswith("warning: the best learning rate")]
    assert [line.partition(", ")[0].removeprefix("warning: ") for line in warnings] == [
        "the best learning rate of pre-training",
        "the best learning rate",
    ]


def test_training_data_as_heldout_data_are_warned_of(made, tmp_path):
    assert f"warning: {made}/data is the training data and the heldout data" in train(made, tmp_path / "model", "")


def dying(made: Path, folder: Path, options: str, last: int) -> None:
    """Train, as a process that is killed when it is about to move its file number `last` into its place."""
    left = [last]

    def sync(handle: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = sync  # type: ignore[assignment]
    train(made, folder, options, "dnn")


@pytest.mark.parametrize(
    "options",
    [
        "--layers 3 --rates '0.1 0.5' --momentum 0.5 --dropout '0.1 0.2'",
        "--layers 3 --activation sigmoid --pretraining rbm --rbm-epochs 2 --optimiser adamw --schedule average",
    ],
)
def test_networks_whose_training_is_killed_end_where_they_would_have(made, tmp_path, monkeypatch, options):
    """Killed in pre-training, search, epochs and at the end."""
    whole, writes, options = tmp_path / "whole", [], f"--max-epochs 2 {options}"
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", writes.append)
        train(made, whole, options, "dnn")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["torch", "pytest", "click.testing"])  # these are what takes long
    for number in (2, *range(4, len(writes), 4), len(writes)):
        folder = tmp_path / f"killed{number}"
        process = processes.Process(target=dying, args=(made, folder, options, number))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not (folder / "model.json").exists()
        train(made, folder, options, "dnn")
        assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes(), number
        assert sorted(os.listdir(folder)) == sorted(os.listdir(whole)), number
