"""Support vector machines with exact kernels (cho2009, section 2.4), one class against one as libsvm has them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernelam.kernels import Kernel, kernel_from
from kernelam.models.coupling import couple
from kernelam.models.posterior import PosteriorModel

ELEMENTS = 1 << 23
"""Of k(x, y), computed at once."""


@dataclass(frozen=True)
class KernelSvm:
    """f_ij(x) = Σ_m α_m k(y_m, x) + b_ij, positive for class i, of each pair i < j of `classes`.

    Support vectors y are grouped by class, as many of each as `sizes` says. Of those of class i, row j − 1 of `alpha`
    is for the pair i < j, and row j for the pair j < i: each is in one problem with every other class.
    """

    kernel: Kernel
    classes: Tensor
    sizes: Tensor
    vectors: Tensor
    alpha: Tensor  # classes − 1 × vectors
    offsets: Tensor  # of the pairs (0, 1), (0, 2), …, (1, 2), …

    @property
    def chunk(self) -> int:
        """Examples at once."""
        return max(1, ELEMENTS // len(self.vectors))

    @torch.no_grad()
    def decisions(self, x: Tensor) -> Tensor:
        """f of every pair, batch × pairs; 0 where a frame is so far off that kernels overflow."""
        decisions = torch.cat([self._decisions(part) for part in torch.split(x, self.chunk)])
        return decisions.nan_to_num_(posinf=0.0, neginf=0.0)

    def _decisions(self, x: Tensor) -> Tensor:
        k, sizes = self.kernel.matrix(x, self.vectors), self.sizes.tolist()
        groups = zip(k.split(sizes, dim=1), self.alpha.split(sizes, dim=1), strict=True)
        parts = torch.stack([own @ alpha.T for own, alpha in groups])  # of each class, batch × classes − 1
        i, j = torch.triu_indices(len(sizes), len(sizes), 1, device=x.device)
        return (parts[i, :, j - 1] + parts[j, :, i]).T + self.offsets

    def votes(self, x: Tensor) -> Tensor:
        """How many of its pairs each of `classes` wins."""
        count = len(self.classes)
        i, j = torch.triu_indices(count, count, 1, device=x.device)
        won = self.decisions(x) > 0
        votes = torch.zeros(len(x), count, device=x.device)
        return votes.index_add_(1, i, won.float()).index_add_(1, j, (~won).float())

    def predict(self, x: Tensor) -> Tensor:
        """The class that wins most of its pairs; of several, the first."""
        return self.classes[self.votes(x).argmax(dim=1)]


NAMES = ("classes", "sizes", "vectors", "alpha", "offsets")


class Svm(PosteriorModel):
    """A machine whose decisions are probabilities: σ(a f) is that of the first class of a pair, a > 0 its slope, and
    those of all pairs are coupled (chen2016, eq. 6 and 7).

    There is nothing added to a f: so the more probable of two classes is the one that the machine decides for. Of more,
    the most probable is not always the one with most votes.
    """

    kind = "svm"

    def __init__(self, machine: KernelSvm, *common: Any) -> None:
        super().__init__(*common)
        self.kernel = machine.kernel
        arrays = {name: getattr(machine, name).to(self.device) for name in NAMES}
        self.numbers = {name: arrays[name] for name in NAMES[:2]}
        self.parameters = {name: arrays[name] for name in NAMES[2:]}
        self.calibrate(torch.ones(len(machine.offsets)))

    def calibrate(self, slopes: Tensor) -> None:
        """Take a of each pair."""
        self.parameters["slopes"] = slopes.float().to(self.device)

    @property
    def machine(self) -> KernelSvm:
        return KernelSvm(self.kernel, *((self.numbers | self.parameters)[name] for name in NAMES))

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """log p."""
        s = self.parameters["slopes"] * self.machine.decisions(x)
        classes = self.numbers["classes"]
        if len(classes) == 2:  # in logarithms, which know of no probability that is too small
            log_p = torch.nn.functional.logsigmoid(torch.cat([s, -s], dim=1))
        else:
            log_p = couple(torch.sigmoid(s), len(classes)).clamp_min_(torch.finfo(s.dtype).tiny).log_()
        return self.with_others(log_p, classes)

    @torch.no_grad()
    def votes(self, x: Tensor) -> Tensor:
        """How many of its pairs each class wins; one that the machine does not know has −∞."""
        votes = torch.full((len(x), self.num_classes), -torch.inf, device=x.device)
        return votes.index_copy_(1, self.numbers["classes"], self.machine.votes(x))

    def config(self) -> dict[str, Any]:
        return {"kernel": self.kernel.settings(), "vectors": len(self.parameters["vectors"])}

    def arrays(self) -> dict[str, Tensor]:
        return {name: array.cpu() for name, array in (self.numbers | self.parameters).items()}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, Tensor], *common: Any) -> "Svm":
        count = len(arrays["classes"])
        if len(arrays["offsets"]) != count * (count - 1) // 2:
            raise ValueError(f"it has not an offset for each pair of {count} classes")
        model = cls(KernelSvm(kernel_from(config["kernel"]), *(arrays[name] for name in NAMES)), *common)
        model.calibrate(arrays["slopes"])
        return model
