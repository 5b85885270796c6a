"""Measure speed against a named peer."""

from pathlib import Path

import click

from kernelam.cli.values import ABOVE_ZERO, PATH, POSITIVE


@click.group()
def command() -> None:
    """Measure speed against a named peer, both in one run."""


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
