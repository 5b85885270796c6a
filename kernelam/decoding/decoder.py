"""The embedded decoder: lattices of an utterance from its log-likelihoods and a graph."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernelam.decoding.determinise import determinise
from kernelam.decoding.likelihoods import check_likelihoods
from kernelam.decoding.search import Beams, Found, SearchGraph, search
from kernelam.errors import KernelamError
from kernelam.hmm.graph import graph_pdfs
from kernelam.hmm.lang import check_phones
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.fst import Fst
from kernelam.kaldi.lattice import Lattice
from kernelam.models import load_model
from kernelam.models.base import AcousticModel
from kernelam.progress import progress, warn


class LatticeDecoder:
    """Lattices of all word strings within the lattice beam of the best; the search sees likelihoods times `scale`."""

    def __init__(self, graph: Fst, transitions: TransitionModel, scale: float, beams: Beams) -> None:
        self.transitions, self.scale, self.beams = transitions, scale, beams
        self.narrowed: dict[str, float] = {}  # utterances whose lattice beam was narrowed, for want of memory
        if int(graph.arcs["ilabel"].max(initial=0)) > transitions.num_transition_ids:
            raise KernelamError(
                f"the graph has transition-ids up to {graph.arcs['ilabel'].max()}, the model"
                f" {transitions.num_transition_ids}: they are of different trees; make a graph of this model with"
                " utils/mkgraph.sh"
            )
        order = np.lexsort((graph.arcs["ilabel"] != 0, graph.source))
        self.arcs = graph.arcs[order]
        epsilon = np.bincount(graph.source, graph.arcs["ilabel"] == 0, minlength=len(graph.final)).astype(np.int64)
        self.graph = SearchGraph(
            start=graph.start,
            first=graph.offsets.astype(np.int64),
            middle=graph.offsets[:-1] + epsilon,
            pdf=transitions.pdf[self.arcs["ilabel"]],
            weight=self.arcs["weight"].astype(np.float32),
            next=self.arcs["nextstate"].astype(np.int32),
            final=graph.final.astype(np.float32),
        )

    def decode(self, utt: str, log_likelihoods: np.ndarray) -> tuple[Lattice, bool] | None:
        """The word lattice, and whether it ends in a final state; None if no path survived."""
        found = self.search(utt, log_likelihoods)
        if found is None:
            return None
        lattice, beam = determinise(found[0], self.scale, self.beams.lattice_beam)
        if beam < self.beams.lattice_beam:
            self.narrowed[utt] = beam
        return lattice, found[1]

    def search(self, utt: str, log_likelihoods: np.ndarray) -> tuple[Lattice, bool] | None:
        """As `decode`, with a lattice of all paths, one state a graph state and frame. Acoustic costs are unscaled."""
        check_likelihoods(utt, log_likelihoods, self.transitions.num_pdfs)
        scores = log_likelihoods.astype(np.float32, order="C") * np.float32(self.scale)
        found: Found = search(self.graph, scores, self.beams)
        return (self._lattice(utt, found, log_likelihoods), found.reached_final) if len(found.tokens) else None

    def _lattice(self, utt: str, found: Found, log_likelihoods: np.ndarray) -> Lattice:
        links = found.links[np.argsort(found.links["source"], kind="stable")]
        source, arc = links["source"], links["arc"]
        labels = self.arcs["ilabel"][arc]
        frame = np.searchsorted(found.begin, source, side="right") - 1
        acoustic = np.zeros(len(arc), np.float32)
        emits = labels != 0
        acoustic[emits] = -log_likelihoods[frame[emits], self.graph.pdf[arc[emits]]]
        final = np.full(len(found.tokens), np.inf, np.float32)
        last = slice(int(found.begin[-2]), None)
        final[last] = self.graph.final[found.tokens["state"][last]] if found.reached_final else 0.0
        lattice = Lattice(
            np.searchsorted(source, np.arange(len(found.tokens) + 1)),
            self.arcs["olabel"][arc].astype(np.int32),
            self.graph.weight[arc],
            acoustic,
            links["target"].copy(),
            final,
            np.where(np.isfinite(final), np.float32(0.0), np.float32(np.inf)),
            begin=np.concatenate([[0], np.cumsum(emits), np.full(len(final), emits.sum())]),
            ids=labels[emits].astype(np.int32),
            compact=False,
        )
        return lattice.checked(0, f"the lattice of {utt}")


def decode_data(
    data: Path, model: AcousticModel, decoder: LatticeDecoder, determinize: bool = True
) -> Iterator[tuple[str, Lattice]]:
    """The lattice of each utterance of a data directory; those that end early and those lost are counted and named."""
    features = model.open(data)
    decode = decoder.decode if determinize else decoder.search
    partial, lost = [], []
    for utt in progress(features, f"decoding {data}"):
        found = decode(utt, model.log_likelihoods(features[utt]))
        if found is None:
            lost.append(utt)
            continue
        lattice, reached_final = found
        if not reached_final:
            partial.append(utt)
        yield utt, lattice
    if narrowed := decoder.narrowed:
        least = min(narrowed, key=narrowed.__getitem__)
        warn(
            f"the lattice beam was narrowed in {len(narrowed)} of {len(features)} utterances, to {narrowed[least]:.1f}"
            f" in {least}, as lattices would take too much memory: a narrower --beam or a larger --acwt helps"
        )
    if partial:
        warn(f"{len(partial)} of {len(features)} utterances did not reach a final state: {' '.join(partial)}")
    if lost:
        warn(f"no path survived in {len(lost)} of {len(features)} utterances (try a wider --beam): {' '.join(lost)}")
    if len(lost) == len(features):
        raise KernelamError(f"no utterance of {data} could be decoded: see the warnings above")


def open_model(
    graph: Path, place: Path, device: str = "cpu", transform_dir: Path | None = None
) -> tuple[AcousticModel, TransitionModel]:
    """The model of a directory, or of a file in one, and its transitions, once both are of the tree of the graph."""
    path, folder = (place, place.parent) if place.is_file() else (place / "final.mdl", place)
    transitions, pdfs = TransitionModel.load(path), graph_pdfs(graph)
    if pdfs != transitions.num_pdfs:
        raise KernelamError(
            f"{graph}/num_pdfs says {pdfs}, {path} has {transitions.num_pdfs} pdfs: the graph is of another tree;"
            " make one of this model with utils/mkgraph.sh"
        )
    check_phones(graph / "phones.txt", folder / "phones.txt")
    return load_model(place, device, transform_dir), transitions


def check_sequences(graph: Fst, transitions: TransitionModel, name: Path) -> None:
    """Raise if a transition-id of the graph follows one that it cannot follow in the model: two trees may have equally
    many pdfs. Of the arcs into a state one is looked at."""
    labels = graph.arcs["ilabel"]
    leaving = np.flatnonzero((labels > 0) & ~transitions.is_self_loop[labels])
    into = np.zeros(len(graph.final), np.int64)
    into[graph.arcs["nextstate"][leaving]] = labels[leaving]
    before, after = into[graph.source[leaving]], labels[leaving]
    wrong = np.flatnonzero((before > 0) & ~transitions.follows(before, after))
    if len(wrong):
        raise KernelamError(
            f"{name}: transition-id {after[wrong[0]]} follows {before[wrong[0]]}, which it cannot in the model:"
            " the graph is of another tree; make one of this model with utils/mkgraph.sh"
        )
