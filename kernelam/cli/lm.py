"""`kernelam lm`: n-gram models."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelam.cli.values import NOT_NEGATIVE, POSITIVE, numbers

if TYPE_CHECKING:
    from kernelam.lm.arpa import ArpaModel

SKIP = click.option(
    "--skip-first-field",
    type=bool,
    default=True,
    help="The first field of a line is an utterance id, as in Kaldi's text; false for plain text.",
)


@click.group(help="Estimate, prune, interpolate and evaluate n-gram models.")
def command() -> None:
    pass


@command.command()
@click.option("--order", type=POSITIVE, default=3, help="Length of the longest n-grams.")
@click.option("--vocab", type=Path, help="Word list, words.txt or lexicon; without it, the words of the text.")
@click.option("--unk", default="<UNK>", help="What words outside --vocab count as.")
@click.option("--keep-unk", type=bool, default=False, help="Keep the n-grams of --unk; a decoder may then output it.")
@SKIP
@click.argument("text", type=Path)
@click.argument("arpa", type=Path)
def estimate(
    order: int, vocab: Path | None, unk: str, keep_unk: bool, skip_first_field: bool, text: Path, arpa: Path
) -> None:
    """Modified Kneser-Ney n-grams of TEXT into ARPA (compressed if it ends in .gz)."""
    from kernelam.lm.kneser_ney import estimate
    from kernelam.lm.text import read_vocabulary

    vocabulary = None if vocab is None else read_vocabulary(vocab)
    _write(
        arpa,
        estimate(text, order, vocabulary=vocabulary, unk=unk, keep_unk=keep_unk, skip_first_field=skip_first_field),
    )


def _write(arpa: Path, model: "ArpaModel") -> None:
    from kernelam.lm.arpa import write_arpa
    from kernelam.progress import say

    write_arpa(arpa, model)
    say(f"{arpa}: " + ", ".join(f"{len(level)} {n}-grams" for n, level in enumerate(model.levels, 1)))


@command.command()
@click.option("--threshold", type=NOT_NEGATIVE, required=True, help="A share of the perplexity, e.g. 1e-8.")
@click.argument("arpa", type=Path)
@click.argument("out", type=Path)
def prune(threshold: float, arpa: Path, out: Path) -> None:
    """Write ARPA to OUT without the n-grams whose loss raises perplexity by less than --threshold (entropy pruning)."""
    from kernelam.lm.arpa import read_arpa
    from kernelam.lm.pruning import pruned

    _write(out, pruned(read_arpa(arpa), threshold))


@command.command()
@click.option("--weights", help="One for each of ARPAS, e.g. '0.7 0.3'.")
@click.option("--tune", type=Path, help="A text: the weights are those under which it is most probable.")
@click.option("--unk", default="<UNK>", help="The models' unknown word, which takes no part in --tune.")
@SKIP
@click.option("--output", type=Path, required=True, help="The model that is made.")
@click.argument("arpas", type=Path, nargs=-1, required=True)
def interpolate(
    weights: str | None, tune: Path | None, unk: str, skip_first_field: bool, output: Path, arpas: tuple[Path, ...]
) -> None:
    """The weighted mean of ARPAS as one model."""
    from kernelam.errors import KernelamError
    from kernelam.lm.arpa import read_arpa
    from kernelam.lm.mixing import mixed, tuned_weights
    from kernelam.progress import say

    if (weights is None) == (tune is None):
        raise KernelamError("give either --weights or --tune, and not both")
    models = [read_arpa(arpa) for arpa in arpas]
    if tune is not None:
        values = tuned_weights(models, tune, unk, skip_first_field)
        say(f"weights {' '.join(f'{value:.4f}' for value in values)}")
    else:
        values = numbers(float, weights or "", "--weights")
    _write(output, mixed(models, values))


@command.command()
@click.option("--unk", default="<UNK>", help="The model's unknown word, if it has one: what OOVs are to later words.")
@SKIP
@click.argument("arpa", type=Path)
@click.argument("text", type=Path)
def perplexity(unk: str, skip_first_field: bool, arpa: Path, text: Path) -> None:
    """Perplexity of TEXT under ARPA, </s> included, words that ARPA lacks (OOVs) excluded."""
    from kernelam.lm.arpa import read_arpa
    from kernelam.lm.perplexity import perplexity

    result = perplexity(read_arpa(arpa), text, unk=unk, skip_first_field=skip_first_field)
    print(f"file {text}: {result}")


@command.command()
@click.argument("arpa", type=Path)
@click.argument("words", type=Path)
@click.argument("fst", type=Path)
def fst(arpa: Path, words: Path, fst: Path) -> None:
    """The grammar transducer G.fst of ARPA over the symbols of WORDS (words.txt), #0 on its backoff arcs."""
    from kernelam.lm.fst import write_grammar

    write_grammar(arpa, words, fst)
