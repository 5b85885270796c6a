"""Graphs over transition-ids: of a transcript for alignment, of a language model for decoding (HCLG)."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import kaldifst
import numpy as np

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.hmm.lang import Lang
from kernelam.hmm.transducer import HTransducer, add_self_loops, relabel_input
from kernelam.hmm.transitions import TransitionModel, check_tree
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.binary import read_bytes
from kernelam.kaldi.fst import Fst, load_fst
from kernelam.kaldi.tables import whole_number
from kernelam.progress import say

_GRAPH_FILES = (
    "align_lexicon.*",
    "disambig.txt",
    "disambig.int",
    "optional_silence.*",
    "silence.csl",
    "word_boundary.*",
)
_DELTA = 1e-4  # to which costs are rounded; Kaldi's 1/1024 gives no smaller graphs but adds up to 0.02 an utterance


class TrainingGraphs:
    """Compiles transcripts to graphs from transition-ids to words, as Kaldi's compile-train-graphs does."""

    def __init__(
        self,
        lang: Lang,
        tree: ContextTree,
        transitions: TransitionModel,
        transition_scale: float = 1.0,
        self_loop_scale: float = 0.1,
    ) -> None:
        check_tree(tree, transitions)
        self.lang, self.tree, self.transitions, self.self_loop_scale = lang, tree, transitions, self_loop_scale
        self._lexicon = lang.fst("L.fst")
        kaldifst.arcsort(self._lexicon, "olabel")
        self._h = HTransducer(tree, transitions, transition_scale)
        # without context the labels of H are the phones themselves, and one H serves all transcripts
        known = transitions.topology.phone_entry
        windows = [(phone,) if phone in known else () for phone in range(max(known) + 1)]
        self._whole_h = self._sorted_h(windows) if tree.width == 1 else None

    def compile(self, word_ids: Sequence[int]) -> Fst:
        """The graph of one transcript, an empty one included (silence only)."""
        phones = kaldifst.compose(self._lexicon, kaldifst.make_linear_acceptor(list(word_ids)))
        if phones.start < 0:
            missing = [word for word in word_ids if not self._has_word(word)]
            raise KernelamError(
                f"{self.lang.directory / 'L.fst'} has no pronunciation of"
                f" {' '.join(self.lang.word_of.get(word, str(word)) for word in missing) or 'an empty transcript'}"
            )
        h = self._whole_h
        if h is None:
            phones, windows = kaldifst.compose_context([], self.tree.width, self.tree.central, phones)
            h = self._sorted_h(windows)
        kaldifst.arcsort(phones, "ilabel")
        graph = kaldifst.compose(h, phones)
        _determinize(graph, f"the graph of a transcript with {self.lang.directory / 'L.fst'}")
        kaldifst.minimize_encoded(graph)
        return add_self_loops(Fst.from_kaldifst(graph), self.transitions, self.self_loop_scale)

    def _sorted_h(self, windows: Sequence[Sequence[int]]) -> kaldifst.StdVectorFst:
        h = self._h.fst(windows)[0].to_kaldifst()
        kaldifst.arcsort(h, "olabel")
        return h

    def _has_word(self, word: int) -> bool:
        return bool((Fst.from_kaldifst(self._lexicon).arcs["olabel"] == word).any())


def make_hclg(
    lang_dir: str | Path,
    tree: ContextTree,
    transitions: TransitionModel,
    graph_dir: str | Path,
    transition_scale: float = 1.0,
    self_loop_scale: float = 0.1,
) -> None:
    """Write Kaldi's graph directory; HCLG.fst, a const FST, comes last."""
    check_tree(tree, transitions)
    lang = Lang(lang_dir)
    lg = _compose_lg(lang)
    say(f"LG has {lg.num_states} states")
    clg, windows = kaldifst.compose_context(lang.disambig, tree.width, tree.central, lg)
    del lg
    hmm_source = HTransducer(tree, transitions, transition_scale)
    clg, windows = _merge_equal_windows(clg, windows, hmm_source)
    say(f"CLG has {clg.num_states} states")
    h, disambig = hmm_source.fst(windows)
    hclg = _compose_hclg(h, clg, disambig)
    del clg
    graph = add_self_loops(hclg, transitions, self_loop_scale)
    say(f"HCLG has {len(graph.final)} states and {len(graph.arcs)} arcs")
    graph_dir = Path(graph_dir)
    (graph_dir / "HCLG.fst").unlink(missing_ok=True)  # an old graph must never stand beside new symbols
    _copy_symbols(lang.directory, graph_dir)
    _write_lines(graph_dir / "num_pdfs", [transitions.num_pdfs])
    _write_lines(graph_dir / "disambig_tid.int", disambig)
    graph.save(graph_dir / "HCLG.fst", "const")


