"""Random feature selection: draw, train a little, keep the features with the largest weights (may2017, algorithm 1)."""

import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frames.batches import Batches
from kernelam.kernels.base import ColumnFeatures
from kernelam.models.softmax import KernelSoftmax
from kernelam.progress import say
from kernelam.ranks import is_first
from kernelam.training import checkpoint
from kernelam.training.acoustic import SELECTED
from kernelam.training.trainer import Diverged, TrainingOptions, one_pass, optimiser_of

CPU = torch.device("cpu")
LEAST = 1e-12  # of rates: at this one weights hardly move
Draw = Callable[[int, int], ColumnFeatures]
"""draw(columns, round): that many new columns, others in each round."""
Use = Callable[[ColumnFeatures], None]
"""Makes these the features of the model, on its device, with all that depends on them."""


def schedule(text: str, columns: int) -> list[int]:
    """s_1 < … < s_{T−1} < D: given as these numbers, or as T alone for s_t = tD/T. A pair of features counts as one."""
    try:
        numbers = [int(word) for word in text.split()]
    except ValueError:
        raise KernelamError(
            f"--selection takes the number of rounds, or how many to keep in each, not {text}"
        ) from None
    if len(numbers) == 1:
        rounds = numbers[0]
        numbers = [t * columns // rounds for t in range(1, rounds)]
    if not numbers or any(b <= a for a, b in zip([0, *numbers], [*numbers, columns], strict=True)):
        raise KernelamError(
            f"the selection schedule {text} does not increase from above 0 to below the {columns} frequencies there are"
        )
    return numbers


def select_features(
    model: KernelSoftmax,
    draw: Draw,
    use: Use,
    sizes: Sequence[int],
    frames: int,
    rate: float,
    train: Batches,
    options: TrainingOptions,
    folder: Path,
    fingerprint: str,
    clock: checkpoint.Clock,
) -> ColumnFeatures:
    """The features of algorithm 1, which passes over `frames` frames in each round but the last.

    `folder`/selection.safetensors holds the state after each round, from which a run that was killed goes on;
    `folder`/selection.new.json, in the end, how many of the features kept in each round survived, and the weight of
    each input in what was chosen (figures 4 and 5).
    """
    path, features = folder / "selection.safetensors", model.feature_map
    assert isinstance(features, ColumnFeatures)
    if features.whole:  # all who share the features choose from all of them
        features = draw(features.whole[1], 0)
    total, kept_ids, begun = features.columns, [], 0
    ids = torch.arange(total)
    if saved := checkpoint.read(path, fingerprint):
        arrays, about = saved
        begun, rate = about["round"], about["rate"]
        kept_ids = [arrays.pop(f"kept.{t}") for t in range(1, begun + 1)]
        restored = model.kernel.map_of(arrays)
        assert isinstance(restored, ColumnFeatures)
        features = restored.joined(draw(total - len(kept_ids[-1]), begun))
        ids = _renumbered(kept_ids[-1], total, begun)
        say(f"going on after round {begun} of {path}")
    begin = time.monotonic()
    for number, size in enumerate(sizes[begun:], begun + 1):
        use(features)
        rate = _train_round(model, train, frames, rate, options, number)
        own = model.feature_map
        norms = features.column_norms(model.ranks.spread(model.row_norms(), own.places, own.total).cpu())
        best = norms.topk(size).indices.sort().values
        kept, chosen = features.to(CPU).select(best), ids[best]
        kept_ids.append(chosen)
        told = {f"kept.{t}": item for t, item in enumerate(kept_ids, 1)} | kept.arrays
        checkpoint.write(path, told, {"round": number, "rate": rate}, fingerprint)
        clock.keep()
        fresh = int((chosen >= (number - 1) * total).sum())
        say(f"selection {number} of {len(sizes)}: {size} kept, {fresh} of them new ({time.monotonic() - begin:.0f} s)")
        features, ids = kept.joined(draw(total - size, number)), _renumbered(chosen, total, number)
    _write_story(folder / SELECTED, features, kept_ids, model.inputs.dim)
    return features


def _renumbered(kept: Tensor, total: int, number: int) -> Tensor:
    """The numbers of the columns: those drawn in round t have t · total and above."""
    return torch.cat([kept, number * total + torch.arange(total - len(kept))])


def _train_round(
    model: KernelSoftmax, train: Batches, frames: int, rate: float, options: TrainingOptions, number: int
) -> float:
    """One pass of SGD from the start on random frames; the rate, halved as often as it diverged."""
    frames = min(frames, len(train))
    while rate > LEAST:
        model.initialise(options.seed)
        order = train.shuffled(options.batch, options.seed, number, frames, "selection")
        optimiser = optimiser_of(model, len(train), options, Path())
        loss, _ = one_pass(optimiser, train, order, lambda _: rate, options, 0, frames, f"selection {number}")  # noqa: B023
        if math.isfinite(loss):
            return rate
        rate /= 2.0
        say(f"selection {number} diverged; the rate is halved to {rate:g}")
    raise Diverged(f"selection {number} diverges at any rate: features or data are not finite")


def _write_story(path: Path, features: ColumnFeatures, kept: list[Tensor], dim: int) -> None:
    """Survival: the share of the features kept in round t that are in the final model; by chance it would be
    Π_{u>t} s_u/D over the later rounds."""
    last, total = set(kept[-1].tolist()), features.columns
    survival = [len(last.intersection(ids.tolist())) / len(ids) for ids in kept]
    chance = [math.prod(len(ids) / total for ids in kept[t + 1 :]) for t in range(len(kept))]
    story: dict[str, Any] = {"kept": [len(ids) for ids in kept], "survival": survival, "chance": chance}
    story["input_weights"] = input_weights(features, dim).tolist()
    if is_first():
        with replacing(path, "w") as stream:
            json.dump(story, stream)


def input_weights(features: ColumnFeatures, dim: int) -> np.ndarray:
    """Σ_j |ω_ij| of each input i, of mean 1, without the largest entry of each, which may be an outlier (may2017,
    figure 5 and footnote 13)."""
    if "omega" in features.own:
        entries = features.own["omega"].abs().double()
        sums, largest = entries.sum(dim=1), entries.amax(dim=1)
    else:
        index, value = features.own["index"].flatten().long(), features.own["value"].flatten().abs().double()
        sums = torch.zeros(dim, dtype=torch.float64).index_add_(0, index, value)
        largest = torch.zeros(dim, dtype=torch.float64).scatter_reduce_(0, index, value, "amax")
    weights = (sums - largest).numpy()
    return weights / weights.mean()
