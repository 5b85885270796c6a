"""Model directories combined into one: what it is, that it stands alone, and everything that can disagree."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.files import alone_in
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.topology import Topology
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree, Leaf, Split, Table
from kernelam.kaldi.alignment import write_alignments
from kernelam.kaldi.ark import ArkWriter, save_matrix
from kernelam.kaldi.counts import write_counts
from kernelam.models import directory, load_model
from kernelam.models.description import describe
from kernelam.models.directory import save_model
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs
from kernelam.training import combination
from kernelam.training.combination import CombinationInput, combine

DIM, CLASSES = 3, 6
PHONES = "<eps> 0\na 1\nb 2\n#0 3\n"
TOPOLOGY = Topology.left_to_right([1, 2], [], num_nonsil_states=3)
TREE = ContextTree.monophone([[1], [2]], {1: 3, 2: 3})
DEFAULT = Pipeline()


def write_states(folder: Path, tree: ContextTree = TREE, phones: str = PHONES) -> TransitionModel:
    folder.mkdir(parents=True, exist_ok=True)
    transitions = TransitionModel.from_tree(TOPOLOGY, tree)
    transitions.save(folder / "final.mdl")
    tree.save(folder / "tree")
    (folder / "phones.txt").write_text(phones)
    return transitions


def write_model(
    folder: Path, seed: int, pipeline: Pipeline = DEFAULT, dim: int = DIM, context: tuple[int, int] = (1, 0)
) -> None:
    """A DNN of one layer that knows the classes a little: class y has the mean y in the first coordinate."""
    rng = np.random.default_rng(seed)
    inputs = Inputs(context, np.full(dim, 2.5, np.float32), np.full(dim, 0.5, np.float32))
    counts = np.arange(1.0, CLASSES + 1) if seed < 10 else np.ones(CLASSES)
    model = Dnn(Network(1, 8), pipeline, inputs, counts, torch.device("cpu"))
    model.initialise(seed)
    for _ in range(150):
        labels = rng.integers(CLASSES, size=64)
        x = rng.standard_normal((64, sum(context) + 1, dim)).astype(np.float32) + labels[:, None, None]
        x = ((x - inputs.mean) * inputs.scale).astype(np.float32).reshape(64, -1)
        model.step(torch.from_numpy(x), torch.from_numpy(labels), 0.3)
    states = [folder / name for name in ("final.mdl", "tree", "phones.txt")]
    for name in states:
        if not name.exists():
            write_states(folder)
    source = folder / "source"
    source.mkdir()
    for name in [*states, *([pipeline.lda] if pipeline.lda else [])]:
        name.rename(source / name.name)
    save_model(folder, model, {"seed": seed}, sorted(source.iterdir()))


def random_path(rng: np.random.Generator) -> np.ndarray:
    """Random phones, each frame of a state but the last on its loop: state s has the transition-ids 2s − 1 and 2s."""
    ids: list[int] = []
    while len(ids) < 120:
        phone = int(rng.integers(2))
        for state in range(3 * phone + 1, 3 * phone + 4):
            ids += [2 * state - 1] * int(rng.integers(3)) + [2 * state]
    return np.array(ids, np.int32)


def write_data(folder: Path, transitions: TransitionModel, dim: int = DIM) -> None:
    rng = np.random.default_rng(0)
    (folder / "data").mkdir()
    alignments = {}
    with ArkWriter(folder / "data/feats.ark", folder / "data/feats.scp") as writer:
        for utt in ("s-1", "s-2", "s-3"):
            alignments[utt] = random_path(rng)[:120]
            labels = transitions.ali_to_pdf(alignments[utt])
            features = rng.standard_normal((120, dim)) + labels[:, None]
            writer.write(utt, features.astype(np.float32))
    (folder / "data/utt2spk").write_text("".join(f"{utt} s\n" for utt in alignments))
    write_alignments(folder / "ali/ali.1.gz", alignments)
    (folder / "ali/num_jobs").write_text("1\n")
    (folder / "lang").mkdir()
    (folder / "lang/phones.txt").write_text(PHONES)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_data(folder, write_states(folder / "ali"))
    write_model(folder / "a", 1)
    write_model(folder / "b", 2, context=(0, 2))
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "x")
    return tmp_path / "x"


def given(place: Path, *members: str, folder: str = "out") -> CombinationInput:
    names = members or ("a", "b")
    paths = tuple(place / name for name in names)
    return CombinationInput(place / "data", place / "lang", place / "ali", paths, place / folder)


def test_a_fitted_combination_is_better_than_its_members_and_stands_alone(place):
    combine(given(place), None, "cpu")
    about = describe(place / "out")
    losses = [member["heldout_ce"] for member in about["members"]]
    assert about["heldout"]["ce"] < min(losses) - 0.01
    assert about["config"]["weights"] == [member["weight"] for member in about["members"]]
    assert about["training"]["frames"] == 360
    assert about["seed"] == [1, 2]
    for name in ("final.mdl", "tree", "phones.txt", "ali_train_pdf.counts"):
        assert (place / "out" / name).read_bytes() == (place / "a" / name).read_bytes()
    assert not (place / "out/frames").exists()
    members = [load_model(place / name) for name in "ab"]
    for name in "ab":
        shutil.rmtree(place / name)
    model = load_model(place / "out")
    for utt, features in model.open(place / "data").items():
        total = sum(w * m.log_posteriors(features) for w, m in zip(model.weights, members, strict=True))
        expected = torch.log_softmax(torch.from_numpy(total), 1).numpy()
        np.testing.assert_allclose(model.log_posteriors(features), expected, atol=1e-5, err_msg=utt)


def test_weights_that_are_given_are_taken(place):
    (place / "ali/ali.1.gz").unlink()  # nothing is fitted
    combine(given(place), [0.25, 2.0], "cpu")
    about = describe(place / "out")
    assert about["config"]["weights"] == [0.25, 2.0]
    assert [Path(member["folder"]).name for member in about["members"]] == ["a", "b"]  # for the costs of a report
    assert "heldout" not in about
    assert load_model(place / "out").weights == [0.25, 2.0]


def test_a_combination_is_a_member_like_any_other(place):
    combine(given(place), [1.0, 1.0], "cpu")
    combine(given(place, "out", "a", folder="nested"), None, "cpu")
    about = describe(place / "nested")
    assert about["heldout"]["ce"] <= min(member["heldout_ce"] for member in about["members"]) + 1e-6


@pytest.mark.parametrize("weights", [None, [0.5, 0.5]])
def test_the_same_again_does_nothing_and_anything_else_is_done(place, capsys, weights):
    def time_of() -> int:
        return (place / "out/model.json").stat().st_mtime_ns

    combine(given(place), weights, "cpu")
    first = time_of()
    combine(given(place), weights, "cpu")
    assert time_of() == first
    assert "holds the combination of these models already" in capsys.readouterr().err
    assert not (place / "out/frames").exists()
    combine(given(place), [0.1, 0.2], "cpu")
    assert time_of() > first
    combine(given(place), weights, "cpu")
    second = time_of()
    write_counts(place / "a/ali_train_pdf.counts", np.ones(CLASSES))
    combine(given(place), weights, "cpu")
    assert time_of() > second
    (place / "out/tree").write_bytes(b"")
    combine(given(place), weights, "cpu")
    assert (place / "out/tree").read_bytes() == (place / "a/tree").read_bytes()


def test_a_run_that_is_killed_leaves_the_model_before(place, monkeypatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    combine(given(place), [0.5, 0.5], "cpu")
    before = (place / "out/model.json").read_bytes()
    monkeypatch.setattr(combination, "evaluate", killed)
    with pytest.raises(KeyboardInterrupt):
        combine(given(place), None, "cpu")
    assert load_model(place / "out").weights == [0.5, 0.5]
    assert (place / "out/model.json").read_bytes() == before
    monkeypatch.undo()
    monkeypatch.setattr(directory, "write_counts", killed)
    with pytest.raises(KeyboardInterrupt):
        combine(given(place), None, "cpu")
    assert load_model(place / "out").weights == [0.5, 0.5]
    assert (place / "out/model.json").read_bytes() == before
    monkeypatch.undo()
    combine(given(place), None, "cpu")
    combine(given(place, folder="whole"), None, "cpu")
    assert (place / "out/model.safetensors").read_bytes() == (place / "whole/model.safetensors").read_bytes()


def test_two_at_once_wait_for_each_other(place, root):
    words = [str(place / name) for name in ("data", "lang", "ali", "a", "b", "out")]
    with alone_in(place / "out"):
        command = [sys.executable, "-m", "kernelam", "combine", "--weights", "1 2", *words]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        assert "another process is at work in" in process.stderr.readline()
        assert not (place / "out/model.json").exists()
    assert process.wait(timeout=60) == 0
    assert json.loads((place / "out/model.json").read_text())["config"]["weights"] == [1.0, 2.0]


def test_counts_that_differ_are_told(place, capsys):
    write_model(place / "c", 11)
    combine(given(place, "a", "c"), [1.0, 1.0], "cpu")
    said = f"warning: the class counts of {place}/c are not those of {place}/a, which the combination takes"
    assert said in capsys.readouterr().err


def of_matrix(place: Path, name: str, factor: float) -> None:
    (place / name).mkdir()
    save_matrix(place / name / "final.mat", (factor * np.eye(DIM)).astype(np.float32))
    write_model(place / name, 3, Pipeline(lda=place / name / "final.mat"))


def test_features_of_a_matrix_take_it_along(place):
    for name in "cd":
        of_matrix(place, name, 0.5)
    combine(given(place, "c", "d"), None, "cpu")
    for name in "cd":
        shutil.rmtree(place / name)
    model = load_model(place / "out")
    assert model.pipeline.lda == place / "out/final.mat"
    assert model.open(place / "data").dim == DIM


def two_windows(question: int) -> ContextTree:
    """The first state of phone 1 asks about its left neighbour; the numbers of states are the same for any question."""
    root = TREE.root
    assert isinstance(root, Table)
    children = list(root.children)
    children[1] = Split(-1, frozenset({0}), Split(0, frozenset({question}), Leaf(6), Leaf(0)), children[1])
    return ContextTree(3, 1, replace(root, key=1, children=tuple(children)))


def a_gmm(place: Path) -> None:
    shutil.copytree(place / "ali", place / "c")


def other_states(place: Path) -> None:
    """As many pdfs, numbered the other way round."""
    write_states(place / "c", ContextTree.monophone([[2], [1]], {1: 3, 2: 3}))
    write_model(place / "c", 3)


def other_questions(place: Path) -> None:
    for name, question in ("a", 1), ("c", 2):
        shutil.rmtree(place / name, ignore_errors=True)
        write_states(place / name, two_windows(question))
        write_model(place / name, 3)


def other_phones(place: Path) -> None:
    write_states(place / "c", phones=PHONES.replace("a 1\nb 2", "b 1\na 2"))
    write_model(place / "c", 3)


def other_lang(place: Path) -> None:
    write_model(place / "c", 3)
    (place / "lang/phones.txt").write_text(PHONES.replace("a 1", "e 1"))
    (place / "ali/phones.txt").unlink()


def other_alignment(place: Path) -> None:
    write_model(place / "c", 3)
    write_states(place / "ali", ContextTree.monophone([[2], [1]], {1: 3, 2: 3}))


def other_cmvn(place: Path) -> None:
    write_model(place / "c", 3, Pipeline(norm_means=True))


def other_matrix(place: Path) -> None:
    shutil.rmtree(place / "a")
    of_matrix(place, "a", 1.0)
    of_matrix(place, "c", 2.0)


def other_dimension(place: Path) -> None:
    write_model(place / "c", 3, dim=DIM + 1)


def other_data(place: Path) -> None:
    for name in "ac":
        shutil.rmtree(place / name, ignore_errors=True)
        write_model(place / name, 3, dim=DIM + 1)


def not_finite(place: Path, name: str = "b1", value: float = torch.nan) -> None:
    write_model(place / "c", 3)
    model = load_model(place / "c")
    model.parameters[name].data.fill_(value)
    save_model(place / "c", model, {}, sorted((place / "c/source").iterdir()))


def too_large(place: Path) -> None:
    not_finite(place, "W1", 3e38)


def backwards(place: Path) -> None:
    """Two models of other labels."""
    for name in "ac":
        shutil.rmtree(place / name, ignore_errors=True)
        write_model(place / name, 3)
        model = load_model(place / name)
        for parameter in ("W1", "b1"):
            model.parameters[parameter].data.neg_()
        save_model(place / name, model, {}, sorted((place / name / "source").iterdir()))


def half_trained(place: Path) -> None:
    write_model(place / "c", 3)
    (place / "c/model.json").unlink()


def nothing(place: Path) -> None:
    (place / "c").mkdir()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (a_gmm, "{x}/c is a GMM; only models of posteriors"),
        (other_states, "{x}/a and {x}/c do not go together, they differ in the states of final.mdl"),
        (other_questions, "{x}/a and {x}/c do not go together, they differ in tree"),
        (other_phones, "{x}/a and {x}/c do not go together, they differ in phones.txt"),
        (other_alignment, "{x}/a and {x}/ali do not go together, they differ in the states of final.mdl"),
        (other_lang, "{x}/lang/phones.txt and {x}/a/phones.txt differ in a"),
        (other_cmvn, "{x}/a and {x}/c do not go together, they differ in the features' norm_means: False and True"),
        (other_matrix, "{x}/a and {x}/c do not go together, they differ in final.mat"),
        (other_dimension, "{x}/a and {x}/c do not go together, they differ in the number of features a frame: 3 and 4"),
        (other_data, "{x}/data/feats.scp gives 3 features a frame, deltas included, the combination model takes 4"),
        (not_finite, "{x}/c holds no whole model: b1 has numbers that are not finite; train again"),
        (too_large, "the cross-entropy of {x}/c on {x}/data is not finite"),
        (backwards, "on {x}/data with {x}/ali none of the models is better than a guess"),
        (half_trained, "no such file {x}/c/model.json"),
        (nothing, "{x}/c"),
    ],
)
def test_bad_input_is_a_sentence(place: Path, damage: Callable[[Path], None], sentence: str) -> None:
    damage(place)
    with pytest.raises(KernelamError) as error:
        combine(given(place, "a", "c"), None, "cpu")
    assert sentence.format(x=place) in str(error.value)
    assert not list((place / "out").glob("*"))


@pytest.mark.parametrize(
    ("members", "folder", "weights", "sentence"),
    [
        (["a"], "out", None, "a combination takes at least two models"),
        (["a", "b"], "out", [1.0], "2 models take as many weights, not 1"),
        (["a", "b"], "out", [1.0, -1.0], "the weights 1 -1 cannot be used"),
        (["a", "b"], "out", [0.0, 0.0], "the weights 0 0 cannot be used"),
        (["a", "b"], "out", [1e300, 1.0], "the weights 1e+300 1 cannot be used: they must be from 0 to 1e+06"),
        (["a", "b"], "b", None, "{x}/b is one of the models; combine into another directory"),
        (["a", "../x/a"], "out", None, "a combination takes different models, not {x}/a {x}/../x/a"),
        (["a", "c"], "b", None, "{x}/b has a model of kind dnn, which would be lost"),
        (["a", "b"], "ali", None, "{x}/ali is an alignment directory"),
        (["a", "b"], "data", None, "{x}/data is a data directory"),
    ],
)
def test_bad_requests(place, members, folder, weights, sentence):
    shutil.copytree(place / "a", place / "c")
    with pytest.raises(KernelamError) as error:
        combine(given(place, *members, folder=folder), weights, "cpu")
    assert sentence.format(x=place) in str(error.value)


def test_no_such_device(place):
    with pytest.raises(KernelamError, match="there is no device cuda:9 here"):
        combine(given(place), None, "cuda:9")


def test_weights_on_the_command_line(place, kernelam):
    words = [place / name for name in ("data", "lang", "ali", "a", "b", "out")]
    done = kernelam("combine", "--weights", "1 nan", *words)
    assert done.returncode == 1
    expected = "option --weights takes numbers with spaces or commas between them, not '1 nan'"
    assert done.stderr == f"kernelam combine: {expected}\n"
    assert not (place / "out").exists()
