"""What is wrong with an archive of likelihoods is told in a sentence of its own."""

import numpy as np
import pytest

from kernelam.decoding.lint import Lint
from kernelam.kaldi.ark import write_matrix
from kernelam.models.base import log_priors

COUNTS = np.array([5.0, 60.0, 900.0, 20.0])


def softmax(rng, frames=30):
    logits = 3.0 * rng.standard_normal((frames, 4))
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


@pytest.fixture
def archive(tmp_path):
    def make(change=lambda utt, log_posteriors: log_posteriors, name="likes.ark", utts=("a", "b", "c")):
        rng = np.random.default_rng(7)
        with open(tmp_path / name, "wb") as stream:
            for utt in utts:
                write_matrix(stream, utt, change(utt, softmax(rng)).astype(np.float32))
        return str(tmp_path / name)

    (tmp_path / "counts").write_text(f"[ {' '.join(str(int(n)) for n in COUNTS)} ]\n")
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph/num_pdfs").write_text("4\n")
    (tmp_path / "data").mkdir()
    make(name="feats.ark", utts=("a", "b", "c"))
    with open(tmp_path / "data/feats.scp", "w") as stream:
        for number, utt in enumerate("abc"):
            stream.write(f"{utt} {tmp_path}/feats.ark:{2 + number * (2 + 15 + 480)}\n")
    return make


def subtract(times):
    return lambda utt, rows: rows - times * log_priors(COUNTS)


def test_likelihoods_as_a_decoder_wants_them(archive, kernelam, tmp_path):
    done = kernelam(
        "validate", "--data", tmp_path / "data", "--graph", tmp_path / "graph", "--counts", tmp_path / "counts",
        archive(subtract(1)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 utterances, 90 frames of 4 log-likelihoods, the prior subtracted once" in done.stderr


def test_likelihoods_of_a_gmm_are_no_fault(archive, kernelam, tmp_path):
    done = kernelam("validate", "--counts", tmp_path / "counts", archive(lambda utt, rows: 2.0 * rows - 40.0))
    assert done.returncode == 0, done.stderr
    assert "not a softmax's over these counts" in done.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda utt, rows: np.exp(rows), "posteriors, not their logarithms"),
        (lambda utt, rows: rows, "log posteriors: no prior was subtracted in 3 of 3 utterances, first a"),
        (subtract(2), "the prior was subtracted twice in 3 of 3 utterances, first a"),
        (subtract(-1), "the prior was added, not subtracted"),
        (lambda utt, rows: rows[:-1] - 9.0 if utt == "b" else rows - 9.0, "b has 29 rows, its features have 30 frames"),
        (lambda utt, rows: rows[:, :3] - 9.0, "a has 3 columns, the graph has 4 pdfs (and 2 more like it)"),
    ],
)
def test_what_is_wrong_is_said(archive, kernelam, tmp_path, change, sentence):
    done = kernelam(
        "validate", "--data", tmp_path / "data", "--graph", tmp_path / "graph", "--counts", tmp_path / "counts",
        archive(change),
    )  # fmt: skip
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_nan_is_named(archive, kernelam):
    path = archive(subtract(1))
    with open(path, "r+b") as stream:  # the last number of the last utterance
        stream.seek(-4, 2)
        stream.write(np.float32("nan").tobytes())
    done = kernelam("validate", path)
    assert (done.returncode, "likes.ark, c has nan in row 29, column 3" in done.stderr) == (1, True)


def test_utterances_lost_or_doubled(archive, kernelam, tmp_path):
    few = archive(subtract(1), "few.ark", utts=("a",))
    done = kernelam("validate", "--data", tmp_path / "data", few, archive(subtract(1), "again.ark", utts=("a", "d")))
    assert done.returncode == 1
    assert "utterance a is in the archive twice" in done.stderr
    assert "utterance d has no features" in done.stderr
    assert "2 of 3 utterances are missing, first b" in done.stderr


def test_counts_or_graph_of_another_tree(archive, kernelam, tmp_path):
    (tmp_path / "counts").write_text("[ 1 2 3 ]\n")
    done = kernelam("validate", "--counts", tmp_path / "counts", archive(subtract(1)))
    assert (done.returncode, "it has 4 columns, the counts are of 3 classes" in done.stderr) == (1, True)
    (tmp_path / "graph/num_pdfs").write_text("many\n")
    done = kernelam("validate", "--graph", tmp_path / "graph", archive(subtract(1)))
    assert (done.returncode, "does not hold a number of pdfs" in done.stderr) == (1, True)


def test_an_empty_archive_is_an_error(archive, kernelam):
    done = kernelam("validate", archive(utts=()))
    assert (done.returncode, "it is empty" in done.stderr) == (1, True)


def test_options_of_the_other_kind_of_target_are_refused(archive, kernelam, tmp_path):
    done = kernelam("validate", "--no-wav", archive(subtract(1)))
    assert (done.returncode, "is no directory" in done.stderr) == (1, True)
    done = kernelam("validate", "--data", tmp_path / "data", tmp_path / "data")
    assert (done.returncode, "is a directory" in done.stderr) == (1, True)


def test_a_list_of_archives_whatever_its_name(archive, kernelam, tmp_path):
    (tmp_path / "list").write_text(f"a {archive(subtract(1))}:2\n")
    done = kernelam("validate", f"scp:{tmp_path}/list")
    assert (done.returncode, "1 utterances, 30 frames" in done.stderr) == (0, True)


def test_constants_and_costs_are_no_log_likelihoods_and_lengths_are_told_once() -> None:
    scores = np.log(np.full((4, 3), 1 / 3, np.float32)) + np.array([0.2, 0.0, -0.3], np.float32)
    log_posteriors = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    lint = Lint("a.ark", frames={"a": 5, "b": 6, "c": 4})
    lint.look([("a", np.zeros((4, 3), np.float32)), ("b", -log_posteriors), ("c", 2 * scores)])
    rows, constant, costs = lint.problems
    assert rows == "a.ark: utterance a has 4 rows, its features have 5 frames (and 1 more like it)"
    assert constant == "a.ark: all log-likelihoods of a frame are the same in 1 of 3 utterances, first a"
    assert costs.startswith("a.ark: negative logarithms, where a decoder wants logarithms, in 1 of 3 utterances")
