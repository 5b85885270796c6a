"""Train acoustic models."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kernelam.cli.values import ABOVE_ZERO, COUNT, PATH, POSITIVE
from kernelam.ranks import world

WIDTH = "2σ², or of laplacian 1/λ, as a multiple of the median squared or ℓ1 distance of random frames"
ARGUMENTS = ("data", "heldout_data", "lang", "ali", "heldout_ali", "folder")


@click.group()
def command() -> None:
    """Train acoustic models on Kaldi features and alignments."""


def inputs(function: Callable[..., None]) -> Callable[..., None]:
    """The positionals and options that every kind of model has."""
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
        click.option(
            "--scaling",
            type=click.Choice(["each", "shared"]),
            default="each",
            help="Of inputs: each to mean 0 and variance 1, or, as suits pixels, all by one number.",
        ),
        click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1),
        click.option("--device", default="cpu", help="cpu or cuda."),
    ):
        function = option(function)
    for name in reversed(ARGUMENTS):
        function = click.argument(name, type=PATH)(function)
    return function


def common(function: Callable[..., None]) -> Callable[..., None]:
    """Those of every model that is fitted by its gradient."""
    for option in (
        click.option("--rates", default="", help="Learning rates to choose from on heldout frames, e.g. '1 2 4'."),
        click.option(
            "--search-frames",
            type=POSITIVE,
            default=100_000,
            help="Frames that each rate is tried on; few favour high rates.",
        ),
        click.option("--batch", type=POSITIVE, default=256, help="Frames a mini-batch."),
        click.option(
            "--schedule",
            type=click.Choice(["decay", "average", "halving"]),
            default="decay",
            help="decay: the rate falls to zero; average: of the weights of the last epoch; halving: the papers' rule.",
        ),
        click.option(
            "--max-epochs",
            type=COUNT,
            default=0,
            help="0: 20 with halving, 4 otherwise, where an epoch that diverges is done again at half the rate.",
        ),
        click.option("--max-halvings", type=POSITIVE, default=6, help="The halving of the rate that ends training."),
        click.option("--metric", default="ce", help="Chooses and halves the rate: ce, erll:β, capped:λ or top-k:κ."),
        click.option(
            "--l2",
            default="0",
            help="Half this times the squared weights is added to the loss (with adamw, each step instead shrinks them"
            " by this times the rate); several to choose from.",
        ),
        click.option(
            "--augment",
            default="",
            help="Noise on the inputs: mask:p, noise:s or, of square images, deform:s by s pixels.",
        ),
        click.option(
            "--precision",
            type=click.Choice(["single", "tf32", "mixed"]),
            default="single",
            help="Of matrix products: tf32 on a GPU; mixed: bfloat16, sums and weights in single precision, on GPUs"
            " and on CPUs that multiply it.",
        ),
    ):
        function = option(function)
    return inputs(function)


@command.command()
@common
@click.option("--kernel", default="gaussian", help="An expression, such as laplacian, or gaussian o pca:50 o gaussian.")
@click.option("--bandwidth", default="1", help=f"{WIDTH}; several to choose from.")
@click.option("--num-features", type=POSITIVE, default=25_000, help="Random features D.")
@click.option("--sampling", type=click.Choice(["paired", "independent", "orthogonal"]), default="paired")
@click.option("--bottleneck", type=COUNT, default=0, help="Rank of the output matrix; 0 trains it whole.")
@click.option("--selection", default="", help="Rounds of feature selection, or how many to keep in each.")
@click.option("--selection-frames", type=POSITIVE, default=1_000_000, help="Frames that each round passes over.")
@click.option("--features-of", default="", help="Take the random features of this model instead, e.g. its selection.")
@click.option("--precondition", type=COUNT, default=0, help="Leading directions of the features to damp in training.")
@click.option("--optimiser", type=click.Choice(["sgd", "sag"]), default="sgd")
@click.option("--sag-table", type=click.Choice(["single", "half"]), default="single", help="Precision of its memory.")
@click.option(
    "--frame-shards",
    type=POSITIVE,
    default=1,
    help="Of the processes of kernelam together or torchrun, so many share the frames of a batch, the others features.",
)
@click.option("--block", type=POSITIVE, default=1, help="Train this block of the features alone,")
@click.option("--blocks", type=POSITIVE, default=1, help="of so many.")
def kernel(
    kernel: str,
    bandwidth: str,
    num_features: int,
    sampling: str,
    bottleneck: int,
    selection: str,
    selection_frames: int,
    features_of: str,
    precondition: int,
    block: int,
    blocks: int,
    **shared: Any,
) -> None:
    """Random features and multinomial logistic regression."""
    from kernelam.cli.values import numbers
    from kernelam.kernels.expression import parse

    parse(kernel)  # a mistake in it is told before PyTorch is there
    bandwidths = tuple(numbers(float, bandwidth, "--bandwidth"))
    from kernelam.training.kernel import KernelPlan

    features = (kernel, bandwidths, num_features, bottleneck, sampling, selection, selection_frames)
    plan = KernelPlan(*features, features_of, precondition, block, blocks)
    _train(plan, "8 16 32", **shared)


@command.command()
@common
@click.option("--layers", type=POSITIVE, default=4, help="Hidden layers.")
@click.option("--width", type=POSITIVE, default=1000, help="Units in each.")
@click.option("--activation", type=click.Choice(["tanh", "sigmoid", "relu"]), default="tanh")
@click.option("--bottleneck", type=COUNT, default=0, help="Rank of the output matrix; 0 trains it whole.")
@click.option("--normalise", type=bool, default=False, help="Each layer, over its units, before the activation.")
@click.option("--dropout", default="0", help="Share of hidden units left out in training; several to choose from.")
@click.option(
    "--pretraining",
    type=click.Choice(["none", "discriminative", "rbm"]),
    default="discriminative",
    help="discriminative: an epoch of each shallower network; rbm: contrastive divergence, layer by layer.",
)
@click.option("--rbm-epochs", type=POSITIVE, default=5, help="Of contrastive divergence, for each layer.")
@click.option("--optimiser", type=click.Choice(["sgd", "adamw"]), default="sgd")
@click.option("--momentum", default="0", help="Of sgd; several to choose from.")
def dnn(pretraining: str, rbm_epochs: int, dropout: str, **shared: Any) -> None:
    """A feed-forward network."""
    dropouts = _choices("--dropout", dropout, 1.0)
    from kernelam.models.dnn import Network
    from kernelam.training.dnn import DnnPlan

    shape = ("layers", "width", "activation", "bottleneck", "normalise")
    network = Network(**{name: shared.pop(name) for name in shape})
    plan = DnnPlan(network, "" if pretraining == "none" else pretraining, rbm_epochs, dropouts)
    shared["frame_shards"] = world()
    _train(plan, "0.001 0.002 0.004" if shared["optimiser"] == "adamw" else "0.05 0.1 0.2", **shared)


@command.command()
@inputs
@click.option("--kernel", default="gaussian", help="An expression, such as laplacian, or gaussian o pca:50 o gaussian.")
@click.option("--bandwidth", type=ABOVE_ZERO, default=1.0, help=WIDTH + ".")
@click.option("--num-features", type=POSITIVE, default=5000, help="Random features D.")
@click.option("--sampling", type=click.Choice(["paired", "independent", "orthogonal"]), default="paired")
@click.option("--ridge", default="0.1", help="λ; several to choose from on heldout frames.")
@click.option("--scheme", type=click.Choice(["one-vs-one", "one-vs-rest"]), default="one-vs-one")
@click.option("--solver", type=click.Choice(["gmres", "cg", "cholesky"]), default="gmres", help="Of one-vs-one.")
@click.option("--tolerance", type=float, default=1e-3, help="Of the residual of gmres and cg, as a share of |g|.")
@click.option(
    "--part",
    type=click.Choice(["all", "prepare", "sums"]),
    default="all",
    help="prepare: what comes before the sums over frames; sums: those of one job; all: what is not done yet.",
)
@click.option("--job", type=POSITIVE, default=1, help="Sum the frames of this job,")
@click.option("--jobs", type=POSITIVE, default=1, help="of so many.")
def ridge(
    kernel: str,
    bandwidth: float,
    num_features: int,
    sampling: str,
    ridge: str,
    scheme: str,
    solver: str,
    tolerance: float,
    part: str,
    job: int,
    jobs: int,
    **shared: Any,
) -> None:
    """Ridge regression on random features, one class against one or the rest."""
    from kernelam.kernels.expression import parse

    parse(kernel)  # a mistake in it is told before PyTorch is there
    ridges = _choices("--ridge", ridge, 1e15)  # squares of vectors that are multiplied by more are not finite
    from kernelam.training.ridge import prepare_ridge, sum_share, train_ridge
    from kernelam.training.ridge_plan import RidgePlan, Solver

    features = (kernel, bandwidth, num_features, sampling)
    plan = RidgePlan(*features, ridges, scheme, Solver(solver, tolerance), shared["seed"])
    if part == "sums":
        sum_share(shared["folder"], job, jobs, shared["device"])
    else:
        run = prepare_ridge if part == "prepare" else train_ridge
        run(given_inputs(shared), plan, shared["device"])


@command.command()
@inputs
@click.option("--kernel", default="gaussian", help="gaussian, polynomial:2, or polynomial:1, which is linear.")
@click.option("--bandwidth", default="1", help=f"{WIDTH}; several to choose from.")
@click.option("--penalty", default="1", help="c; several to choose from on heldout frames.")
@click.option("--basis", type=POSITIVE, default=1000, help="Basis vectors in the end.")
@click.option("--first", type=POSITIVE, default=10, help="Random frames that it begins with.")
@click.option("--added", type=POSITIVE, default=10, help="Vectors that a round adds.")
@click.option(
    "--method",
    type=click.Choice(["orthogonal", "joint", "nystrom"]),
    default="orthogonal",
    help="How they are found: from orthogonalised gradients, all of a round at once, or random frames.",
)
@click.option("--priors", type=click.Choice(["uniform", "counts"]), default="uniform", help="What decoding divides by.")
def pursuit(
    kernel: str,
    bandwidth: str,
    penalty: str,
    basis: int,
    first: int,
    added: int,
    method: str,
    priors: str,
    **shared: Any,
) -> None:
    """A log-linear model of kernels of basis vectors that are searched for."""
    from kernelam.cli.values import numbers
    from kernelam.kernels.expression import parse

    parse(kernel)  # a mistake in it is told before PyTorch is there
    penalties = _choices("--penalty", penalty, math.inf)
    bandwidths = tuple(numbers(float, bandwidth, "--bandwidth"))
    from kernelam.training.expansion import ExpansionPlan, train_expansion
    from kernelam.training.pursuit import PursuitOptions

    options = PursuitOptions(basis, first, added, method, seed=shared["seed"])
    plan = ExpansionPlan(kernel, options, bandwidths, penalties, priors)
    train_expansion(given_inputs(shared), plan, shared["device"])


@command.command()
@inputs
@click.option("--kernel", default="arccos1", help="Of each layer, an expression with a closed form: arccos0, gaussian.")
@click.option("--layers", type=COUNT, default=1, help="Of kernel PCA; 0: nearest neighbours by the inputs themselves.")
@click.option("--bandwidth", default="1", help="Multiples of the median distance, to choose from in each layer.")
@click.option("--examples", type=POSITIVE, default=12_000, help="Random frames that it is made of.")
@click.option("--pca-examples", type=POSITIVE, default=6000, help="Random ones of these that components are of.")
@click.option("--components", type=POSITIVE, default=500, help="Of each layer, before uninformative ones are left out.")
@click.option("--targets", type=POSITIVE, default=3, help="Neighbours of an example that the metric draws near.")
@click.option("--layers-of", default="", help="A machine that differs in having fewer layers, which are taken from it.")
def multilayer(
    kernel: str,
    layers: int,
    bandwidth: str,
    examples: int,
    pca_examples: int,
    components: int,
    targets: int,
    layers_of: str,
    **shared: Any,
) -> None:
    """Layers of kernel PCA, and nearest neighbours by a metric at the top."""
    from kernelam.cli.values import numbers
    from kernelam.kernels.expression import parse

    parse(kernel)  # a mistake in it is told before PyTorch is there
    bandwidths = tuple(numbers(float, bandwidth, "--bandwidth"))
    from kernelam.training.layers import LayerOptions
    from kernelam.training.multilayer import train_multilayer

    shape = (kernel, layers, bandwidths, examples, pca_examples, components, targets)
    below = Path(layers_of) if layers_of else None
    train_multilayer(given_inputs(shared), LayerOptions(*shape, shared["seed"]), shared["device"], below)


@command.command()
@inputs
@click.option("--kernel", default="arccos1", help="An expression with a closed form: gaussian, arccos1 o arccos0.")
@click.option("--bandwidth", default="1", help=f"{WIDTH}; several to choose from.")
@click.option(
    "--penalty",
    default="0.1 1 10 100 1000",
    help="C, as multiples of the inverse variance in the kernel's feature space, to choose from.",
)
def svm(kernel: str, bandwidth: str, penalty: str, **shared: Any) -> None:
    """A support vector machine of all training and heldout frames; the latter choose first."""
    from kernelam.cli.values import numbers
    from kernelam.kernels.expression import parse

    parse(kernel)  # a mistake in it is told before PyTorch is there
    choices = tuple(numbers(float, bandwidth, "--bandwidth")), tuple(numbers(float, penalty, "--penalty"))
    from kernelam.training.svm import SvmOptions
    from kernelam.training.svm_model import train_svm_model

    train_svm_model(given_inputs(shared), SvmOptions(kernel, *choices, shared["seed"]), shared["device"])


OPTIONS = (
    *("search_frames", "batch", "schedule", "max_epochs", "max_halvings", "metric", "augment", "seed"),
    *("precision", "optimiser", "sag_table"),
)


def _choices(option: str, text: str, end: float) -> tuple[float, ...]:
    """Numbers from 0 to below `end`, each once."""
    from kernelam.cli.values import numbers
    from kernelam.errors import KernelamError

    values = tuple(dict.fromkeys(numbers(float, text, option)))
    if wrong := [value for value in values if not 0.0 <= value < end]:
        raise KernelamError(f"{option} is a number from 0 to below {end:g}, not {wrong[0]:g}")
    return values


def _train(plan: Any, default_rates: str, **shared: Any) -> None:
    from kernelam.cli.values import numbers

    rates = tuple(numbers(float, shared["rates"] or default_rates, "--rates"))
    l2s = _choices("--l2", shared["l2"], math.inf)
    momenta = _choices("--momentum", shared.get("momentum", "0"), 1.0)
    from kernelam.frames.augmentation import Augmentation
    from kernelam.training.acoustic import train_model
    from kernelam.training.metrics import Metric
    from kernelam.training.trainer import TrainingOptions

    if shared["augment"]:
        Augmentation.parse(shared["augment"])
    shared["metric"] = str(Metric.parse(shared["metric"]))
    given = given_inputs(shared)
    more = {name: shared[name] for name in OPTIONS if name in shared}
    options = TrainingOptions(rates, l2s=l2s, momenta=momenta, **more)
    train_model(given, plan, options, shared["device"], shared["frame_shards"])


def given_inputs(shared: dict[str, Any]) -> Any:
    """The positionals, and the features that the options ask for."""
    from kernelam.frontend.pipeline import Pipeline
    from kernelam.training.packing import TrainingInput

    places = {name: shared[name] for name in ARGUMENTS}
    data, ali = ([places[name], places[f"heldout_{name}"]] for name in ("data", "ali"))
    pipeline = Pipeline.choose(shared["feat_type"], shared["cmvn_opts"], shared["delta_order"], data, ali)
    context = (shared["splice"], shared["splice"])
    return TrainingInput(**places, pipeline=pipeline, context=context, scaling=shared["scaling"])
