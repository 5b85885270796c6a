"""The language model weight and word insertion penalty with the fewest errors."""

from collections.abc import Mapping
from typing import NamedTuple

from kernelam.errors import KernelamError
from kernelam.scoring.wer import WerResult


class Weights(NamedTuple):
    """A point of the grid; its name ends the file wer_<lmwt>_<wip>."""

    lmwt: int
    wip: float

    @property
    def name(self) -> str:
        return f"{self.lmwt}_{float(self.wip)}"


def tune(points: Mapping[Weights, WerResult]) -> Weights:
    """The point with the fewest errors; among equals the lowest penalty, then the lowest LM weight.

    That is the first minimum in the order in which Kaldi's scoring scripts list their points. (Kaldi compares rates
    rounded to two decimals, so that above 10,000 words it may take an earlier point with an error more.)
    """
    if not points:
        raise KernelamError("there is no point to choose weights from: the grid is empty")
    if len({result.total.ref_words for result in points.values()}) > 1:
        raise KernelamError("the points of the grid were scored on different references; score them in mode all")
    return Weights(*min(points, key=lambda w: (points[w].total.errors, w[1], w[0])))


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
