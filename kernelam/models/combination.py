"""Trained models whose logits are added with weights (lu2014, eq. 11, and its combination of kernel model and DNN)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.models.posterior import Inputs, PosteriorModel

LARGEST = 1e6  # weight: logits times more could be beyond single precision


class Combination(PosteriorModel):
    """p(y | x) ∝ exp(Σ_i a_i f_i(x)_y), a_i ≥ 0, with f_i the logits of the fixed member i; a_i = √α_i in the paper.

    Logits are known up to a constant of each frame; in the sum it is again one, and p is the same as with log p_i.

    The input is of the widest context, neither shifted nor scaled: each member takes the frames of its own context out
    of it and normalises them in its own way. Frames at the ends of an utterance stay clamped, so that a member sees
    what it was trained on.
    """

    kind = "combination"

    def __init__(self, members: Sequence[PosteriorModel], weights: Sequence[float], *common: Any) -> None:
        super().__init__(*common)
        if len(weights) != len(members):
            raise KernelamError(f"{len(members)} models take as many weights, not {len(weights)}")
        if not all(0 <= weight <= LARGEST for weight in weights) or not any(weights):
            raise KernelamError(
                f"the weights {' '.join(f'{weight:g}' for weight in weights)} cannot be used: they must be from 0 to"
                f" {LARGEST:g}, and one of them above 0"
            )
        self.members, self.weights = list(members), [float(weight) for weight in weights]
        scalings = [(member.inputs.mean, member.inputs.scale) for member in members]
        self._scalings = [[torch.from_numpy(array).to(self.device) for array in pair] for pair in scalings]

    @classmethod
    def of(cls, members: Sequence[PosteriorModel], weights: Sequence[float]) -> "Combination":
        """Of models of the same classes and features; the class counts are those of the first."""
        first = members[0]
        left, right = (max(member.inputs.context[side] for member in members) for side in (0, 1))
        nothing = np.zeros(first.feature_dim, np.float32), np.ones(first.feature_dim, np.float32)
        return cls(members, weights, first.pipeline, Inputs((left, right), *nothing), first.counts, first.device)

    def _logits_of(self, number: int, x: Tensor) -> Tensor:
        member, (mean, scale) = self.members[number], self._scalings[number]
        (centre, _), (left, right) = self.inputs.context, member.inputs.context
        frames = x.view(len(x), -1, self.feature_dim).narrow(1, centre - left, left + 1 + right)
        return member.logits(((frames - mean) * scale).view(len(x), -1))

    @torch.no_grad()
    def logits_of_members(self, x: Tensor) -> Tensor:
        """f_i(x)_y, members × batch × classes."""
        return torch.stack([self._logits_of(number, x) for number in range(len(self.members))])

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """A member without weight is left out, and costs nothing."""
        total = torch.zeros(len(x), self.num_classes, device=x.device)
        for number, weight in enumerate(self.weights):
            if weight:
                total.add_(self._logits_of(number, x), alpha=weight)
        return total

    def num_parameters(self) -> int:
        return len(self.weights) + sum(member.num_parameters() for member in self.members)

    def config(self) -> dict[str, Any]:
        members = [
            {"kind": member.kind, "config": member.config(), "context": member.inputs.context}
            for member in self.members
        ]
        return {"weights": self.weights, "members": members}

    def arrays(self) -> dict[str, Tensor]:
        """Those of member i, and the mean and scale of its input, have names that start with `i.`."""
        found: dict[str, Tensor] = {}
        for number, member in enumerate(self.members):
            mean, scale = (torch.from_numpy(array) for array in (member.inputs.mean, member.inputs.scale))
            own = member.arrays() | {"input.mean": mean, "input.scale": scale}
            found |= {f"{number}.{name}": array for name, array in own.items()}
        return found

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "Combination":
        pipeline, _, counts, device = common
        members = [
            _restore_member(about, _below(arrays, f"{number}."), pipeline, counts, device)
            for number, about in enumerate(config["members"])
        ]
        return cls(members, config["weights"], *common)


def _below(arrays: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _restore_member(
    about: dict[str, Any], arrays: dict[str, Tensor], pipeline: Pipeline, counts: np.ndarray, device: torch.device
) -> PosteriorModel:
    from kernelam.models.directory import KINDS  # which has this kind too

    inputs = Inputs.restore(about["context"], arrays)
    return KINDS[about["kind"]].restore(about["config"], arrays, pipeline, inputs, counts, device)
