"""Turn features into lattices with a model and a graph."""

from pathlib import Path

import click

from kernelam.cli.values import ABOVE_ZERO, COUNT, PATH, POSITIVE, check_output


@click.command()
@click.option("--acwt", type=ABOVE_ZERO, default=0.1, help="Acoustic scale of the search.")
@click.option("--beam", type=ABOVE_ZERO, default=13.0)
@click.option("--lattice-beam", type=ABOVE_ZERO, default=8.0)
@click.option("--max-active", type=POSITIVE, default=7000, help="Tokens followed at most.")
@click.option("--min-active", type=COUNT, default=200, help="Tokens followed at least.")
@click.option("--determinize-lattice", type=bool, default=True, help="Each word string once; else all paths.")
@click.option("--decoder", type=click.Choice(["embedded", "kaldi"]), default="embedded", help="kaldi: its latgen.")
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--transform-dir", type=PATH, help="Directory with the speakers' fMLLR transforms, trans.*.")
@click.argument("graph", type=PATH)
@click.argument("model", type=PATH)
@click.argument("data", type=PATH)
@click.argument("out", type=PATH)
def command(
    acwt: float,
    beam: float,
    lattice_beam: float,
    max_active: int,
    min_active: int,
    determinize_lattice: bool,
    decoder: str,
    device: str,
    transform_dir: Path | None,
    graph: Path,
    model: Path,
    data: Path,
    out: Path,
) -> None:
    """Decode DATA by MODEL with GRAPH/HCLG.fst and write lattices to OUT."""
    from kernelam.decoding.decoder import LatticeDecoder, check_sequences, decode_data, open_model
    from kernelam.decoding.external import decode_by_kaldi, find_program
    from kernelam.decoding.search import Beams
    from kernelam.files import replacing
    from kernelam.hmm.graph import read_graph
    from kernelam.kaldi.lattices import write_lattice

    check_output(out)
    if decoder == "kaldi":
        find_program()
    scorer, transitions = open_model(graph, model, device, transform_dir)
    beams = Beams(beam, lattice_beam, max_active, min_active)
    if decoder == "kaldi":
        decode_by_kaldi(data, scorer, model if model.is_file() else model / "final.mdl", graph, acwt, beams, out)
        return
    hclg = read_graph(graph / "HCLG.fst")
    embedded = LatticeDecoder(hclg, transitions, acwt, beams)
    check_sequences(hclg, transitions, graph / "HCLG.fst")
    with replacing(out) as stream:
        for utt, lattice in decode_data(data, scorer, embedded, determinize_lattice):
            write_lattice(stream, utt, lattice)
