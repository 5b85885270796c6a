"""Forced alignment: the best path through the graph of a transcript."""

from collections.abc import Mapping
from pathlib import Path

import kaldi_decoder
import kaldifst
import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.likelihoods import by_transition_id, check_likelihoods
from kernelam.errors import KernelamError
from kernelam.frames.store import FrameStore
from kernelam.hmm.graph import TrainingGraphs
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.datadir import DataDir
from kernelam.models.base import AcousticModel
from kernelam.progress import progress, say


class Aligner:
    """Viterbi with `beam`, and with `retry_beam` when that finds no path to the end."""

    def __init__(self, transitions: TransitionModel, scale: float = 0.1, beam: float = 10.0, retry_beam: float = 40.0):
        self.transitions, self.scale, self.beams = transitions, scale, (beam, retry_beam)

    def align(self, utt: str, graph: kaldifst.StdVectorFst, log_likelihoods: np.ndarray) -> NDArray[np.int32] | None:
        """The transition-id of each frame; None when no path reaches the end."""
        check_likelihoods(utt, log_likelihoods, self.transitions.num_pdfs)
        scores = by_transition_id(log_likelihoods, self.transitions, self.scale)
        for beam in self.beams:
            search = kaldi_decoder.FasterDecoder(graph, kaldi_decoder.FasterDecoderOptions(beam=beam))
            search.decode(kaldi_decoder.DecodableCtc(scores))
            if search.reached_final():
                _, best = search.get_best_path()
                ok, alignment, _, _ = kaldifst.get_linear_symbol_sequence(best)
                if ok and len(alignment) == len(scores):
                    return np.array(alignment, np.int32)
        return None


def equal_alignment(graph: kaldifst.StdVectorFst, num_frames: int) -> NDArray[np.int32] | None:
    """A path through `graph` that stays about equally long in every state: where a flat start begins."""
    ok, path = kaldifst.equal_align(ifst=graph, length=num_frames, rand_seed=1, num_retries=10)
    if not ok:
        return None
    _, alignment, _, _ = kaldifst.get_linear_symbol_sequence(path)
    return np.array(alignment, np.int32)


def align_data(
    data: str | Path,
    graphs: TrainingGraphs,
    model: AcousticModel,
    features: FrameStore | Mapping[str, np.ndarray],
    aligner: Aligner | None,
) -> dict[str, NDArray[np.int32]]:
    """Alignments of the utterances of a data directory; without an aligner, equal ones. Failures are named."""
    alignments, failed = {}, []
    for utt, words in progress(DataDir(data).text.items(), f"aligning {data}"):
        if utt not in features:
            raise KernelamError(f"utterance {utt} of {data}/text has no features")
        graph = graphs.compile(graphs.lang.words_to_ids(utt, words))
        frames = features[utt]
        if aligner is None:
            alignment = equal_alignment(graph, len(frames))
        else:
            alignment = aligner.align(utt, graph, model.log_likelihoods(frames))
        if alignment is None:
            failed.append(utt)
        else:
            alignments[utt] = alignment
    if failed:
        say(f"{len(failed)} of {len(failed) + len(alignments)} utterances could not be aligned: {' '.join(failed)}")
    if unknown := graphs.lang.oov_counts:
        most = ", ".join(f"{word} ({count})" for word, count in unknown.most_common(5))
        say(f"{sum(unknown.values())} words of {data}/text are not in {graphs.lang.directory}/words.txt: {most}")
    if not alignments:
        raise KernelamError(f"no utterance of {data} could be aligned")
    return alignments
