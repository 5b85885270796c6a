"""Frame errors of models on aligned data, by utterance: they have intervals and tests as errors of words have."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.alignment import aligned, read_alignment_dir
from kernelam.models import is_posterior
from kernelam.models.directory import load_posterior_model
from kernelam.models.ridge import Ridge
from kernelam.models.svm import Svm
from kernelam.progress import progress
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.wer import WerResult

Scorer = Callable[[np.ndarray], np.ndarray]


def frame_errors(folder: Path, data: Path, ali: Path, device: str = "cpu") -> dict[str, WerResult]:
    """Frames whose class has not the highest probability; of models of pairs also those where it has not most votes."""
    if not is_posterior(folder):
        raise KernelamError(f"{folder} holds no model of posteriors, of which alone there are frame errors")
    model = load_posterior_model(folder, device)
    transitions = TransitionModel.load(ali / "final.mdl")
    if transitions.tuples != TransitionModel.load(folder / "final.mdl").tuples:
        raise KernelamError(f"{ali}/final.mdl and {folder}/final.mdl number the states differently")
    ways: dict[str, Scorer] = {"probabilities": model.log_posteriors}
    if isinstance(model, Ridge | Svm):
        votes = model.votes
        ways["votes"] = lambda frames: votes(model.inputs.tensor(frames).to(model.device)).cpu().numpy()
    features, alignments = model.open(data), read_alignment_dir(ali)
    utts = aligned(features, alignments, data, ali)
    found: dict[str, dict[str, ErrorCounts]] = {way: {} for way in ways}
    for utt in progress(utts, f"frames of {data}"):
        frames = features[utt]
        transitions.check_ids(alignments[utt], f"{ali}, utterance {utt}")
        labels = transitions.ali_to_pdf(alignments[utt])
        if len(frames) != len(labels):
            raise KernelamError(f"utterance {utt} has {len(frames)} frames in {data}, {len(labels)} in {ali}")
        for way, score in ways.items():
            wrong = int((score(frames).argmax(axis=1) != labels).sum())
            found[way][utt] = ErrorCounts(substitutions=wrong, ref_words=len(labels))
    return {way: WerResult(counts) for way, counts in found.items()}
