"""Symmetric matrices kept as panels of rows from the diagonal on: half the flops, the disk and the reading."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

WIDEST = 256

T = TypeVar("T", int, Tensor)


@dataclass(frozen=True)
class Triangle:
    """How an r × r matrix lies in one array: panel after panel, A[s : s + tile, s : r] row by row.

    The share of a panel below the diagonal is kept for nothing, in all about tile / r of the triangle. A tenth of r,
    or WIDEST, is wide enough for matrix products at full speed.
    """

    r: int

    @property
    def tile(self) -> int:
        return min(WIDEST, max(8, self.r // 80 * 8))

    @property
    def size(self) -> int:
        """Numbers in the array."""
        whole, rest = divmod(self.r, self.tile)
        return self._before(whole) + rest * rest

    def _before(self, panel: T) -> T:
        """Numbers of the panels before this one: Σ tile · (r − q · tile), q < panel."""
        return self.tile * (panel * self.r - self.tile * (panel * (panel - 1) // 2))

    def panels(self, packed: Tensor) -> Iterator[tuple[int, Tensor]]:
        """The first row of each panel, and the panel."""
        place = 0
        for start in range(0, self.r, self.tile):
            shape = (min(self.tile, self.r - start), self.r - start)
            yield start, packed[place : (place := place + shape[0] * shape[1])].view(shape)

    def add(self, packed: Tensor, zt: Tensor) -> None:
        """A += ZᵀZ, given Zᵀ, a feature a row."""
        for start, panel in self.panels(packed):
            panel.addmm_(zt[start : start + len(panel)], zt[start:].T)

    def at(self, packed: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """A[rows, columns], where no row number is above its column's."""
        panel = rows // self.tile
        first = panel * self.tile
        return packed[self._before(panel) + (rows - first) * (self.r - first) + (columns - first)]

    def full(self, packed: Tensor) -> Tensor:
        whole = torch.empty(self.r, self.r, dtype=packed.dtype, device=packed.device)
        for start, panel in self.panels(packed):
            end = start + len(panel)
            whole[start:end, start:] = panel
            whole[end:, start:end] = panel[:, len(panel) :].T
        return whole

    def multiply(self, packed: Tensor, v: Tensor) -> Tensor:
        """vA, that is A times each row of v, which reads A once."""
        out = torch.zeros_like(v)
        for start, panel in self.panels(packed):
            end = start + len(panel)
            out[:, start:end].addmm_(v[:, start:], panel.T)
            if end < self.r:
                out[:, end:].addmm_(v[:, start:end], panel[:, len(panel) :])
        return out
