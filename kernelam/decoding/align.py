"""Forced alignment: the best path through the graph of a transcript, found exactly."""

import zlib
from collections.abc import Mapping
from pathlib import Path

import kaldifst
import numba
import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.likelihoods import check_likelihoods
from kernelam.errors import KernelamError
from kernelam.frames.store import FrameStore
from kernelam.hmm.graph import TrainingGraphs
from kernelam.hmm.lang import Lang
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.datadir import DataDir
from kernelam.kaldi.fst import Fst
from kernelam.models.base import AcousticModel
from kernelam.progress import progress, warn


@numba.njit(cache=True)
def _viterbi(start, source, pdf, weight, target, final, scores):  # type: ignore[no-untyped-def]
    """The arcs of the path of least cost through all frames; none if no path is that long."""
    num_frames, num_states = len(scores), len(final)
    epsilon = np.flatnonzero(pdf < 0)
    came_by = np.full((num_frames + 1, num_states), -1, np.int32)
    cost = np.full(num_states, np.inf)
    cost[start] = 0.0
    for frame in range(num_frames + 1):
        if frame:
            before, cost = cost, np.full(num_states, np.inf)
            for arc in range(len(pdf)):
                if pdf[arc] >= 0:
                    total = before[source[arc]] + weight[arc] - scores[frame - 1, pdf[arc]]
                    if total < cost[target[arc]]:
                        cost[target[arc]] = total
                        came_by[frame, target[arc]] = arc
        changed = len(epsilon) > 0
        while changed:
            changed = False
            for number in range(len(epsilon)):
                arc = epsilon[number]
                total = cost[source[arc]] + weight[arc]
                if total < cost[target[arc]]:
                    cost[target[arc]] = total
                    came_by[frame, target[arc]] = arc
                    changed = True
    cost += final
    state = np.argmin(cost)
    path = np.empty(num_frames + (num_frames + 1) * len(epsilon), np.int32)
    length, frame = 0, num_frames
    if np.isfinite(cost[state]):
        while frame or state != start:
            arc = came_by[frame, state]
            path[length] = arc
            length += 1
            frame -= pdf[arc] >= 0
            state = source[arc]
    return path[:length][::-1].copy()


class Aligner:
    """Viterbi alignment with log-likelihoods, plus a bonus by pdf, times `scale`.

    It is exact: there is no beam to be too narrow.
    """

    def __init__(
        self, transitions: TransitionModel, scale: float = 0.1, bonus: NDArray[np.float32] | None = None
    ) -> None:
        self.transitions, self.scale = transitions, scale
        self.bonus = np.zeros(transitions.num_pdfs, np.float32) if bonus is None else bonus

    def align(self, utt: str, graph: Fst, model: AcousticModel, features: np.ndarray) -> NDArray[np.int32] | None:
        """The transition-id of each frame; None when the transcript has more states than there are frames, or none."""
        labels = graph.arcs["ilabel"]
        pdf = self.transitions.pdf[labels]
        classes = np.unique(pdf[pdf >= 0])
        if not len(classes):
            return None
        log_likelihoods = model.log_likelihoods(features, classes)
        check_likelihoods(utt, log_likelihoods, len(classes))
        arcs = _viterbi(
            graph.start,
            graph.source,
            np.where(pdf < 0, -1, np.searchsorted(classes, pdf)),
            graph.arcs["weight"].copy(),
            graph.arcs["nextstate"].copy(),
            graph.final,
            (log_likelihoods + self.bonus[classes]).astype(np.float32) * np.float32(self.scale),
        )
        alignment = labels[arcs]
        return alignment[alignment != 0].astype(np.int32) if len(arcs) else None


