"""Speaker adaptation: fMLLR transforms of speakers, the frames they make, and the model for frames without."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from kernelam.decoding.posteriors import state_posteriors
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frames.store import FrameStore
from kernelam.frontend.transforms import apply_linear, read_transforms
from kernelam.hmm.lang import silence_phones
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.alignment import num_jobs, read_alignment_dir
from kernelam.kaldi.ark import write_matrix
from kernelam.kaldi.lattices import read_lattices
from kernelam.kaldi.tables import read_table
from kernelam.models import load_model
from kernelam.models.gmm import GmmModel
from kernelam.progress import progress, say, warn
from kernelam.training.fmllr import MIN_FRAMES, Collector, FmllrStats, Occupied, composed, fit_fmllr
from kernelam.training.gmm import aligned_ids, reestimate

BATCH = 1 << 14  # frames whose statistics are taken at a time
States = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]  # frames, transition-ids, probabilities


@dataclass(frozen=True)
class Taken:
    """Which features speakers are adapted from: those of a model, by the transforms of a directory if there is one;
    packed already, if `frames` are given."""

    model: Path
    frames: Path | None = None
    transform_dir: Path | None = None

    def open(self, data: Path) -> Mapping[str, np.ndarray] | FrameStore:
        if self.frames:
            return FrameStore(self.frames)
        return load_model(self.model, transform_dir=self.transform_dir).open(data)


@dataclass(frozen=True)
class Aligned:
    """A directory of alignments, or of lattices with the acoustic scale by which paths are weighed."""

    folder: Path
    acoustic_scale: float

    def states(self, utts: Collection[str]) -> dict[str, States]:
        """By utterance, if it is there, which states its frames are in."""
        if not (self.folder / "lat.1.gz").exists():
            found = read_alignment_dir(self.folder)
            return {utt: (np.arange(len(ids)), ids, np.ones(len(ids))) for utt, ids in found.items() if utt in utts}
        return {
            utt: state_posteriors(lattice, self.acoustic_scale)
            for job in range(1, num_jobs(self.folder) + 1)
            for utt, lattice in read_lattices(self.folder / f"lat.{job}.gz")
            if utt in utts
        }


class _Weights:
    """Probabilities of pdfs from those of transition-ids, silence weighted down."""

    def __init__(self, transitions: TransitionModel, silence: list[int], weight: float) -> None:
        self.transitions = transitions
        self.factor = np.where(np.isin(transitions.phone, silence), weight, 1.0)

    def __call__(self, states: States, first: int, where: str) -> Occupied:
        """As occupancies of frames from `first` on."""
        frames, ids, weight = states
        self.transitions.check_range(ids, where)
        keys = frames * self.transitions.num_pdfs + self.transitions.pdf[ids]
        found, group = np.unique(keys, return_inverse=True)
        summed = np.bincount(group.ravel(), weight * self.factor[ids], len(found))
        found, summed = found[summed > 0], summed[summed > 0]
        frame, pdf = np.divmod(found, self.transitions.num_pdfs)
        return Occupied(first + frame, pdf.astype(np.int32), summed.astype(np.float32))


def write_transforms(
    model: Path,
    judge: Path | None,
    taken: Taken,
    data: Path,
    lang: Path,
    aligned: Aligned,
    silence_weight: float,
    out: Path,
) -> None:
    """OUT: by speaker of DATA the transform that makes its frames most likely to MODEL, on top of the one they have.

    `judge` is the model that tells Gaussians apart, if it is another one.
    """
    target = _gmm(model)
    collector = Collector(target.gmms, _gmm(judge).gmms if judge else None)
    weigh = _Weights(target.transitions, silence_phones(lang), silence_weight)
    features = taken.open(data)
    before = read_transforms(taken.transform_dir) if taken.transform_dir else {}
    utt2spk, speakers = read_table(data / "utt2spk"), dict[str, list[str]]()
    for utt, speaker in utt2spk.items():
        speakers.setdefault(speaker, []).append(utt)
    states = aligned.states(utt2spk)
    few, gains = [], []
    with replacing(out) as stream:
        for speaker, utts in progress(speakers.items(), f"fMLLR of {data}"):
            stats = FmllrStats.empty(target.gmms.dim)
            for x, occupied in _batches(utts, features, states, weigh):
                collector.add(stats, x, occupied)
            transform, gain = fit_fmllr(stats)
            if stats.beta < MIN_FRAMES:
                few.append(speaker)
            else:
                gains.append((gain, stats.beta))
            if speaker in before:
                transform = composed(transform, before[speaker].astype(np.float64))
            write_matrix(cast(BinaryIO, stream), speaker, transform.astype(np.float32))
    if few:
        warn(
            f"{len(few)} of {len(speakers)} speakers of {data} have less than {MIN_FRAMES:g} frames of speech and keep"
            f" their features as they are: {' '.join(few)}"
        )
    if gains:
        mean = np.average([gain for gain, _ in gains], weights=[count for _, count in gains])
        say(f"fMLLR of {len(gains)} speakers: {mean:.3f} of log-likelihood a frame")


def _gmm(path: Path) -> GmmModel:
    model = load_model(path)
    if not isinstance(model, GmmModel):
        raise KernelamError(f"{path} is no GMM: fMLLR transforms are with respect to GMMs")
    return model


def _batches(
    utts: list[str], features: Mapping[str, np.ndarray] | FrameStore, states: Mapping[str, States], weigh: _Weights
) -> Iterator[tuple[NDArray[np.float32], Occupied]]:
    """The utterances that have features and states, some at a time."""
    parts: list[np.ndarray] = []
    found: list[Occupied] = []
    known, size = [utt for utt in utts if utt in features and utt in states], 0
    for utt in known:
        x, frames = features[utt], states[utt][0]
        if len(frames) and int(frames.max()) + 1 != len(x):
            raise KernelamError(
                f"utterance {utt} has {len(x)} frames of features but an alignment of {int(frames.max()) + 1} frames"
            )
        found.append(weigh(states[utt], size, f"utterance {utt}"))
        parts.append(x)
        size += len(x)
        if size >= BATCH or utt == known[-1]:
            yield np.concatenate(parts), Occupied(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))
            parts, found, size = [], [], 0


def adapt_frames(data: Path, plain: Path, folder: Path) -> None:
    """FOLDER/frames of the packed frames `plain` by the transforms FOLDER/trans.* of their speakers."""
    store, transforms, speaker = FrameStore(plain), read_transforms(folder), read_table(data / "utt2spk")
    if lacking := {speaker[utt] for utt in store.utts} - transforms.keys():
        raise KernelamError(f"speaker {min(lacking)} of {data} has no transform in {folder}/trans.*")
    FrameStore.build(
        folder / "frames", ((utt, apply_linear(store[utt], transforms[speaker[utt]])) for utt in store.utts)
    )


def write_alignment_model(model: Path, plain: Path, folder: Path, out: Path) -> None:
    """The Gaussians of MODEL on frames without transforms; which frame is whose, FOLDER/frames tell."""
    trained, adapted = GmmModel.read(model), FrameStore(folder / "frames")
    ids = aligned_ids(adapted, read_alignment_dir(folder), trained.transitions)
    pdfs = trained.transitions.pdf[ids]
    trained.gmms, _ = reestimate(trained.gmms, adapted.features, pdfs, FrameStore(plain).features, drop=False)
    trained.write(out)
