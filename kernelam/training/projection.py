"""Projections between the layers of a composition, fitted to streamed moments of its inner features."""

from collections.abc import Iterable

import torch
from torch import Tensor

from kernelam.errors import KernelamError

LARGEST = 10_000  # features whose covariance is still formed: 800 MB
Frames = Iterable[tuple[Tensor, Tensor]]
"""Inputs and labels."""
SHARPNESS = 1.5  # 1 and 2 gave a higher heldout CE in a trial on 300,000 frames of Iban
RIDGE = 1e-4  # of the mean variance within classes, so that the scatter within them can be inverted


def fit_projection(name: str, dim: int, size: int, classes: int, frames: Frames, others: Frames) -> dict[str, Tensor]:
    """The matrix and offset of v ↦ vᵀ matrix + offset from `size` to `dim` numbers, whose mean is 0; by pca or fda.

    The directions are those of `frames`; how much each tells is seen on `others`.
    """
    limit = size if name == "pca" else min(size, classes - 1)
    if dim > limit:
        told = f" for {classes} classes" if name == "fda" else ""
        raise KernelamError(f"{name}:{dim} is more than the {limit} dimensions that {size} features have{told}")
    if size > LARGEST:
        raise KernelamError(
            f"{name} of {size} features is too large: give the map inside it at most {LARGEST}, as in #5000"
        )
    mean, within, between = Moments.of(frames, size, classes).scatter()
    matrix = principal(within + between, dim) if name == "pca" else discriminant(within, between, dim)
    if name == "fda":
        matrix = matrix * weights(Moments.of(((z.double() @ matrix, y) for z, y in others), dim, classes))
    return {"matrix": matrix.float().contiguous(), "offset": (mean @ -matrix).float()}


class Moments:
    """Sums over frames: of each class, and of products, about the mean of the first frames added."""

    def __init__(self, size: int, classes: int) -> None:
        self.size, self.classes = size, classes
        self.counts = torch.zeros(classes, dtype=torch.float64)
        self.shift: Tensor | None = None

    @classmethod
    def of(cls, frames: Frames, size: int, classes: int) -> "Moments":
        moments = cls(size, classes)
        for z, labels in frames:
            moments.add(z, labels)
        return moments

    def add(self, z: Tensor, labels: Tensor) -> None:
        if self.shift is None:
            self.shift = z.mean(dim=0)
            self.sums = torch.zeros(self.classes, self.size, dtype=torch.float64, device=z.device)
            self.products = torch.zeros(self.size, self.size, dtype=torch.float64, device=z.device)
            self.counts = self.counts.to(z.device)
        centred = z - self.shift
        self.counts += torch.bincount(labels, minlength=self.classes)
        self.sums.index_add_(0, labels, centred.double())
        self.products += centred.T @ centred

    def scatter(self) -> tuple[Tensor, Tensor, Tensor]:
        """The mean, the covariance within classes and the covariance of their means; the two add up to the whole."""
        assert self.shift is not None
        total = self.counts.sum()
        mean = self.sums.sum(dim=0) / total
        seen = self.counts > 0
        means = self.sums[seen] / self.counts[seen, None] - mean
        between = means.T @ (means * (self.counts[seen, None] / total))
        whole = self.products / total - torch.outer(mean, mean)
        return self.shift.double() + mean, whole - between, between


def principal(covariance: Tensor, dim: int) -> Tensor:
    """The eigenvectors of the `dim` largest eigenvalues, largest first."""
    return _signed(torch.linalg.eigh(covariance)[1][:, -dim:].flip(1))


def discriminant(within: Tensor, between: Tensor, dim: int) -> Tensor:
    """The directions v of largest vᵀ S_b v / vᵀ S_w v, at unit variance within classes (Fisher)."""
    ridge = RIDGE * within.diagonal().mean() + torch.finfo(within.dtype).tiny
    root = torch.linalg.cholesky(within + ridge * torch.eye(len(within), dtype=within.dtype, device=within.device))
    half = torch.linalg.solve_triangular(root, between, upper=False)
    whitened = torch.linalg.solve_triangular(root, half.T, upper=False)
    directions = torch.linalg.eigh(whitened)[1][:, -dim:].flip(1)
    return _signed(torch.linalg.solve_triangular(root.T, directions, upper=True))


def weights(moments: Moments) -> Tensor:
    """What gives each coordinate the variance ρ^SHARPNESS, where ρ is the share of its variance that lies between
    classes: a kernel of distances then sees it as much as it tells classes apart.

    Means of classes differ by chance too, by (C − 1)/(n − C) of the variance within classes, which is taken off. The
    frames are not those that the directions were chosen on, where chance would have been kind to them.
    """
    _, within, between = moments.scatter()
    seen, total = int((moments.counts > 0).sum()), float(moments.counts.sum())
    within, between = within.diagonal(), between.diagonal()
    ratios = (between / within - (seen - 1) / max(1.0, total - seen)).clamp_min(0.0)
    if not (ratios > 0.0).any() or not ratios.isfinite().all():
        raise KernelamError("fda has too few frames, or finds no direction of its inputs that tells classes apart")
    return ((ratios / (1.0 + ratios)) ** SHARPNESS / (within + between)).sqrt()


def _signed(matrix: Tensor) -> Tensor:
    """Of the two signs of each column, the one that makes its largest entry positive."""
    largest = matrix.gather(0, matrix.abs().argmax(dim=0, keepdim=True))
    return matrix * torch.where(largest < 0.0, -1.0, 1.0)
