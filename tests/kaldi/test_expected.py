"""What Kaldi's own programs print about a real experiment (expected/COMMANDS.txt), made again from the same files."""

import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kernelam.hmm.topology import Topology
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import read_alignment_dir, write_alignments
from kernelam.kaldi.ark import MatrixScp, read_ark, read_matrix, save_matrix, write_matrix
from kernelam.kaldi.binary import KaldiReader, KaldiWriter
from kernelam.kaldi.counts import read_counts
from kernelam.kaldi.fst import Fst, load_fst
from kernelam.kaldi.tables import read_symbols
from kernelam.models.gmm import DiagGmms, GmmModel

SETS = {"train": "ali", "dev": "ali_dev", "test": "ali_test"}


@pytest.fixture
def sample(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    return Path("expected")


def numbers(path: Path) -> dict[str, int]:
    """`number of pdfs 128`, and the like with other separators."""
    rows = (re.split(r"\s{2,}|\s(?=\d+$)", line.strip()) for line in path.read_text().splitlines())
    return {name: int(value) for name, value in rows if value.isdecimal()}


@pytest.mark.parametrize("name", ["mono", "tri1", "tri3"])
def test_info(sample: Path, name: str) -> None:
    """hmm-info, am-info, gmm-info, tree-info."""
    model, tree = GmmModel.read(f"exp/{name}/final.mdl"), ContextTree.load(f"exp/{name}/tree")
    transitions = model.transitions
    states = {
        "number of phones": len(transitions.topology.phones),
        "number of pdfs": transitions.num_pdfs,
        "number of transition-ids": transitions.num_transition_ids,
        "number of transition-states": len(transitions.tuples),
    }
    mixtures = {"feature dimension": model.feature_dim, "number of gaussians": len(model.gmms.weights)}
    assert numbers(sample / name / "hmm-info.txt") == numbers(sample / name / "am-info.txt") == states
    assert numbers(sample / name / "gmm-info.txt") == states | mixtures
    questions = {"num-pdfs": tree.num_pdfs, "context-width": tree.width, "central-position": tree.central}
    assert numbers(sample / name / "tree-info.txt") == questions


@pytest.mark.parametrize("name", ["mono", "tri1", "tri3"])
def test_show_transitions(sample: Path, name: str) -> None:
    model = TransitionModel.load(f"exp/{name}/final.mdl")
    phones = {number: phone for phone, number in read_symbols("data/lang/phones.txt").items()}
    occupancy = KaldiReader.open(f"exp/{name}/final.occs").vector()
    rows: list[str] = []
    for tid in range(1, model.num_transition_ids + 1):
        state, to = model.hmm_state[tid], model.topology.states(int(model.phone[tid]))[model.hmm_state[tid]].transitions
        if model.transition_index[tid] == 0:
            names = f"phone = {phones[int(model.phone[tid])]} hmm-state = {state} pdf = {model.pdf[tid]}"
            rows.append(f"Transition-state {model.transition_state[tid]}: {names}")
        arrow = "self-loop" if model.is_self_loop[tid] else f"{state} -> {to[model.transition_index[tid]][0]}"
        probability = np.float32(np.exp(np.float64(model.log_probs[tid])))
        count = occupancy[model.pdf[tid]]
        rows.append(f" Transition-id = {tid} p = {probability:.6g} count of pdf = {count:g} [{arrow}]")
    assert rows == (sample / name / "show-transitions.txt").read_text().splitlines()


def printed(fst: Fst) -> Iterator[str]:
    """As fstprint prints: the start state first, weights in nine digits, those that are one left out."""

    def line(*fields: object, weight: np.float32) -> str:
        return "\t".join(map(str, (*fields, *([f"{weight:.9g}"] if weight else []))))

    for state in (fst.start, *(s for s in range(len(fst.final)) if s != fst.start)):
        for ilabel, olabel, weight, to in fst.arcs[fst.offsets[state] : fst.offsets[state + 1]]:
            yield line(state, to, ilabel, olabel, weight=weight)
        if np.isfinite(fst.final[state]):
            yield line(state, weight=fst.final[state])


@pytest.mark.parametrize("name", ["mono", "tri1", "tri3"])
def test_decoding_graphs(sample: Path, name: str) -> None:
    """fstprint and fstinfo of const FSTs; written back, the same bytes but for the properties that OpenFst claims."""
    fst = load_fst(f"exp/{name}/graph/HCLG.fst")
    with gzip.open(sample / name / "HCLG.fstprint.txt.gz", "rt") as stream:
        assert list(printed(fst)) == stream.read().splitlines()
    info = numbers(sample / name / "HCLG.fstinfo.txt")
    epsilons = {label: int((fst.arcs[f"{label}label"] == 0).sum()) for label in ("i", "o")}
    assert (len(fst.final), len(fst.arcs)) == (info["# of states"], info["# of arcs"])
    assert (fst.start, int(np.isfinite(fst.final).sum())) == (info["initial state"], info["# of final states"])
    assert (epsilons["i"], epsilons["o"]) == (info["# of input epsilons"], info["# of output epsilons"])
    written, original = bytearray(fst.const_bytes()), Path(f"exp/{name}/graph/HCLG.fst").read_bytes()
    properties = slice(4 + 4 + len("const") + 4 + len("standard") + 8, 4 + 4 + len("const") + 4 + len("standard") + 16)
    written[properties] = original[properties]
    assert written == original


@pytest.mark.parametrize("name", ["lang/L", "lang_test_bg/L_disambig", "lang_test_bg/G"])
def test_grammar_and_lexicon(sample: Path, name: str) -> None:
    lines = (sample / f"{Path(name).name}.fstprint.txt").read_text().splitlines()
    assert list(printed(load_fst(f"data/{name}.fst"))) == lines


def table(path: Path) -> dict[str, str]:
    return {utt: row.strip() for utt, _, row in (line.partition(" ") for line in path.read_text().splitlines())}


def joined(values: object) -> str:
    return " ".join(map(str, values))  # type: ignore[call-overload]


@pytest.mark.parametrize("part", SETS)
@pytest.mark.parametrize("name", ["tri1", "tri3"])
def test_ali_to_pdf_and_phones(sample: Path, name: str, part: str) -> None:
    model = TransitionModel.load(f"exp/{name}_{SETS[part]}/final.mdl")
    alignments = read_alignment_dir(f"exp/{name}_{SETS[part]}")
    pdfs = {utt: joined(model.ali_to_pdf(ali)) for utt, ali in alignments.items()}
    assert pdfs == table(sample / name / f"ali-to-pdf.{part}.txt")
    phones = {utt: joined(phone for phone, _ in model.ali_to_phones(ali)) for utt, ali in alignments.items()}
    assert phones == table(sample / name / f"ali-to-phones.{part}.txt")


@pytest.mark.parametrize("name", ["tri1", "tri3"])
def test_frames_lengths_and_times_of_phones(sample: Path, name: str, tmp_path: Path) -> None:
    """ali-to-phones with --per-frame, --write-lengths, --ctm-output; copy-int-vector."""
    model = TransitionModel.load(f"exp/{name}_ali_dev/final.mdl")
    alignments = read_alignment_dir(f"exp/{name}_ali_dev")
    phones = {utt: model.ali_to_phones(ali) for utt, ali in alignments.items()}
    frames = {utt: joined(phone for phone, length in row for _ in range(length)) for utt, row in phones.items()}
    assert frames == table(sample / name / "ali-to-phones.per-frame.dev.txt")
    lengths = {utt: " ; ".join(f"{phone} {length}" for phone, length in row) for utt, row in phones.items()}
    assert lengths == table(sample / name / "ali-to-phones.lengths.dev.txt")
    times = []
    for utt in sorted(phones):
        ends = np.cumsum([length for _, length in phones[utt]])
        for end, (phone, length) in zip(ends.tolist(), phones[utt], strict=True):
            times.append(f"{utt} 1 {0.01 * (end - length):.3f} {0.01 * length:.3f} {phone}")
    assert times == (sample / name / "ali-to-phones.dev.ctm").read_text().splitlines()
    write_alignments(tmp_path / "text", alignments, binary=False)
    assert (tmp_path / "text").read_bytes() == (sample / name / "ali.transition-ids.dev.txt").read_bytes()


def logged(path: Path) -> dict[int, int]:
    """The table of counts in the log of analyze-counts."""
    return {int(label): int(count) for count, label in re.findall(r"^(\d+)\t\(\S+\),\t(\d+)", path.read_text(), re.M)}


@pytest.mark.parametrize("name", ["tri1", "tri3"])
def test_analyze_counts(sample: Path, name: str) -> None:
    """It adds one half to each count."""
    model = TransitionModel.load(f"exp/{name}_ali/final.mdl")
    alignments = np.concatenate(list(read_alignment_dir(f"exp/{name}_ali").values()))
    for kind, labels in {"pdf": model.pdf, "phone": model.phone}.items():
        counts = np.bincount(labels[alignments])
        np.testing.assert_array_equal(read_counts(sample / name / f"{kind}.counts.train"), counts + 0.5)
        assert logged(sample / name / f"{kind}.counts.train.log") == dict(enumerate(counts.tolist()))


def test_likelihoods(sample: Path) -> None:
    """gmm-compute-likes, read by an scp with offsets, and the first ten frames as copy-feats prints them."""
    likelihoods = MatrixScp(sample / "tri1/loglikes/test.scp")
    model = GmmModel.read("exp/tri1/final.mdl")
    features = model.open("data/test")
    assert list(likelihoods) == list(features)
    for utt, expected in likelihoods.items():
        assert np.abs(model.log_likelihoods(features[utt]) - expected).max() < 0.01
    first = (sample / "tri1/loglikes/first10frames.txt").read_bytes()
    ((utt, printed_frames),) = read_ark(io.BytesIO(first.rstrip() + b" ]\n"))
    np.testing.assert_allclose(likelihoods[utt][:10], printed_frames, rtol=1e-6)


def models(corpora: Path) -> list[Path]:
    return sorted(corpora.glob("kaldi-*/exp/*/final.*mdl"))


def test_every_model_is_written_back_byte_for_byte(corpora: Path) -> None:
    """Whole models, transition models alone in binary and in text."""
    assert len(models(corpora)) == 15
    for path in models(corpora):
        reader, stream = KaldiReader.open(path), io.BytesIO()
        writer = KaldiWriter(stream, reader.binary)
        TransitionModel.read(reader).write(writer)
        if not reader.at_end():
            DiagGmms.read(reader).write(writer)
        assert stream.getvalue() == path.read_bytes(), path


def test_every_tree_is_written_back_byte_for_byte(corpora: Path, tmp_path: Path) -> None:
    trees = sorted(corpora.glob("kaldi-*/exp/*/tree"))
    assert len(trees) == 14
    for path in trees:
        ContextTree.load(path).save(tmp_path / "tree")
        assert (tmp_path / "tree").read_bytes() == path.read_bytes(), path


def test_matrices_are_written_back_byte_for_byte(corpora: Path, tmp_path: Path) -> None:
    """LDA, fMLLR and CMVN statistics: float and double."""
    sample = corpora / "kaldi-timit-sample"
    for name in ("final.mat", "full.mat"):
        save_matrix(tmp_path / name, read_matrix(sample / "exp/tri3" / name))
        assert (tmp_path / name).read_bytes() == (sample / "exp/tri3" / name).read_bytes()
    for path in (sample / "exp/tri3/trans.1", sample / "mfcc/cmvn_train.ark"):
        stream = io.BytesIO()
        for key, matrix in read_ark(path, double=True):
            write_matrix(stream, key, matrix)
        assert stream.getvalue() == path.read_bytes()


@pytest.mark.parametrize(("part", "size"), [("heldout", (154, 145159)), ("dev", (147, 137394))])
def test_alignments_of_iban(corpora: Path, part: str, size: tuple[int, int]) -> None:
    """As many utterances and frames as its README says, all of them of the features' length."""
    alignments = read_alignment_dir(corpora / f"kaldi-iban/exp/gmm_ali_{part}")
    assert (len(alignments), sum(map(len, alignments.values()))) == size
    frames = table(corpora / f"kaldi-iban/data-fbank/{part}/utt2num_frames")
    assert all(len(ali) == int(frames[utt]) for utt, ali in alignments.items())


def test_topologies(corpora: Path) -> None:
    for folder, model in {"kaldi-timit-sample/data/lang": "mono", "kaldi-iban/data/lang_test": "gmm"}.items():
        corpus = folder.split("/")[0]
        topology = Topology.load(corpora / folder / "topo")
        assert topology == TransitionModel.load(corpora / corpus / "exp" / model / "final.mdl").topology
