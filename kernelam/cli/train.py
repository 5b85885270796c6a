"""Train acoustic models."""

from collections.abc import Callable
from typing import Any

import click

from kernelam.cli.values import ABOVE_ZERO, COUNT, PATH, POSITIVE

ARGUMENTS = ("data", "heldout_data", "lang", "ali", "heldout_ali", "folder")


@click.group()
def command() -> None:
    """Train acoustic models on Kaldi features and alignments."""


def common(function: Callable[..., None]) -> Callable[..., None]:
    """The positionals and options that every kind of model shares."""
    for option in (
        click.option(
            "--feat-type",
            type=click.Choice(["plain", "deltas", "lda", "fmllr"]),
            default="plain",
            help="plain: DATA's features by the options below; others: by the options, final.mat and trans.* of ALI.",
        ),
        click.option("--cmvn-opts", default="", help="CMVN per speaker, e.g. '--norm-means=true --norm-vars=true'."),
        click.option("--delta-order", type=COUNT, default=0, help="Append deltas up to this order."),
        click.option("--splice", type=COUNT, default=5, help="Frames of context on either side."),
        click.option("--rates", default="", help="Learning rates to choose from on heldout frames, e.g. '1 2 4'."),
        click.option("--search-frames", type=POSITIVE, default=100_000, help="Frames that each rate is tried on."),
        click.option("--batch", type=POSITIVE, default=256, help="Frames a mini-batch."),
        click.option("--max-epochs", type=POSITIVE, default=20),
        click.option("--max-halvings", type=POSITIVE, default=6, help="The halving of the rate that ends training."),
        click.option("--metric", type=click.Choice(["ce", "erll"]), default="ce", help="Watched by the halving rule."),
        click.option("--seed", type=COUNT, default=1),
        click.option("--device", default="cpu", help="cpu or cuda."),
    ):
        function = option(function)
    for name in reversed(ARGUMENTS):
        function = click.argument(name, type=PATH)(function)
    return function


@command.command()
@common
@click.option("--kernel", default="gaussian")
@click.option(
    "--bandwidth",
    type=ABOVE_ZERO,
    default=1.0,
    help="2σ² as a multiple of the median squared distance of random frames.",
)
@click.option("--num-features", type=POSITIVE, default=25_000, help="Random features D.")
@click.option("--bottleneck", type=COUNT, default=0, help="Rank of the output matrix; 0 trains it whole.")
def kernel(kernel: str, bandwidth: float, num_features: int, bottleneck: int, **shared: Any) -> None:
    """Random features and multinomial logistic regression."""
    from kernelam.kernels import kernel_class
    from kernelam.models.softmax import KernelSoftmax
    from kernelam.training.bandwidth import random_pairs

    chosen = kernel_class(kernel)
    seed = shared["seed"]

    def build(train: Any, pipeline: Any, inputs: Any, counts: Any, device: Any) -> KernelSoftmax:
        fitted = chosen.from_pairs(*random_pairs(train, seed), bandwidth)
        features = fitted.feature_map(inputs.dim, num_features, seed)
        return KernelSoftmax(fitted, features, bottleneck, pipeline, inputs, counts, device)

    settings = {"kernel": kernel, "bandwidth": bandwidth, "num_features": num_features, "bottleneck": bottleneck}
    _train(build, settings, "8 16 32", **shared)


@command.command()
@common
@click.option("--layers", type=POSITIVE, default=4, help="Hidden layers.")
@click.option("--width", type=POSITIVE, default=1000, help="Units in each.")
def dnn(layers: int, width: int, **shared: Any) -> None:
    """A feed-forward network of tanh units."""
    from kernelam.models.dnn import Dnn

    def build(_: Any, *given: Any) -> Dnn:
        return Dnn(layers, width, *given)

    _train(build, {"layers": layers, "width": width}, "0.05 0.1 0.2", **shared)


def _train(build: Any, settings: dict[str, Any], default_rates: str, **shared: Any) -> None:
    from kernelam.cli.values import numbers
    from kernelam.frontend.pipeline import Pipeline
    from kernelam.training.acoustic import TrainingInput, train_model
    from kernelam.training.sgd import SgdOptions

    places = {name: shared[name] for name in ARGUMENTS}
    data, ali = ([places[name], places[f"heldout_{name}"]] for name in ("data", "ali"))
    pipeline = Pipeline.choose(shared["feat_type"], shared["cmvn_opts"], shared["delta_order"], data, ali)
    given = TrainingInput(**places, pipeline=pipeline, context=(shared["splice"], shared["splice"]))
    options = SgdOptions(
        rates=tuple(numbers(float, shared["rates"] or default_rates)),
        **{name: shared[name] for name in ("search_frames", "batch", "max_epochs", "max_halvings", "metric", "seed")},
    )
    train_model(
        given,
        build,
        {**settings, "pipeline": pipeline.settings(), "splice": shared["splice"]},
        options,
        shared["device"],
    )
