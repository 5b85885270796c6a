"""Epochs of mini-batches until a schedule ends them, the same for every posterior model and optimiser."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frames.augmentation import Augmentation, generator_for
from kernelam.frames.batches import Batches
from kernelam.models.posterior import GradientModel
from kernelam.progress import progress, say
from kernelam.randomness import stream
from kernelam.ranks import current
from kernelam.ranks import number as rank
from kernelam.training import checkpoint
from kernelam.training.metrics import evaluate
from kernelam.training.optimisers import Averaging, Optimiser, assign, make_optimiser
from kernelam.training.schedules import Average, Decay, Halving, Schedule

EPOCHS = {"decay": 4, "average": 4, "halving": 20}
SCHEDULES: dict[str, type[Halving | Decay]] = {"decay": Decay, "average": Average, "halving": Halving}


class Diverged(KernelamError):
    """Training has come to nothing, and would again: what it kept to be resumed from is of no use."""


@dataclass(frozen=True)
class TrainingOptions:
    rates: tuple[float, ...]  # learning rates to choose from on heldout frames
    search_frames: int  # frames that each of them is tried on
    batch: int = 256
    schedule: str = "decay"  # of SCHEDULES
    max_epochs: int = 0  # 0: as many as EPOCHS has for the schedule
    max_halvings: int = 6
    metric: str = "ce"  # what heldout frames are judged by, a Metric
    optimiser: str = "sgd"  # of optimisers.OPTIMISERS
    momenta: tuple[float, ...] = (0.0,)  # of sgd, to choose from
    sag_table: str = "single"  # precision of SAG's table of posteriors: single or half
    l2s: tuple[float, ...] = (0.0,)  # to choose from
    augment: str = ""  # an Augmentation
    precision: str = "single"  # of matrix products: single, tf32, mixed
    seed: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_epochs", self.max_epochs or EPOCHS[self.schedule])
        if not all(rate > 0.0 for rate in self.rates):
            raise KernelamError(f"--rates are numbers above zero, not {min(self.rates):g}")
        if any(self.momenta) and self.optimiser != "sgd":
            raise KernelamError(f"--momentum is that of sgd, not of {self.optimiser}")

    @property
    def gentler(self) -> str:
        """What to lower where training diverges."""
        return " or ".join(["--rates", *["--l2"] * any(self.l2s), *["--momentum"] * any(self.momenta)])

    def chosen(self, l2: float, momentum: float) -> "TrainingOptions":
        return replace(self, l2s=(l2,), momenta=(momentum,))


def optimiser_of(model: GradientModel, num_frames: int, options: TrainingOptions, folder: Path) -> Optimiser:
    """That of options of which one l2 and one momentum are chosen."""
    (l2,), (momentum,), half = options.l2s, options.momenta, options.sag_table == "half"
    return make_optimiser(options.optimiser, model, l2, momentum, num_frames, folder, half)


def describe(metrics: dict[str, float]) -> str:
    return (
        f"CE {metrics['ce']:.4f}, entropy {metrics['entropy']:.4f}, ERLL {metrics['erll']:.4f},"
        f" frame error {100 * metrics['frame_error']:.2f} %"
    )


def one_pass(
    optimiser: Optimiser,
    train: Batches,
    order: Iterator[Tensor],
    rate_at: Callable[[float], float],
    options: TrainingOptions,
    epoch: int,
    total: int,
    name: str,
) -> tuple[float, int]:
    """The summed loss and the frames of a pass of steps over `total` frames, which ends early when it has diverged,
    for all who train together."""
    augment = Augmentation.parse(options.augment) if options.augment else None
    generator = generator_for(train.device, options.seed, epoch)
    loss, seen = torch.zeros((), dtype=torch.float64, device=train.device), 0
    purpose = f"dropout.{rank()}" if rank() else "dropout"
    torch.manual_seed(int(stream(options.seed, purpose, epoch).integers(2**63)))
    optimiser.begin(epoch)
    for number, frames in enumerate(progress(order, name, -(-total // options.batch)), 1):
        x, labels = train.take(frames)
        if augment:
            x = augment(x, generator)
        loss += optimiser.step(frames, x, labels, rate_at(seen / total))
        seen += len(frames)
        if number % 64 == 0 and not math.isfinite(current().same(loss)):  # to look is to wait for the device
            break
    return float(current().same(loss)), seen


def fit(
    model: GradientModel,
    train: Batches,
    heldout: Batches,
    options: TrainingOptions,
    rate: float,
    first: dict[str, Any],
    folder: Path,
    fingerprint: str,
) -> list[dict[str, Any]]:
    """Train `model`, initialised, until its schedule ends; return the story of its epochs, of which `first` is the 0th.

    After each epoch `folder`/checkpoint.safetensors holds the story so far and all that the next one needs: a run that
    was killed goes on from there, and ends where an uninterrupted one would have.
    """
    path = folder / "checkpoint.safetensors"
    limits = (options.max_epochs, options.max_halvings)
    schedule, epochs = SCHEDULES[options.schedule](rate, first[options.metric], *limits), [first]
    optimiser = optimiser_of(model, len(train), options, folder)
    if about := _resume(path, fingerprint, model, optimiser):
        epochs = about["epochs"]
        schedule = type(schedule)(**about["schedule"])
        say(f"going on after epoch {epochs[-1]['epoch']} of {path}")
    while not schedule.ended:
        epochs.append(_epoch(model, optimiser, train, heldout, options, schedule, len(epochs)))
        about = {"schedule": asdict(schedule), "epochs": epochs}
        checkpoint.write(path, model.gathered(_state(model, optimiser)), about, fingerprint)
    return epochs


def _resume(path: Path, fingerprint: str, model: GradientModel, optimiser: Optimiser) -> dict[str, Any]:
    """What a checkpoint tells, if there is one; its tensors are not held in memory beside those they become."""
    saved = checkpoint.read(path, fingerprint, copied=False)
    if saved is None:
        return {}
    tensors, about = saved
    assign(_state(model, optimiser), model.own(tensors))
    return about


def jsonable(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: what diverged is null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def _epoch(
    model: GradientModel,
    optimiser: Optimiser,
    train: Batches,
    heldout: Batches,
    options: TrainingOptions,
    schedule: Schedule,
    number: int,
) -> dict[str, Any]:
    start = {name: tensor.detach().clone() for name, tensor in _state(model, optimiser).items()}
    rate, clock, cpu = schedule.rate_at(0.0), time.monotonic(), time.process_time()
    order = train.shuffled(options.batch, options.seed, number)
    averaging = Averaging(optimiser, model) if schedule.averages else None
    stepper = averaging or optimiser
    loss, frames = one_pass(stepper, train, order, schedule.rate_at, options, number, len(train), f"epoch {number}")
    if averaging:
        averaging.settle()
    metrics = evaluate(model, heldout, options.metric)
    kept, halved = schedule.judge(metrics[options.metric])
    if kept:
        optimiser.end(number)
    else:
        assign(_state(model, optimiser), start)
    seconds = time.monotonic() - clock
    short = "" if frames == len(train) else f", diverged after {frames} frames"
    verdict = short + ("" if kept else ", reverted") + (", rate halved" if halved else "")
    say(f"epoch {number}: rate {rate:g}, heldout {describe(metrics)}{verdict} ({seconds:.0f} s)")
    return jsonable(
        {
            "epoch": number,
            "rate": rate,
            "train_ce": loss / frames,
            **metrics,
            "kept": kept,
            "halved": halved,
            "frames": frames,
            "seconds": round(seconds, 2),
            "cpu_seconds": round(time.process_time() - cpu, 3),
        }
    )


def _state(model: GradientModel, optimiser: Optimiser) -> dict[str, Tensor]:
    return model.parameters | {f"optimiser.{name}": tensor for name, tensor in optimiser.state.items()}
