"""Stochastic average gradient for the convex model (Le Roux et al. 2012; lu2014, section 4.1)."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import reserve
from kernelam.models.posterior import GradientModel
from kernelam.models.softmax import KernelSoftmax


class Sag:
    """Θ ← (1 − rate · l2) Θ − rate/m · d, where d = Σ z(x_i) (p_i − e_{y_i})ᵀ over the m frames seen, with the
    posteriors p_i of when each was last seen.

    What is kept of a frame is its posterior, C numbers, not its gradient. An epoch sees every frame once: it reads
    the table of the epoch before and writes its own, so that a run that was killed finds the old one whole.
    """

    def __init__(self, model: GradientModel, num_frames: int, folder: Path, l2: float, half: bool) -> None:
        if not isinstance(model, KernelSoftmax) or model.bottleneck:
            raise KernelamError("SAG is for the convex problem: a kernel model without a bottleneck")
        self.model, self.folder, self.l2, self.num_frames = model, folder, l2, num_frames
        self.dtype: np.dtype[Any] = np.dtype(np.float16 if half else np.float32)
        self.state = {name: torch.zeros_like(tensor) for name, tensor in model.parameters.items()}
        self.state |= {name: torch.zeros((), dtype=torch.int64) for name in ("seen", "table")}
        self.old: np.memmap | None = None
        self.new: np.memmap | None = None

    def begin(self, epoch: int) -> None:
        """Open the table that the state belongs to, if there is one, and make one for this epoch; epoch 0 has none."""
        table = int(self.state["table"])
        self.old = self._table(table, "r") if table else None
        self.new = self._table(epoch, "r+") if epoch else None

    def end(self, epoch: int) -> None:
        """The table of this epoch is whole; those before the one it was made from are not needed any more."""
        assert self.new is not None
        self.new.flush()
        for path in self.folder.glob("posteriors.*.table"):
            if int(path.name.split(".")[1]) not in (epoch, int(self.state["table"])):
                path.unlink()
        self.state["table"].fill_(epoch)

    def _table(self, epoch: int, mode: Literal["r", "r+"]) -> np.memmap:
        path, shape = self.folder / f"posteriors.{epoch}.table", (self.num_frames, self.model.num_classes)
        if mode == "r+":
            size = self.dtype.itemsize * shape[0] * shape[1]
            what = f"SAG's table of posteriors takes {size / 2**30:.1f} GiB, twice at a time"
            reserve(path, size, what, "--sag-table half halves it")
        return np.memmap(path, self.dtype, mode, shape=shape)

    @torch.no_grad()
    def step(self, frames: Tensor, x: Tensor, labels: Tensor, rate: float) -> Tensor:
        """One step on a batch, of which `frames` are the numbers; returns its summed loss."""
        model, C = self.model, self.model.num_classes
        z, _, _, logits = model.forward(x)
        log_posterior = torch.log_softmax(logits, dim=1)
        loss = -log_posterior.gather(1, labels[:, None]).sum()
        delta = log_posterior.exp_()
        self._exchange(frames.numpy(), delta[:, :C], labels)
        d = self.state
        d["theta"].addmm_(z.float().T, delta)
        d["bias"].add_(delta.sum(dim=0))
        d["seen"] += len(labels) if self.old is None else 0
        p, scale = model.parameters, -rate / int(d["seen"])
        if self.l2:
            p["theta"].mul_(1.0 - rate * self.l2)
        p["theta"].add_(d["theta"], alpha=scale)
        p["bias"].add_(d["bias"], alpha=scale)
        return loss

    def _exchange(self, frames: np.ndarray, posterior: Tensor, labels: Tensor) -> None:
        """Write the posteriors to the table, and take from them, in place, what stood there before (or the labels).

        They are rounded as the table rounds them, so that d stays the sum over the table.
        """
        rounded = posterior.cpu().numpy().astype(self.dtype)
        if self.new is not None:
            self.new[frames] = rounded
        posterior.copy_(torch.from_numpy(rounded.astype(np.float32)))
        if self.old is None:
            posterior[torch.arange(len(labels), device=labels.device), labels] -= 1.0
        else:
            posterior.sub_(torch.from_numpy(self.old[frames].astype(np.float32)).to(posterior.device))
