"""The small grids of the papers: each bandwidth and learning rate tried on some frames, judged on heldout ones."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frames.batches import Batches
from kernelam.models.posterior import GradientModel
from kernelam.progress import say
from kernelam.records import read_record
from kernelam.training.metrics import evaluate
from kernelam.training.trainer import TrainingOptions, describe, jsonable, one_pass, optimiser_of

Build = Callable[[float], GradientModel]


@dataclass
class Found:
    """Heldout metrics of the untrained model, and of what was tried, the best first."""

    untrained: dict[str, float] = field(default_factory=dict)
    trials: list[dict[str, Any]] = field(default_factory=list)

    def of(self, bandwidth: float, rate: float) -> dict[str, Any] | None:
        return next((row for row in self.trials if (row["bandwidth"], row["rate"]) == (bandwidth, rate)), None)


def search(
    build: Build,
    bandwidths: Sequence[float],
    train: Batches,
    heldout: Batches,
    options: TrainingOptions,
    folder: Path,
    fingerprint: str,
) -> Found:
    """Try each bandwidth (of models that have one) with each rate.

    `folder`/search.json holds what is known so far: a search that was killed goes on from there.
    """
    path = folder / "search.json"
    found = _known(path, fingerprint)
    for bandwidth in bandwidths:
        missing = [rate for rate in options.rates if found.of(bandwidth, rate) is None]
        model = build(bandwidth) if missing else None
        for rate in missing:
            assert model is not None
            model.initialise(options.seed)
            found.untrained = found.untrained or evaluate(model, heldout, options.metric)
            found.trials.append(_trial(model, train, heldout, options, rate, bandwidth, len(bandwidths) > 1))
            with replacing(path, "w") as stream:
                json.dump({"fingerprint": fingerprint, **asdict(found)}, stream)
    found.trials.sort(key=lambda row: math.inf if row[options.metric] is None else row[options.metric])
    _check(found, options)
    _tell_edges(found.trials[0], bandwidths, options.rates)
    return found


def _known(path: Path, fingerprint: str) -> Found:
    try:
        record = read_record(path, "nothing was tried")
        if record.pop("fingerprint") == fingerprint:
            return Found(**record)
    except (KernelamError, KeyError, TypeError):
        pass
    return Found()


def _trial(
    model: GradientModel,
    train: Batches,
    heldout: Batches,
    options: TrainingOptions,
    rate: float,
    bandwidth: float,
    name_it: bool,
) -> dict[str, Any]:
    frames = min(options.search_frames, len(train))
    order = train.shuffled(options.batch, options.seed, 0, frames)
    optimiser = optimiser_of(model, len(train), options, Path())
    _, seen = one_pass(optimiser, train, order, lambda _: rate, options, 0, frames, f"rate {rate:g}")
    metrics = evaluate(model, heldout, options.metric)
    of = f"bandwidth {bandwidth:g}, " if name_it else ""
    say(f"{of}learning rate {rate:g} on {frames} frames: heldout {describe(metrics)}")
    return jsonable({"bandwidth": bandwidth, "rate": rate, "frames": seen, **metrics})


def _check(found: Found, options: TrainingOptions) -> None:
    best, untrained = found.trials[0][options.metric], found.untrained[options.metric]
    if best is None or not best < untrained:
        rates = ", ".join(f"{rate:g}" for rate in options.rates)
        raise KernelamError(
            f"no learning rate of {rates} lowered the heldout {options.metric} of the untrained model, {untrained:.3f}:"
            " try lower --rates"
        )


def _tell_edges(best: dict[str, Any], bandwidths: Sequence[float], rates: Sequence[float]) -> None:
    for name, option, tried in (("rate", "--rates", rates), ("bandwidth", "--bandwidth", bandwidths)):
        if len(tried) > 1 and best[name] in (ends := (min(tried), max(tried))):
            side = "lower" if best[name] == ends[0] else "higher"
            what = "learning rate" if name == "rate" else name
            say(f"the best {what}, {best[name]:g}, is at the edge of those tried: {side} {option} may do better")
