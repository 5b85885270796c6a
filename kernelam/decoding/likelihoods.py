"""Log-likelihoods as decoders take them."""

import numpy as np

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel


def by_transition_id(log_likelihoods: np.ndarray, transitions: TransitionModel, scale: float) -> np.ndarray:
    """Scaled log-likelihoods with a column for each transition-id, from 1: what the decoder reads at ilabel − 1."""
    scaled = log_likelihoods.astype(np.float32) * np.float32(scale)
    return np.take(scaled, transitions.pdf[1:], axis=1)


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
