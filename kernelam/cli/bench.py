"""Measure speed against a named peer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kernelam.cli.train import given_inputs, kernel
from kernelam.cli.train import pursuit as train_pursuit
from kernelam.cli.values import ABOVE_ZERO, PATH, POSITIVE, check_output
from kernelam.errors import KernelamError


def measured(function: Callable[..., None]) -> Callable[..., None]:
    """The options of the training bench."""
    for option in (
        click.option("--threads", type=POSITIVE, default=1),
        click.option("--json", "output", type=PATH, help="Write the figures there too."),
        click.option("--quick", is_flag=True, help="Small sizes, to see that it runs."),
    ):
        function = option(function)
    return function


@click.group(invoke_without_command=True)
@measured
@click.pass_context
def command(context: click.Context, threads: int, output: Path | None, quick: bool) -> None:
    """Measure speed against a named peer, both in one run. Without a command: training."""
    if context.invoked_subcommand is None:
        _training(threads, output, quick)
    elif given := [
        name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]:
        raise click.UsageError(f"--{given[0]} comes after {context.invoked_subcommand}", context)


@command.command()
@measured
def training(threads: int, output: Path | None, quick: bool) -> None:
    """Steps of kernel models as a share of the peak of matrix products, against naive autograd and scikit-learn.

    Also: costs of random features by kernel, growth with D and C, and memory. Takes five to ten minutes.
    """
    _training(threads, output, quick)


def _training(threads: int, output: Path | None, quick: bool) -> None:
    if output:
        check_output(output)
    from kernelam.training.bench import describe_bench, training_bench

    found = training_bench(threads, quick)
    click.echo(describe_bench(found))
    _write(output, found)


def _write(output: Path | None, found: object) -> None:
    import json

    from kernelam.files import replacing

    if output:
        with replacing(output, "w") as stream:
            json.dump(found, stream, indent=2)
            stream.write("\n")


TARGETS = ("sgd halving", "sag halving")
VARIED = ("optimiser", "schedule", "max_epochs", "seed")


@command.command(params=[param for param in kernel.params if param.name not in VARIED])
@click.option("--seeds", default="1 2 3")
@click.option("--max-epochs", type=POSITIVE, default=20, help="Of the halving rule.")
@click.option("--decay-epochs", default="4", help="Lengths of decay and averaging to try, e.g. '3 4 6'.")
@click.option("--target", type=click.Choice(TARGETS), default=TARGETS[0])
@click.option("--json", "output", type=PATH, help="Write the figures there too.")
def optimisers(seeds: str, max_epochs: int, decay_epochs: str, target: str, output: Path | None, **given: Any) -> None:
    """Time until each optimiser and schedule reaches the best heldout CE of one of them, --target.

    Trains one model in all ways, with the options of `kernelam train kernel` and the same rates to choose from, into
    folders of FOLDER; a training that is there already is not repeated. With --precondition the decay is tried without
    and with it.
    """
    from kernelam.cli.values import numbers
    from kernelam.progress import say

    train = kernel.callback
    assert train is not None
    if output:
        check_output(output)
    ways = _ways(max_epochs, decay_epochs, given["bottleneck"], given["precondition"])
    if target not in ways:
        raise KernelamError(f"--target {target} is for models without a bottleneck")
    folders = {
        seed: {way: _folder(given["folder"], seed, way) for way in ways} for seed in numbers(int, seeds, "--seeds")
    }
    for seed, places in folders.items():
        for way, folder in places.items():
            say(f"{way}, seed {seed}")
            train(**given | ways[way] | {"seed": seed, "folder": folder})
    from kernelam.training.bench_optimisers import compare_optimisers, describe_optimisers, read_epochs

    rows = []
    for seed, places in folders.items():
        rows += compare_optimisers(seed, {way: read_epochs(folder) for way, folder in places.items()}, target)
    click.echo(describe_optimisers(rows, target))
    _write(output, {"target": target, "optimisers": rows})


def _ways(max_epochs: int, decay_epochs: str, bottleneck: int, precondition: int) -> dict[str, dict[str, Any]]:
    """The ways to train: their names, and the options that they have of their own."""
    from kernelam.cli.values import numbers
    from kernelam.progress import say

    lengths = numbers(int, decay_epochs, "--decay-epochs")
    if min(lengths) < 1:
        raise KernelamError(f"--decay-epochs are whole numbers above zero, not {min(lengths)}")
    if bottleneck:
        say("SAG is for models without a bottleneck: it is left out")

    def way(optimiser: str, schedule: str, epochs: int, directions: int = 0) -> dict[str, Any]:
        return {"optimiser": optimiser, "schedule": schedule, "max_epochs": epochs, "precondition": directions}

    ways = {f"{name} halving": way(name, "halving", max_epochs) for name in ("sgd", "sag")[: 1 if bottleneck else 2]}
    for schedule in ("average", "decay"):
        ways |= {f"sgd {schedule} {length}": way("sgd", schedule, length) for length in lengths}
    if precondition:
        ways |= {f"damped decay {length}": way("sgd", "decay", length, precondition) for length in lengths}
    return ways


def _folder(top: Path, seed: int, way: str) -> Path:
    return top / f"seed{seed}" / way.replace(" ", "_")


SET = ("bandwidth", "penalty", "seed", "priors")


@command.command(params=[param for param in train_pursuit.params if param.name not in SET])
@click.option("--bandwidth", type=ABOVE_ZERO, default=1.0, help="Multiple of the median distance of random frames.")
@click.option("--penalty", type=ABOVE_ZERO, default=1.0, help="c.")
@click.option("--sizes", default="1000 2000 4000 8000", help="Numbers of random frames.")
@click.option("--trials", type=POSITIVE, default=5, help="With other frames each.")
@click.option("--threads", type=POSITIVE, default=1)
@click.option("--json", "output", type=PATH, help="Write the figures there too.")
def pursuit(
    kernel: str,
    bandwidth: float,
    penalty: float,
    basis: int,
    first: int,
    added: int,
    method: str,
    sizes: str,
    trials: int,
    threads: int,
    output: Path | None,
    **shared: Any,
) -> None:
    """Time until pursuit has 95 % of the objective of the model whose basis is all frames, and that of this model.

    By the number of random training frames, with the slopes of the logarithms; frames are packed into FOLDER. --basis
    is the most vectors that pursuit may take.
    """
    from kernelam.cli.values import numbers

    if output:
        check_output(output)
    counts = numbers(int, sizes, "--sizes")
    from kernelam.training.bench_pursuit import Study, describe_pursuit, study_pursuit
    from kernelam.training.pursuit import PursuitOptions

    options = PursuitOptions(basis, first, added, method, penalty)
    found = study_pursuit(
        given_inputs(shared), Study(kernel, bandwidth, options, counts, trials), shared["device"], threads
    )
    click.echo(describe_pursuit(found))
    _write(output, found)


@command.command()
@measured
def frames(threads: int, output: Path | None, quick: bool) -> None:
    """Memory and speed of an epoch of a day of speech against one of an hour. Takes about six minutes."""
    if output:
        check_output(output)
    from kernelam.training.bench_memory import describe_frames, many_frames

    found = many_frames(threads, quick)
    click.echo(describe_frames(found))
    _write(output, found)


@command.command()
@click.option("--processes", type=POSITIVE, default=2)
@click.option("--quick", is_flag=True, help="Small models, to see that it runs.")
@click.option("--json", "output", type=PATH, help="Write the figures there too.")
def ranks(processes: int, quick: bool, output: Path | None) -> None:
    """Steps of one process on one core against those of several that share the features: speed, losses, traffic,
    memory, and what formulas say of them.

    Takes about ten minutes on two cores, which should have nothing else to do.
    """
    if output:
        check_output(output)
    from kernelam.training.bench_ranks import QUICK, SIZES, compare_ranks, describe_ranks

    found = compare_ranks(QUICK if quick else SIZES, processes)
    click.echo(describe_ranks(found))
    _write(output, found)


@command.command(hidden=True)
@click.argument("sizes", type=int, nargs=6)
@click.argument("output", type=PATH)
def rank(sizes: tuple[int, ...], output: Path) -> None:
    """One of the processes of `bench ranks`."""
    from kernelam.training.bench import Size
    from kernelam.training.bench_ranks import steps_here

    *size, steps = sizes
    steps_here(Size(*size), steps, output)


@command.command()
@click.option("--acwt", type=ABOVE_ZERO, default=0.1, help="Acoustic scale of the search.")
@click.option("--beam", type=ABOVE_ZERO, default=13.0)
@click.option("--lattice-beam", type=ABOVE_ZERO, default=8.0)
@click.option("--max-active", type=POSITIVE, default=7000)
@click.option("--utterances", type=POSITIVE, default=40, help="How many, spread evenly over DATA.")
@click.argument("graph", type=PATH)
@click.argument("model", type=PATH)
@click.argument("data", type=PATH)
def decoder(
    acwt: float,
    beam: float,
    lattice_beam: float,
    max_active: int,
    utterances: int,
    graph: Path,
    model: Path,
    data: Path,
) -> None:
    """The embedded lattice decoder against Kaldi's one-best FasterDecoder (package kaldi-decoder).

    Likelihoods of MODEL on DATA; with DATA/text, the oracle error of the lattices too.
    """
    from kernelam.decoding.bench import compare_decoders
    from kernelam.decoding.decoder import LatticeDecoder, open_model
    from kernelam.decoding.search import Beams
    from kernelam.hmm.graph import read_graph
    from kernelam.kaldi.datadir import DataDir, pick
    from kernelam.kaldi.tables import read_symbols
    from kernelam.progress import progress

    scorer, transitions = open_model(graph, model)
    features = scorer.open(data)
    utts = list(features)[:: max(1, len(features) // utterances)][:utterances]
    likelihoods = {utt: scorer.log_likelihoods(features[utt]) for utt in progress(utts, "likelihoods")}
    embedded = LatticeDecoder(read_graph(graph / "HCLG.fst"), transitions, acwt, Beams(beam, lattice_beam, max_active))
    references = None
    if DataDir(data).has("text"):
        numbers, text = read_symbols(graph / "words.txt"), pick(DataDir(data).text, utts, data / "text")
        references = {utt: [numbers.get(word, -1) for word in words] for utt, words in text.items()}
    click.echo(compare_decoders(embedded, graph / "HCLG.fst", likelihoods, references))
