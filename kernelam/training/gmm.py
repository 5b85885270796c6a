"""Viterbi training of Gaussian mixtures: statistics of aligned frames, re-estimation, splitting."""

import heapq
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.frames.store import FrameStore
from kernelam.hmm.transitions import TransitionModel
from kernelam.models.gmm import DiagGmms
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


def aligned_ids(
    frames: FrameStore, alignments: Mapping[str, NDArray[np.int32]], transitions: TransitionModel
) -> NDArray[np.int32]:
    """The transition-id of each frame, 0 where there is no alignment."""
    ids = np.zeros(len(frames), np.int32)
    for number, utt in enumerate(frames.utts):
        if utt in alignments:
            transitions.check_ids(alignments[utt], f"utterance {utt}")
            ids[frames.offsets[number] : frames.offsets[number + 1]] = alignments[utt]
    if not ids.any():
        raise KernelamError(f"no utterance of {frames.folder} is aligned")
    return ids


def share(num_pdfs: int, job: int, jobs: int) -> range:
    """The pdfs that one of `jobs` jobs, from 1, trains: every so manyth, for those of silence stand together."""
    return range(job - 1, num_pdfs, jobs)


def viterbi_update(
    gmms: DiagGmms,
    x: NDArray[np.float32],
    pdfs: NDArray[np.int32],
    totals: Sequence[int],
    part: range,
    seed: int,
    means_only: bool = False,
) -> DiagGmms:
    """Steps of EM for the pdfs of `part` with the pdf of each frame as it is (−1: not aligned); after each, a split to
    so many Gaussians of all pdfs, where there are fewer. With `means_only`, variances stay as they are.

    A pdf is trained on its own frames alone: whoever trains it, and beside which others, it comes out the same.
    """
    counts = np.bincount(pdfs[pdfs >= 0], minlength=gmms.num_pdfs)
    own = np.where(np.isin(pdfs, part), pdfs, -1)
    for number, total in enumerate(totals):
        updated, log_likelihood = reestimate(gmms, x, own, drop=not means_only)
        if means_only:
            updated = DiagGmms(updated.first, updated.weights, updated.means, gmms.variances)
        gmms = split(updated, targets(counts, total), part, seed + number)
        say(f"log-likelihood {log_likelihood:.3f} a frame, {len(gmms.weights)} Gaussians, {(own >= 0).sum()} frames")
    return gmms


def assembled(parts: Sequence[DiagGmms]) -> DiagGmms:
    """The mixture of each pdf from the part whose job trained it."""
    taken = [(parts[pdf % len(parts)], pdf) for pdf in range(parts[0].num_pdfs)]
    slices = [(gmms, slice(gmms.first[pdf], gmms.first[pdf + 1])) for gmms, pdf in taken]
    first = np.cumsum([0, *(own.stop - own.start for _, own in slices)])
    arrays = [
        np.concatenate([getattr(gmms, name)[own] for gmms, own in slices]) for name in ("weights", "means", "variances")
    ]
    return DiagGmms(first, *arrays)


def reestimate(
    gmms: DiagGmms,
    x: NDArray[np.float32],
    pdfs: NDArray[np.int32],
    other: NDArray[np.float32] | None = None,
    drop: bool = True,
) -> tuple[DiagGmms, float]:
    """One step of EM given the pdf of each frame (−1: not aligned); and the mean log-likelihood before it.

    A Gaussian with fewer than MIN_OCCUPANCY frames is dropped, unless it is the only one of its pdf, which keeps its
    parameters, as all do without `drop`. Of `other` features of the same frames, the posteriors are those of `x`, the
    means and variances theirs.
    """
    occupancy = np.zeros(len(gmms.weights))
    sums, squares = np.zeros_like(gmms.means), np.zeros_like(gmms.means)
    total = 0.0
    for part, frames, posterior, log_likelihood in posteriors_by_pdf(gmms, x, pdfs):
        total += log_likelihood
        wide = (x if other is None else other)[frames].astype(np.float64)
        weights = posterior.astype(np.float64).T
        occupancy[part] += weights.sum(axis=1)
        sums[part] += weights @ wide
        squares[part] += weights @ wide**2
    return _update(gmms, occupancy, sums, squares, drop), total / max(1, int((pdfs >= 0).sum()))


