"""One small file of each format, and how it is read and used: what a reader lets through must hold up in use."""

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelam.decoding.lattice import best_path, path_alignment, path_words, pruned
from kernelam.frontend import cmvn
from kernelam.frontend.pipeline import Pipeline
from kernelam.frontend.transforms import read_transforms
from kernelam.hmm.topology import State, Topology
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree, Leaf, Split, Table
from kernelam.kaldi.alignment import read_alignments, write_alignments
from kernelam.kaldi.ark import ArkWriter, MatrixScp, read_ark, read_matrix, write_matrix
from kernelam.kaldi.binary import KaldiReader, KaldiWriter
from kernelam.kaldi.fst import ARC, Fst, load_fst
from kernelam.kaldi.lattice import Lattice
from kernelam.kaldi.lattices import read_lattices, write_lattice
from kernelam.kaldi.tables import read_symbols
from kernelam.models.gmm import DiagGmms, GmmModel

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((12, 3))
PHONES = (1, 2, 3)


@dataclass(frozen=True)
class Format:
    """`make` writes a sound file under a folder and returns its path; `use` reads it and works with what it read.

    `named` is what an error must name, if not the file. Copies of a `text` are also damaged as editors do it.
    """

    make: Callable[[Path], Path]
    use: Callable[[Path], None]
    named: str = ""
    text: bool = False


