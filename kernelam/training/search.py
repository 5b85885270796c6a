"""The small grids of the papers: each of some configurations is tried on some frames and judged on heldout ones."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from kernelam import records
from kernelam.frames.batches import Batches
from kernelam.models.posterior import GradientModel
from kernelam.progress import say, warn
from kernelam.ranks import current, is_first
from kernelam.training.checkpoint import Clock
from kernelam.training.metrics import evaluate
from kernelam.training.trainer import Diverged, TrainingOptions, describe, jsonable, one_pass, optimiser_of

Build = Callable[[float], GradientModel]


class Variants(NamedTuple):
    """What a kind of model may choose besides how it is trained: the name of an option, and its values."""

    name: str
    values: Sequence[float]


@dataclass
class Found:
    """Heldout metrics of the untrained model, and of what was tried, the best first."""

    untrained: dict[str, float] = field(default_factory=dict)
    trials: list[dict[str, Any]] = field(default_factory=list)

    def keep(self, path: Path, fingerprint: str) -> None:
        """For a search that goes on after this one was killed."""
        records.keep(path, {"fingerprint": fingerprint, **asdict(self)})

    def has(self, chosen: dict[str, float]) -> bool:
        return any(chosen.items() <= row.items() for row in self.trials)


def search(
    build: Build,
    variants: Variants,
    train: Batches,
    heldout: Batches,
    options: TrainingOptions,
    folder: Path,
    fingerprint: str,
    clock: Clock,
    purpose: str = "",
) -> Found:
    """Try each of the `variants` with each l2, momentum and rate, if there is anything to choose.

    `purpose` is what it is for, where that is not the model itself.

    `folder`/search.json holds what is known so far: a search that was killed goes on from there.
    """
    axes = _axes(variants, options)
    several = {name for name, values in axes.items() if len(values) > 1}
    if not several:
        return Found(trials=[{**{name: value for name, (value,) in axes.items()}, "frames": 0}])
    path = folder / "search.json"
    found = known(path, fingerprint)
    current().check(records.digest(asdict(found)), path)
    for value in variants.values:
        missing = [chosen for chosen in _configurations(variants, value, options) if not found.has(chosen)]
        model = build(value) if missing else None
        for chosen in missing:
            assert model is not None
            model.initialise(options.seed)
            found.untrained = found.untrained or evaluate(model, heldout, options.metric)
            found.trials.append(_trial(model, train, heldout, options, chosen, several))
            if is_first():
                found.keep(path, fingerprint)
            clock.keep()
    found.trials.sort(key=lambda row: math.inf if row[options.metric] is None else row[options.metric])
    _check(found, options)
    _tell_edges(found.trials[0], axes, purpose and f" of {purpose}")
    return found


def _axes(variants: Variants, options: TrainingOptions) -> dict[str, Sequence[float]]:
    """Each value once, however often it is given."""
    axes = {variants.name: variants.values, "l2": options.l2s, "momentum": options.momenta, "rate": options.rates}
    return {name: list(dict.fromkeys(values)) for name, values in axes.items()}


def _configurations(variants: Variants, value: float, options: TrainingOptions) -> Iterator[dict[str, float]]:
    axes = _axes(variants._replace(values=(value,)), options)
    return (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))


def known(path: Path, fingerprint: str) -> Found:
    """What an earlier search of the run that `fingerprint` names has kept."""
    record = records.recall(path)
    if record is None or record.pop("fingerprint") != fingerprint:
        return Found()
    return Found(**record)


def _trial(
    model: GradientModel,
    train: Batches,
    heldout: Batches,
    options: TrainingOptions,
    chosen: dict[str, float],
    several: set[str],
) -> dict[str, Any]:
    """The result of one pass; only what there are `several` of is named, and the rate."""
    frames, rate = min(options.search_frames, len(train)), chosen["rate"]
    order = train.shuffled(options.batch, options.seed, 0, frames)
    optimiser = optimiser_of(model, len(train), options.chosen(chosen["l2"], chosen["momentum"]), Path())
    _, seen = one_pass(optimiser, train, order, lambda _: rate, options, 0, frames, f"rate {rate:g}")
    metrics = evaluate(model, heldout, options.metric)
    of = "".join(f"{name} {value:g}, " for name, value in chosen.items() if name in several - {"rate"})
    say(f"{of}learning rate {rate:g} on {frames} frames: heldout {describe(metrics)}")
    return jsonable({**chosen, "frames": seen, **metrics})


def _check(found: Found, options: TrainingOptions) -> None:
    best, untrained = found.trials[0][options.metric], found.untrained[options.metric]
    if best is None or not best < untrained:
        rates = ", ".join(f"{rate:g}" for rate in options.rates)
        l2s = f" with l2 {', '.join(f'{l2:g}' for l2 in options.l2s)}" if any(options.l2s) else ""
        raise Diverged(
            f"no learning rate of {rates}{l2s} lowered the heldout {options.metric} of the untrained model,"
            f" {untrained:.3f}: try {'higher --rates' if best == untrained else f'lower {options.gentler}'}"
        )


def _tell_edges(best: dict[str, Any], axes: dict[str, Sequence[float]], of: str) -> None:
    for name, tried in axes.items():
        inner = best[name] == 0.0  # there is nothing below
        if len(tried) > 1 and not inner and best[name] in (ends := (min(tried), max(tried))):
            side = "lower" if best[name] == ends[0] else "higher"
            what, option = ("learning rate", "--rates") if name == "rate" else (name, f"--{name}")
            warn(f"the best {what}{of}, {best[name]:g}, is at the edge of those tried: {side} {option} may do better")
