"""From data directories and alignments to a multilayer kernel machine of random training frames (cho2009, part 3)."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.files import alone_in
from kernelam.frames.order import some
from kernelam.hmm.transitions import TransitionModel
from kernelam.models.description import describe
from kernelam.models.directory import load_posterior_model, save_model
from kernelam.models.multilayer import Multilayer
from kernelam.models.posterior import find_device
from kernelam.progress import say
from kernelam.randomness import stream
from kernelam.training.cost import peak_memory
from kernelam.training.examination import examine
from kernelam.training.kernel_pca import check_pca_memory
from kernelam.training.layers import VALIDATION, LayerOptions, Layers, Steps, build_layers, build_metric
from kernelam.training.lmnn import MetricOptions, energies
from kernelam.training.metrics import evaluate, recorded
from kernelam.training.packing import Packed, TrainingInput, check_alignments, fingerprint_of, pack_frames
from kernelam.training.temperature import fit_temperature

CALIBRATED = 10_000  # random heldout frames that posteriors are calibrated on; VALIDATION of them choose widths


def train_multilayer(given: TrainingInput, options: LayerOptions, device: str, below: Path | None = None) -> None:
    """Check, pack frames, build layer by layer, calibrate, save; a directory whose model has the same inputs and
    settings is left as it is, and what an earlier call left undone is gone on with. The first layers may be those of a
    machine in `below` that was made in the same way, which saves time and changes nothing."""
    transitions, place = check_alignments(given, Multilayer.kind), find_device(device)
    machine = _machine(below, options, device) if below else None
    with alone_in(given.folder):
        try:
            _train(given, transitions, options, place, machine)
        finally:
            shutil.rmtree(given.folder / "frames", ignore_errors=True)


def _machine(folder: Path, options: LayerOptions, device: str) -> tuple[Path, Multilayer]:
    """One with no more layers than are asked for."""
    model = load_posterior_model(folder, device)
    if not isinstance(model, Multilayer) or len(model.layers) > options.layers:
        raise KernelamError(f"--layers-of {folder} is no multilayer kernel machine of {options.layers} or fewer layers")
    return folder, model


def _below(machine: tuple[Path, Multilayer], packed: Packed, x: Tensor) -> Layers:
    """Its layers, if it was made as this one is, but for the number of them."""
    folder, model = machine
    try:
        training = describe(folder)["training"]
        chosen = [dict(row) for row in training["chosen"]]
        whole = [row["features"] for row in chosen] == model.widths
        made, own = ({name: told[name] for name in ("settings", "options", "data")} for told in (training, packed.told))
        for told in (made, own):
            told["settings"] = {**told["settings"], "layers": len(model.layers)}
    except (KeyError, TypeError, ValueError):  # of what is no story of its training
        whole = False
    if not whole:
        raise KernelamError(
            f"{folder}/model.json does not tell how the layers of --layers-of were made; train it again"
        )
    if fingerprint_of(made) != fingerprint_of(own):
        raise KernelamError(f"--layers-of {folder} was made of other data, with other options or with another seed")
    kept, hidden = model.numbers["kept"], x[:, model.numbers["kept"]]
    for layer in model.layers:
        hidden = layer(hidden)
    return Layers(kept, model.layers, chosen, hidden)


def _train(
    given: TrainingInput,
    transitions: TransitionModel,
    options: LayerOptions,
    place: torch.device,
    machine: tuple[Path, Multilayer] | None,
) -> None:
    settings = {name: value for name, value in asdict(options).items() if name != "seed"}
    packed = pack_frames(given, transitions, settings, {"seed": options.seed}, place)
    unfinished = given.folder / "layers"
    if packed is None:
        shutil.rmtree(unfinished, ignore_errors=True)
        return
    if options.layers:
        check_pca_memory(min(options.pca_examples, len(packed.train)), place)
    steps = Steps(unfinished, packed.fingerprint)
    x, labels, classes = _examples(packed, options)
    below = _below(machine, packed, x) if machine else None
    found = build_layers(x, labels, options, steps, _heldout(packed, classes, VALIDATION, options.seed), below)
    say(f"{found.text} features in the inputs and layers")
    metric_options = MetricOptions(options.targets)
    metric, rounds = build_metric(found.hidden, labels, metric_options, steps)
    top = energies(found.hidden, labels, metric, metric_options)
    common = (given.pipeline, packed.inputs, packed.counts, place)
    model = Multilayer(found.kept, found.layers, top, classes, *common)
    _calibrate(model, packed, options.seed)
    heldout, seen = evaluate(model, packed.heldout), examine(model, packed.heldout, packed.phones)
    say(f"heldout CE {heldout['ce']:.4f}, frame error {100 * heldout['frame_error']:.2f} %")
    about = {
        "fingerprint": packed.fingerprint,
        "training": _story(packed, found, rounds, len(x), steps, place),
        "heldout": recorded(heldout),
        **seen.record,
        "seed": options.seed,
    }
    save_model(given.folder, model, about, packed.states, [seen.save])
    shutil.rmtree(unfinished, ignore_errors=True)


def _story(
    packed: Packed, found: Layers, rounds: list[dict[str, Any]], examples: int, steps: Steps, place: torch.device
) -> dict[str, Any]:
    return {
        **packed.told,
        "frames": len(packed.train),
        "examples": examples,
        "chosen": found.chosen,
        "rounds": rounds,
        "seconds": steps.clock.seconds if steps.clock else 0.0,
        "memory": peak_memory(place),
    }


def _examples(packed: Packed, options: LayerOptions) -> tuple[Tensor, Tensor, Tensor]:
    """Random frames, those of classes that have enough of them; their places among these classes; and the classes."""
    frames = some(len(packed.train), options.examples, stream(options.seed, "examples"))
    x, labels = packed.train.take(torch.from_numpy(frames))
    counts = torch.bincount(labels, minlength=len(packed.counts))
    classes = (counts > options.targets).nonzero()[:, 0]
    if len(classes) < 2:
        raise KernelamError(
            f"{len(classes)} classes have more than {options.targets} of {len(x)} examples, and two are to be told"
            " apart; more --examples are needed"
        )
    if few := int((counts[counts > 0] <= options.targets).sum()):
        say(f"{few} classes have no more than {options.targets} examples and are left out, as are those that have none")
    own = torch.isin(labels, classes)
    say(f"{int(own.sum())} examples of {len(classes)} classes")
    return x[own], torch.searchsorted(classes, labels[own]), classes


def _heldout(packed: Packed, classes: Tensor, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """As many random heldout frames, those of the classes; and their places among these."""
    frames = some(len(packed.heldout), count, stream(seed, "heldout"))
    x, labels = packed.heldout.take(torch.from_numpy(frames))
    own = torch.isin(labels, classes)
    if not own.any():
        raise KernelamError(f"no heldout frame of {len(frames)} is of the {len(classes)} classes of the examples")
    return x[own], torch.searchsorted(classes, labels[own])


def _calibrate(model: Multilayer, packed: Packed, seed: int) -> None:
    x, labels = _heldout(packed, model.numbers["classes"], CALIBRATED, seed)
    temperature, biases = fit_temperature(model.scores(x), labels)
    say(f"posteriors calibrated on {len(x)} heldout frames: temperature {temperature:.4g}")
    model.calibrate(temperature, biases)
