"""The claims of may2017 and lu2014, each with the test that decides whether it held."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from itertools import pairwise, product
from statistics import fmean
from typing import TypeVar

from kernelam.claims.estimates import Estimate, change, change_of_errors, correlation_gap, mean, relative, share
from kernelam.claims.outcomes import Evidence, NotThere
from kernelam.claims.study import KERNELS, PLAIN, TRICKS

WITHIN_DNN = 0.03  # relative TER that a kernel model may be above a DNN's and count as equal
WITHIN_JOINT = 0.01  # relative CE between blocks and joint training that counts as equal
SELECTED = tuple(f"{trick}-fs" for trick in TRICKS)
T = TypeVar("T")
Measure = Callable[[str, str, int], T]
"""Of the model of a system, a setting and a seed."""


class Verdict(StrEnum):
    HELD = "held"
    NOT_HELD = "not held"
    TOO_SMALL = "too small to tell"
    NOT_TESTED = "not tested"


class Form(Enum):
    """What an effect is, and how it is printed: the format, the unit, and how many of these are 1."""

    CHANGE = "+.1f", " %", 100  # relative
    DIFFERENCE = "+.2f", "", 1  # of correlations, or of shares
    SHARE = ".0f", " %", 100


@dataclass(frozen=True)
class Part:
    """Something that must be so if the claim is to hold; without a verdict it is told beside it only."""

    text: str
    estimate: Estimate
    verdict: Verdict | None
    form: Form = Form.CHANGE


@dataclass(frozen=True)
class Claim:
    number: int
    text: str
    paper: str
    compared: str
    test: Callable[[Evidence], list[Part]]


@dataclass(frozen=True)
class Finding:
    claim: Claim
    parts: list[Part]
    verdict: Verdict
    note: str = ""


def find(claim: Claim, evidence: Evidence) -> Finding:
    """A claim holds if all parts do, and does not if any does not."""
    try:
        parts = claim.test(evidence)
    except NotThere as missing:
        return Finding(claim, [], Verdict.NOT_TESTED, f"cell {missing} failed")
    verdicts = {part.verdict for part in parts}
    for verdict in (Verdict.NOT_HELD, Verdict.TOO_SMALL):
        if verdict in verdicts:
            return Finding(claim, parts, verdict)
    return Finding(claim, parts, Verdict.HELD)


def above(estimate: Estimate, bound: float = 0.0) -> Verdict:
    if estimate.interval is None or not all(map(math.isfinite, estimate.interval)):
        return Verdict.TOO_SMALL
    low, high = estimate.interval
    return Verdict.HELD if low > bound else Verdict.NOT_HELD if high < bound else Verdict.TOO_SMALL


def below(estimate: Estimate, bound: float = 0.0) -> Verdict:
    turned = estimate.interval and (-estimate.interval[1], -estimate.interval[0])
    return above(Estimate(-estimate.effect, turned, estimate.count), -bound)


def within(estimate: Estimate, margin: float) -> Verdict:
    sides = {below(estimate, margin), above(estimate, -margin)}
    if Verdict.NOT_HELD in sides:
        return Verdict.NOT_HELD
    return Verdict.HELD if sides == {Verdict.HELD} else Verdict.TOO_SMALL


def _pairs(
    measure: Measure[T], systems: Iterable[str], settings: Iterable[tuple[str, str]], seeds: Iterable[int]
) -> list[tuple[T, T]]:
    """With each pair of settings, new and old."""
    return [
        (measure(system, new, seed), measure(system, old, seed))
        for system, (new, old), seed in product(systems, settings, seeds)
    ]


def _lower_errors(evidence: Evidence, text: str, settings: Sequence[tuple[str, str]]) -> list[Part]:
    """In kernel models, without and with selection."""
    both = [*settings, *((f"{new}-fs", f"{old}-fs") for new, old in settings)]
    estimate = change_of_errors(_pairs(evidence.words, KERNELS, both, evidence.scale.grid_seeds))
    return [Part(text, estimate, below(estimate))]


def _bottleneck(evidence: Evidence) -> list[Part]:
    return _lower_errors(evidence, "TER with a bottleneck", [("b", "nt"), ("br", "r")])


def _erll_decay(evidence: Evidence) -> list[Part]:
    return _lower_errors(evidence, "TER with the rate decayed by ERLL", [("r", "nt"), ("br", "b")])


def _selection(evidence: Evidence) -> list[Part]:
    settings, ce = list(zip(SELECTED, TRICKS, strict=True)), evidence.heldout("ce")
    of = {  # one selection is one case, whatever is trained on its features
        kernel: [
            fmean(relative(*pair) for pair in _pairs(ce, [kernel], settings, [seed]))
            for seed in evidence.scale.grid_seeds
        ]
        for kernel in KERNELS
    }
    overall = mean([value for values in of.values() for value in values])
    parts = [Part("CE with selected features", overall, below(overall))]
    for other in KERNELS[1:]:
        gap = mean([first - second for first, second in zip(of["laplacian"], of[other], strict=True)])
        parts.append(Part(f"that change for the Laplacian kernel, minus that for the {other}", gap, below(gap)))
    return parts


def _correlation(evidence: Evidence) -> list[Part]:
    settings = [(system, setting) for system in KERNELS for setting in (*TRICKS, *SELECTED)]
    models = [(*setting, seed) for setting in settings for seed in evidence.scale.grid_seeds]
    models += [("dnn", trick, seed) for trick in TRICKS for seed in evidence.scale.seeds]
    erll, ce = ([evidence.heldout(name)(*model) for model in models] for name in ("erll", "ce"))
    rates, groups = [evidence.rate(*model) for model in models], [" ".join(model[:2]) for model in models]
    gap = correlation_gap(erll, ce, rates, groups)
    return [Part("correlation of ERLL with TER, minus that of CE", gap, above(gap), Form.DIFFERENCE)]


def _sparse_best(evidence: Evidence) -> list[Part]:
    seeds, wins = evidence.scale.grid_seeds, 0.0
    for setting in (*TRICKS, *SELECTED):
        rates = {kernel: fmean(evidence.rate(kernel, setting, seed) for seed in seeds) for kernel in KERNELS}
        best = [kernel for kernel in KERNELS if rates[kernel] == min(rates.values())]
        wins += ("sparse-gaussian" in best) / len(best)
    part = share(wins, len(TRICKS) + len(SELECTED))
    return [Part("share of settings where it has the lowest TER", part, above(part, 0.5), Form.SHARE)]


def _more_features(evidence: Evidence) -> list[Part]:
    sizes, ce = evidence.scale.features, evidence.heldout("ce")
    settings = [*(f"b-{count}" for count in sizes[:-1]), "b"]

    def changes(step: int) -> list[float]:
        """Of CE from one size to the next, for each doubling."""
        found = _pairs(ce, KERNELS, [(settings[step + 1], settings[step])], evidence.scale.seeds)
        doublings = math.log2(sizes[step + 1] / sizes[step])
        return [relative(*pair) / doublings for pair in found]

    steps = [changes(step) for step in range(len(sizes) - 1)]
    parts = []
    for (first, then), values in zip(pairwise(sizes), steps, strict=True):
        gain = mean(values)
        parts.append(Part(f"CE for each doubling from {first:,} to {then:,} features", gain, below(gain)))
    for count, (under, over) in zip(sizes[1:], pairwise(steps), strict=False):
        less = mean([b - a for a, b in zip(under, over, strict=True)])
        parts.append(Part(f"that change above {count:,} features, minus that below", less, above(less)))
    return parts


def _survival(evidence: Evidence) -> list[Part]:
    found = [evidence.of(kernel, "b-fs", seed).survival for kernel, seed in product(KERNELS, evidence.scale.grid_seeds)]
    beyond = mean([math.nan if value is None else value for value in found])
    return [Part("share that survives, minus that by chance", beyond, above(beyond), Form.DIFFERENCE)]


def _as_good_as_dnn(evidence: Evidence) -> list[Part]:
    scale = evidence.scale
    candidates = (*TRICKS, *SELECTED) if scale.grid_seeds == scale.seeds else PLAIN

    def best(systems: Sequence[str], settings: Sequence[str]) -> tuple[str, str]:
        def tuned(model: tuple[str, str]) -> float:
            rates = [evidence.of(*model, seed).tuned for seed in scale.seeds]
            return fmean(math.inf if rate is None else rate for rate in rates)

        return min(product(systems, settings), key=tuned)

    kernel, dnn = best(KERNELS, candidates), best(["dnn"], TRICKS)
    pairs = [(evidence.words(*kernel, seed), evidence.words(*dnn, seed)) for seed in scale.seeds]
    estimate = change_of_errors(pairs)
    tried = f"best of {len(KERNELS) * len(candidates)} kernel settings"
    text = f"TER of {kernel[0]} {kernel[1].upper()}, {tried}, against DNN {dnn[1].upper()}, best of {len(TRICKS)}"
    return [Part(text, estimate, below(estimate, WITHIN_DNN))]


def _blocks(evidence: Evidence) -> list[Part]:
    pairs = _pairs(evidence.heldout("ce"), KERNELS, [("blocks", "nt")], evidence.scale.seeds)
    estimate = change(pairs)
    return [Part("CE of averaged blocks against joint training", estimate, within(estimate, WITHIN_JOINT))]


def _sag(evidence: Evidence) -> list[Part]:
    gaps = []
    for kernel, seed in product(KERNELS, evidence.scale.seeds):
        sag, sgd = (evidence.of(kernel, name, seed).losses for name in ("sag", "sgd"))
        epochs = range(max(len(sag), len(sgd)))  # one that ended earlier stays where it was
        gaps.append(fmean(relative(sag[min(i, len(sag) - 1)], sgd[min(i, len(sgd) - 1)]) for i in epochs))
    estimate = mean(gaps)
    return [Part("CE by SAG after as many epochs as SGD", estimate, below(estimate))]


def _sum(evidence: Evidence) -> list[Part]:
    perplexity, seeds = evidence.heldout("perplexity"), evidence.scale.seeds
    better = min(("gaussian", "laplacian"), key=lambda kernel: fmean(perplexity(kernel, "b", seed) for seed in seeds))
    estimate = change([(perplexity("sum", "b", seed), perplexity(better, "b", seed)) for seed in seeds])
    words = [(evidence.words("sum", "b", seed), evidence.words(better, "b", seed)) for seed in seeds]
    beside = Part("TER, which is not claimed", change_of_errors(words), None)
    return [Part(f"perplexity of the sum against the {better} kernel", estimate, below(estimate)), beside]


def _with_dnn(evidence: Evidence) -> list[Part]:
    parts = []
    for text in ("kernel model", "DNN"):
        pairs = [
            (evidence.words(kernel, "with-dnn", seed), evidence.words("dnn" if text == "DNN" else kernel, "br", seed))
            for seed, kernel in product(evidence.scale.seeds, KERNELS)
        ]
        estimate = change_of_errors(pairs, together=len(KERNELS))  # all with the DNN of their seed
        parts.append(Part(f"TER of the combination against its {text}", estimate, below(estimate)))
    return parts


def _augmentation(evidence: Evidence) -> list[Part]:
    error, seeds = evidence.heldout("frame_error"), evidence.scale.seeds
    helped = change(_pairs(error, KERNELS, [("mask", "b")], seeds))

    def beyond(seed: int) -> float:
        kernels, dnn = (_pairs(error, systems, [("mask", "b")], [seed]) for systems in (KERNELS, ["dnn"]))
        return fmean(relative(*pair) for pair in kernels) - relative(*dnn[0])

    more = mean([beyond(seed) for seed in seeds])
    return [
        Part("frame error of kernel models with augmentation", helped, below(helped)),
        Part("that change minus that for DNNs", more, below(more)),
    ]


_TRICKS = "Laplacian, Gaussian and sparse Gaussian kernels"
CLAIMS = (
    Claim(
        *(1, "A bottleneck lowers TER", "may2017, 6.3"),
        f"{_TRICKS}, by CE and by ERLL, with random and with selected features: with and without the bottleneck.",
        _bottleneck,
    ),
    Claim(
        *(2, "Feature selection lowers CE, most for the Laplacian kernel", "may2017, 6.3"),
        f"{_TRICKS}, each with no trick, bottleneck, ERLL and both: on selected and on as many random features. The"
        " features are those that the model with a bottleneck selected.",
        _selection,
    ),
    Claim(
        *(3, "Decaying the rate by ERLL lowers TER", "may2017, 6.3"),
        f"{_TRICKS}, with and without bottleneck, with random and with selected features: the halving rule judged by"
        " heldout ERLL and by heldout CE.",
        _erll_decay,
    ),
    Claim(
        *(4, "ERLL correlates with TER better than CE", "may2017, 5"),
        "Pearson's correlation over all kernel models of claims 1 to 3 and the DNNs with the same tricks; the interval"
        " is of a bootstrap over settings, each with all its seeds.",
        _correlation,
    ),
    Claim(
        *(5, "The sparse Gaussian kernel is the best in most settings", "may2017, 6.3"),
        "Of the settings of claims 1 to 3, those in which its TER, in the mean of seeds, is the lowest of the three"
        " kernels; Wilson's interval against one half.",
        _sparse_best,
    ),
    Claim(
        *(6, "More features help, with diminishing returns", "may2017, 6.4"),
        "The three kernels with a bottleneck: heldout CE falls with every doubling of D, and by less each time.",
        _more_features,
    ),
    Claim(
        *(7, "Selected features survive", "may2017, 6.5"),
        "Of the features kept in a round, the share in the final model, in the mean of all rounds but the last, minus"
        " what it would be if those kept were chosen at random.",
        _survival,
    ),
    Claim(
        *(8, "Kernel models are as good as DNNs", "may2017, 6.3; lu2014, 5"),
        "The kernel model and the DNN with the lowest TER where decoding was tuned, seed by seed; it holds if TER is"
        f" at most {100 * WITHIN_DNN:g} % above the DNN's.",
        _as_good_as_dnn,
    ),
    Claim(
        *(9, "Averaging blocks equals joint training", "lu2014, 4.1"),
        f"The three kernels without bottleneck: heldout CE within {100 * WITHIN_JOINT:g} % of that of the joint model.",
        _blocks,
    ),
    Claim(
        *(10, "SAG beats SGD epoch for epoch", "lu2014, 4.1"),
        "The three kernels without bottleneck, rates chosen from as many for both: heldout CE, in the mean of epochs.",
        _sag,
    ),
    Claim(
        *(11, "Combined kernels lower perplexity, whatever TER does", "lu2014, tables 9 and 12"),
        "The sum of Gaussian and Laplacian kernel, with as many features in all, and the kernel of the two that has the"
        " lower heldout perplexity, with a bottleneck.",
        _sum,
    ),
    Claim(
        *(12, "Kernel model and DNN together beat both", "lu2014, table 4"),
        "Each kernel and the DNN, with bottleneck and ERLL, and the weighted sum of their logits.",
        _with_dnn,
    ),
    Claim(
        *(13, "Augmentation helps kernel models more", "lu2014, B.1.1"),
        "Inputs masked at random in training: heldout frame error of the three kernels, then of the DNN, all with a"
        " bottleneck.",
        _augmentation,
    ),
)
