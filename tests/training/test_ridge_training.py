"""Ridge models from data directories: in one go, by jobs, after kills; and everything that is refused."""

import errno
import json
import math
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.topology import Topology
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import read_alignment_dir, write_alignments
from kernelam.kaldi.ark import ArkWriter, read_ark
from kernelam.memory import mapped_now
from kernelam.models import directory, load_model
from kernelam.models.description import describe
from kernelam.models.ridge import Ridge
from kernelam.report.experiments import system
from kernelam.training import gram, packing, ridge, ridge_needs, ridge_scores, ridge_solvers
from kernelam.training.packing import TrainingInput
from kernelam.training.ridge import prepare_ridge, sum_share, train_ridge
from kernelam.training.ridge_plan import RidgePlan
from kernelam.training.ridge_solvers import Solver

PHONES = "<eps> 0\na 1\nb 2\nc 3\n#0 4\n"
PLAN = RidgePlan("gaussian", 1.0, 40, ridges=(0.1,), seed=3)
SMALL = (50, dict.fromkeys(ridge_solvers.WIDEST, 3))


def write_set(folder: Path, transitions: TransitionModel, seed: int) -> None:
    """Phones a and b over and over, and c, whose states have a frame each, once: pdf y has the mean y."""
    rng = np.random.default_rng(seed)
    (folder / "data").mkdir(parents=True)
    alignments = {}
    with ArkWriter(folder / "data/feats.ark", folder / "data/feats.scp") as writer:
        for number in range(6):
            ids: list[int] = []
            for phone in [*rng.integers(2, size=15), *([2] if number == 0 else [])]:
                for state in range(3 * phone + 1, 3 * phone + 4):
                    ids += [2 * state - 1] * (0 if phone == 2 else int(rng.integers(4))) + [2 * state]
            alignments[f"s-{number}"] = np.array(ids, np.int32)
            labels = transitions.ali_to_pdf(alignments[f"s-{number}"])
            features = rng.standard_normal((len(ids), 4)) + 0.7 * labels[:, None]
            writer.write(f"s-{number}", features.astype(np.float32))
    (folder / "data/utt2spk").write_text("".join(f"{utt} s\n" for utt in alignments))
    write_alignments(folder / "ali.1.gz", alignments)
    (folder / "num_jobs").write_text("1\n")
    transitions.save(folder / "final.mdl")
    (folder / "phones.txt").write_text(PHONES)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    tree = ContextTree.monophone([[1], [2], [3]], {1: 3, 2: 3, 3: 3})
    transitions = TransitionModel.from_tree(Topology.left_to_right([1, 2, 3], [], num_nonsil_states=3), tree)
    for number, name in enumerate(("train", "heldout")):
        write_set(folder / name, transitions, number)
        tree.save(folder / name / "tree")
    (folder / "lang").mkdir()
    (folder / "lang/phones.txt").write_text(PHONES)
    return folder


