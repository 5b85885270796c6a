"""`kernelam lm`: n-gram models."""

from pathlib import Path

import click

from kernelam.cli.values import POSITIVE

SKIP = click.option(
    "--skip-first-field",
    type=bool,
    default=True,
    help="The first field of a line is an utterance id, as in Kaldi's text; false for plain text.",
)


@click.group(help="Estimate and evaluate n-gram models.")
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
    from kernelam.lm.arpa import write_arpa
    from kernelam.lm.kneser_ney import estimate
    from kernelam.lm.text import read_vocabulary
    from kernelam.progress import say

    vocabulary = None if vocab is None else read_vocabulary(vocab)
    model = estimate(text, order, vocabulary=vocabulary, unk=unk, keep_unk=keep_unk, skip_first_field=skip_first_field)
    write_arpa(arpa, model)
    say(f"{arpa}: " + ", ".join(f"{len(level)} {n}-grams" for n, level in enumerate(model.levels, 1)))


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
