"""Viterbi training of Gaussian mixtures: statistics of aligned frames, re-estimation, splitting."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.frames.store import FrameStore
from kernelam.models.gmm import DiagGmms, GmmModel
from kernelam.progress import say
from kernelam.randomness import stream

MIN_OCCUPANCY = 10.0  # frames a Gaussian must have to be kept
MIN_VARIANCE = 0.001
PERTURBATION = 0.01  # of a standard deviation, between the two halves of a split Gaussian
POWER = 0.25  # Gaussians are shared out among pdfs in proportion to occupancy to this power
CHUNK = 1 << 14


def single_gaussians(frames: FrameStore, num_pdfs: int) -> DiagGmms:
    """The flat start: every pdf has one Gaussian with the mean and variance of all frames."""
    mean, deviation = frames.moments()
    variance = np.maximum(deviation**2, MIN_VARIANCE)
    shape = (num_pdfs, 1)
    return DiagGmms(np.arange(num_pdfs + 1), np.ones(num_pdfs), np.tile(mean, shape), np.tile(variance, shape))


def viterbi_update(
    model: GmmModel, frames: FrameStore, alignments: Mapping[str, NDArray[np.int32]], passes: int, total: int, seed: int
) -> GmmModel:
    """`passes` steps of EM with the alignments as they are, then a split to `total` Gaussians, if that is more."""
    ids = np.zeros(len(frames), np.int32)
    for number, utt in enumerate(frames.utts):
        if utt in alignments:
            model.transitions.check_ids(alignments[utt], f"utterance {utt}")
            ids[frames.offsets[number] : frames.offsets[number + 1]] = alignments[utt]
    if not ids.any():
        raise KernelamError(f"no utterance of {frames.folder} is aligned")
    counts = np.bincount(ids, minlength=len(model.transitions.log_probs))
    pdfs = model.transitions.pdf[ids]  # −1 where there is no alignment
    gmms = model.gmms
    for _ in range(passes):
        gmms, log_likelihood = reestimate(gmms, frames.features, pdfs)
        say(f"log-likelihood {log_likelihood:.3f} a frame, {len(gmms.weights)} Gaussians, {(pdfs >= 0).sum()} frames")
    gmms = split(gmms, np.bincount(pdfs[pdfs >= 0], minlength=gmms.num_pdfs), total, seed)
    return GmmModel(model.pipeline, model.transitions.update(counts), gmms)


def reestimate(gmms: DiagGmms, x: NDArray[np.float32], pdfs: NDArray[np.int32]) -> tuple[DiagGmms, float]:
    """One step of EM given the pdf of each frame (−1: not aligned); and the mean log-likelihood before it.

    A Gaussian with fewer than MIN_OCCUPANCY frames is dropped, unless it is the only one of its pdf, which keeps its
    parameters. Sums run over frames in a fixed order, so the result does not depend on how alignment was shared out.
    """
    occupancy = np.zeros(len(gmms.weights))
    sums, squares = np.zeros_like(gmms.means), np.zeros_like(gmms.means)
    total = 0.0
    for pdf, frames in _by_pdf(pdfs, gmms.num_pdfs):
        part = slice(gmms.first[pdf], gmms.first[pdf + 1])
        scores = gmms.components(x[frames], part)
        top = scores.max(axis=1, keepdims=True)
        posterior = np.exp(scores - top)
        norm = posterior.sum(axis=1, keepdims=True)
        posterior /= norm
        total += float((top + np.log(norm)).sum(dtype=np.float64))
        frames64 = x[frames].astype(np.float64)
        posterior = posterior.astype(np.float64).T
        occupancy[part] += posterior.sum(axis=1)
        sums[part] += posterior @ frames64
        squares[part] += posterior @ frames64**2
    return _update(gmms, occupancy, sums, squares), total / max(1, int((pdfs >= 0).sum()))


def _by_pdf(pdfs: NDArray[np.int32], num_pdfs: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    order = np.argsort(pdfs, kind="stable")
    bounds = np.searchsorted(pdfs[order], np.arange(num_pdfs + 1))
    for pdf in range(num_pdfs):
        for start in range(bounds[pdf], bounds[pdf + 1], CHUNK):
            yield pdf, order[start : min(start + CHUNK, bounds[pdf + 1])]


def _update(gmms: DiagGmms, occupancy: NDArray, sums: NDArray, squares: NDArray) -> DiagGmms:
    enough = occupancy >= MIN_OCCUPANCY
    safe = np.maximum(occupancy, 1e-10)[:, None]
    means = np.where(enough[:, None], sums / safe, gmms.means)
    variances = np.where(enough[:, None], np.maximum(squares / safe - means**2, MIN_VARIANCE), gmms.variances)
    kept = enough.copy()
    kept[gmms.first[:-1][np.maximum.reduceat(enough, gmms.first[:-1]) == 0]] = True
    weights = np.where(enough, occupancy, 1e-5)
    owner = np.repeat(np.arange(gmms.num_pdfs), np.diff(gmms.first))[kept]
    counts = np.bincount(owner, minlength=gmms.num_pdfs)
    weights = weights[kept] / np.bincount(owner, weights[kept])[owner]
    return DiagGmms(np.concatenate([[0], np.cumsum(counts)]), weights, means[kept], variances[kept])


def split(gmms: DiagGmms, counts: NDArray[np.int64], total: int, seed: int) -> DiagGmms:
    """Grow to about `total` Gaussians: each pdf's share goes with the power of its frame count.

    The heaviest Gaussian of a pdf is split in two, moved apart in a random direction, until the share is reached.
    """
    rng = stream(seed, "split", total)
    targets = _targets(gmms, counts, total)
    weights, means, variances = [], [], []
    for pdf in range(gmms.num_pdfs):
        part = slice(gmms.first[pdf], gmms.first[pdf + 1])
        w, m, v = list(gmms.weights[part]), list(gmms.means[part]), list(gmms.variances[part])
        while len(w) < targets[pdf]:
            heaviest = int(np.argmax(w))
            w[heaviest] /= 2.0
            shift = PERTURBATION * np.sqrt(v[heaviest]) * rng.standard_normal(gmms.dim)
            w.append(w[heaviest])
            m.append(m[heaviest] + shift)
            m[heaviest] = m[heaviest] - shift
            v.append(v[heaviest])
        weights.append(w)
        means.extend(m)
        variances.extend(v)
    first = np.concatenate([[0], np.cumsum([len(w) for w in weights])])
    return DiagGmms(first, np.concatenate(weights), np.array(means), np.array(variances))


def _targets(gmms: DiagGmms, counts: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """One by one, to the pdf with the most frames^POWER a Gaussian that has the frames for one more."""
    targets = np.diff(gmms.first).astype(np.int64)
    strength = np.maximum(counts, 1e-3) ** POWER
    limit = np.maximum(counts // (2 * MIN_OCCUPANCY), 1)
    while targets.sum() < total:
        eager = np.where(targets < limit, strength / targets, -1.0)
        winner = int(np.argmax(eager))
        if eager[winner] < 0:
            break
        targets[winner] += 1
    return targets
