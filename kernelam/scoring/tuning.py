"""The language model weight and word insertion penalty with the fewest errors."""

from collections.abc import Mapping
from typing import NamedTuple

from kernelam.errors import KernelamError
from kernelam.scoring.wer import WerResult


class Weights(NamedTuple):
    """A point of the grid; its name ends the file wer_<lmwt>_<wip>.

    `parts` are those of systems that are combined, 3 and 7 for 0.3 and 0.7; the file is then wer_<lmwt>_<wip>_3_7.
    """

    lmwt: int
    wip: float
    parts: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return "_".join(map(str, [self.lmwt, float(self.wip), *self.parts]))


def tune(points: Mapping[Weights, WerResult]) -> Weights:
    """The point of the lowest rate; among equals the lowest penalty, the lowest LM weight, the most even parts.

    That is the first minimum in the order in which Kaldi's scoring scripts list their points. (Kaldi compares rates
    rounded to two decimals, so that above 10,000 words it may take an earlier point with an error more.)
    """
    if not points:
        raise KernelamError("there is no point to choose weights from: the grid is empty")
    lengths = {result.total.ref_words for result in points.values() if not result.alternatives}
    if len(lengths) > 1:
        raise KernelamError("the points of the grid were scored on different references; score them in mode all")
    return min(points, key=lambda w: (points[w].total.rate, w.wip, w.lmwt, max(w.parts, default=0), w.parts))


def edges(best: Weights, points: Mapping[Weights, WerResult]) -> list[str]:
    """Sentences about each weight whose best value ends its range: the true best may lie outside.

    A penalty of zero is a natural end, and so is an LM weight of one.
    """
    sentences = []
    for name, value, values, natural, lower, higher in (
        ("LM weight", best.lmwt, {w[0] for w in points}, 1, "--min-lmwt", "--max-lmwt"),
        ("word insertion penalty", best.wip, {w[1] for w in points}, 0.0, "--word-ins-penalty", "--word-ins-penalty"),
    ):
        if len(values) < 2:
            continue
        if value == min(values) and value > natural:
            sentences.append(f"the best {name}, {value}, is the lowest tried: try lower ones with {lower}")
        if value == max(values):
            sentences.append(f"the best {name}, {value}, is the highest tried: try higher ones with {higher}")
    return sentences
