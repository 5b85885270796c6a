"""The embedded decoder against Kaldi's FasterDecoder of the kaldi-decoder package: time, words, costs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import kaldifst
import numpy as np

from kernelam.decoding.decoder import LatticeDecoder
from kernelam.decoding.lattice import best_path, path_costs, path_words
from kernelam.decoding.oracle import depth, oracle
from kernelam.errors import KernelamError
from kernelam.kaldi.lattice import Lattice
from kernelam.progress import progress

SAME_COST = 2e-3
T = TypeVar("T")


@dataclass
class Comparison:
    """Sums over utterances. Times are of the processor, in one thread, each utterance by both decoders in turn."""

    utterances: int = 0
    frames: int = 0
    theirs: float = 0.0
    ours: float = 0.0
    same: int = 0
    cheaper: int = 0  # other words, of a cost no higher
    crossing: int = 0  # frames of all arcs
    errors: int = 0  # of the path closest to the reference
    reference: int = 0

    def __str__(self) -> str:
        n, seconds = self.utterances, self.frames / 100
        lines = [
            f"{n} utterances, {self.frames} frames, one thread",
            f"kaldi-decoder FasterDecoder, one best:        {self.theirs:.2f} s",
            f"embedded, lattices and their determinisation: {self.ours:.2f} s"
            f" ({self.ours / seconds:.4f} of real time at 100 frames a second)",
            f"ratio:                                        {self.ours / self.theirs:.2f}",
            f"words the same in {self.same}, other words of a cost no higher in {self.cheaper},"
            f" of a higher cost in {n - self.same - self.cheaper}",
            f"lattice density: {self.crossing / self.frames:.1f} arcs a frame",
        ]
        if self.reference:
            rate = 100 * self.errors / self.reference
            lines.append(f"oracle error: {rate:.2f} % [ {self.errors} / {self.reference} ]")
        return "\n".join(lines)


def compare_decoders(
    decoder: LatticeDecoder,
    graph: Path,
    likelihoods: Mapping[str, np.ndarray],
    references: Mapping[str, list[int]] | None = None,
) -> Comparison:
    """Both decode every utterance at the decoder's scale and beams."""
    peer, total = _peer(decoder, graph), Comparison()
    first = next(iter(likelihoods))
    decoder.decode(first, likelihoods[first][:50])  # compiles
    for utt in progress(likelihoods, "decoding twice"):
        matrix = likelihoods[utt]
        scores = np.ascontiguousarray((np.float32(decoder.scale) * matrix)[:, decoder.transitions.pdf[1:]])
        theirs, seconds = _timed(lambda scores=scores: peer(scores))  # type: ignore[misc]
        total.theirs += seconds
        found, seconds = _timed(lambda utt=utt, matrix=matrix: decoder.decode(utt, matrix))  # type: ignore[misc]
        total.ours += seconds
        if found is None:
            raise KernelamError(f"utterance {utt}: no path survived")
        _judge(total, found[0], decoder.scale, *theirs)
        total.frames += len(matrix)
        if references is not None:
            total.errors += oracle(found[0], references[utt])[0]
            total.reference += len(references[utt])
    return total


def _peer(decoder: LatticeDecoder, graph: Path) -> Callable[[np.ndarray], tuple[list[int], float]]:
    try:
        import kaldi_decoder
    except ImportError:
        raise KernelamError("the package kaldi-decoder is not installed: . path.sh tests/requirements.txt") from None
    fst = kaldifst.StdConstFst.read(str(graph)) or kaldifst.StdVectorFst.read(str(graph))
    options = kaldi_decoder.FasterDecoderOptions(beam=decoder.beams.beam, max_active=decoder.beams.max_active)
    search = kaldi_decoder.FasterDecoder(fst, options)

    def decode(scores: np.ndarray, fst: Any = fst) -> tuple[list[int], float]:  # which keeps the graph alive
        search.decode(kaldi_decoder.DecodableCtc(scores))
        _, path = search.get_best_path()
        _, _, words, weight = kaldifst.get_linear_symbol_sequence(path)
        return list(words), weight.value1 + weight.value2

    return decode


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.thread_time()
    result = work()
    return result, time.thread_time() - start


def _judge(total: Comparison, lattice: Lattice, scale: float, words: list[int], cost: float) -> None:
    path = best_path(lattice, 1.0 / scale)
    graph, acoustic = path_costs(lattice, path)
    total.utterances += 1
    total.crossing += depth(lattice)[0]
    if path_words(lattice, path) == words:
        total.same += 1
    elif graph + scale * acoustic <= cost + SAME_COST:
        total.cheaper += 1
