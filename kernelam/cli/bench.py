"""Measure speed against a named peer."""

from collections.abc import Callable
from pathlib import Path

import click
from click.core import ParameterSource

from kernelam.cli.values import ABOVE_ZERO, PATH, POSITIVE, check_output


def measured(function: Callable[..., None]) -> Callable[..., None]:
    """The options of the training bench."""
    for option in (
        click.option("--threads", type=POSITIVE, default=1),
        click.option("--json", "output", type=PATH, help="Write the figures there too."),
        click.option("--quick", type=bool, default=False, help="Small sizes, to see that it runs."),
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

    Also: costs of random features by kernel, growth with D and C, and memory. Takes about ten minutes.
    """
    _training(threads, output, quick)


def _training(threads: int, output: Path | None, quick: bool) -> None:
    import json

    if output:
        check_output(output)
    from kernelam.files import replacing
    from kernelam.training.bench import describe_bench, training_bench

    found = training_bench(threads, quick)
    click.echo(describe_bench(found))
    if output:
        with replacing(output, "w") as stream:
            json.dump(found, stream, indent=2)
            stream.write("\n")


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
