"""Write log-likelihoods of every frame."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelam.cli.values import PATH, check_output
from kernelam.ranks import is_first

if TYPE_CHECKING:
    import numpy as np

_WAYS = "ark:-, ark:FILE, ark,t:FILE (text), ark,scp:ARK,SCP or FILE"


@contextmanager
def _writer(output: str) -> "Iterator[Callable[[str, np.ndarray], None]]":
    """What writes a matrix to one of Kaldi's wspecifiers; of processes that work together, the first one does."""
    if not is_first():
        yield lambda utt, matrix: None
        return
    import sys
    from contextlib import nullcontext

    from kernelam.files import replacing
    from kernelam.kaldi.ark import ArkWriter, write_matrix
    from kernelam.kaldi.binary import KaldiWriter

    options, colon, name = output.partition(":")
    if options == "ark,scp" and "," in name:
        ark, scp = name.split(",", 1)
        check_output(ark, _WAYS)
        check_output(scp, _WAYS)
        with ArkWriter(ark, scp) as writer:
            yield writer.write
        return
    if not colon or options not in ("ark", "ark,t"):
        options, name = "ark", output
    if name != "-":
        check_output(name, _WAYS)
    place: AbstractContextManager[Any] = nullcontext(sys.stdout.buffer) if name == "-" else replacing(name)
    with place as stream:

        def as_text(utt: str, matrix: "np.ndarray") -> None:
            stream.write(utt.encode() + b" ")
            KaldiWriter(stream, binary=False).matrix(matrix)

        yield as_text if options == "ark,t" else lambda utt, matrix: write_matrix(stream, utt, matrix)


@click.command()
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--transform-dir", type=PATH, help="Directory with the speakers' fMLLR transforms, trans.*.")
@click.argument("model")
@click.argument("data")
@click.argument("output", metavar="ark:-|ark,t:-|ark,scp:ARK,SCP|FILE")
def command(device: str, transform_dir: Path | None, model: str, data: str, output: str) -> None:
    """Write the log-likelihoods of DATA under MODEL as an archive that Kaldi's latgen-faster-mapped reads.

    Several processes (kernelam together) share the features of a kernel model.
    """
    from kernelam.decoding.likelihoods import check_likelihoods
    from kernelam.models import load_model
    from kernelam.progress import progress
    from kernelam.ranks import joined

    with joined(device) as device, _writer(output) as write:
        scorer = load_model(model, device, transform_dir)
        features = scorer.open(data)
        for utt in progress(features, f"forward {data}"):
            matrix = scorer.log_likelihoods(features[utt])
            check_likelihoods(utt, matrix, scorer.num_classes)
            write(utt, matrix)