def put(name: str, data: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


# Matrices and vectors


def archive(*matrices: bytes) -> bytes:
    return b"".join(b"utt%d " % number + matrix for number, matrix in enumerate(matrices))


def encoded(matrix: np.ndarray, compress: bool = False) -> bytes:
    stream = io.BytesIO()
    write_matrix(stream, "u", matrix, compress=compress)
    return stream.getvalue()[2:]


def one_byte(matrix: np.ndarray) -> bytes:
    """CM3, which we read and do not write."""
    low, span = matrix.min(), np.ptp(matrix)
    header = np.array([low, span], "<f4").tobytes() + np.array(matrix.shape, "<i4").tobytes()
    return b"\0BCM3 " + header + ((matrix - low) / span * 255).astype("u1").tobytes()


def use_ark(path: Path) -> None:
    for _, matrix in read_ark(path):
        assert (matrix.ndim, matrix.dtype) == (2, np.float32)
        assert len(matrix)
        assert np.isfinite(matrix).all()


def use_scp(path: Path) -> None:
    scp = path.with_suffix(".scp")
    scp.write_text(f"utt0 {path}:5\nutt1 {path}:5[2:4]\nutt2 {path}:5[0:1,0:2]\n")
    table = MatrixScp(scp)
    for key in table:
        assert table[key].shape == (table.num_frames(key), table.dim)


def use_matrix(path: Path) -> None:
    """As LDA of features that are 10³ large."""
    scp = path.with_name("feats.scp")
    if not scp.exists():
        with ArkWriter(path.with_name("feats.ark"), scp) as writer:
            writer.write("utt", np.full((2, read_matrix(path).shape[1]), 1e3))
    assert np.isfinite(Pipeline(lda=path).open(path.parent)["utt"]).all()


def use_symbols(path: Path) -> None:
    assert len(set(read_symbols(path).values())) == len(read_symbols(path))


def use_transforms(path: Path) -> None:
    path.with_name("num_jobs").write_text("1\n")
    assert all(np.isfinite(matrix).all() for matrix in read_transforms(path.parent).values())


def use_stats(path: Path) -> None:
    for key, stats in read_ark(path, double=True):
        feats = np.ones((2, max(stats.shape[1] - 1, 1)), np.float32)
        assert np.isfinite(cmvn.apply(feats, stats, norm_vars=True, where=f"{path}, {key}")).all()


def vector(kind: type) -> bytes:
    stream = io.BytesIO()
    KaldiWriter(stream).vector(np.arange(20, dtype=kind))
    return stream.getvalue()


def use_counts(path: Path) -> None:
    from kernelam.kaldi.counts import read_counts
    from kernelam.models.base import log_priors

    assert np.isfinite(log_priors(read_counts(path))).all()


# Alignments


def make_alignments(name: str, binary: bool) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        ids = {f"utt{i}": RNG.integers(1, 300, size=20 * i).astype(np.int32) for i in range(4)}
        write_alignments(folder / name, ids, binary)
        return folder / name

    return make


def use_alignments(path: Path) -> None:
    for utt, alignment in read_alignments(path):
        assert utt
        assert (alignment.ndim, alignment.dtype) == (1, np.int32)


def use_inside_gzip(path: Path) -> None:
    zipped = path.with_suffix(".gz")
    zipped.write_bytes(gzip.compress(path.read_bytes(), 1))
    use_alignments(zipped)


# Models


def tree() -> ContextTree:
    question = Split(0, frozenset({1, 3}), Leaf(3), Split(2, frozenset({2}), Leaf(4), Leaf(5)))
    table = Table(
        1, (None, Table(-1, (Leaf(0), Leaf(1))), Table(-1, (Leaf(2), question)), Table(-1, (Leaf(6), Leaf(7))))
    )
    return ContextTree(3, 1, table)


def topology() -> Topology:
    states = (State(0, 0, ((0, 0.75), (1, 0.25))), State(1, 1, ((1, 0.5), (2, 0.5))), State(-1, -1, ()))
    return Topology((states,), dict.fromkeys(PHONES, 0))


def transitions() -> TransitionModel:
    return TransitionModel.from_tree(topology(), tree())


def chain() -> TransitionModel:
    states = (State(0, 1, ((0, 0.5), (1, 0.5))), State(-1, -1, ()))
    return TransitionModel.from_tree(Topology((states,), dict.fromkeys(PHONES, 0)), tree())


def serialised(part: Topology | TransitionModel, binary: bool) -> bytes:
    stream = io.BytesIO()
    part.write(KaldiWriter(stream, binary))
    return stream.getvalue()


def make_tree(binary: bool) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        tree().save(folder / "tree", binary)
        return folder / "tree"

    return make


def make_gmm(binary: bool) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        shape = (3 * transitions().num_pdfs, 4)
        means, variances = RNG.standard_normal(shape), RNG.uniform(0.5, 2, shape)
        gmms = DiagGmms(3 * np.arange(transitions().num_pdfs + 1), np.full(len(means), 1 / 3), means, variances)
        GmmModel(Pipeline(), transitions(), gmms).write(folder / "final.mdl", binary)
        return folder / "final.mdl"

    return make


def use_tree(path: Path) -> None:
    found = ContextTree.load(path)
    pdfs = (
        {found.pdf((0, *PHONES, 0)[i : i + found.width], 0) for i in range(6 - found.width)}
        if found.width < 6
        else set()
    )
    assert all(pdf is None or pdf < found.num_pdfs for pdf in pdfs)
    found.save(path.with_name("again"))
    assert ContextTree.load(path.with_name("again")) == found


def use_topology(path: Path) -> None:
    found = Topology.load(path)
    assert all(found.num_pdf_classes(phone) <= 2 * len(found.states(phone)) for phone in found.phones)
    found.write(KaldiWriter(io.BytesIO()))


def use_transitions(path: Path) -> None:
    found = TransitionModel.load(path)
    assert np.isfinite(found.log_prob(1.0, 0.1)).all()
    ids = np.arange(1, found.num_transition_ids + 1, dtype=np.int32)
    assert np.bincount(found.ali_to_pdf(ids), minlength=found.num_pdfs).size == found.num_pdfs
    assert sum(length for _, length in found.ali_to_phones(ids)) == len(ids)
    again = TransitionModel.read(KaldiReader(serialised(found, binary=True), "again"))
    assert again.tuples == found.tuples


def use_gmm(path: Path) -> None:
    model = GmmModel.read(path)
    scores = model.log_likelihoods(np.ones((2, model.feature_dim), np.float32))
    assert scores.shape == (2, model.num_classes)
    assert not np.isnan(scores).any()


# Graphs and lattices


def fst() -> Fst:
    source = np.repeat(np.arange(20), 3)
    arcs = np.zeros(60, ARC)
    arcs["ilabel"], arcs["olabel"] = RNG.integers(0, 9, 60), RNG.integers(0, 9, 60)
    arcs["weight"], arcs["nextstate"] = RNG.uniform(0, 3, 60), RNG.integers(0, 20, 60)
    return Fst.of(0, np.where(np.arange(20) % 5, np.inf, 0.5), source, arcs)


def use_fst(path: Path) -> None:
    """OpenFst, which would abort, sees only what passed."""
    found = load_fst(path)
    native = found.to_kaldifst()
    assert native.num_states == len(found.final)
    assert Fst.from_kaldifst(native).arcs.tobytes() == found.arcs.tobytes()


def lattice(compact: bool) -> Lattice:
    """A diamond with a tail; each arc a frame."""
    words, following = np.array([1, 2, 0, 3, 4], np.int32), np.array([1, 2, 3, 3, 4], np.int32)
    costs = RNG.uniform(0, 9, (2, 5)).astype(np.float32)
    final = np.where(np.arange(5) == 4, 1, np.inf).astype(np.float32)
    begin = np.minimum(np.arange(11), 5)
    ids = np.arange(1, 6, dtype=np.int32)
    return Lattice(np.array([0, 2, 3, 4, 5, 5]), words, *costs, following, final, final, begin, ids, compact)


def lattices(compact: bool, binary: bool = True) -> bytes:
    """The second one is not in topological order: its states 1 and 3 have changed places."""
    stream = io.BytesIO()
    write_lattice(stream, "utt0", lattice(compact), binary)
    write_lattice(stream, "utt1", lattice(compact).selected(np.array([0, 3, 2, 1, 4]), np.ones(5, bool)), binary)
    return stream.getvalue()


def use_lattices(path: Path) -> None:
    for _, found in read_lattices(path):
        path_of_arcs = best_path(found, 10.0)
        assert len(path_alignment(found, path_of_arcs)) >= 0
        assert all(word > 0 for word in path_words(found, path_of_arcs))
        write_lattice(io.BytesIO(), "utt", pruned(found, 0.1, 8.0))


EXCHANGED = {
    "float archive": Format(put("feats.ark", archive(encoded(MATRIX.astype(np.float32)), encoded(MATRIX))), use_ark),
    "double archive": Format(put("feats.ark", archive(encoded(MATRIX), encoded(MATRIX))), use_ark),
    "CM archive": Format(put("feats.ark", archive(encoded(MATRIX, True), encoded(MATRIX, True))), use_ark),
    "CM2 archive": Format(put("feats.ark", archive(encoded(MATRIX[:5], True), encoded(MATRIX[:5], True))), use_ark),
    "CM3 archive": Format(put("feats.ark", archive(one_byte(MATRIX), one_byte(MATRIX))), use_ark),
    "CM matrix and ranges": Format(put("feats.ark", archive(encoded(MATRIX, True))), use_scp),
    "double matrix and ranges": Format(put("feats.ark", archive(encoded(MATRIX))), use_scp),
    "archive in text": Format(put("feats.ark", b"utt0  [\n  1 2.5 -3\n  4e2 5 6 ]\nutt1  [\n  7 8 9 ]\n"), use_ark),
    "symbol table": Format(put("words.txt", b"<eps> 0\na 1\nb 2\n#0 3\n"), use_symbols),
    "LDA matrix": Format(put("final.mat", encoded(MATRIX.astype(np.float32))), use_matrix),
    "fMLLR transforms": Format(put("trans.1", archive(encoded(MATRIX), encoded(MATRIX))), use_transforms),
    "CMVN statistics": Format(put("cmvn.ark", archive(encoded(np.abs(MATRIX[:2]) * 100 + 50))), use_stats),
    "float vector": Format(put("ali_train_pdf.counts", vector(np.float32)), use_counts),
    "double vector": Format(put("ali_train_pdf.counts", vector(np.float64)), use_counts),
    "binary alignments": Format(make_alignments("ali.1", True), use_alignments),
    "text alignments": Format(make_alignments("ali.1", False), use_alignments),
    "gzipped alignments": Format(make_alignments("ali.1.gz", True), use_alignments),
    "alignments inside gzip": Format(make_alignments("ali.1", True), use_inside_gzip),
    "GMM": Format(make_gmm(binary=True), use_gmm),
    "GMM in text": Format(make_gmm(binary=False), use_gmm),
    "transition model": Format(put("final.mdl", serialised(transitions(), binary=True)), use_transitions),
    "chain transition model": Format(put("final.mdl", serialised(chain(), binary=True)), use_transitions),
    "transition model in text": Format(put("final.mdl", serialised(transitions(), binary=False)), use_transitions),
    "tree": Format(make_tree(binary=True), use_tree),
    "tree in text": Format(make_tree(binary=False), use_tree),
    "topology": Format(put("topo", serialised(topology(), binary=True)), use_topology),
    "topology in text": Format(put("topo", serialised(topology(), binary=False)), use_topology),
    "const FST": Format(put("HCLG.fst", fst().const_bytes()), use_fst),
    "vector FST": Format(put("HCLG.fst", fst().vector_bytes()), use_fst),
    "lattices": Format(put("lat.1", lattices(compact=False)), use_lattices),
    "compact lattices": Format(put("lat.1", lattices(compact=True)), use_lattices),
    "lattices in text": Format(put("lat.1", lattices(compact=True, binary=False)), use_lattices),
}

KALDI = {
    "exp/mono/final.mdl": use_gmm,
    "exp/tri1/tree": use_tree,
    "exp/tri1_ali_dev/ali.1.gz": use_alignments,
    "exp/mono/graph/HCLG.fst": use_fst,
    "exp/tri3/final.mat": use_matrix,
    "exp/tri3/decode_dev/trans.1": use_transforms,
    "mfcc/cmvn_dev.ark": use_stats,
    "data/lang/topo": use_topology,
}
"""Small files of a real experiment directory."""