def _compose_lg(lang: Lang) -> kaldifst.StdVectorFst:
    lexicon, grammar = lang.fst("L_disambig.fst"), lang.fst("G.fst")
    kaldifst.arcsort(lexicon, "olabel")
    kaldifst.arcsort(grammar, "ilabel")
    lg = kaldifst.compose(lexicon, grammar)
    if lg.start < 0:
        raise KernelamError(f"{lang.directory}: G.fst accepts no sentence of words that L_disambig.fst knows")
    _determinize(lg, f"L_disambig.fst with G.fst of {lang.directory}")
    kaldifst.minimize_encoded(lg, _DELTA)
    return lg


def _determinize(fst: kaldifst.StdVectorFst, what: str) -> None:
    try:
        kaldifst.determinize_star(fst, use_log=True)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise KernelamError(
            f"{what} cannot be made deterministic ({reason}): homophones need disambiguation symbols"
        ) from None


def _merge_equal_windows(
    clg: kaldifst.StdVectorFst, windows: Sequence[Sequence[int]], h: HTransducer
) -> tuple[kaldifst.StdVectorFst, list[Sequence[int]]]:
    """Windows with the same HMM get the label of the first of them, and the others become empty: a much smaller H."""
    first: dict[object, int] = {}
    table = np.arange(len(windows))
    for label, window in enumerate(windows):
        if len(window) > 1 or (len(window) == 1 and window[0] > 0):
            table[label] = first.setdefault(h.hmm(window), label)
    merged = relabel_input(Fst.from_kaldifst(clg), table).to_kaldifst()
    kaldifst.arcsort(merged, "ilabel")
    return merged, [window if table[label] == label else () for label, window in enumerate(windows)]


def _compose_hclg(h: Fst, clg: kaldifst.StdVectorFst, disambig: list[int]) -> Fst:
    left = h.to_kaldifst()
    kaldifst.arcsort(left, "olabel")
    graph = kaldifst.compose(left, clg)
    _determinize(graph, "HCLG")
    plain = Fst.from_kaldifst(graph)
    plain.arcs["ilabel"][np.isin(plain.arcs["ilabel"], disambig)] = 0
    graph = plain.to_kaldifst()
    kaldifst.minimize_encoded(graph, _DELTA)
    return Fst.from_kaldifst(graph)


def _copy_symbols(lang_dir: Path, graph_dir: Path) -> None:
    names = ["words.txt", "phones.txt"]
    names += [
        str(path.relative_to(lang_dir)) for pattern in _GRAPH_FILES for path in (lang_dir / "phones").glob(pattern)
    ]
    for name in names:
        with replacing(graph_dir / name) as target, open(lang_dir / name, "rb") as source:
            shutil.copyfileobj(source, target)


def _write_lines(path: Path, values: Sequence[int]) -> None:
    with replacing(path, "w") as stream:
        stream.writelines(f"{value}\n" for value in values)


def read_graph(path: str | Path) -> Fst:
    """A decoding graph, const or vector, plain or gzipped."""
    graph = load_fst(path)
    if not np.isfinite(graph.final).any():
        raise KernelamError(f"{path} is a graph without states, or without a final state")
    return graph


def graph_pdfs(folder: Path) -> int:
    """The number of pdfs that a graph directory was made for."""
    path = folder / "num_pdfs"
    try:
        return whole_number(read_bytes(path).decode().strip())
    except ValueError:
        raise KernelamError(f"{path} does not hold a number of pdfs") from None
