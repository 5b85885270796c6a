"""The embedded decoder: Kaldi's own search over HCLG, from the kaldi-decoder wheel."""

import math
from collections.abc import Iterator
from pathlib import Path

import kaldi_decoder
import kaldifst
import numpy as np

from kernelam.decoding.lattice import Lattice
from kernelam.decoding.likelihoods import by_transition_id, check_likelihoods
from kernelam.errors import KernelamError
from kernelam.hmm.lang import check_phones
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.binary import read_bytes
from kernelam.models.base import AcousticModel
from kernelam.progress import progress, say


class LatticeDecoder:
    """Lattices of all paths within `lattice_beam` of the best, found in a search with `beam`."""

    def __init__(
        self, graph: kaldifst.StdFst, transitions: TransitionModel, scale: float, beam: float, lattice_beam: float
    ):
        self.graph, self.transitions, self.scale = graph, transitions, scale  # the search does not keep its graph alive
        self.config = kaldi_decoder.LatticeSimpleDecoderConfig()
        self.config.beam, self.config.lattice_beam = beam, lattice_beam

    def decode(self, utt: str, log_likelihoods: np.ndarray) -> tuple[Lattice, bool] | None:
        """The lattice, with unscaled acoustic costs, and whether it ends in a final state; None if no path survived."""
        check_likelihoods(utt, log_likelihoods, self.transitions.num_pdfs)
        search = kaldi_decoder.LatticeSimpleDecoder(self.graph, self.config)
        search.decode(kaldi_decoder.DecodableCtc(by_transition_id(log_likelihoods, self.transitions, self.scale)))
        ok, raw = search.get_raw_lattice()
        if not ok or raw.num_states == 0:
            return None
        lattice = Lattice.from_kaldifst(raw)
        lattice.acoustic /= np.float32(self.scale)
        lattice.final_acoustic /= np.float32(self.scale)
        return lattice, math.isfinite(search.final_relative_cost())


def decode_data(data: Path, model: AcousticModel, decoder: LatticeDecoder) -> Iterator[tuple[str, Lattice]]:
    """The lattice of each utterance of a data directory; those that end early and those lost are counted and named."""
    features = model.pipeline.open(data)
    partial, lost = [], []
    for utt in progress(features, f"decoding {data}"):
        log_likelihoods = model.log_likelihoods(features[utt])
        found = decoder.decode(utt, log_likelihoods)
        if found is None:
            lost.append(utt)
            continue
        lattice, reached_final = found
        if not reached_final:
            partial.append(utt)
        yield utt, lattice
    if partial:
        say(f"{len(partial)} of {len(features)} utterances did not reach a final state: {' '.join(partial)}")
    if lost:
        say(f"no path survived in {len(lost)} of {len(features)} utterances (try a wider --beam): {' '.join(lost)}")
    if len(lost) == len(features):
        raise KernelamError(f"nothing of {data} could be decoded")


def check_graph(graph: Path, model: Path, transitions: TransitionModel) -> None:
    """Raise unless the graph was made for as many pdfs, and for the phones, that the model has."""
    path = graph / "num_pdfs"
    text = read_bytes(path).strip()
    if text != str(transitions.num_pdfs).encode():
        raise KernelamError(
            f"{path} says {text.decode(errors='replace')}, {model}/final.mdl has {transitions.num_pdfs} pdfs:"
            " the graph is of another tree"
        )
    check_phones(graph / "phones.txt", model / "phones.txt")
