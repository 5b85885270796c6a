"""Support vector machines with exact kernels (cho2009, section 2.4), one class against one as libsvm has them."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import Kernel, kernel_from
from kernelam.models.arrays import read_arrays, write_arrays

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
        """f of every pair, batch × pairs."""
        return torch.cat([self._decisions(part) for part in torch.split(x, self.chunk)])

    def _decisions(self, x: Tensor) -> Tensor:
        k, sizes = self.kernel.matrix(x, self.vectors), self.sizes.tolist()
        groups = zip(k.split(sizes, dim=1), self.alpha.split(sizes, dim=1), strict=True)
        parts = torch.stack([own @ alpha.T for own, alpha in groups])  # of each class, batch × classes − 1
        i, j = torch.triu_indices(len(sizes), len(sizes), 1, device=x.device)
        return (parts[i, :, j - 1] + parts[j, :, i]).T + self.offsets

    def predict(self, x: Tensor) -> Tensor:
        """The class that wins most of its pairs; of several, the first."""
        count = len(self.classes)
        i, j = torch.triu_indices(count, count, 1, device=x.device)
        won = self.decisions(x) > 0
        votes = torch.zeros(len(x), count, dtype=torch.int64, device=x.device)
        votes.index_add_(1, i, won.long()).index_add_(1, j, (~won).long())
        return self.classes[votes.argmax(dim=1)]

    def to(self, device: torch.device) -> "KernelSvm":
        return KernelSvm(self.kernel, *(array.to(device) for array in self._arrays().values()))

    def _arrays(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in ("classes", "sizes", "vectors", "alpha", "offsets")}

    def save(self, path: Path) -> None:
        write_arrays(path, self._arrays(), {"kind": "svm", "kernel": self.kernel.settings()})

    @classmethod
    def load(cls, path: Path) -> "KernelSvm":
        arrays, about = read_arrays(path)
        try:
            names = ("classes", "sizes", "vectors", "alpha", "offsets")
            return cls(kernel_from(about["kernel"]), *(arrays[name] for name in names))
        except (KeyError, TypeError) as error:
            raise KernelamError(f"{path} holds no support vector machine: {error!r}") from None
