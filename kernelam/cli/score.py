"""Error rates of decoded lattices."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelam.cli.values import PATH

if TYPE_CHECKING:
    from kernelam.scoring.combination import System
    from kernelam.scoring.tuning import Weights
    from kernelam.scoring.wer import Transcripts

units_option = click.option(
    "--units",
    default="words",
    help="words, characters, noascii (characters, but ASCII whole), unmarked (words without <unk> and the like), joined"
    " (words of sentencepiece units), several such with commas, or a file that maps tokens, lines `token replacement`.",
)


@click.group()
def command() -> None:
    """Error rates of decoded lattices."""


@command.command()
@click.option("--lmwts", default="7 8 9 10 11 12 13 14 15 16 17", help="LM weights.")
@click.option("--penalties", default="0.0 0.5 1.0", help="Word insertion penalties.")
@click.option("--tuned-on", type=PATH, help="A scored decode directory whose weights are tried too.")
@click.option("--times", type=PATH, help="A model: behind each word are the frames where it begins and ends.")
@click.argument("words", type=PATH)
@click.argument("lattices", type=PATH)
@click.argument("out", type=PATH)
def paths(
    lmwts: str, penalties: str, tuned_on: Path | None, times: Path | None, words: Path, lattices: Path, out: Path
) -> None:
    """The best path of each of LATTICES at every pair of weights, as lines `lmwt wip utterance words` in OUT.

    Where a words.txt lies beside LATTICES, the words found must have the same numbers in it as in WORDS. For --times,
    a folder `phones` beside WORDS has word_boundary.int or align_lexicon.int.
    """
    from kernelam.cli.values import numbers
    from kernelam.decoding.lattice import best_path, path_times, path_words
    from kernelam.decoding.words import WordAligner
    from kernelam.errors import KernelamError
    from kernelam.files import replacing
    from kernelam.kaldi.lattices import read_lattices
    from kernelam.progress import progress
    from kernelam.scoring.directory import read_weights
    from kernelam.scoring.tuning import Weights
    from kernelam.scoring.vocabulary import Vocabulary

    vocabulary = Vocabulary(words, lattices.parent)
    points = [
        Weights(lmwt, wip)
        for lmwt in numbers(int, lmwts, "--lmwts")
        for wip in numbers(float, penalties, "--penalties")
    ]
    if tuned_on:
        points = list(dict.fromkeys([*points, read_weights(tuned_on)]))
    if points[-1].parts:
        raise KernelamError(
            f"{tuned_on} is a combination of systems: its weights are not those of one;"
            " name the scored decode directory of a single system"
        )
    if min(point.lmwt for point in points) < 1:
        raise KernelamError("an LM weight below 1 makes no sense: the acoustic scores are divided by it")
    aligner = WordAligner.of(times, words.parent) if times else None
    with replacing(out, "w") as stream:
        for utt, lattice in progress(read_lattices(lattices), f"rescoring {lattices}"):
            if aligner:
                lattice = aligner.align(lattice, f"{lattices}, utterance {utt}")
            for lmwt, wip, _ in points:
                path = best_path(lattice, lmwt, wip)
                found = vocabulary.spell(path_words(lattice, path), lattices, utt)
                if aligner:
                    rows = zip(found, path_times(lattice, path), strict=True)
                    found = [f"{word} {begin} {end}" for word, (begin, end) in rows]
                stream.write(" ".join([str(lmwt), str(wip), utt, *found]) + "\n")


@command.command()
@click.option("--tuned-on", type=PATH, help="A scored decode directory whose weights are used; default: tune here.")
@units_option
@click.option("--stm", type=bool, default=False, help="The paths have times: score DATA/stm, by the rules of DATA/glm.")
@click.argument("data", type=PATH)
@click.argument("folder", type=PATH)
@click.argument("files", nargs=-1, required=True, type=PATH)
def write(tuned_on: Path | None, units: str, stm: bool, data: Path, folder: Path, files: tuple[Path, ...]) -> None:
    """Score the paths in FILES against DATA/text and write Kaldi's scoring files into FOLDER."""
    from kernelam.kaldi.tables import lines
    from kernelam.scoring.timed import score_timed
    from kernelam.scoring.tuning import Weights

    hyps: dict[Weights, dict[str, list[str]]] = {}
    for file in files:
        for line in lines(file):
            lmwt, wip, utt, *found = line.split()
            hyps.setdefault(Weights(int(lmwt), float(wip)), {})[utt] = found
    if stm:
        click.echo(score_timed(folder, data, hyps, tuned_on))
    else:
        _write(folder, data, hyps, tuned_on, units)


def _write(
    folder: Path,
    data: Path,
    hyps: "Mapping[Weights, Transcripts]",
    tuned_on: Path | None,
    units: str,
    systems: "Sequence[System]" = (),
) -> None:
    from kernelam.kaldi.datadir import DataDir
    from kernelam.progress import say
    from kernelam.scoring.directory import score_directory
    from kernelam.scoring.units import token_map, units_name, unlisted

    directory, about = DataDir(data), [system._asdict() for system in systems]
    scored = score_directory(
        folder, directory.text, hyps, directory.utt2spk, tuned_on, token_map(units), units_name(units), about
    )
    if sentence := unlisted(units, directory.text.values()):
        say(sentence)
    click.echo(f"{scored.result.wer_line} {folder}/wer_{scored.weights.name}")


