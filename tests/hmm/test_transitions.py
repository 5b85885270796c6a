import io
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.hmm.topology import State, Topology
from kernelam.hmm.transitions import TransitionModel, TransitionState
from kernelam.hmm.tree import ContextTree, Leaf, Split, Table
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.kaldi.binary import KaldiReader, KaldiWriter

TOPOLOGY = Topology.left_to_right([2], [1], 2, 3)
TREE = ContextTree.monophone([[1], [2]], {1: 3, 2: 2})


def model() -> TransitionModel:
    return TransitionModel.from_tree(TOPOLOGY, TREE)


def serialised(transitions: TransitionModel, binary: bool = True) -> bytes:
    stream = io.BytesIO()
    transitions.write(KaldiWriter(stream, binary))
    return stream.getvalue()


def test_numbering() -> None:
    transitions = model()
    assert transitions.tuples[0] == TransitionState(1, 0, 0, 0)
    assert transitions.num_transition_ids == 10
    assert transitions.num_pdfs == 5
    assert transitions.pdf.tolist() == [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert transitions.phone[1:].tolist() == [1] * 6 + [2] * 4
    assert transitions.hmm_state[1:].tolist() == [0, 0, 1, 1, 2, 2, 0, 0, 1, 1]
    assert transitions.is_self_loop[1:].tolist() == [True, False] * 5
    assert np.flatnonzero(transitions.is_final).tolist() == [6, 10]
    assert transitions.self_loop.tolist() == [0, 1, 3, 5, 7, 9]


def test_log_probs() -> None:
    transitions = model()
    assert np.exp(transitions.log_probs[[1, 5, 6]]) == pytest.approx([0.5, 0.75, 0.25])
    # with both scales 1 they are the plain log-probabilities; two ways to leave have one self-loop in common
    assert transitions.log_prob()[1:] == pytest.approx(transitions.log_probs[1:], abs=1e-6)
    scaled = transitions.log_prob(transition_scale=0.0, self_loop_scale=0.1)
    assert scaled[5:7] == pytest.approx([0.1 * np.log(0.75), 0.1 * np.log(0.25)])
    assert transitions.log_prob_ignoring_self_loops[2] == pytest.approx(0.0, abs=1e-6)


def test_update_is_the_floored_relative_frequency() -> None:
    counts = np.zeros(11)
    counts[[1, 2]] = 30, 10
    counts[[3, 4]] = 2, 1  # too few
    counts[[5, 6]] = 1000, 0  # floored
    updated = model().update(counts)
    assert np.exp(updated.log_probs[[1, 2]]) == pytest.approx([0.75, 0.25])
    assert np.array_equal(updated.log_probs[[3, 4]], model().log_probs[[3, 4]])
    floored = np.array([1.0, 0.0])
    for _ in range(3):
        floored = np.maximum(floored / floored.sum(), 0.01)
    assert np.exp(updated.log_probs[[5, 6]]) == pytest.approx(floored)
    assert updated.log_probs[0] == 0
    with pytest.raises(ValueError, match="counts"):
        model().update(counts[:-1])


@pytest.mark.parametrize(
    "alignment", [[2, 1, 1, 4, 6, 5, 8, 10, 8, 7, 10, 9, 9], [1, 1, 2, 4, 5, 6, 8, 10, 7, 8, 9, 9, 10]]
)
def test_phones_of_both_orders(alignment: list[int]) -> None:
    """Self-loops after the transition (Kaldi's --reorder) or before it; one phone twice in a row."""
    assert model().ali_to_phones(np.array(alignment)) == [(1, 6), (2, 2), (2, 5)]


def test_ids_of_another_model() -> None:
    with pytest.raises(KernelamError, match="utt1: transition-id 11 is not among the model's 1 … 10"):
        model().check_ids(np.array([1, 11], np.int32), "utt1")
    model().check_ids(np.array([1, 10], np.int32), "utt1")


def chain_model() -> TransitionModel:
    topology = Topology(((State(0, 1, ((0, 0.5), (1, 0.5))), State(-1, -1, ())),), {1: 0, 2: 0})
    question = {c: Split(0, frozenset({1}), Leaf(2 * c), Leaf(2 * c + 1)) for c in (0, 1)}
    return TransitionModel.from_tree(topology, ContextTree(2, 1, Table(-1, (question[0], question[1]))))


def test_chain_models_have_a_self_loop_pdf() -> None:
    transitions = chain_model()
    assert transitions.tuples == ((1, 0, 0, 2), (1, 0, 1, 3), (2, 0, 0, 2), (2, 0, 1, 3))
    assert transitions.pdf[1:5].tolist() == [2, 0, 3, 1]
    assert b"<Tuples> 4 \n1 0 0 2 \n" in serialised(transitions, binary=False)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("make", [model, chain_model])
def test_round_trip_leaves_the_acoustic_model(make: object, binary: bool) -> None:
    transitions = make()  # type: ignore[operator]
    reader = KaldiReader(serialised(transitions, binary) + b"<DIMENSION> ", "x")
    back = TransitionModel.read(reader)
    assert (back.topology, back.tuples) == (transitions.topology, transitions.tuples)
    assert np.allclose(back.log_probs, transitions.log_probs)
    assert reader.expect("<DIMENSION>")


@pytest.mark.parametrize("binary", [True, False])
def test_truncation(binary: bool) -> None:
    data = serialised(model(), binary)
    for length in range(len(data) - 3):
        with pytest.raises(KernelamError, match=r"final\.mdl"):
            TransitionModel.read(KaldiReader(data[:length], "final.mdl"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"\n1 0 0 \n", b"\n9 0 0 \n", "that the topology does not have"),
        (b"\n1 0 0 \n1 1 1 ", b"\n1 1 1 \n1 0 0 ", "not sorted"),
        (b"\n1 0 0 \n", b"\n1 0 -2 \n", "a pdf -2"),
        (b"[ 0 ", b"[ 0 0 ", "11 log-probabilities for 10"),
        (b"[ 0 ", b"[ nan ", "not finite"),
    ],
)
def test_inconsistent_models(old: bytes, new: bytes, message: str) -> None:
    data = serialised(model(), binary=False)
    assert old in data
    with pytest.raises(KernelamError, match=message):
        TransitionModel.read(KaldiReader(data.replace(old, new), "final.mdl"))