@pytest.fixture
def given(made: Path, tmp_path: Path) -> TrainingInput:
    ali, heldout = made / "train", made / "heldout"
    places = (ali / "data", heldout / "data", made / "lang", ali, heldout, tmp_path / "exp")
    return TrainingInput(*places, pipeline=Pipeline(), context=(1, 1))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of few frames, and blocks of few pairs."""
    monkeypatch.setattr(gram, "UNIT", SMALL[0])
    monkeypatch.setattr(ridge_solvers, "WIDEST", SMALL[1])


def model_of(given: TrainingInput) -> bytes:
    return (given.folder / "model.safetensors").read_bytes()


def elsewhere(given: TrainingInput, name: str) -> TrainingInput:
    return replace(given, folder=given.folder.with_name(name))


def test_a_model_and_what_it_says(given: TrainingInput, capsys: pytest.CaptureFixture[str]) -> None:
    train_ridge(given, PLAN, "cpu")
    said = capsys.readouterr().err
    assert "warning: 3 of 9 classes have fewer than 2 training frames (6 7 8)" in said
    assert "one-vs-one of 6 classes with 40 features, 15 systems: 0.00 GiB of disk" in said
    about = describe(given.folder)
    assert about["kind"] == "ridge"
    assert system(about) == "Gaussian kernel ridge regression, one-vs-one, 40 features"
    training = about["training"]
    assert training["iterations"]["max"] >= training["iterations"]["median"] > 1
    assert training["sums_error"] < 1e-5
    assert training["disk"] <= training["estimate"]["disk"] * 1.5
    assert training["flops"] > training["frames"] * 40 * 41
    assert 0.0 < about["heldout"]["frame_error"] < 0.6
    assert about["heldout"]["vote_error"] < 0.7
    assert set(training["seconds_of_phases"]) == {"sums", "systems", "calibration", "heldout", "this process"}
    assert not {"frames", "sums"} & {path.name for path in given.folder.iterdir()}
    train_ridge(given, PLAN, "cpu")
    assert "holds the model of these data and settings already" in capsys.readouterr().err
    model = load_model(given.folder)
    assert isinstance(model, Ridge)
    scores = model.log_posteriors(next(iter(model.open(given.heldout_data).values())))
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1.0, rtol=1e-5)
    assert np.exp(scores[:, 6:]).max() < 0.01


def test_any_number_of_jobs_gives_the_same_model(given: TrainingInput) -> None:
    train_ridge(given, PLAN, "cpu")
    for jobs in (1, 2, 3):
        other = elsewhere(given, f"exp{jobs}")
        prepare_ridge(other, PLAN, "cpu")
        for job in range(jobs, 0, -1):
            sum_share(other.folder, job, jobs, "cpu")
        train_ridge(other, PLAN, "cpu")
        assert model_of(other) == model_of(given)
    prepare_ridge(given, PLAN, "cpu")  # nothing is left to do
    sum_share(given.folder, 1, 2, "cpu")
    assert not (given.folder / "sums").exists()


def test_a_job_of_another_training_changes_nothing(given: TrainingInput, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of another seed that goes on while the next training is prepared, summed and finished."""
    whole, other = elsewhere(given, "whole"), replace(PLAN, seed=4)
    train_ridge(whole, PLAN, "cpu")
    prepare_ridge(given, other, "cpu")
    compute, entered = gram._sum, []

    def overtaken(*args: object) -> object:
        if not entered:
            entered.append(True)
            prepare_ridge(given, PLAN, "cpu")
            sum_share(given.folder, 1, 2, "cpu")
        return compute(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(gram, "_sum", overtaken)
    with pytest.raises(KernelamError, match="another training has taken its place"):
        sum_share(given.folder, 1, 1, "cpu")
    train_ridge(given, PLAN, "cpu")
    assert model_of(given) == model_of(whole)
    assert sorted(os.listdir(given.folder)) == sorted(os.listdir(whole.folder))


def test_a_job_does_not_sum_the_frames_of_another_training(given: TrainingInput, tmp_path: Path) -> None:
    """One that was killed once its frames were there, whose features are those of the training before."""
    prepare_ridge(given, PLAN, "cpu")
    later = replace(given, data=given.heldout_data, ali=given.heldout_ali, folder=tmp_path / "later")
    prepare_ridge(later, PLAN, "cpu")
    shutil.rmtree(given.folder / "frames")
    (later.folder / "frames").rename(given.folder / "frames")
    with pytest.raises(KernelamError, match=r"exp has frames of a training that was begun after this one"):
        sum_share(given.folder, 1, 1, "cpu")
    whole = elsewhere(given, "whole")
    for one in (given, whole):
        train_ridge(one, PLAN, "cpu")
    assert model_of(given) == model_of(whole)


@pytest.mark.parametrize("name", ["features.f32", "labels.i32"])
def test_a_job_does_not_sum_frames_that_are_damaged(given: TrainingInput, name: str) -> None:
    prepare_ridge(given, PLAN, "cpu")
    path = given.folder / "frames/train" / name
    with open(path, "r+b") as file:
        file.seek(400)
        file.write(b"\1\0\0\0\2\0\0\0")
    with pytest.raises(KernelamError, match=r"exp/frames/train is damaged: its digest"):
        sum_share(given.folder, 1, 1, "cpu")
    path.unlink()
    with pytest.raises(KernelamError, match=rf"exp/frames/train( is damaged|/{name} has 0 bytes)"):
        sum_share(given.folder, 1, 1, "cpu")


def test_classes_without_heldout_frames_are_told(given: TrainingInput, capsys: pytest.CaptureFixture[str]) -> None:
    ali = given.folder.with_name("phone")
    shutil.copytree(given.heldout_ali, ali)
    transitions = TransitionModel.load(ali / "final.mdl")
    ids = read_alignment_dir(ali)["s-1"]
    ids = ids[transitions.phone[ids] == 1]
    write_alignments(ali / "ali.1.gz", {"s-1": ids})
    with ArkWriter(ali / "data/feats.ark", ali / "data/feats.scp") as writer:
        writer.write("s-1", np.random.default_rng(1).standard_normal((len(ids), 4)).astype(np.float32))
    (ali / "data/utt2spk").write_text("s-1 s\n")
    train_ridge(replace(given, heldout_data=ali / "data", heldout_ali=ali), PLAN, "cpu")
    assert "warning: 3 of 6 classes have no heldout frames (3 4 5): the maps" in capsys.readouterr().err


def test_heldout_data_that_are_training_data_too_are_told(
    given: TrainingInput, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By their frames: utterances of other frames may have the same names."""
    (tmp_path / "mixed").mkdir()
    with ArkWriter(tmp_path / "mixed/feats.ark", tmp_path / "mixed/feats.scp") as writer:
        for number, (utt, matrix) in enumerate(read_ark(given.data / "feats.ark")):
            writer.write(utt, matrix + (number not in (2, 4)))
    shutil.copy(given.data / "utt2spk", tmp_path / "mixed")
    train_ridge(replace(given, heldout_data=tmp_path / "mixed", heldout_ali=given.ali), PLAN, "cpu")
    said = capsys.readouterr().err
    assert f"warning: 2 of 6 utterances of {tmp_path}/mixed are training data too, s-2 first: what they" in said
    train_ridge(elsewhere(given, "other"), PLAN, "cpu")
    assert "training data too" not in capsys.readouterr().err


def test_the_disk_it_took_is_not_that_of_what_else_is_there(given: TrainingInput) -> None:
    (given.folder / "decode_dev").mkdir(parents=True)
    with open(given.folder / "decode_dev/lat.1.gz", "wb") as large:
        large.truncate(2**40)
    train_ridge(given, PLAN, "cpu")
    training = describe(given.folder)["training"]
    assert 0 < training["disk"] < 2 * training["estimate"]["disk"]


def test_models_whose_posteriors_are_features_decide_too(tmp_path: Path) -> None:
    told, plan = [], replace(PLAN, kernel=f"gaussian o posteriors:{tmp_path}")
    for name in ("one", "two"):
        (tmp_path / "model.json").write_text(json.dumps({"fingerprint": name}))
        told.append((plan.settings(), plan.of_sums()))
    assert told[0][0] != told[1][0]
    assert told[0][1] != told[1][1]


def test_features_are_counted_before_they_are_drawn(given: TrainingInput, capsys: pytest.CaptureFixture[str]) -> None:
    train_ridge(given, replace(PLAN, kernel="linear", num_features=40000), "cpu")
    assert "with 12 features, 15 systems: 0.00 GiB of disk" in capsys.readouterr().err
    with pytest.raises(KernelamError, match=r"singular: \d+ frames for 400 features"):
        train_ridge(given, replace(PLAN, num_features=400, ridges=(0.0,)), "cpu")


def test_a_model_is_there_until_the_next_one_is_written(given: TrainingInput, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    train_ridge(given, PLAN, "cpu")
    before = {path.name: path.read_bytes() for path in given.folder.iterdir()}
    for name in ("write_arrays", "write_description"):
        with monkeypatch.context() as patched:
            patched.setattr(directory, name, full)
            with pytest.raises(OSError, match="No space left"):
                train_ridge(given, replace(PLAN, num_features=30), "cpu")
        left = {path.name: path.read_bytes() for path in given.folder.iterdir() if path.is_file()}
        assert left == before
        assert sorted(os.listdir(given.folder)) == sorted([*before, "frames", "sums"])
    train_ridge(given, replace(PLAN, num_features=30), "cpu")
    assert sorted(os.listdir(given.folder)) == sorted(before)
    assert model_of(given) != before["model.safetensors"]


def dying(given: TrainingInput, last: int) -> None:
    """Train, as a process that is killed when it is about to move its file number `last` into its place."""
    gram.UNIT, ridge_solvers.WIDEST = SMALL
    left = [last]

    def sync(handle: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = sync  # type: ignore[assignment]
    train_ridge(given, PLAN, "cpu")


def test_a_run_that_was_killed_goes_on(given: TrainingInput, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in every phase, and again the same command: the same model, and nothing else in its directory."""
    whole, writes = elsewhere(given, "whole"), []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", writes.append)
        train_ridge(whole, PLAN, "cpu")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([ridge.__name__])
    total = len(writes)
    for number in (2, total // 4, total // 2, 3 * total // 4, *range(total - 3, total + 1)):
        other = elsewhere(given, f"killed{number}")
        process = processes.Process(target=dying, args=(other, number))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not (other.folder / "model.json").exists()
        train_ridge(other, PLAN, "cpu")
        assert model_of(other) == model_of(whole)
        assert sorted(os.listdir(other.folder)) == sorted(os.listdir(whole.folder)), number


def test_several_ridges_and_the_rest(given: TrainingInput, capsys: pytest.CaptureFixture[str]) -> None:
    plan = replace(PLAN, scheme="one-vs-rest", ridges=(0.1, 1e6))
    train_ridge(given, plan, "cpu")
    training = describe(given.folder)["training"]
    errors = [trial["heldout"]["frame_error"] for trial in training["trials"]]
    assert errors == sorted(errors)
    assert training["ridge"] == training["trials"][0]["ridge"] == 0.1
    said = capsys.readouterr().err
    assert "the best ridge, 0.1, is at the edge of those tried: lower --ridge may do better" in said
    assert [line.partition(":")[0] for line in said.splitlines() if " systems in " in line] == [
        "ridge 0.1",
        "ridge 1e+06",
    ]
    one = elsewhere(given, "one")
    train_ridge(one, replace(plan, ridges=(0.1,)), "cpu")
    assert model_of(one) == model_of(given)


def test_solvers_agree(given: TrainingInput) -> None:
    errors = []
    for name in ("cholesky", "cg", "gmres"):
        other = elsewhere(given, name)
        train_ridge(other, replace(PLAN, solver=Solver(name)), "cpu")
        errors.append(describe(other.folder)["heldout"]["frame_error"])
    assert max(errors) - min(errors) < 0.02


def test_scores_are_computed_again_where_they_are_too_many(
    given: TrainingInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_ridge(given, PLAN, "cpu")
    monkeypatch.setattr(ridge_scores, "SCORES", 100)
    other = elsewhere(given, "other")
    train_ridge(other, PLAN, "cpu")
    assert model_of(other) == model_of(given)


def test_what_does_not_fit_is_refused(given: TrainingInput, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(sentence: str, plan: RidgePlan = PLAN) -> None:
        with pytest.raises(KernelamError, match=sentence) as told:
            train_ridge(given, plan, "cpu")
        assert "\n" not in str(told.value)
        assert not list(given.folder.iterdir())

    refused("^41 random features: .* an even number", replace(PLAN, num_features=41))
    refused("^5001 random features: .* an even number", replace(PLAN, num_features=5001))
    refused(r"takes \d+\.\d\d GiB of disk in .*, and \d+\.\d\d GiB are free", replace(PLAN, num_features=2**62))
    refused("the polynomial kernel has no random features", replace(PLAN, kernel="polynomial:2"))
    with monkeypatch.context() as patched:
        patched.setattr(ridge_needs.shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(1, 1, 0))
        patched.setattr(gram, "UNIT", 1)
        (given.folder / "log").mkdir()
        with open(given.folder / "log/large", "wb") as large:
            large.truncate(2**40)  # which is not freed
        big = replace(PLAN, num_features=4000)
        with pytest.raises(
            KernelamError, match=r"with 4000 features takes \d+\.\d\d GiB of disk in .*, and 0\.00 GiB are"
        ):
            train_ridge(given, big, "cpu")
        shutil.rmtree(given.folder / "log")
    with monkeypatch.context() as patched:
        patched.setattr(ridge_needs, "available", lambda device: -(2**40))
        refused(r"with 40 features takes \d\.\d\d GiB of memory, and -\d+\.\d\d GiB are free; fewer --num-features")
    refused(
        r"the system of classes \d and \d is singular: \d+ frames for 2000",
        replace(PLAN, num_features=2000, ridges=(0.0,)),
    )
    with pytest.raises(KernelamError, match="no scheme is called all"):
        replace(PLAN, scheme="all")
    with pytest.raises(KernelamError, match="a bandwidth is a number above zero, not 0"):
        replace(PLAN, bandwidth=0.0)
    with pytest.raises(KernelamError, match="a bandwidth is a number above zero, not inf"):
        replace(PLAN, bandwidth=math.inf)


def test_data_that_are_refused_leave_nothing(given: TrainingInput, tmp_path: Path) -> None:
    """Before any sum over frames."""

    def refused(sentence: str, **others: Path) -> None:
        with pytest.raises(KernelamError, match=sentence):
            train_ridge(replace(given, **others), PLAN, "cpu")
        assert not list(given.folder.iterdir())

    def changed(name: str, data: Path, change: Callable[[np.ndarray], np.ndarray]) -> Path:
        shutil.copytree(data, tmp_path / name)
        with ArkWriter(tmp_path / name / "feats.ark", tmp_path / name / "feats.scp") as writer:
            for utt, matrix in read_ark(data / "feats.ark"):
                writer.write(utt, change(matrix))
        return tmp_path / name

    narrow = changed("narrow", given.heldout_data, lambda matrix: matrix[:, :3])
    refused("has 4 features a frame, .*narrow has 3", heldout_data=narrow)
    far = changed("far", given.data, lambda matrix: 1e30 * matrix)
    refused(r"feature 0 of .*far has a mean of \S+e\+30 and a deviation of \S+e\+30 in training", data=far)
    near = changed("near", given.data, lambda matrix: 1e-30 * matrix)
    refused(r"feature 0 of .*near has a mean of \S+e-30 and a deviation of \S+e-30 in training", data=near)
    refused("the median distance of random frames is 0", data=changed("still", given.data, np.ones_like))
    shutil.copytree(given.heldout_ali, tmp_path / "c")
    rare = {utt: np.full_like(ids, 13) for utt, ids in read_alignment_dir(given.heldout_ali).items()}  # a state of c
    write_alignments(tmp_path / "c/ali.1.gz", rare)
    refused("no heldout frame is of the 6 classes that have 2 training frames", heldout_ali=tmp_path / "c")


def test_the_lang_directory_stays_as_it_is(given: TrainingInput, tmp_path: Path) -> None:
    shutil.copytree(given.lang, tmp_path / "lang")
    with pytest.raises(KernelamError, match="lang is a lang directory; train into another one"):
        train_ridge(replace(given, lang=tmp_path / "lang", folder=tmp_path / "lang"), PLAN, "cpu")
    assert os.listdir(tmp_path / "lang") == os.listdir(given.lang)


def test_memory_is_that_of_the_largest_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 147 classes: systems, beside the answers of another λ; heldout scores only where they are kept; saving."""
    frames, D = np.full(147, 10_000.0), 20_000
    monkeypatch.setattr(ridge_needs, "peak_memory", lambda device: 0)

    def memory(heldout: int, ridges: int, count: int, solver: str = "gmres") -> int:
        task = ridge_needs.Task(frames, count, 440, heldout, 0, "one-vs-one", Solver(solver), ridges)
        return task.needs(torch.device("cpu")).memory - ridge_needs.LIBRARIES

    answers = 4 * D * 147 * 146 // 2
    assert memory(1000, 1, D) == 3 * answers
    assert memory(1000, 2, D, "cholesky") - 2 * answers == 4 * 6 * D * D
    assert memory(1000, 3, D, "cholesky") == memory(1000, 2, D, "cholesky")
    assert memory(1_500_000, 1, 100) > 4 * 1_500_000 * 146
    assert memory(2_000_000, 1, 100) < memory(1_500_000, 1, 100)


def test_mapped_files_are_known_apart(tmp_path: Path) -> None:
    """Those of other folders do not count, nor what nobody has looked at."""
    (tmp_path / "inside").mkdir()
    maps = [np.memmap(tmp_path / name, np.uint8, "w+", shape=(8 << 20,)) for name in ("inside/a", "inside/b", "c")]
    assert mapped_now(tmp_path / "inside") == 0
    maps[0][:], maps[2][:] = 1, 1
    assert mapped_now(tmp_path / "inside") == 8 << 20


def test_a_solver_that_does_not_converge_leaves_no_model(given: TrainingInput) -> None:
    with pytest.raises(KernelamError, match=r"gmres did not converge for \d+ pairs, classes \d and \d worst") as told:
        train_ridge(given, replace(PLAN, solver=Solver(max_iterations=1)), "cpu")
    assert "\n" not in str(told.value)
    assert sorted(os.listdir(given.folder)) == ["frames", "sums"]
    train_ridge(given, PLAN, "cpu")  # the sums are still there
    assert (given.folder / "model.json").exists()


def test_fewer_than_two_classes(given: TrainingInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "count_classes", lambda store, classes: np.array([90.0, 1.0, 0.0]))
    with pytest.raises(KernelamError, match="1 of 3 classes have 2 training frames; two must"):
        train_ridge(given, PLAN, "cpu")


def test_a_share_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match=r"no training into .* is prepared"):
        sum_share(tmp_path, 1, 1, "cpu")
    with pytest.raises(KernelamError, match="there is no job 3 of 2"):
        sum_share(tmp_path, 3, 2, "cpu")


def test_timit(corpora: Path, tmp_path: Path, kernelam) -> None:
    """Real frames, by the command line: a model that forward reads, and that is much better than a guess."""
    sample, folder = corpora / "kaldi-timit-sample", tmp_path / "exp"
    (tmp_path / "dev").mkdir()
    for name in ("feats.scp", "utt2spk"):
        lines = (sample / "data/dev" / name).read_text().splitlines(keepends=True)
        (tmp_path / "dev" / name).write_text("".join(lines[::4]))
    sets = ["data/train", tmp_path / "dev", "data/lang", "exp/tri1_ali", "exp/tri1_ali_dev"]
    done = kernelam("train", "ridge", "--num-features", 60, "--splice", 1, *sets, folder, cwd=sample)
    assert done.returncode == 0, done.stderr
    about = json.loads((folder / "model.json").read_text())
    assert about["num_classes"] == 128
    estimate = about["training"]["estimate"]
    share = about["training"]["memory"] / (estimate["memory"] + estimate["mapped"])
    assert 0.75 < share < 1.25  # most of so small a model are libraries, more or less of which is resident
    assert about["heldout"]["frame_error"] < 0.75
    assert about["heldout"]["frame_error"] < about["heldout"]["vote_error"]
    done = kernelam("forward", folder, tmp_path / "dev", f"ark:{tmp_path}/scores.ark", cwd=sample)
    assert done.returncode == 0, done.stderr
    scores = dict(read_ark(tmp_path / "scores.ark"))
    assert len(scores) == 6
    assert all(matrix.shape[1] == 128 and np.isfinite(matrix).all() for matrix in scores.values())