@command.command()
@click.option("--tuned-on", type=PATH, help="A scored combination whose weights are used; default: tune here.")
@units_option
@click.argument("data", type=PATH)
@click.argument("words", type=PATH)
@click.argument("decoded", nargs=-1, required=True, type=PATH)
@click.argument("folder", type=PATH)
def combine(
    tuned_on: Path | None, units: str, data: Path, words: Path, decoded: tuple[Path, ...], folder: Path
) -> None:
    """Decode the lattices of the decode directories DECODED together, and score the result in FOLDER.

    Words are those of least expected errors. Each system has the LM weight and penalty that it was scored with; the
    weights of two systems are tuned, those of more are equal.
    """
    from kernelam.errors import KernelamError
    from kernelam.scoring.combination import combined, grid, read_systems

    if any(folder.glob("lat.*")):
        raise KernelamError(f"{folder} has lattices of its own: name a new directory last, for the combination")
    systems = read_systems(decoded, tuned_on)
    hyps = combined(systems, words, grid(len(systems), tuned_on))
    _write(folder, data, hyps, tuned_on, units, systems)


@command.command()
@click.option("--mode", type=click.Choice(["all", "present", "strict"]), default="all", show_default=True)
@units_option
@click.option(
    "--against", type=PATH, help="Another system's hypotheses: how the error rates differ, by paired bootstrap."
)
@click.argument("reference", type=PATH)
@click.argument("hypothesis", type=PATH)
def text(mode: Any, units: str, against: Path | None, reference: Path, hypothesis: Path) -> None:
    """What Kaldi's compute-wer prints of two files of lines `utterance words …`.

    A missing hypothesis counts as all deletions (all), is left out (present), or is an error (strict).
    """
    from kernelam.progress import say
    from kernelam.scoring.bootstrap import compare
    from kernelam.scoring.units import token_map, unlisted
    from kernelam.scoring.wer import compute_wer, read_transcripts

    change = token_map(units)
    systems = [hypothesis] if against is None else [hypothesis, against]
    texts = [read_transcripts(path) for path in [reference, *systems]]
    refs, *hyps = ({utt: change(words) for utt, words in one.items()} for one in texts)
    if sentence := unlisted(units, [words for one in texts for words in one.values()]):
        say(sentence)
    results = [compute_wer(refs, one, mode) for one in hyps]
    for path, result in zip(systems, results, strict=True):
        for sentence in result.remarks:
            say(f"{path}: {sentence}")
        click.echo(result.text, nl=False)
    if against is not None:
        click.echo(compare(results[1], results[0]).text)


@command.command()
@click.option("--glm", type=PATH, help="Rules of a global mapping file, for both.")
@click.argument("reference", type=PATH)
@click.argument("hypothesis", type=PATH)
def stm(glm: Path | None, reference: Path, hypothesis: Path) -> None:
    """The error rate of HYPOTHESIS, a CTM file, against REFERENCE, an STM file; counts are those of sclite -F -D."""
    from kernelam.scoring.networks import count_networks
    from kernelam.scoring.stm import Stm, read_ctm
    from kernelam.scoring.wer import compute_wer

    scored = Stm(reference, glm)
    click.echo(compute_wer(scored.refs, scored.cut(read_ctm(hypothesis)), count=count_networks).text, nl=False)


@command.command()
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.argument("data", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("models", nargs=-1, required=True, type=PATH)
def frames(device: str, data: Path, ali: Path, models: tuple[Path, ...]) -> None:
    """Frame errors of MODELS on DATA, whose labels are the alignments ALI, as a table in Markdown.

    Intervals are those of a bootstrap over utterances; p is of a paired one against the row above. A single utterance
    has neither.
    """
    from kernelam.report.tables import Table
    from kernelam.scoring.bootstrap import bootstrap, compare
    from kernelam.scoring.frames import frame_errors

    rows, above = [], None
    for model in models:
        for way, result in frame_errors(model, data, ali, device).items():
            interval, several = bootstrap(result).interval, len(result.utterances) > 1
            told = "–" if interval is None else " – ".join(f"{100 * end:.2f}" for end in interval)
            p = compare(above, result).p_text if above and several else ""
            rate, frames = f"{100 * result.total.rate:.2f}", f"{result.total.ref_words:,}"
            rows.append([str(model), way, frames, rate, told, p])
            above = result
    click.echo(Table(["model", "by", "frames", "frame error %", "95 % interval", "p"], rows).markdown)


@command.command()
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--tuned-on", type=PATH, help="The directory of a set that choices were made on, for reports.")
@click.argument("data", type=PATH)
@click.argument("folder", type=PATH)
def classes(device: str, tuned_on: Path | None, data: Path, folder: Path) -> None:
    """Errors in the classes of utterances that are of one class each, such as images, in FOLDER.

    The model is in the directory above FOLDER; the text of DATA has the class of each utterance.
    """
    from kernelam.files import replacing
    from kernelam.kaldi.datadir import DataDir
    from kernelam.scoring.classes import classify
    from kernelam.scoring.directory import score_directory
    from kernelam.scoring.tuning import Weights

    hyps, directory = classify(folder.parent, data, device), DataDir(data)
    folder.mkdir(exist_ok=True)
    with replacing(folder / "model.json") as stream:  # which model this was, should another take its place
        stream.write((folder.parent / "model.json").read_bytes())
    weights = {Weights(1, 0.0): hyps}
    scored = score_directory(folder, directory.text, weights, directory.utt2spk, tuned_on, units="classes")
    click.echo(f"{scored.result.wer_line} {folder}/wer_{scored.weights.name}")
