"""Log-likelihoods as decoders take them."""

import numpy as np

from kernelam.errors import KernelamError


def check_likelihoods(utt: str, log_likelihoods: np.ndarray, num_pdfs: int) -> None:
    """A search over the wrong columns, or over NaN, would give a garbage path and no error."""
    if log_likelihoods.shape[1] != num_pdfs:
        raise KernelamError(
            f"utterance {utt}: {log_likelihoods.shape[1]} likelihoods a frame for a graph and model of {num_pdfs} pdfs"
        )
    if not len(log_likelihoods):
        raise KernelamError(f"utterance {utt} has no frames: drop it from the data directory")
    if not np.isfinite(log_likelihoods).all():
        frame = int(np.flatnonzero(~np.isfinite(log_likelihoods).all(axis=1))[0])
        raise KernelamError(
            f"utterance {utt}: the likelihoods of frame {frame} are not finite: check its features, and the model"
        )
