"""Write log-likelihoods of every frame."""

from pathlib import Path

import click

from kernelam.cli.values import PATH, check_output


@click.command()
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--transform-dir", type=PATH, help="Directory with the speakers' fMLLR transforms, trans.*.")
@click.argument("model")
@click.argument("data")
@click.argument("output", metavar="ark:-|FILE")
def command(device: str, transform_dir: Path | None, model: str, data: str, output: str) -> None:
    """Write the log-likelihoods of DATA under MODEL as an archive that Kaldi's latgen-faster-mapped reads."""
    import sys

    from kernelam.decoding.likelihoods import check_likelihoods
    from kernelam.files import replacing
    from kernelam.kaldi.ark import write_matrix
    from kernelam.models import load_model
    from kernelam.progress import progress

    name = output.removeprefix("ark:")
    if name != "-":
        check_output(name, "ark:-, ark:FILE or FILE")
    scorer = load_model(model, device, transform_dir)
    features = scorer.open(data)
    score = scorer.log_likelihoods

    def write(stream: object) -> None:
        for utt in progress(features, f"forward {data}"):
            matrix = score(features[utt])
            check_likelihoods(utt, matrix, scorer.num_classes)
            write_matrix(stream, utt, matrix)  # type: ignore[arg-type]

    if name == "-":
        write(sys.stdout.buffer)
    else:
        with replacing(name) as stream:
            write(stream)
