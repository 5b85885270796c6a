"""Kernel multinomial logistic regression on random features (may2017, sections 3.2 and 3.5)."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import FeatureMap, Kernel, kernel_from
from kernelam.kernels.base import ColumnFeatures
from kernelam.models.posterior import GradientModel
from kernelam.models.weights import glorot
from kernelam.ranks import alone, current, is_first

CHUNK_ELEMENTS = 1 << 26
"""Of z, computed at once when frames are only scored."""
ROWS = ("theta", "U")
"""The parameters that have a row for each feature."""


def padded(n: int) -> int:
    """The next multiple of 8: the width at which matrix products run at full speed."""
    return -(-n // 8) * 8


def check_bottleneck(bottleneck: int, num_classes: int) -> None:
    if bottleneck >= num_classes:
        raise KernelamError(f"a bottleneck of {bottleneck} is no narrower than the {num_classes} classes")


class KernelSoftmax(GradientModel):
    """p(y | x) ∝ exp(⟨θ_y, z(x)⟩ + b_y); with a bottleneck of rank r, Θ = UV.

    The columns of Θ, and r, are padded to a multiple of 8. A padded class has the bias −∞, so its probability and its
    gradient are zero; a padded column of U and row of V start at zero and stay there.

    Several processes may each have a slice of the features, with its rows of Θ or U. Then logits, or the bottleneck's
    values, are summed over them, and all else of a step is each one's own.
    """

    kind = "kernel"

    def __init__(self, kernel: Kernel, feature_map: FeatureMap, bottleneck: int, *common: Any) -> None:
        super().__init__(*common)
        check_bottleneck(bottleneck, self.num_classes)
        self.kernel = kernel
        self.feature_map = feature_map.to(self.device)
        self.bottleneck = bottleneck
        self.ranks = current()
        self.damping: tuple[Tensor, Tensor] | None = (
            None  # directions of z, and what share of each is damped in training
        )
        self._z: Tensor | None = None  # of the last step: at many features, new memory takes as long as the cosines

    @property
    def chunk(self) -> int:
        most = -(-self.feature_map.total // self.ranks.features.count)  # the same for all who share the features
        return max(1, min(super().chunk, CHUNK_ELEMENTS // most))

    def initialise(self, seed: int) -> None:
        """Θ = 0, which is convex and needs no luck; with a bottleneck U and V are Glorot-uniform."""
        features, C, r = self.feature_map, self.num_classes, self.bottleneck
        if r:
            arrays = {"U": glorot(features.total, r, seed, 0, features.places), "V": glorot(r, C, seed, 1)}
        else:
            arrays = {"theta": torch.zeros(features.count, C)}
        self._set(arrays | {"bias": torch.zeros(C)})

    def _set(self, arrays: dict[str, Tensor]) -> None:
        for name, array in arrays.items():
            full = torch.zeros([padded(n) if axis or name == "V" else n for axis, n in enumerate(array.shape)])
            if name == "bias":
                full = torch.full([padded(self.num_classes)], -torch.inf)
            full[tuple(slice(n) for n in array.shape)] = array
            self.parameters[name] = full.to(self.device)

    @torch.no_grad()
    def forward(self, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """z(x), the output layer's input h (zU, or z itself) and matrix (V, or Θ), and the logits, padding included.

        The memory of `out`, z of an earlier call, is used again.
        """
        z, p = self.feature_map(x, out), self.parameters
        if self.bottleneck:
            h, top = self.ranks.sum(self._product(z, p["U"])), p["V"]
            return z, h, top, self._product(h, top, p["bias"])
        if self.ranks.features.count > 1:
            return z, z, p["theta"], self.ranks.sum(self._product(z, p["theta"])).add_(p["bias"])
        return z, z, p["theta"], self._product(z, p["theta"], p["bias"])

    def _product(self, a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
        """ab + bias, in single precision."""
        if self.mixed:
            product = (a.bfloat16() @ b.bfloat16()).float()
            return product if bias is None else product.add_(bias)
        return a @ b if bias is None else torch.addmm(bias, a, b)

    def _descend(self, weights: Tensor, a: Tensor, b: Tensor, rate: float, shrink: float) -> None:
        """weights ← shrink · weights − rate · ab, summed over the slices of a batch."""
        if self.mixed or self.ranks.frames.count > 1:
            if shrink != 1.0:
                weights.mul_(shrink)
            weights.sub_(self.ranks.sum_frames(self._product(a, b)), alpha=rate)
        else:
            weights.addmm_(a, b, beta=shrink, alpha=-rate)

    def logits(self, x: Tensor) -> Tensor:
        return self.forward(x)[-1].narrow(1, 0, self.num_classes)

    def _damp(self, z: Tensor) -> Tensor | None:
        """Damp z in its leading directions, in place: it serves the gradient alone by then. Where the bias is a row of
        the same matrix, so is the 1 it is multiplied by; what is left of that in each frame is returned. In single
        precision always: nearly all of these directions is taken away, and the rounding of bfloat16 would be left."""
        if self.damping is None:
            return None
        directions, shares = self.damping
        own = directions.narrow(0, 0, z.shape[1])
        damped = self.ranks.sum(own.T @ z.T)
        if self.bottleneck:
            z.T.addmm_(own, shares.unsqueeze(1) * damped, alpha=-1.0)
            return None
        last = directions.narrow(0, z.shape[1], 1).squeeze(0)
        damped = shares.unsqueeze(1) * damped.add_(last.unsqueeze(1))
        z.T.addmm_(own, damped, alpha=-1.0)
        return 1.0 - damped.T.mv(last)

    @torch.no_grad()
    def step(self, x: Tensor, labels: Tensor, rate: float, l2: float = 0.0) -> Tensor:
        batch, (x, labels) = len(labels), self.ranks.own_frames(x, labels)
        z, h, top, logits = self.forward(x, self._z)
        p, self._z = self.parameters, z
        log_posterior = torch.log_softmax(logits, dim=1)
        own = labels.unsqueeze(1)
        loss = -log_posterior.gather(1, own).sum()
        gradient = log_posterior.exp_()  # of the loss with respect to the logits: posterior − one-hot label
        gradient.scatter_add_(1, own, torch.full_like(own, -1.0, dtype=gradient.dtype))
        shrink, rate = 1.0 - rate * l2, rate / batch
        frames = self._damp(z)
        if self.bottleneck:
            self._descend(p["U"], z.T, self._product(gradient, top.T), rate, shrink)
        self._descend(top, h.T, gradient, rate, shrink)
        biases = gradient.sum(dim=0) if frames is None else gradient.T.mv(frames)
        p["bias"].sub_(self.ranks.sum_frames(biases), alpha=rate)
        return self.ranks.sum_frames(loss)

    def row_norms(self) -> Tensor:
        """The squared norm of each row of Θ: how much each feature counts."""
        if not self.bottleneck:
            return self.parameters["theta"].square().sum(dim=1)
        U, V = self.parameters["U"], self.parameters["V"]
        return ((U @ (V @ V.T)) * U).sum(dim=1)

    def config(self) -> dict[str, Any]:
        return {"kernel": self.kernel.settings(), "bottleneck": self.bottleneck, "features": self.feature_map.total}

    def _gathered_columns(self, name: str, columns: Tensor) -> Tensor:
        part: FeatureMap = self.feature_map
        *path, _ = name.split(".")
        for step in path:
            part = part.parts[step]
        assert isinstance(part, ColumnFeatures)
        assert part.whole
        first, total = part.whole
        whole = self.ranks.gathered(columns.movedim(-1, 0), torch.arange(first, first + part.columns), total)
        return columns if whole is None else whole.movedim(0, -1).contiguous()

    def arrays(self) -> dict[str, Tensor]:
        C, r = self.num_classes, self.bottleneck
        cut: dict[str, Any] = {
            "theta": (slice(None), slice(C)),
            "U": (slice(None), slice(r)),
            "V": (slice(r), slice(C)),
            "bias": slice(C),
        }
        trained = {name: array[cut[name]].cpu() for name, array in self.parameters.items()}
        return trained | {name: array.cpu() for name, array in self.feature_map.arrays.items()}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "KernelSoftmax":
        kernel = kernel_from(config["kernel"])
        names = {"theta", "U", "V", "bias"} & arrays.keys()
        r, C = config["bottleneck"], len(common[2])
        features = kernel.map_of({name: array for name, array in arrays.items() if name not in names})
        features.check(common[1].dim)
        expected = {"U": (features.count, r), "V": (r, C)} if r else {"theta": (features.count, C)}
        shapes = {name: tuple(arrays[name].shape) for name in names}
        if shapes != expected | {"bias": (C,)}:
            raise ValueError(f"its parameters are arrays of the sizes {shapes}, not {expected} and a bias of {C}")
        if current().features.count > 1:
            features = features.slice(current().features)
        model = cls(kernel, features, r, *common)
        model._set(model.own({name: arrays[name] for name in names}))
        return model

    def agree(self) -> None:
        for name in ("V", "bias"):
            if name in self.parameters:
                self.ranks.same(self.parameters[name])

    def gathered(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.ranks.features.count == 1:
            return state
        return {name: self._gathered(array) if name in ROWS else array for name, array in state.items()}

    def _gathered(self, rows: Tensor) -> Tensor:
        features = self.feature_map
        whole = self.ranks.gathered(rows, features.places, features.total)
        return rows if whole is None else whole

    def own(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.ranks.features.count == 1:
            return state
        return {name: array[self.feature_map.places] if name in ROWS else array for name, array in state.items()}

    def whole(self) -> "KernelSoftmax":
        if self.ranks.features.count == 1:
            return self
        arrays, columns = self.gathered(self.arrays()), self.feature_map.sliced
        for name in sorted(columns):
            arrays[name] = self._gathered_columns(name, arrays[name])
        if not is_first():
            return self
        with alone():
            common = (self.pipeline, self.inputs, self.counts, torch.device("cpu"))
            return self.restore(self.config(), arrays, *common)


def averaged(models: Sequence[KernelSoftmax]) -> KernelSoftmax:
    """One model of all their features, whose logits are the mean of theirs (lu2014, eq. 8): its parameters are those of
    the parts over their number, and z is scaled by √(2/D) for all D features now."""
    first, features = models[0], models[0].feature_map
    for model in models:
        if model.bottleneck or model.kernel != first.kernel:
            raise KernelamError("only models of one kernel, without a bottleneck, are averaged into one")
    for model in models[1:]:
        features = features.joined(model.feature_map)
    C, parts = first.num_classes, []
    for model in models:  # unit j of a map has the features j, n + j, …
        theta, part = model.parameters["theta"][:, :C], model.feature_map
        parts.append(theta.view(-1, part.columns, C) * (math.sqrt(features.count / part.count) / len(models)))
    joined = KernelSoftmax(first.kernel, features, 0, first.pipeline, first.inputs, first.counts, first.device)
    bias = torch.stack([model.parameters["bias"][:C] for model in models]).mean(dim=0)
    joined._set({"theta": torch.cat(parts, dim=1).reshape(-1, C), "bias": bias})
    return joined
