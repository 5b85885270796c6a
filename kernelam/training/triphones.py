"""Models of states in context: a tree grown on packed frames, and the linear transforms of their features."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.frontend.transforms import splice
from kernelam.hmm.context import Converter
from kernelam.hmm.lang import Lang, check_phones, silence_phones
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.alignment import num_jobs, read_alignment_dir, write_alignments
from kernelam.kaldi.ark import read_matrix, save_matrix
from kernelam.kaldi.tables import read_table
from kernelam.models.gmm import DiagGmms, GmmModel
from kernelam.progress import say, warn
from kernelam.training.context_stats import VARIANCE_FLOOR, ContextStats, accumulate_stats
from kernelam.training.gmm import aligned_ids
from kernelam.training.lda import fit_lda, fit_mllt
from kernelam.training.questions import phone_questions
from kernelam.training.tree_growing import grow_tree


def grow_model(
    lang: Path, ali: Path, folder: Path, num_leaves: int, context: tuple[int, int], min_gain: float, seed: int
) -> None:
    """FOLDER/tree, questions.int, 0.mdl with a Gaussian a leaf, and the alignments in its states."""
    if not context[1] < context[0]:
        raise KernelamError(f"--central-position {context[1]} is not in a window of {context[0]} phones")
    language, old = Lang(lang), TransitionModel.load(ali / "final.mdl")
    check_phones(lang / "phones.txt", ali / "phones.txt")
    language.check_states(old.topology)
    frames, alignments = FrameStore(folder / "frames"), read_alignment_dir(ali)
    aligned_ids(frames, alignments, old)  # checks them
    stats = accumulate_stats(frames, alignments, old, *context, language.phone_list("context_indep"))
    _name_unseen(language, stats)
    questions = _questions(language, stats, seed)
    topology = old.topology
    classes = {phone: topology.num_pdf_classes(phone) for phone in topology.phones}
    tree, pdfs = grow_tree(stats, language.roots(), questions, classes, num_leaves, min_gain)
    new = TransitionModel.from_tree(topology, tree)
    with replacing(folder / "questions.int", "w") as stream:
        stream.writelines(" ".join(map(str, sorted(question))) + "\n" for question in questions)
    tree.save(folder / "tree")
    GmmModel(Pipeline.of_directory(folder), new, leaf_gaussians(stats, pdfs, tree.num_pdfs)).write(folder / "0.mdl")
    convert = Converter(old, new, tree)
    for job in range(1, num_jobs(folder) + 1):
        utts = read_table(folder / f"split{num_jobs(folder)}utt" / str(job) / "utt2spk")
        own = {utt: convert(alignments[utt], f"{ali}, {utt}") for utt in utts if utt in alignments}
        write_alignments(folder / f"ali.{job}.gz", own)


def _name_unseen(language: Lang, stats: ContextStats) -> None:
    """The phones of roots of which none was seen; one that was stands for the others of its root."""
    names, seen = {number: name for name, number in language.phones.items()}, set(stats.phone.tolist())
    unseen = [names[phone] for root in language.roots() if not seen & set(root.phones) for phone in root.phones]
    if unseen:
        warn(f"{len(unseen)} phones are in no alignment and get the Gaussian of all frames: {' '.join(unseen)}")


def _questions(language: Lang, stats: ContextStats, seed: int) -> list[frozenset[int]]:
    """Those of clustered phones, and the lang directory's own."""
    clustered = phone_questions(stats, language.phone_sets(), seed=seed)
    extra = language.directory / "phones" / "extra_questions.int"
    more = [frozenset(phones) for phones in language.phone_sets("extra_questions")] if extra.exists() else []
    return list(dict.fromkeys([*clustered, *(question for question in more if question)]))


def leaf_gaussians(stats: ContextStats, pdfs: NDArray[np.int64], num_pdfs: int) -> DiagGmms:
    """One for each pdf; that of all frames where it has none."""
    leaves = stats.gaussians.grouped(pdfs, num_pdfs)
    means, variances = leaves.moments
    every, spread = stats.gaussians.total.moments
    empty = leaves.count == 0
    means[empty], variances[empty] = every, spread
    return DiagGmms(np.arange(num_pdfs + 1), np.ones(num_pdfs), means, np.maximum(variances, VARIANCE_FLOOR))


def speech_pdfs(lang: Path, transitions: TransitionModel, alignment: NDArray[np.integer]) -> NDArray[np.int32]:
    """The pdf of each frame (of transition-id 0, not aligned: −1), −1 for silence."""
    silent = np.isin(transitions.phone[alignment], silence_phones(lang))
    return np.where(silent, np.int32(-1), transitions.pdf[alignment])


def write_lda(data: Path, lang: Path, ali: Path, folder: Path, dim: int) -> None:
    """FOLDER/final.mat of the spliced features of DATA, by the pdfs of speech in ALI."""
    transitions, alignments = TransitionModel.load(ali / "final.mdl"), read_alignment_dir(ali)
    pipeline = Pipeline.before_lda(folder)
    features = pipeline.open(data)
    classes = speech_pdfs(lang, transitions, np.arange(len(transitions.log_probs)))  # by transition-id
    utts = [utt for utt in features if utt in alignments]
    if not utts:
        raise KernelamError(f"{data} and {ali} have no utterance in common")
    matrix = fit_lda(
        ((splice(features[utt], *pipeline.context), classes[alignments[utt]]) for utt in utts),
        transitions.num_pdfs,
        dim,
    )
    save_matrix(folder / "final.mat", matrix.astype(np.float32))


def apply_mllt(model: Path, lang: Path, folder: Path) -> None:
    """Of what is turned, the model comes last; where this is done again, it goes on from there."""
    trained, store = GmmModel.read(model), FrameStore(folder / "frames")
    ids = aligned_ids(store, read_alignment_dir(folder), trained.transitions)
    A, gain = fit_mllt(trained.gmms, store.features, speech_pdfs(lang, trained.transitions, ids))
    say(f"MLLT: {gain:.4f} of log-likelihood a frame")
    turn = A.astype(np.float32).T
    FrameStore.build(store.folder, ((utt, store[utt] @ turn) for utt in store.utts))
    save_matrix(folder / "final.mat", A.astype(np.float32) @ read_matrix(folder / "final.mat"))
    gmms = trained.gmms
    trained.gmms = DiagGmms(gmms.first, gmms.weights, gmms.means @ A.T, gmms.variances)
    trained.write(model)
