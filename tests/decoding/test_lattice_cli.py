"""kernelam lattice, on lattices of Kaldi's."""

import gzip
import itertools
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelam.cli.lattice import command
from kernelam.errors import KernelamError
from kernelam.kaldi.alignment import read_alignments
from kernelam.kaldi.tables import read_table


def run(*arguments: object) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=True)
    if isinstance(result.exception, KernelamError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def sample(corpora: Path) -> Path:
    return corpora / "kaldi-timit-sample"


def test_best(sample: Path, tmp_path: Path) -> None:
    expected = sample / "expected/tri1/lattice-tools"
    lattices = [sample / f"exp/tri1/decode_test/lat.{job}.gz" for job in (1, 2, 3)]
    run("best", "--lmwt", 7, "--ali", tmp_path / "ali", *lattices, tmp_path / "out")
    assert read_table(tmp_path / "out") == read_table(expected / "best-path.lmscale7.words.int.txt")
    alignments = read_table(expected / "best-path.lmscale7.ali.int.txt")
    assert {utt: " ".join(map(str, ids)) for utt, ids in read_alignments(tmp_path / "ali")} == alignments


def test_lists(sample: Path, tmp_path: Path) -> None:
    lattice, words = sample / "exp/tri3/decode_dev/lat.1.gz", sample / "data/lang/words.txt"
    run("best", "--words", words, lattice, tmp_path / "best")
    run("nbest", "--n", 4, "--words", words, lattice, tmp_path / "nbest")
    run("mbr", "--words", words, lattice, tmp_path / "mbr")
    run("ctm", "--mbr", "false", "--words", words, sample / "exp/tri3", sample / "data/lang", lattice, tmp_path / "ctm")
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
    run("copy", lattice, tmp_path / "lat.gz")
    run("copy", "--binary", "false", lattice, tmp_path / "lat.txt")
    run("best", tmp_path / "lat.txt", tmp_path / "one")
    run("best", lattice, tmp_path / "two")
    assert gzip.decompress((tmp_path / "lat.gz").read_bytes()) == gzip.decompress(lattice.read_bytes())
    assert (tmp_path / "one").read_text() == (tmp_path / "two").read_text()


def test_bad_input(sample: Path, tmp_path: Path) -> None:
    lattice = sample / "exp/tri3/decode_dev/lat.1.gz"
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "words.txt").write_text("<eps> 0\na 1\n")
    with pytest.raises(KernelamError, match=r"no lattice in .*empty"):
        run("best", tmp_path / "empty", tmp_path / "out")
    with pytest.raises(KernelamError, match=r"utterance \w+: word \d+ is not in .*words.txt"):
        run("nbest", "--words", tmp_path / "words.txt", lattice, tmp_path / "out")
    with pytest.raises(KernelamError, match="transition-id"):
        run("ctm", sample / "exp/mono", sample / "data/lang", lattice, tmp_path / "out")
    (tmp_path / "lang/phones").mkdir(parents=True)
    lexicon = tmp_path / "lang/phones/align_lexicon.int"
    lexicon.write_text("".join(f"{word} {word} 1\n" for word in range(1, 49)))
    with pytest.raises(KernelamError, match=r"the lattice of \w+: phones .* do not fit each other"):
        run("ctm", sample / "exp/tri3", tmp_path / "lang", lattice, tmp_path / "out")
    lexicon.write_text("1 1\n")
    with pytest.raises(KernelamError, match=r"align_lexicon.int: '1 1' is not a word twice and its phones"):
        run("ctm", sample / "exp/tri3", tmp_path / "lang", lattice, tmp_path / "out")
    assert not (tmp_path / "out").exists()
