"""What is measured on heldout frames after every epoch (may2017, sections 5 and 6.1)."""

import torch

from kernelam.frames.batches import Batches
from kernelam.models.posterior import PosteriorModel

ERLL_BETA = 1.0


@torch.no_grad()
def evaluate(model: PosteriorModel, heldout: Batches, size: int = 2048) -> dict[str, float]:
    """Means over frames: cross-entropy, entropy, ERLL = CE + β·entropy, and the share of frames misclassified."""
    sums = torch.zeros(3, dtype=torch.float64)
    for x, labels in heldout.in_order(size):
        log_p = torch.log_softmax(model.logits(x), dim=1)
        ce = -log_p.gather(1, labels[:, None]).sum()
        entropy = -(log_p.exp() * log_p).sum()
        errors = (log_p.argmax(dim=1) != labels).sum()
        sums += torch.stack([ce, entropy, errors]).double().cpu()
    ce, entropy, error = (sums / len(heldout)).tolist()
    return {"ce": ce, "entropy": entropy, "erll": ce + ERLL_BETA * entropy, "frame_error": error}
