"""Mini-batches of spliced frames: an index gather that never crosses the border of an utterance."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.frames.order import orders
from kernelam.frames.store import FrameStore
from kernelam.randomness import stream


def splice_index(frames: Tensor, offsets: Tensor, left: int, right: int) -> Tensor:
    """Rows t−left … t+right for each frame t, clamped to the first and last frame of its utterance."""
    utt = torch.searchsorted(offsets, frames, right=True)
    first, last = offsets[utt - 1], offsets[utt] - 1
    rows = frames[:, None] + torch.arange(-left, right + 1, device=frames.device)
    return torch.clamp(rows, first[:, None], last[:, None])


class Batches:
    """Normalised, spliced inputs and labels of a frame store on a device: what `Inputs.tensor` makes of utterances.

    The store stays where it is (memory-mapped) on a CPU; a GPU gets a copy when it takes at most half of what is free.
    """

    def __init__(
        self, store: FrameStore, context: tuple[int, int], mean: np.ndarray, scale: np.ndarray, device: torch.device
    ) -> None:
        self.left, self.right = context
        self.device = device
        home = device if _fits(store, device) else torch.device("cpu")
        self.features = torch.from_numpy(store.features).to(home)
        self.mean, self.scale = torch.from_numpy(mean).to(home), torch.from_numpy(scale).to(home)
        self.offsets = torch.from_numpy(store.offsets).to(home)
        if store.labels is None:
            raise KernelamError(f"{store.folder}/labels.i32 is not there; pack the frames again")
        self.labels = torch.from_numpy(store.labels).to(home)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (batch × dim) and labels of the given frames."""
        frames = frames.to(self.features.device)
        rows = splice_index(frames, self.offsets, self.left, self.right)
        x = self.features[rows].sub_(self.mean).mul_(self.scale).view(len(frames), -1)
        return x.to(self.device), self.labels[frames].to(self.device).long()

    def shuffled(
        self, size: int, seed: int, epoch: int, frames: int | None = None, purpose: str = "shuffle"
    ) -> Iterator[Tensor]:
        """Batches of all frames (or of `frames` random ones) in an order that seed and epoch decide; the last may be
        short."""
        left = np.empty(0, np.int64)
        for piece in orders(len(self), min(len(self), frames or len(self)), stream(seed, purpose, epoch)):
            left = np.concatenate([left, piece]) if len(left) else piece
            whole = len(left) // size * size
            yield from torch.split(torch.from_numpy(left[:whole]), size) if whole else ()
            left = left[whole:]
        if len(left):
            yield torch.from_numpy(left)

    def in_order(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        for part in torch.split(torch.arange(len(self)), size):
            yield self.take(part)


def _fits(store: FrameStore, device: torch.device) -> bool:
    if device.type != "cuda":
        return device.type == "cpu"
    free, _ = torch.cuda.mem_get_info(device)
    return store.features.nbytes + 8 * len(store) < free // 2