def posteriors_by_pdf(
    gmms: DiagGmms, x: NDArray[np.float32], pdfs: NDArray[np.int32]
) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.float32], float]]:
    """By pdf, some of its frames at a time: which Gaussians it has, which frames these are, p(Gaussian | frame, pdf),
    and the sum of log p(frame | pdf)."""
    for pdf, frames in _by_pdf(pdfs, gmms.num_pdfs):
        part = slice(gmms.first[pdf], gmms.first[pdf + 1])
        scores = gmms.components(x[frames], part)
        top = scores.max(axis=1, keepdims=True)
        posterior = np.exp(scores - top)
        norm = posterior.sum(axis=1, keepdims=True)
        posterior /= norm
        yield part, frames, posterior, float((top + np.log(norm)).sum(dtype=np.float64))


def _by_pdf(pdfs: NDArray[np.int32], num_pdfs: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    order = np.argsort(pdfs, kind="stable")
    bounds = np.searchsorted(pdfs[order], np.arange(num_pdfs + 1))
    for pdf in range(num_pdfs):
        for start in range(bounds[pdf], bounds[pdf + 1], CHUNK):
            yield pdf, order[start : min(start + CHUNK, bounds[pdf + 1])]


def _update(gmms: DiagGmms, occupancy: NDArray, sums: NDArray, squares: NDArray, drop: bool) -> DiagGmms:
    enough = occupancy >= MIN_OCCUPANCY
    safe = np.maximum(occupancy, 1e-10)[:, None]
    means = np.where(enough[:, None], sums / safe, gmms.means)
    variances = np.where(enough[:, None], np.maximum(squares / safe - means**2, MIN_VARIANCE), gmms.variances)
    kept = enough | (not drop)
    kept[gmms.first[:-1][np.maximum.reduceat(enough, gmms.first[:-1]) == 0]] = True
    weights = np.where(enough, occupancy, 1e-5)
    owner = np.repeat(np.arange(gmms.num_pdfs), np.diff(gmms.first))[kept]
    counts = np.bincount(owner, minlength=gmms.num_pdfs)
    weights = weights[kept] / np.bincount(owner, weights[kept])[owner]
    return DiagGmms(np.concatenate([[0], np.cumsum(counts)]), weights, means[kept], variances[kept])


def split(gmms: DiagGmms, sizes: NDArray[np.int64], part: range, seed: int) -> DiagGmms:
    """Grow the mixtures of the pdfs of `part` to these sizes: the heaviest Gaussian is split in two, moved apart in a
    random direction, again and again."""
    weights, means, variances = [], [], []
    for pdf in range(gmms.num_pdfs):
        own = slice(gmms.first[pdf], gmms.first[pdf + 1])
        w, m, v = list(gmms.weights[own]), list(gmms.means[own]), list(gmms.variances[own])
        rng = stream(seed, "split", pdf)
        while pdf in part and len(w) < sizes[pdf]:
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


def targets(counts: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """How many of `total` Gaussians each pdf has: one by one, they go to the pdf with the most frames^POWER a Gaussian
    among those that have the frames for one more."""
    sizes = np.ones(len(counts), np.int64)
    strength = np.maximum(counts, 1e-3) ** POWER
    limit = np.maximum(counts // (2 * MIN_OCCUPANCY), 1)
    waiting = [(-strength[pdf] / 1, pdf) for pdf in np.flatnonzero(limit > 1)]
    heapq.heapify(waiting)
    for _ in range(total - len(counts)):
        if not waiting:
            break
        _, pdf = heapq.heappop(waiting)
        sizes[pdf] += 1
        if sizes[pdf] < limit[pdf]:
            heapq.heappush(waiting, (-strength[pdf] / sizes[pdf], pdf))
    return sizes
