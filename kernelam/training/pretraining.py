"""Where the hidden layers of a network start: from shallower networks, or from restricted Boltzmann machines."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelam.models.dnn import Dnn, Network
from kernelam.models.weights import glorot
from kernelam.progress import progress, say
from kernelam.training import checkpoint
from kernelam.training.acoustic import Setup
from kernelam.training.rbm import Rbm
from kernelam.training.search import Variants, search
from kernelam.training.trainer import Diverged, one_pass, optimiser_of

Layers = dict[str, Tensor]
FILE = "pretraining.safetensors"
MAX_HALVINGS = 10  # of the rate of a Boltzmann machine
CHUNK = 1 << 12  # frames at once


def pretrain(kind: str, network: Network, setup: Setup, rbm_epochs: int) -> list[dict[str, Any]]:
    """Make the start of the hidden layers of `network`; `kind` is discriminative or rbm. Return what was tried for it.

    `setup.folder`/pretraining.safetensors holds what is done: a run that was killed goes on from there.
    """
    options = setup.options.chosen(setup.options.l2s[0], setup.options.momenta[0])
    setup = replace(setup, options=options)
    path, shallow = setup.folder / FILE, kind == "discriminative"
    layers, told = checkpoint.read(path, setup.fingerprint) or ({}, {"done": 0, "trials": []})
    stages = network.layers - shallow  # the network of all layers is left to training
    for number in range(told["done"] + 1, stages + 1):
        if shallow:
            told["trials"] = told["trials"] or _search(network, setup)
            layers = _shallow_network(network, setup, told["trials"][0]["rate"], layers, number)
        else:
            layers = layers | _machine(network, setup, rbm_epochs, layers, number)
        if not all(bool(array.isfinite().all()) for array in layers.values()):
            advice = f"lower {options.gentler}" if shallow else "--pretraining discriminative"
            raise Diverged(f"pre-training diverged in layer {number} of {network.layers}: try {advice}")
        told["done"] = number
        checkpoint.write(path, layers, told, setup.fingerprint)
        setup.clock.keep()
    return list(told["trials"])


def pretrained(setup: Setup) -> Layers:
    """What `pretrain` has made in this folder."""
    layers, _ = checkpoint.read(setup.folder / FILE, setup.fingerprint) or ({}, {})
    return layers


def _network(network: Network, setup: Setup, layers: Layers) -> Dnn:
    made = Dnn(network, setup.pipeline, setup.inputs, setup.counts, setup.device)
    made.mixed, made.start = setup.options.precision == "mixed", layers
    made.initialise(setup.options.seed)
    return made


def _search(network: Network, setup: Setup) -> list[dict[str, Any]]:
    """Each rate tried on the network of one hidden layer."""

    def build(dropout: float) -> Dnn:
        return _network(replace(network, layers=1, dropout=dropout), setup, {})

    place = (setup.folder, f"{setup.fingerprint} pretraining", setup.clock, "pre-training")
    found = search(build, Variants("dropout", (network.dropout,)), setup.train, setup.heldout, setup.options, *place)
    return found.trials


def _shallow_network(network: Network, setup: Setup, rate: float, layers: Layers, depth: int) -> Layers:
    """An epoch of the network of `depth` layers: the last and the output new, the others as they are (Seide, Li, Chen
    and Yu, ASRU 2011)."""
    options, total, name = setup.options, len(setup.train), f"pretraining, {depth} layers"
    shallow = _network(replace(network, layers=depth), setup, layers)
    order = setup.train.shuffled(options.batch, options.seed, depth, purpose="pretraining")
    optimiser = optimiser_of(shallow, total, options, Path())
    loss, frames = one_pass(optimiser, setup.train, order, lambda _: rate, options, depth, total, name)
    say(f"{name}: mean log loss {loss / frames:.4f}")
    return {name: array for name, array in shallow.arrays().items() if name[0] in "Wbg" and int(name[1:]) < depth}


def _machine(network: Network, setup: Setup, epochs: int, layers: Layers, number: int) -> Layers:
    """Layer `number` from contrastive divergence on the units of the one below (lu2014, supplement B.2.2). The more
    units, the lower the rate at which real inputs diverge: it is halved until they do not."""
    model = _network(network, setup, layers)
    rows = network.width if number > 1 else model.inputs.dim
    mean, deviation = (torch.zeros(()), 1.0) if number > 1 else _moments(setup)
    mean = mean.to(model.device)
    for halvings in range(MAX_HALVINGS + 1):
        weights = glorot(rows, network.width, setup.options.seed, number - 1).to(model.device)
        rbm = Rbm(weights, number == 1, setup.options.seed, halvings)
        if _climb(rbm, lambda x: (model.hidden(x, number - 1) - mean) / deviation, setup, epochs, number):
            break
        say(f"machine {number} diverged at the rate {rbm.rate:g}")
    weights = rbm.weights / deviation
    hidden = rbm.hidden - mean @ weights if number == 1 else rbm.hidden
    return {f"W{number - 1}": weights.cpu(), f"b{number - 1}": hidden.cpu()}


def _moments(setup: Setup) -> tuple[Tensor, float]:
    """The mean of the inputs, and the root of their mean variance: a machine of real units takes it that these are 0
    and 1, as they are if each coordinate was scaled. Otherwise its hidden units would all tell nothing but the mean."""
    if setup.scaling == "each":
        return torch.zeros(setup.inputs.dim), 1.0
    total, squares = (torch.zeros(setup.inputs.dim, dtype=torch.float64, device=setup.device) for _ in range(2))
    for x, _ in setup.train.in_order(CHUNK):
        total += x.sum(dim=0, dtype=torch.float64)
        squares += x.double().square().sum(dim=0)
    mean = total / len(setup.train)
    variance = float((squares / len(setup.train) - mean.square()).mean())
    return mean.float(), math.sqrt(variance) if variance > 0.0 else 1.0


def _climb(rbm: Rbm, units: Callable[[Tensor], Tensor], setup: Setup, epochs: int, number: int) -> bool:
    """Epochs of steps on these units of the inputs, unless the machine diverges: whether it did not."""
    seed, batch, total = setup.options.seed, setup.options.batch, len(setup.train)
    for epoch in range(1, epochs + 1):
        name, error = f"machine {number}, epoch {epoch}", torch.zeros((), dtype=torch.float64, device=setup.device)
        order = setup.train.shuffled(batch, seed, epoch, purpose=f"rbm {number}")
        for step, frames in enumerate(progress(order, name, -(-total // batch)), 1):
            with torch.no_grad():
                error += rbm.step(units(setup.train.take(frames)[0]), epoch)
            if step % 64 == 0 and not math.isfinite(error):  # to look is to wait for the device
                return False
        if not (math.isfinite(error) and rbm.weights.isfinite().all()):
            return False
        say(f"{name}: squared error of reconstruction {float(error) / total / len(rbm.weights):.4f} a unit")
    return True