def silence_bonus(lang: Lang, transitions: TransitionModel, boost: float) -> NDArray[np.float32]:
    """log(boost) for the pdfs of the optional silence that no speech phone shares, 0 for the others."""
    silence, speech = (
        transitions.pdf[np.isin(transitions.phone, lang.phone_list(name))]
        for name in ("optional_silence", "nonsilence")
    )
    bonus = np.zeros(transitions.num_pdfs, np.float32)
    bonus[np.setdiff1d(silence, speech)] = np.log(boost)
    return bonus


def edges_of_silence(silence: NDArray[np.bool_]) -> kaldifst.StdVectorFst:
    """Accepts transition-ids of which those of `silence` are at the beginning and at the end, and nowhere else."""
    fst = kaldifst.StdVectorFst()
    for _ in range(4):
        fst.add_state()
    fst.start = 0
    fst.set_final(3, 0.0)
    for label in range(1, len(silence)):
        for source, target in ((0, 1), (1, 1), (2, 3), (3, 3)) if silence[label] else ((1, 2), (2, 2)):
            fst.add_arc(source, kaldifst.StdArc(label, label, 0.0, target))
    return fst


def equal_alignment(
    graph: Fst, num_frames: int, utterance: str, edges: kaldifst.StdVectorFst | None = None
) -> NDArray[np.int32] | None:
    """A path through `graph` that stays about equally long in every state: where a flat start begins.

    If there is one that `edges` accepts, it is of these. Recordings begin and end in silence more often than not, and
    where words and pauses alternate nothing else tells which is which. Otherwise the name of the utterance decides
    where it takes optional silence: utterances of like graphs take unlike paths.
    """
    fst, seed = graph.to_kaldifst(), zlib.crc32(utterance.encode()) >> 1  # a C int
    wanted = [fst]
    if edges is not None:
        kaldifst.arcsort(fst, "ilabel")
        wanted.insert(0, kaldifst.compose(edges, fst))
    for each in wanted:
        if each.start >= 0:
            ok, path = kaldifst.equal_align(ifst=each, length=num_frames, rand_seed=seed, num_retries=10)
            if ok:
                return np.array(kaldifst.get_linear_symbol_sequence(path)[1], np.int32)
    return None


def align_data(
    data: str | Path,
    graphs: TrainingGraphs,
    model: AcousticModel,
    features: FrameStore | Mapping[str, np.ndarray],
    aligner: Aligner | None,
) -> dict[str, NDArray[np.int32]]:
    """Alignments of the utterances of a data directory; without an aligner, equal ones. Failures are named."""
    alignments: dict[str, NDArray[np.int32]] = {}
    failed: list[str] = []
    empty: list[str] = []
    edges = edges_of_silence(np.isin(graphs.transitions.phone, graphs.lang.phone_list("optional_silence")))
    for utt, words in progress(DataDir(data).text.items(), f"aligning {data}"):
        if utt not in features:
            raise KernelamError(
                f"utterance {utt} of {data}/text has no features: make them, or drop it from the data directory with"
                " utils/fix_data_dir.sh"
            )
        graph = graphs.compile(graphs.lang.words_to_ids(utt, words))
        frames = features[utt]
        if aligner is None:
            alignment = equal_alignment(graph, len(frames), utt, edges)
        else:
            alignment = aligner.align(utt, graph, model, frames)
        if alignment is None:
            (failed if words else empty).append(utt)
        else:
            alignments[utt] = alignment
    if failed:
        warn(f"{len(failed)} utterances are too short for their transcripts and are left out: {' '.join(failed)}")
    if empty:
        warn(
            f"{len(empty)} utterances have no words in {data}/text and are left out, as {graphs.lang.directory} has no"
            f" optional silence for them: {' '.join(empty)}"
        )
    if unknown := graphs.lang.oov_counts:
        most = ", ".join(f"{word} ({count})" for word, count in unknown.most_common(5))
        warn(f"{sum(unknown.values())} words of {data}/text are not in {graphs.lang.directory}/words.txt: {most}")
    if not alignments:
        raise KernelamError(f"no utterance of {data} could be aligned: see the warnings above")
    return alignments
