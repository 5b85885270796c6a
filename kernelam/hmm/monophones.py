"""Alignments of any tree as those of monophones: as many classes as sets of phones have states."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.files import copy_whole, replacing
from kernelam.hmm.lang import Lang, check_phones
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import read_alignment_dir, write_alignments

FEATURES = (
    "cmvn_opts",
    "delta_opts",
    "splice_opts",
    "final.mat",
    "trans.*",
)  # files that say which features they are of


def monophones(
    transitions: TransitionModel, phone_sets: Sequence[Sequence[int]]
) -> tuple[ContextTree, TransitionModel, NDArray[np.int32]]:
    """The tree in which the phones of a set share their states, its transition model, and the transition-id that each
    of `transitions` has there."""
    topology = transitions.topology
    if absent := set(topology.phones).difference(*phone_sets):
        raise KernelamError(f"phone {min(absent)} of the topology is in none of the sets of phones")
    tree = ContextTree.monophone(phone_sets, {phone: topology.num_pdf_classes(phone) for phone in topology.phones})
    new = TransitionModel.from_tree(topology, tree)
    first = {(state.phone, state.hmm_state): number for state, number in new.first_id.items()}
    starts = [0, *(first[state.phone, state.hmm_state] for state in transitions.tuples)]
    ids = np.array(starts, np.int32)[transitions.transition_state] + transitions.transition_index
    ids[0] = 0
    return tree, new, ids.astype(np.int32)


def convert_alignments(lang: Path, ali: Path, out: Path) -> int:
    """Write the alignments of `ali` as those of monophones to `out`, with model and tree; the number of classes."""
    if out.resolve() == ali.resolve():
        raise KernelamError(f"{out} holds the alignments to convert; write to another directory")
    if out.resolve() == lang.resolve():
        raise KernelamError(f"{out} is the lang directory; write to another one")
    if (out / "final.mdl").exists() and b"<DiagGMM>" in (out / "final.mdl").read_bytes():
        raise KernelamError(f"{out}/final.mdl is a GMM, which would be lost; write to another directory")
    if (out / "model.json").exists():
        raise KernelamError(f"{out} has a model, which would be lost; write to another directory")
    if (out / "utt2spk").exists():
        raise KernelamError(f"{out} is a data directory; write to another one")
    check_phones(lang / "phones.txt", ali / "phones.txt")
    old, language = TransitionModel.load(ali / "final.mdl"), Lang(lang)
    language.check_states(old.topology)
    tree, new, ids = monophones(old, language.phone_sets())
    found = {}
    counts = np.zeros(new.num_transition_ids + 1)
    for utt, alignment in read_alignment_dir(ali).items():
        old.check_ids(alignment, f"{ali}, utterance {utt}")
        found[utt] = ids[alignment]
        np.add.at(counts, found[utt], 1)
    out.mkdir(parents=True, exist_ok=True)
    (out / "num_jobs").unlink(missing_ok=True)  # which, in the end, says that all is there
    write_alignments(out / "ali.1.gz", found)
    tree.save(out / "tree")
    new.update(counts).save(out / "final.mdl")
    copy_whole(lang / "phones.txt", out / "phones.txt")
    for pattern in FEATURES:
        for path in out.glob(pattern):  # of other alignments
            path.unlink()
        for path in ali.glob(pattern):
            copy_whole(path, out / path.name)
    with replacing(out / "num_jobs", "w") as stream:
        stream.write("1\n")
    return new.num_pdfs
