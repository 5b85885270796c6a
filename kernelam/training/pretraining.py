"""Where the hidden layers of a network start: from shallower networks, or from restricted Boltzmann machines."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.models.dnn import Dnn
from kernelam.models.weights import glorot
from kernelam.progress import progress, say
from kernelam.training import checkpoint
from kernelam.training.acoustic import Setup
from kernelam.training.rbm import Rbm
from kernelam.training.trainer import one_pass, optimiser_of

Layers = dict[str, Tensor]
FILE = "pretraining.safetensors"


def pretrain(kind: str, model: Dnn, setup: Setup, rate: float, rbm_epochs: int) -> None:
    """Give the hidden layers of `model`, initialised, a start; `kind` is discriminative or rbm.

    `setup.folder`/pretraining.safetensors holds what is done: a run that was killed goes on from there.
    """
    if kind == "rbm" and (model.network.activation != "sigmoid" or model.network.normalise):
        raise KernelamError("--pretraining rbm is for sigmoid units without normalisation")
    path = setup.folder / FILE
    layers, begun = checkpoint.read(path, setup.fingerprint) or ({}, {"done": 0})
    stages = model.network.layers - (kind == "discriminative")  # the network of all layers is left to training
    for number in range(begun["done"] + 1, stages + 1):
        if kind == "discriminative":
            layers = _shallow_network(model, setup, rate, layers, number)
        else:
            layers = layers | _machine(model, setup, rbm_epochs, layers, number)
        checkpoint.write(path, layers, {"done": number}, setup.fingerprint)
    model.set(model.arrays() | layers)


def _shallow_network(model: Dnn, setup: Setup, rate: float, layers: Layers, depth: int) -> Layers:
    """An epoch of the network of `depth` layers: the last and the output new, the others as they are (Seide, Li, Chen
    and Yu, ASRU 2011)."""
    options = setup.options
    network = replace(model.network, layers=depth)
    shallow = Dnn(network, model.pipeline, model.inputs, model.counts, model.device)
    shallow.initialise(options.seed)
    shallow.set(shallow.arrays() | layers)
    shallow.mixed = model.mixed
    order = setup.train.shuffled(options.batch, options.seed, depth, purpose="pretraining")
    optimiser = optimiser_of(shallow, len(setup.train), options, Path())
    total, name = len(setup.train), f"pretraining, {depth} layers"
    loss, frames = one_pass(optimiser, setup.train, order, lambda _: rate, options, depth, total, name)
    say(f"{name}: mean log loss {loss / frames:.4f}")
    return {name: array for name, array in shallow.arrays().items() if name[0] in "Wbg" and int(name[1:]) < depth}


def _machine(model: Dnn, setup: Setup, epochs: int, layers: Layers, number: int) -> Layers:
    """Layer `number` from contrastive divergence on the units of the one below (lu2014, supplement B.2.2)."""
    seed, batch, total = setup.options.seed, setup.options.batch, len(setup.train)
    model.set(model.arrays() | layers)
    rows = model.network.width if number > 1 else model.inputs.dim
    rbm = Rbm(glorot(rows, model.network.width, seed, number - 1).to(model.device), gaussian=number == 1, seed=seed)
    for epoch in range(1, epochs + 1):
        name, error = f"machine {number}, epoch {epoch}", torch.zeros((), dtype=torch.float64, device=model.device)
        order = setup.train.shuffled(batch, seed, epoch, purpose=f"rbm {number}")
        for frames in progress(order, name, -(-total // batch)):
            with torch.no_grad():
                error += rbm.step(model.hidden(setup.train.take(frames)[0], number - 1), epoch)
        say(f"{name}: squared error of reconstruction {float(error) / total / rows:.4f} a unit")
    return {f"W{number - 1}": rbm.weights.cpu(), f"b{number - 1}": rbm.hidden.cpu()}
