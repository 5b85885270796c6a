"""kernelam lattice, on lattices of Kaldi's."""

import gzip
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelam.cli.lattice import command
from kernelam.cli.score import paths
from kernelam.errors import KernelamError
from kernelam.kaldi.alignment import read_alignments
from kernelam.kaldi.tables import read_table


def run(*arguments: object) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=True)
    if isinstance(result.exception, KernelamError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def sample(corpora: Path) -> Path:
    return corpora / "kaldi-timit-sample"


def test_best(sample: Path, tmp_path: Path) -> None:
    expected = sample / "expected/tri1/lattice-tools"
    lattices = [sample / f"exp/tri1/decode_test/lat.{job}.gz" for job in (1, 2, 3)]
    run("best", "--lmwt", 7, "--ali", tmp_path / "ali", "--output", tmp_path / "out", *lattices)
    assert read_table(tmp_path / "out") == read_table(expected / "best-path.lmscale7.words.int.txt")
    alignments = read_table(expected / "best-path.lmscale7.ali.int.txt")
    assert {utt: " ".join(map(str, ids)) for utt, ids in read_alignments(tmp_path / "ali")} == alignments


def test_lists(sample: Path, tmp_path: Path) -> None:
    lattice, words = sample / "exp/tri3/decode_dev/lat.1.gz", sample / "data/lang/words.txt"
    model = sample / "exp/tri3", sample / "data/lang"
    options = {"best": (), "nbest": ("--n", 4), "mbr": (), "ctm": ("--mbr", "false", *model)}
    for name, arguments in options.items():
        shown = run(name, "--words", words, *arguments, lattice)
        assert run(name, "--words", words, *arguments, "--output", tmp_path / name, lattice) == ""
        assert (tmp_path / name).read_text() == shown
    best = read_table(tmp_path / "best")
    nbest = [line.split(maxsplit=3) for line in (tmp_path / "nbest").read_text().splitlines()]
    assert len({(entry.rsplit("-", 1)[0], text) for entry, _, _, text in nbest}) == 4 * len(best)
    assert {entry[:-2]: text for entry, _, _, text in nbest if entry.endswith("-1")} == best
    assert read_table(tmp_path / "mbr").keys() == best.keys()
    times: dict[str, list[list[str]]] = {}
    for line in (tmp_path / "ctm").read_text().splitlines():
        times.setdefault(line.split()[0], []).append(line.split()[2:])
    assert {utt: " ".join(row[2] for row in rows) for utt, rows in times.items()} == best
    for rows in times.values():
        spans = [(float(begin), float(begin) + float(length)) for begin, length, _, _ in rows]
        assert all(one[1] <= two[0] + 0.0151 for one, two in itertools.pairwise(spans))


def test_depth_and_oracle(sample: Path) -> None:
    lattice = sample / "exp/tri3/decode_dev/lat.1.gz"
    assert "arcs cross a frame in" in run("depth", lattice)
    output = run("oracle", sample / "data/lang/words.txt", sample / "data/dev/text", lattice)
    assert output.startswith("oracle error rate ")
    with pytest.raises(KernelamError, match=r"is not in .*test/text"):
        run("oracle", sample / "data/lang/words.txt", sample / "data/test/text", lattice)


def test_copies_are_the_same(sample: Path, tmp_path: Path) -> None:
    lattice = sample / "exp/tri3/decode_dev/lat.1.gz"
    run("copy", "--output", tmp_path / "lat.gz", lattice)
    run("copy", "--binary", "false", "--output", tmp_path / "lat.txt", lattice)
    shown = CliRunner().invoke(command, ["copy", str(lattice)]).stdout_bytes
    assert gzip.decompress((tmp_path / "lat.gz").read_bytes()) == gzip.decompress(lattice.read_bytes()) == shown
    assert run("copy", "--binary", "false", lattice) == (tmp_path / "lat.txt").read_text()
    assert run("best", tmp_path / "lat.txt") == run("best", lattice)


@pytest.mark.parametrize("name", ["best", "nbest", "mbr", "ctm", "depth", "oracle", "copy"])
def test_arguments_are_only_read(sample: Path, tmp_path: Path, name: str) -> None:
    fixed = {
        "ctm": (sample / "exp/tri3", sample / "data/lang"),
        "oracle": (sample / "data/lang/words.txt", sample / "data/dev/text"),
    }.get(name, ())
    lattice = tmp_path / "lat.1.gz"
    shutil.copyfile(sample / "exp/tri3/decode_dev/lat.1.gz", lattice)
    before = lattice.read_bytes()
    assert run(name, *fixed, sample / "exp/tri3/decode_dev/lat.2.gz", lattice)
    assert lattice.read_bytes() == before
    with pytest.raises(KernelamError, match=r"no such file .*/out"):
        run(name, *fixed, lattice, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [lattice]


def test_words_on_standard_output_are_utf8(
    sample: Path, tmp_path: Path, kernelam: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    (tmp_path / "words.txt").write_text("<eps> 0\n" + "".join(f"語{number} {number}\n" for number in range(1, 100)))
    done = kernelam("lattice", "best", "--words", tmp_path / "words.txt", sample / "exp/tri3/decode_dev/lat.1.gz")
    assert done.returncode == 0, done.stderr
    assert "語" in done.stdout


@pytest.mark.parametrize("option", ["best --output", "best --ali", "oracle --output", "copy --output"])
def test_outputs_are_looked_at_first(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    none = ["none"] * 3
    with pytest.raises(KernelamError, match="cannot write no/out: there is no folder no"):
        run(*option.split(), "no/out", *none)
    for name in ("-", "ark,t:-", "| gzip > a"):
        with pytest.raises(KernelamError, match="write to a FILE; other ways are not supported"):
            run(*option.split(), name, *none)
    assert list(tmp_path.iterdir()) == []


def test_bad_input(sample: Path, tmp_path: Path) -> None:
    lattice = sample / "exp/tri3/decode_dev/lat.1.gz"
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "words.txt").write_text("<eps> 0\na 1\n")
    with pytest.raises(KernelamError, match=r"no lattice in .*empty"):
        run("best", "--output", tmp_path / "out", tmp_path / "empty")
    with pytest.raises(KernelamError, match=r"utterance \w+: word \d+ is not in .*words.txt"):
        run("nbest", "--output", tmp_path / "out", "--words", tmp_path / "words.txt", lattice)
    with pytest.raises(KernelamError, match="transition-id"):
        run("ctm", "--output", tmp_path / "out", sample / "exp/mono", sample / "data/lang", lattice)
    (tmp_path / "lang/phones").mkdir(parents=True)
    lexicon = tmp_path / "lang/phones/align_lexicon.int"
    lexicon.write_text("".join(f"{word} {word} 1\n" for word in range(1, 49)))
    with pytest.raises(KernelamError, match=r"the lattice of \w+: phones .* do not fit each other"):
        run("ctm", "--output", tmp_path / "out", sample / "exp/tri3", tmp_path / "lang", lattice)
    lexicon.write_text("1 1\n")
    with pytest.raises(KernelamError, match=r"align_lexicon.int: '1 1' is not a word twice and its phones"):
        run("ctm", "--output", tmp_path / "out", sample / "exp/tri3", tmp_path / "lang", lattice)
    assert not (tmp_path / "out").exists()


def test_scoring_with_the_words_of_another_graph(sample: Path, tmp_path: Path) -> None:
    """words.txt beside the lattices has the numbers of their words: a table in another order is refused."""
    shutil.copyfile(sample / "exp/tri1/decode_test/lat.1.gz", tmp_path / "lat.1.gz")
    table = (sample / "exp/tri1/graph/words.txt").read_text()
    words, out = tmp_path / "new.txt", tmp_path / "out"

    def score() -> str:
        result = CliRunner().invoke(paths, [*map(str, ("--lmwts", 7, words, tmp_path / "lat.1.gz", out))])
        if isinstance(result.exception, KernelamError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return out.read_text()

    words.write_text(table)
    scored = score()
    number = table.split("\nsil ")[1].split()[0]
    swapped = {"sil": "epi", "epi": "sil"}
    rows = (row.split() for row in table.splitlines())
    words.write_text("".join(f"{swapped.get(word, word)} {value}\n" for word, value in rows))
    assert score() != scored
    (tmp_path / "words.txt").write_text(table)
    out.unlink()
    with pytest.raises(
        KernelamError, match=rf"word {number} is not in .*new.txt, or is another one there: the lattices are of another"
    ):
        score()
    assert not out.exists()
    words.write_text(table + "new 999\n")
    assert score() == scored
