"""Best paths, N-best lists, confidences, word times, oracles and other language models of lattices."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from kernelam.cli.values import PATH, check_output

if TYPE_CHECKING:
    from kernelam.kaldi.lattice import Lattice

Command = Callable[..., Any]


def _checked(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """An option that names an output, looked at before anything is read."""
    if path is not None:
        check_output(path)
    return path


# Every argument is read: an output is an option, so that no list of lattices can end in one by mistake.
OUTPUT = click.option("--output", type=PATH, callback=_checked, help="File of the result, instead of standard output.")


@click.group()
def command() -> None:
    """Best paths, N-best lists, confidences, word times, oracles and other language models of lattices."""


def _weighted(function: Command) -> Command:
    """With the options lmwt and wip, or those of --tuned-on, and words."""

    @wraps(function)
    def called(tuned_on: Path | None, lmwt: float, wip: float, **rest: Any) -> Any:
        if tuned_on is not None:
            from kernelam.scoring.directory import read_weights

            weights = read_weights(tuned_on)
            lmwt, wip = weights.lmwt, weights.wip
        return function(lmwt=lmwt, wip=wip, **rest)

    options = (
        click.option("--tuned-on", type=PATH, help="A scored decode directory whose LM weight and penalty are used."),
        click.option("--lmwt", type=click.FloatRange(0, min_open=True), default=10.0, help="LM weight."),
        click.option("--word-ins-penalty", "wip", default=0.0, help="Word insertion penalty."),
        click.option("--words", type=PATH, help="words.txt; without, words are numbers."),
    )
    decorated: Command = called
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _writing(output: Path | None) -> AbstractContextManager[IO[bytes]]:
    """The file `output`, whole or not there, or standard output."""
    from kernelam.files import replacing

    return nullcontext(sys.stdout.buffer) if output is None else replacing(output)


def _write_table(output: Path | None, table: dict[str, str]) -> None:
    with _writing(output) as stream:
        stream.writelines(f"{utt} {table[utt]}".rstrip().encode() + b"\n" for utt in sorted(table))


def _each(lattices: tuple[Path, ...]) -> "Iterator[tuple[str, Lattice]]":
    from kernelam.errors import KernelamError
    from kernelam.kaldi.lattices import read_lattices
    from kernelam.progress import progress

    count = 0
    for path in lattices:
        for utt, lattice in progress(read_lattices(path), f"reading {path}"):
            count += 1
            yield utt, lattice
    if not count:
        raise KernelamError(f"no lattice in {' '.join(map(str, lattices))}")


def _speller(words: Path | None) -> Callable[[str, int], str]:
    """The name of a word of an utterance."""
    from kernelam.errors import KernelamError
    from kernelam.kaldi.tables import read_symbols

    names = None if words is None else {number: word for word, number in read_symbols(words).items()}

    def spell(utt: str, word: int) -> str:
        if names is None:
            return str(word)
        if word not in names:
            raise KernelamError(f"utterance {utt}: word {word} is not in {words}, which is of another graph")
        return names[word]

    return spell


@command.command()
@_weighted
@OUTPUT
@click.option("--ali", type=PATH, callback=_checked, help="Also write the transition-ids of each path here.")
@click.argument("lattices", type=PATH, nargs=-1, required=True)
def best(
    lmwt: float, wip: float, words: Path | None, output: Path | None, ali: Path | None, lattices: tuple[Path, ...]
) -> None:
    """The words of the best path of each of LATTICES, lines `utterance words`."""
    from kernelam.decoding.lattice import best_path, path_alignment, path_words
    from kernelam.kaldi.alignment import write_alignments

    spell, table, alignments = _speller(words), {}, {}
    for utt, lattice in _each(lattices):
        path = best_path(lattice, lmwt, wip)
        table[utt] = " ".join(spell(utt, word) for word in path_words(lattice, path))
        alignments[utt] = path_alignment(lattice, path)
    _write_table(output, table)
    if ali:
        write_alignments(ali, alignments)


@command.command()
@_weighted
@OUTPUT
@click.option("--n", type=click.IntRange(1), default=10, help="Word strings an utterance at most.")
@click.argument("lattices", type=PATH, nargs=-1, required=True)
def nbest(lmwt: float, wip: float, words: Path | None, output: Path | None, n: int, lattices: tuple[Path, ...]) -> None:
    """The best different word strings of each of LATTICES, lines `utterance-rank graph-cost acoustic-cost words`."""
    from itertools import islice

    from kernelam.decoding.lattice import path_costs, path_words
    from kernelam.decoding.nbest import best_strings

    spell = _speller(words)
    with _writing(output) as stream:
        for utt, lattice in _each(lattices):
            for rank, (strings, path) in enumerate(islice(best_strings(lattice, lmwt, wip), n), 1):
                costs = (f"{cost:.6g}" for cost in path_costs(strings, path))
                names = (spell(utt, word) for word in path_words(strings, path))
                stream.write(" ".join([f"{utt}-{rank}", *costs, *names]).encode() + b"\n")


@command.command()
@_weighted
@OUTPUT
@click.argument("lattices", type=PATH, nargs=-1, required=True)
def mbr(lmwt: float, wip: float, words: Path | None, output: Path | None, lattices: tuple[Path, ...]) -> None:
    """The word string of least expected errors of each of LATTICES, lines `utterance word confidence …`."""
    from kernelam.decoding.mbr import minimum_bayes_risk

    spell, table = _speller(words), {}
    for utt, lattice in _each(lattices):
        found = minimum_bayes_risk(lattice, lmwt, wip)
        table[utt] = " ".join(f"{spell(utt, item.word)} {item.confidence:.3f}" for item in found)
    _write_table(output, table)


@command.command()
@_weighted
@OUTPUT
@click.option("--mbr", "risk", type=bool, default=True, help="Words of least expected errors; else of the best path.")
@click.option("--frame-shift", default=0.01, help="Seconds a frame.")
@click.argument("model", type=PATH)
@click.argument("lang", type=PATH)
@click.argument("lattices", type=PATH, nargs=-1, required=True)
def ctm(
    lmwt: float,
    wip: float,
    words: Path | None,
    output: Path | None,
    risk: bool,
    frame_shift: float,
    model: Path,
    lang: Path,
    lattices: tuple[Path, ...],
) -> None:
    """Words with times and confidences, lines `utterance 1 begin duration word confidence`.

    MODEL is a final.mdl or the directory of one; LANG has phones/word_boundary.int or phones/align_lexicon.int.
    """
    from kernelam.decoding.mbr import minimum_bayes_risk
    from kernelam.decoding.words import WordAligner

    spell, aligner = _speller(words), WordAligner.of(model, lang)
    with _writing(output) as stream:
        for utt, lattice in _each(lattices):
            aligned = aligner.align(lattice, f"the lattice of {utt}")
            for item in minimum_bayes_risk(aligned, lmwt, wip, risk):
                begin, end = item.begin * frame_shift, item.end * frame_shift
                name = spell(utt, item.word)
                stream.write(f"{utt} 1 {begin:.2f} {end - begin:.2f} {name} {item.confidence:.2f}\n".encode())


@command.command()
@click.argument("lattices", type=PATH, nargs=-1, required=True)
def depth(lattices: tuple[Path, ...]) -> None:
    """How many arcs of LATTICES cross a frame on average."""
    from kernelam.decoding.oracle import depth as frames_of

    total = [frames_of(lattice) for _, lattice in _each(lattices)]
    arcs, frames = sum(arcs for arcs, _ in total), sum(frames for _, frames in total)
    click.echo(f"{arcs / max(frames, 1):.2f} arcs cross a frame in {len(total)} lattices of {frames} frames")


@command.command()
@click.option("--output", type=PATH, callback=_checked, help="Also write the words of the closest paths here.")
@click.argument("words", type=PATH)
@click.argument("text", type=PATH)
@click.argument("lattices", type=PATH, nargs=-1, required=True)
def oracle(output: Path | None, words: Path, text: Path, lattices: tuple[Path, ...]) -> None:
    """The error rate of the paths of LATTICES that are closest to the transcripts in TEXT."""
    from kernelam.decoding.oracle import oracle as closest
    from kernelam.errors import KernelamError
    from kernelam.kaldi.tables import read_symbols, read_table, write_table

    symbols, refs, spell = read_symbols(words), read_table(text, empty_values=True), _speller(words)
    errors, total, table = 0, 0, {}
    for utt, lattice in _each(lattices):
        if utt not in refs:
            raise KernelamError(f"utterance {utt} of {' '.join(map(str, lattices))} is not in {text}")
        reference = [symbols.get(word, -1) for word in refs[utt].split()]
        distance, found = closest(lattice, reference)
        errors, total = errors + distance, total + len(reference)
        table[utt] = " ".join(spell(utt, word) for word in found)
    if output:
        write_table(output, table)
    click.echo(f"oracle error rate {100 * errors / max(total, 1):.2f} % [ {errors} / {total} ], {len(table)} lattices")


@command.command()
@OUTPUT
@click.option("--binary", type=bool, default=True, help="Binary or text.")
@click.argument("lattices", type=PATH, nargs=-1, required=True)
def copy(output: Path | None, binary: bool, lattices: tuple[Path, ...]) -> None:
    """LATTICES as one archive, in binary or text, gzipped if the name of the output ends in .gz."""
    from kernelam.kaldi.lattices import read_lattices, write_lattice

    with _writing(output) as stream:
        for path in lattices:
            for utt, lattice in read_lattices(path, sort=False):
                write_lattice(stream, utt, lattice, binary)


@command.command()
@OUTPUT
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.argument("lattices", type=PATH, nargs=-1, required=True)
def rescore(output: Path | None, old: Path, new: Path, lattices: tuple[Path, ...]) -> None:
    """LATTICES with the language model of the lang directory OLD, which made them, exchanged for that of NEW."""
    from kernelam.decoding.rescoring import Grammar, check_words, rescored
    from kernelam.kaldi.lattices import write_lattice

    check_words(old, new)
    before, after = Grammar.of(old), Grammar.of(new)
    with _writing(output) as stream:
        for utt, lattice in _each(lattices):
            write_lattice(stream, utt, rescored(utt, lattice, before, after))
