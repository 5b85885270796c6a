"""The embedded decoder: Kaldi's own search over HCLG, from the kaldi-decoder wheel."""

import kaldi_decoder
import kaldifst
import numpy as np

from kernelam.decoding.lattice import Lattice
from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel


def by_transition_id(log_likelihoods: np.ndarray, transitions: TransitionModel, scale: float) -> np.ndarray:
    """Scaled log-likelihoods with a column for each transition-id, from 1: what the decoder reads at ilabel − 1."""
    return np.ascontiguousarray(log_likelihoods[:, transitions.pdf[1:]] * np.float32(scale), np.float32)


def check_likelihoods(utt: str, log_likelihoods: np.ndarray, num_pdfs: int) -> None:
    """The decoder would give a garbage path or none, and no error."""
    if log_likelihoods.shape[1] != num_pdfs:
        raise KernelamError(
            f"utterance {utt}: {log_likelihoods.shape[1]} likelihoods a frame for a graph and model of {num_pdfs} pdfs"
        )
    if not len(log_likelihoods):
        raise KernelamError(f"utterance {utt} has no frames")
    if not np.isfinite(log_likelihoods).all():
        frame = int(np.flatnonzero(~np.isfinite(log_likelihoods).all(axis=1))[0])
        raise KernelamError(f"utterance {utt}: the likelihoods of frame {frame} are not finite")


class LatticeDecoder:
    """Lattices of all paths within `lattice_beam` of the best, found in a search with `beam`."""

    def __init__(
        self, graph: kaldifst.StdFst, transitions: TransitionModel, scale: float, beam: float, lattice_beam: float
    ):
        self.graph, self.transitions, self.scale = graph, transitions, scale  # the search does not keep its graph alive
        self.config = kaldi_decoder.LatticeSimpleDecoderConfig()
        self.config.beam, self.config.lattice_beam = beam, lattice_beam

    def decode(self, utt: str, log_likelihoods: np.ndarray) -> tuple[Lattice, bool]:
        """The lattice of an utterance, with unscaled acoustic costs, and whether it ends in a final state."""
        check_likelihoods(utt, log_likelihoods, self.transitions.num_pdfs)
        search = kaldi_decoder.LatticeSimpleDecoder(self.graph, self.config)
        search.decode(kaldi_decoder.DecodableCtc(by_transition_id(log_likelihoods, self.transitions, self.scale)))
        ok, raw = search.get_raw_lattice()
        if not ok or raw.num_states == 0:
            raise KernelamError(f"utterance {utt}: no path survived; a wider --beam than {self.config.beam} may help")
        lattice = Lattice.from_kaldifst(raw)
        lattice.acoustic /= np.float32(self.scale)
        lattice.final_acoustic /= np.float32(self.scale)
        return lattice, search.reached_final()
