"""Kernel ridge regression on random features, one class against one or against the rest (chen2016)."""

from typing import Any

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import FeatureMap, Kernel, kernel_from
from kernelam.models.coupling import couple
from kernelam.models.posterior import PosteriorModel

SCHEMES = ("one-vs-one", "one-vs-rest")
CHUNK_ELEMENTS = 1 << 23
"""Of z, of f and of the forms of coupling, computed at once."""
LEAST = 1e-8
"""The probability of a class is not taken to be below this: those of some hundred classes have larger errors."""


def of_classes(scheme: str, classes: int) -> int:
    """Numbers of a frame beside z: of pairs μ, its products, Q with a copy and a factor; or f, μ and p."""
    return 5 * classes**2 if scheme == "one-vs-one" else 3 * classes


class Ridge(PosteriorModel):
    """f(x) = βᵀz(x) of each problem: a pair of classes i < j, positive for i, or a class against the rest.

    μ = σ(α f + γ) is the probability of the first class (eq. 6, where γ is called β). One-vs-one couples these
    (eq. 7); one-vs-rest normalises them. What comes of it is in the right order and far too flat to be set against a
    language model, so p ∝ (coupled)^τ. `classes` are those that had frames enough to be set against others; any other
    one has a fixed probability, its share of the training frames (see `with_others`).
    """

    kind = "ridge"

    def __init__(
        self, kernel: Kernel, feature_map: FeatureMap, scheme: str, classes: Tensor, beta: Tensor, *common: Any
    ) -> None:
        super().__init__(*common)
        if scheme not in SCHEMES:
            raise KernelamError(f"no scheme is called {scheme}; there are {', '.join(SCHEMES)}")
        if len(classes) < 2:
            raise KernelamError(
                "fewer than two classes have enough frames to be set against each other: train on more data"
            )
        self.kernel, self.scheme = kernel, scheme
        self.feature_map = feature_map.to(self.device)
        self.classes = classes.to(self.device)
        self.parameters = {"beta": beta.to(self.device)}
        self._z: Tensor | None = None  # its memory is used again: what is kept of frames would lie between new ones
        self.calibrate(torch.tensor([2.0, 0.0]).repeat(len(beta), 1))

    def calibrate(self, slopes: Tensor, temperature: float = 1.0) -> None:
        """Take α and γ of each problem, problems × 2, and τ."""
        self.parameters["calibration"] = slopes.to(self.device)
        self.parameters["temperature"] = torch.full((1,), temperature, device=self.device)

    @property
    def pairs(self) -> Tensor:
        """Of one-vs-one, which of `classes` each row of β sets against each other."""
        return torch.triu_indices(len(self.classes), len(self.classes), 1, device=self.device).T

    @property
    def chunk(self) -> int:
        size = self.feature_map.count + of_classes(self.scheme, len(self.classes))
        return max(1, min(super().chunk, CHUNK_ELEMENTS // size))

    @torch.no_grad()
    def outputs(self, x: Tensor, problems: Tensor | None = None) -> Tensor:
        """f of every problem, or of these alone, batch × problems."""
        beta = self.parameters["beta"]
        self._z = self.feature_map(x, self._z)
        return self._z @ (beta if problems is None else beta[problems]).T

    @torch.no_grad()
    def votes(self, x: Tensor) -> Tensor:
        """How many of its pairs each class wins; where there are none, f itself. A class without problems has −∞."""
        votes = torch.full((len(x), self.num_classes), -torch.inf, device=x.device)
        for part, rows in zip(torch.split(x, self.chunk), torch.split(votes, self.chunk), strict=True):
            f = self.outputs(part)
            if self.scheme == "one-vs-one":
                i, j = self.pairs.T
                won = torch.zeros(len(part), len(self.classes), device=x.device)
                f = won.index_add_(1, i, (f > 0).float()).index_add_(1, j, (f <= 0).float())
            rows.index_copy_(1, self.classes, f)
        return votes

    @torch.no_grad()
    def scores(self, x: Tensor) -> Tensor:
        """The logarithms of the coupled probabilities of `classes`, whatever the number of frames in bounded memory."""
        p = torch.cat([self._coupled(part) for part in torch.split(x, self.chunk)])
        return torch.log_softmax(p.clamp_min_(LEAST).log_(), dim=1)

    def _coupled(self, x: Tensor) -> Tensor:
        alpha, gamma = self.parameters["calibration"].T
        mu = self.outputs(x).mul_(alpha).add_(gamma).sigmoid_()
        return couple(mu, len(self.classes)) if self.scheme == "one-vs-one" else mu

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """log p."""
        own = torch.log_softmax(self.parameters["temperature"] * self.scores(x), dim=1)
        return self.with_others(own, self.classes)

    def config(self) -> dict[str, Any]:
        return {"kernel": self.kernel.settings(), "features": self.feature_map.count, "scheme": self.scheme}

    def arrays(self) -> dict[str, Tensor]:
        own = {**self.parameters, "classes": self.classes}
        return {name: array.cpu() for name, array in {**own, **self.feature_map.arrays}.items()}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "Ridge":
        kernel = kernel_from(config["kernel"])
        names = ("classes", "beta", "calibration", "temperature")
        classes, beta, calibration, temperature = (arrays.pop(name) for name in names)
        features, count = kernel.map_of(arrays), len(classes)
        features.check(common[1].dim)
        problems = count * (count - 1) // 2 if config["scheme"] == "one-vs-one" else count
        if beta.shape != (problems, features.count) or calibration.shape != (problems, 2):
            raise ValueError(f"its problems are not {problems} of {features.count} features")
        model = cls(kernel, features, config["scheme"], classes, beta, *common)
        model.calibrate(calibration, float(temperature))
        return model
