"""From data directories and alignments to a support vector machine with posteriors (cho2009, section 2.4)."""

import shutil
import time
from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor

from kernelam.files import alone_in
from kernelam.frames.batches import Batches
from kernelam.hmm.transitions import TransitionModel
from kernelam.models.directory import save_model
from kernelam.models.posterior import find_device
from kernelam.models.svm import Svm
from kernelam.progress import say
from kernelam.training.cost import peak_memory
from kernelam.training.examination import examine
from kernelam.training.metrics import evaluate, recorded
from kernelam.training.packing import TrainingInput, check_alignments, pack_frames
from kernelam.training.svm import SvmOptions, check_gram, train_svm


def train_svm_model(given: TrainingInput, options: SvmOptions, device: str) -> None:
    """Check, pack frames, choose on heldout frames, train on these too, save; a directory whose model has the same
    inputs and settings is left as it is."""
    transitions, place = check_alignments(given, Svm.kind), find_device(device)
    with alone_in(given.folder):
        try:
            _train(given, transitions, options, place)
        finally:
            shutil.rmtree(given.folder / "frames", ignore_errors=True)


def _train(given: TrainingInput, transitions: TransitionModel, options: SvmOptions, place: torch.device) -> None:
    clock = time.monotonic()
    settings = {name: value for name, value in asdict(options).items() if name != "seed"}
    packed = pack_frames(given, transitions, settings, {"seed": options.seed}, place)
    if packed is None:
        return
    check_gram(len(packed.train) + len(packed.heldout), options.kernel)  # before frames are read into memory
    found = train_svm(*_frames(packed.train), *_frames(packed.heldout), options)
    counts = packed.counts + np.bincount(packed.heldout.labels.cpu().numpy(), minlength=len(packed.counts))
    model, chosen = (
        Svm(machine, given.pipeline, packed.inputs, counts, place) for machine in (found.machine, found.chosen)
    )
    for one in (model, chosen):
        one.calibrate(found.slopes)
    heldout, seen = evaluate(chosen, packed.heldout), examine(chosen, packed.heldout, packed.phones)
    say(f"heldout CE {heldout['ce']:.4f}, frame error {100 * heldout['frame_error']:.2f} %, then learned from too")
    about = {
        "fingerprint": packed.fingerprint,
        "training": {
            **packed.told,
            "frames": len(packed.train) + len(packed.heldout),
            "configurations": len(found.trials),
            "trials": found.trials,
            "seconds": round(time.monotonic() - clock, 1),
            "memory": peak_memory(place),
        },
        "heldout": recorded(heldout),
        **seen.record,
        "seed": options.seed,
    }
    save_model(given.folder, model, about, packed.states, [seen.save])


def _frames(batches: Batches) -> tuple[Tensor, Tensor]:
    return batches.take(torch.arange(len(batches)))
