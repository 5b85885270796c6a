"""Which metric of heldout frames foretells the error rate (may2017, figure 2)."""

import math
from collections.abc import Callable, Sequence
from statistics import StatisticsError, correlation
from typing import Any

from kernelam.report.charts import scatter
from kernelam.report.experiments import Run
from kernelam.report.figures import Axis, Plot, figure, figures
from kernelam.report.results import Results
from kernelam.report.sections import numbered, rate_of, rate_title, remark

TITLE = "Which metric foretells the error rate"
FEWEST = 3  # models that a correlation is worth drawing for
ENOUGH = 5  # models below which it is no evidence
METRICS = {"ce": ("CE", 1), "entropy": ("entropy", 1), "erll": ("ERLL", 1), "frame_error": ("frame error %", 100)}
BETAS = [step / 20 for step in range(81)]
Runs = Sequence[tuple[int, Run]]
Points = list[tuple[float, float]]


def correlations(results: Results) -> str:
    runs = [(number, run) for number, run in numbered(results) if run.about.get("heldout")]
    if _models(runs) < FEWEST:
        return remark(TITLE, f"It takes {FEWEST} models with heldout metrics; here are {_models(runs)}.")
    drawn = [_single(name, runs, results) for name in METRICS]
    drawn.append(_family("β", "CE + β entropy, which is CE for β = 0, ERLL for β = 1", _erll(runs), runs))
    note = f"Pearson's correlation r with {rate_title(results)} over n runs (may2017, figure 2)."
    swept = [(number, run) for number, run in runs if run.about.get("heldout_metrics")]
    if _models(swept) < FEWEST:
        note += f" Capped and top-k log loss are left out: {_models(swept)} of the {FEWEST} models that tell them."
    else:
        drawn.append(
            _family(
                "λ",
                "Capped log loss, −mean log(p + λ), which is CE for λ = 0",
                _swept("capped", swept),
                swept,
                log=True,
            )
        )
        points = [(1 - share, r) for share, r in _swept("top-k", swept)]
        caption = "Top-k log loss, CE without the worst frames"
        drawn.append(_family("share of frames left out, 1 − k/N", caption, points, swept))
    return remark(TITLE, note, figures(drawn))


def _models(runs: Runs) -> int:
    """Runs that differ in more than their seed."""
    return len({number for number, _ in runs})


def _count(runs: Runs) -> str:
    few = f", of {_models(runs)} models: no evidence" if _models(runs) < ENOUGH else ""
    return f"n = {len(runs)}{few}"


def _single(name: str, runs: Runs, results: Results) -> str:
    title, scale = METRICS[name]
    values = [scale * float(run.about["heldout"][name]) for _, run in runs]
    r = _correlation(runs, lambda run: run.about["heldout"][name])
    told = "is undefined" if r is None else f"= {r:.2f}".replace("-", "−")
    return figure(scatter(f"heldout {title}", values, runs, results), f"{title}: r {told}, {_count(runs)}")


def _family(name: str, caption: str, points: Points, runs: Runs, log: bool = False) -> str:
    """r by the parameter `name` of a metric."""
    ends = [parameter for parameter, _ in points] or [0.1, 1.0]
    plot = Plot(Axis(name, min(ends), max(ends), log), Axis("r", -1, 1))
    plot.line(points, 0)
    return figure(plot, f"{caption}: r by {name}, {_count(runs)}")


def _erll(runs: Runs) -> Points:
    def at(beta: float) -> Callable[[Run], float]:
        return lambda run: run.about["heldout"]["ce"] + beta * run.about["heldout"]["entropy"]

    return _defined([(beta, _correlation(runs, at(beta))) for beta in BETAS])


def _swept(family: str, runs: Runs) -> Points:
    """At the parameters that all runs have."""
    values = {id(run): _by_parameter(run.about["heldout_metrics"][family]) for _, run in runs}
    common = sorted(set.intersection(*(set(one) for one in values.values())))

    def at(parameter: float) -> Callable[[Run], float]:
        return lambda run: values[id(run)][parameter]

    return _defined([(parameter, _correlation(runs, at(parameter))) for parameter in common])


def _by_parameter(told: dict[str, Any]) -> dict[float, float]:
    return dict(zip(told["parameters"], told["values"], strict=True))


def _defined(points: Sequence[tuple[float, float | None]]) -> Points:
    return [(parameter, r) for parameter, r in points if r is not None]


def _correlation(runs: Runs, metric: Callable[[Run], float]) -> float | None:
    try:
        r = correlation([metric(run) for _, run in runs], [rate_of(run) for _, run in runs])
    except StatisticsError:  # one of them is constant
        return None
    return r if math.isfinite(r) else None