@pytest.mark.parametrize("name", ["mono", "tri1", "tri3"])
def test_kaldis_models_byte_for_byte(corpora: Path, name: str) -> None:
    sample = corpora / "kaldi-timit-sample"
    transitions = TransitionModel.load(sample / "exp" / name / "final.mdl")
    assert (sample / "exp" / name / "final.mdl").read_bytes().startswith(serialised(transitions))
    text = (sample / "expected" / name / "transition-model.txt").read_bytes()
    assert serialised(transitions, binary=False) == text
    assert TransitionModel.load(sample / "expected" / name / "transition-model.txt").tuples == transitions.tuples
    tree = ContextTree.load(sample / "exp" / name / "tree")
    assert TransitionModel.from_tree(transitions.topology, tree).tuples == transitions.tuples


def test_all_forms_of_iban(corpora: Path) -> None:
    directories = [corpora / f"kaldi-iban/exp/gmm_ali_{part}" for part in ("train", "heldout", "dev")]
    models = [TransitionModel.load(directory / "final.mdl") for directory in directories]
    assert {m.num_pdfs for m in models} == {1232}
    assert {m.num_transition_ids for m in models} == {10306}
    assert models[0].tuples == models[1].tuples == models[2].tuples
    tree = ContextTree.load(corpora / "kaldi-iban/exp/gmm/tree")
    assert TransitionModel.from_tree(models[0].topology, tree).tuples == models[0].tuples


def test_an_alignment_of_another_tree_is_told_by_its_order(corpora: Path) -> None:
    exp = corpora / "kaldi-timit-sample/exp"
    transitions = TransitionModel.load(exp / "tri3_ali/final.mdl")
    for utt, alignment in read_alignment_dir(exp / "tri3_ali").items():
        transitions.check_ids(alignment, utt)
    for utt, alignment in read_alignment_dir(exp / "mono_ali").items():
        transitions.check_range(alignment, utt)
        with pytest.raises(KernelamError, match=rf"{utt}: transition-id .* cannot follow"):
            transitions.check_ids(alignment, utt)
