"""Re-estimation of mixtures as jobs, each of some of the pdfs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.frames.store import FrameStore
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.models.gmm import GmmModel
from kernelam.training.gmm import aligned_ids, assembled, share, viterbi_update


def update_part(
    model: Path,
    frames: Path,
    ali: Path,
    out: Path,
    totals: Sequence[int],
    job: tuple[int, int],
    seed: int,
    means_only: bool,
) -> None:
    """Write a model in which the pdfs of one of the jobs are trained; those of the others are of no use."""
    trained, store = GmmModel.read(model), FrameStore(frames)
    pdfs = trained.transitions.pdf[aligned_ids(store, read_alignment_dir(ali), trained.transitions)]
    part = share(trained.num_classes, *job)
    trained.gmms = viterbi_update(trained.gmms, store.features, pdfs, totals, part, seed, means_only)
    trained.write(out)


def merge_parts(ali: Path, parts: Sequence[Path], out: Path) -> None:
    """The mixtures that each job trained, and transition probabilities by the alignments."""
    models = [GmmModel.read(part) for part in parts]
    whole = models[0]
    if any(model.num_classes != whole.num_classes for model in models):
        raise KernelamError(f"{parts[0]} and the other parts are not of one model: run the training step again")
    ids = np.concatenate(list(read_alignment_dir(ali).values()))
    whole.gmms = assembled([model.gmms for model in models])
    whole.transitions = whole.transitions.update(np.bincount(ids, minlength=len(whole.transitions.log_probs)))
    whole.write(out)
