"""Mini-batch stochastic gradient descent, the same for every posterior model."""

import json
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frames.batches import Batches
from kernelam.models.posterior import PosteriorModel
from kernelam.progress import progress, say
from kernelam.training import checkpoint
from kernelam.training.halving import Halving
from kernelam.training.metrics import evaluate


@dataclass(frozen=True)
class SgdOptions:
    rates: tuple[float, ...]  # learning rates to choose from on heldout frames
    search_frames: int  # frames that each of them is tried on
    batch: int = 256
    max_epochs: int = 20
    max_halvings: int = 6
    metric: str = "ce"  # what the halving rule watches: ce, or erll (entropy regularised log loss)
    seed: int = 1


def choose_rate(
    model: PosteriorModel, train: Batches, heldout: Batches, options: SgdOptions, untrained: float
) -> list[dict[str, float]]:
    """Heldout metrics of one pass over `search_frames` frames at each rate, the best first; it beats `untrained`."""
    tried, frames = [], min(options.search_frames, len(train))
    for rate in options.rates:
        model.initialise(options.seed)
        batches = train.shuffled(options.batch, options.seed, epoch=0, frames=frames)
        _, seen = _pass(model, progress(batches, f"rate {rate:g}", -(-frames // options.batch)), rate)
        metrics = evaluate(model, heldout)
        say(f"learning rate {rate:g} on {frames} frames: heldout {describe(metrics)}")
        tried.append({"rate": rate, "frames": seen, **metrics})
    tried.sort(key=lambda row: row[options.metric] if math.isfinite(row[options.metric]) else math.inf)
    best = tried[0]["rate"]
    if not tried[0][options.metric] < untrained:
        rates = ", ".join(f"{rate:g}" for rate in options.rates)
        raise KernelamError(
            f"no learning rate of {rates} lowered the heldout {options.metric} of the untrained model, {untrained:.3f}:"
            " try lower --rates"
        )
    if len(tried) > 1 and best in (end := (min(options.rates), max(options.rates))):
        side = "lower" if best == end[0] else "higher"
        say(f"the best learning rate, {best:g}, is at the edge of those tried: {side} --rates may do better")
    return tried


def describe(metrics: dict[str, float]) -> str:
    return (
        f"CE {metrics['ce']:.4f}, entropy {metrics['entropy']:.4f}, ERLL {metrics['erll']:.4f},"
        f" frame error {100 * metrics['frame_error']:.2f} %"
    )


def fit(
    model: PosteriorModel, train: Batches, heldout: Batches, options: SgdOptions, folder: Path, fingerprint: str
) -> list[dict[str, Any]]:
    """Train `model` until the halving rule or `max_epochs` ends it; return the story of its epochs.

    After each epoch `folder`/checkpoint.safetensors holds all that the next one needs, and `folder`/epochs.jsonl the
    story so far: a run that was killed goes on from there, and ends where an uninterrupted one would have.
    """
    path = folder / "checkpoint.safetensors"
    saved = checkpoint.read(path, fingerprint)
    if saved is None:
        clock = time.monotonic()
        model.initialise(options.seed)
        first = evaluate(model, heldout)
        search = choose_rate(model, train, heldout, options, first[options.metric])
        model.initialise(options.seed)
        rule = Halving(search[0]["rate"], first[options.metric], max_halvings=options.max_halvings)
        epochs: list[dict[str, Any]] = [
            {
                "epoch": 0,
                "search": [_jsonable(row) for row in search],
                **first,
                "seconds": round(time.monotonic() - clock, 2),
            }
        ]
    else:
        tensors, about = saved
        model.initialise(options.seed)
        _assign(model, tensors)
        rule, epochs = Halving(**about["rule"]), about["epochs"]
        say(f"going on after epoch {epochs[-1]['epoch']} of {path}")

    while len(epochs) <= options.max_epochs and not rule.ended:
        epochs.append(_epoch(model, train, heldout, options, rule, len(epochs)))
        with replacing(folder / "epochs.jsonl", "w") as stream:  # first: after the last checkpoint nothing is written
            stream.writelines(json.dumps(row, allow_nan=False) + "\n" for row in epochs)
        checkpoint.write(path, model.parameters, {"rule": asdict(rule), "epochs": epochs}, fingerprint)
    return epochs


def _pass(model: PosteriorModel, batches: Iterable[tuple[Tensor, Tensor]], rate: float) -> tuple[float, int]:
    """The summed loss and the frames of a pass of steps, which ends early when it has diverged."""
    total, frames = torch.zeros((), dtype=torch.float64, device=model.device), 0
    for number, (x, labels) in enumerate(batches, 1):
        total += model.step(x, labels, rate)
        frames += len(labels)
        if number % 64 == 0 and not math.isfinite(total):  # to look is to wait for the device
            break
    return float(total), frames


def _jsonable(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: what diverged is null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def _epoch(
    model: PosteriorModel, train: Batches, heldout: Batches, options: SgdOptions, rule: Halving, number: int
) -> dict[str, Any]:
    start = {name: tensor.detach().clone() for name, tensor in model.parameters.items()}
    rate, clock = rule.rate, time.monotonic()
    batches = train.shuffled(options.batch, options.seed, number)
    loss, frames = _pass(model, progress(batches, f"epoch {number}", -(-len(train) // options.batch)), rate)
    metrics = evaluate(model, heldout)
    kept, halved = rule.judge(metrics[options.metric])
    if not kept:
        _assign(model, start)
    seconds = time.monotonic() - clock
    short = "" if frames == len(train) else f", diverged after {frames} frames"
    verdict = short + ("" if kept else ", reverted") + (", rate halved" if halved else "")
    say(f"epoch {number}: rate {rate:g}, heldout {describe(metrics)}{verdict} ({seconds:.0f} s)")
    return _jsonable(
        {
            "epoch": number,
            "rate": rate,
            "train_ce": loss / frames,
            **metrics,
            "kept": kept,
            "halved": halved,
            "frames": frames,
            "seconds": round(seconds, 2),
        }
    )


@torch.no_grad()
def _assign(model: PosteriorModel, tensors: dict[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        model.parameters[name].copy_(tensor)
