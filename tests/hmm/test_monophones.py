"""Alignments converted to monophones, against Kaldi's own monophone model of the same phones."""

import os
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.hmm.lang import Lang
from kernelam.hmm.monophones import convert_alignments, monophones
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import read_alignment_dir


def test_tree_and_states_are_those_of_kaldis_monophones(corpora: Path) -> None:
    place = corpora / "kaldi-timit-sample"
    tree, transitions, _ = monophones(
        TransitionModel.load(place / "exp/tri3_ali/final.mdl"), Lang(place / "data/lang").phone_sets()
    )
    known = ContextTree.load(place / "exp/mono/tree")
    for phone in transitions.topology.phones:
        for pdf_class in range(transitions.topology.num_pdf_classes(phone)):
            assert tree.pdf([phone], pdf_class) == known.pdf([phone], pdf_class)
    assert transitions.tuples == TransitionModel.load(place / "exp/mono/final.mdl").tuples


@pytest.mark.parametrize(
    ("corpus", "ali", "lang"), [("timit-sample", "tri3_ali", "lang"), ("iban", "gmm_ali_dev", "lang_test")]
)
def test_phones_and_states_stay_as_they_are(corpora: Path, tmp_path: Path, corpus: str, ali: str, lang: str) -> None:
    place = corpora / f"kaldi-{corpus}"
    folder = place / "exp" / ali
    count = convert_alignments(place / "data" / lang, folder, tmp_path / "mono")
    old, new = (TransitionModel.load(one / "final.mdl") for one in (folder, tmp_path / "mono"))
    assert new.num_pdfs == count < old.num_pdfs
    before, after = read_alignment_dir(folder), read_alignment_dir(tmp_path / "mono")
    assert before.keys() == after.keys()
    for utt, alignment in before.items():
        assert old.ali_to_phones(alignment) == new.ali_to_phones(after[utt])
        np.testing.assert_array_equal(old.hmm_state[alignment], new.hmm_state[after[utt]])
        np.testing.assert_array_equal(old.is_self_loop[alignment], new.is_self_loop[after[utt]])
    leaving = np.exp(new.log_probs[1:])
    assert leaving.min() > 0.0
    np.testing.assert_allclose(np.bincount(new.transition_state[1:], leaving)[1:], 1.0, rtol=1e-4)


def test_what_cannot_be_converted_is_a_sentence(corpora: Path, tmp_path: Path) -> None:
    place = corpora / "kaldi-timit-sample"
    with pytest.raises(KernelamError, match="holds the alignments to convert; write to another directory"):
        convert_alignments(place / "data/lang", place / "exp/tri3_ali", place / "exp/tri3_ali")
    shutil.copytree(place / "data/lang", tmp_path / "lang")
    with pytest.raises(KernelamError, match=r"lang is the lang directory; write to another one"):
        convert_alignments(tmp_path / "lang", place / "exp/tri3_ali", tmp_path / "lang")
    assert sorted(os.listdir(tmp_path / "lang")) == sorted(os.listdir(place / "data/lang"))
    with pytest.raises(KernelamError, match=r"phones\.txt"):
        convert_alignments(corpora / "kaldi-iban/data/lang_test", place / "exp/tri3_ali", tmp_path / "mono")
    transitions = TransitionModel.load(place / "exp/tri3_ali/final.mdl")
    with pytest.raises(KernelamError, match="phone 1 of the topology is in none of the sets of phones"):
        monophones(transitions, [[phone] for phone in transitions.topology.phones[1:]])
    assert not (tmp_path / "mono").exists()


def test_a_gmm_is_not_overwritten_and_the_features_are_told(corpora: Path, tmp_path: Path) -> None:
    place, out = corpora / "kaldi-timit-sample", tmp_path / "mono"
    convert_alignments(place / "data/lang", place / "exp/tri3_ali", out)
    convert_alignments(place / "data/lang", place / "exp/tri3_ali", out)  # its own files may be
    for name in ("cmvn_opts", "final.mat"):
        assert (out / name).read_bytes() == (place / "exp/tri3_ali" / name).read_bytes()
    convert_alignments(place / "data/lang", place / "exp/tri1_ali", out)  # of other features
    assert {path.name for path in out.glob("*_opts")} == {p.name for p in (place / "exp/tri1_ali").glob("*_opts")}
    assert not (out / "final.mat").exists()
    gmm = (place / "exp/mono/final.mdl").read_bytes()
    (out / "final.mdl").write_bytes(gmm)
    with pytest.raises(KernelamError, match=r"final\.mdl is a GMM, which would be lost"):
        convert_alignments(place / "data/lang", place / "exp/tri3_ali", out)
    assert (out / "final.mdl").read_bytes() == gmm


@pytest.mark.parametrize(("file", "said"), [("model.json", "has a model"), ("utt2spk", "is a data")])
def test_models_and_data_stay_as_they_are(corpora: Path, tmp_path: Path, file: str, said: str) -> None:
    place = corpora / "kaldi-timit-sample"
    (tmp_path / file).touch()
    with pytest.raises(KernelamError, match=f"{tmp_path} {said}"):
        convert_alignments(place / "data/lang", place / "exp/tri3_ali", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_a_file_that_cannot_be_written_is_named(corpora: Path, tmp_path: Path) -> None:
    """And not the one that it is a copy of; of it nothing stays."""
    place, limits = corpora / "kaldi-timit-sample", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))  # enough for all but the transforms
    try:
        with pytest.raises(KernelamError, match=f"cannot write {tmp_path}/mono/trans.1: File too large"):
            convert_alignments(place / "data/lang", place / "exp/tri3_ali", tmp_path / "mono")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list((tmp_path / "mono").glob("*trans*"))
    assert not (tmp_path / "mono/num_jobs").exists()
