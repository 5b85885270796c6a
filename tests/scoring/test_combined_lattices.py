"""kernelam score combine: lattices of several systems decoded together, and what it refuses."""

import gzip
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelam.cli.score import combine, paths, write
from kernelam.decoding.mbr import minimum_bayes_risk
from kernelam.errors import KernelamError
from kernelam.kaldi.lattices import read_lattices
from kernelam.kaldi.tables import read_symbols
from kernelam.records import digest
from kernelam.scoring.directory import read_result, read_scored, read_weights
from kernelam.scoring.tuning import Weights
from kernelam.scoring.wer import read_transcripts

WORDS = ["<eps>", "one", "two", "three"]
TEXT = {"s-1": ["one"], "s-2": ["two"], "s-3": ["one"]}
Alternatives = Sequence[tuple[int, float]]
SURE_1: Alternatives = [(1, 0.0), (2, 3.0)]
SURE_2: Alternatives = [(1, 3.0), (2, 0.0)]
LIKELY_2: Alternatives = [(1, 1.0), (2, 0.0)]


def run(*arguments: object, command: object = combine) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])  # type: ignore[arg-type]
    if isinstance(result.exception, KernelamError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stderr


def decoded(folder: Path, lattices: dict[str, Alternatives], weights: str = "10_0.0", frames: int = 1) -> Path:
    """A scored decode directory; an utterance is one of several words, each with its graph cost."""
    (folder / "scoring_kaldi").mkdir(parents=True)
    ids = "_".join(["1"] * frames)
    with gzip.open(folder / "lat.1.gz", "wt") as stream:
        for utt, words in lattices.items():
            stream.write(f"{utt} \n" + "".join(f"0 1 {word} {cost},0,{ids}\n" for word, cost in words) + "1\n\n")
    (folder / "num_jobs").write_text("1\n")
    (folder / "scoring_kaldi/best_wer").write_text(f"%WER 0.0 [ 0 / 1, 0 ins, 0 del, 0 sub ] {folder}/wer_{weights}\n")
    return folder


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/text").write_text("".join(f"{utt} {' '.join(words)}\n" for utt, words in TEXT.items()))
    (tmp_path / "data/utt2spk").write_text("".join(f"{utt} s\n" for utt in TEXT))
    (tmp_path / "words.txt").write_text("".join(f"{word} {number}\n" for number, word in enumerate(WORDS)))
    return tmp_path / "data", tmp_path / "words.txt"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """The first is right where it is sure; the second wins where it has enough weight."""
    first = {"s-1": SURE_1, "s-2": SURE_1, "s-3": SURE_1}
    second = {"s-1": LIKELY_2, "s-2": SURE_2, "s-3": LIKELY_2}
    return decoded(tmp_path / "a/decode_dev", first), decoded(tmp_path / "b/decode_dev", second)


def hypotheses(folder: Path, name: str) -> dict[str, list[str]]:
    return read_transcripts(folder / f"scoring_kaldi/penalty_0.0/{name}.txt")


def test_weights_are_tuned(data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path) -> None:
    """With the part a of ten of the first system, p("one") is 0.1 a 0.953 + (1 − 0.1 a) 0.269, or 0.047 when sure."""
    out = tmp_path / "ab/decode_dev"
    run(*data, *two, out)
    for part in range(1, 10):
        sure, likely = (0.0953 * part + (1 - 0.1 * part) * p > 0.5 for p in (0.0474, 0.2689))
        expected = {utt: ["one" if one else "two"] for utt, one in zip(TEXT, (likely, sure, likely), strict=True)}
        assert hypotheses(out, f"1_{part}_{10 - part}") == expected
    assert read_weights(out) == Weights(1, 0.0, (4, 6))
    assert read_scored(out).total.errors == 0
    record = read_result(out)
    assert record["systems"] == [{"folder": str(folder), "lmwt": 10, "wip": 0.0, "model": None} for folder in two]
    assert (record["lmwt"], record["wip"], record["parts"], record["tuned_on"]) == (1, 0.0, [4, 6], ".")
    assert (out / "scoring_kaldi/best_wer").read_text().endswith("/wer_1_0.0_4_6\n")


def test_weights_of_another_combination(data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path) -> None:
    """Its LM weights and penalties too, whatever the systems had on this set."""
    run(*data, *two, tmp_path / "ab/decode_dev")
    others = [decoded(folder.with_name("decode_test"), {"s-1": SURE_2}, "17_1.0") for folder in two]
    run("--tuned-on", tmp_path / "ab/decode_dev", *data, *others, tmp_path / "ab/decode_test")
    record = read_result(tmp_path / "ab/decode_test")
    assert [(system["lmwt"], system["wip"]) for system in record["systems"]] == [(10, 0.0)] * 2
    assert (record["parts"], record["tuned_on"]) == ([4, 6], "../decode_dev")
    assert record["missing"] == ["s-2", "s-3"]
    with pytest.raises(
        KernelamError, match=r"b/decode_test is not of the model that .*a/decode_dev was of; name the same"
    ):
        run("--tuned-on", tmp_path / "ab/decode_dev", *data, *reversed(others), tmp_path / "ba")
    third = decoded(tmp_path / "c/decode_test", {"s-1": SURE_2})
    with pytest.raises(KernelamError, match=r"c/decode_test is not of the model that .*b/decode_dev was of; name the"):
        run("--tuned-on", tmp_path / "ab/decode_dev", *data, others[0], third, tmp_path / "ba")
    with pytest.raises(KernelamError, match="ab/decode_dev combines 2 systems, not 3"):
        run("--tuned-on", tmp_path / "ab/decode_dev", *data, *others, two[0], tmp_path / "ba")
    (two[0] / "scoring_kaldi/result.json").write_text("{}")
    with pytest.raises(KernelamError, match="decode_dev is no combination of systems: tune one with steps/score_combi"):
        run("--tuned-on", two[0], *data, *others, tmp_path / "ba")
    with pytest.raises(KernelamError, match="is a combination of systems: its weights are not those of one"):
        run(
            *("--tuned-on", tmp_path / "ab/decode_dev", data[1], two[0] / "lat.1.gz", tmp_path / "ba"),
            command=paths,
        )
    assert not (tmp_path / "ba").exists()


def test_weights_of_a_combination_are_those_of_its_models(
    data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path
) -> None:
    """Not of others that were since trained in the same directories; but wherever the directories are now."""
    for folder in two:
        (folder / "model.json").write_text(json.dumps({"fingerprint": f"of {folder.parent.name}"}))
    run(*data, *two, tmp_path / "ab/decode_dev")
    moved = [shutil.copytree(folder, tmp_path / f"new-{folder.parent.name}/decode_test") for folder in two]
    run("--tuned-on", tmp_path / "ab/decode_dev", *data, *moved, tmp_path / "ab/decode_test")
    (two[1] / "model.json").write_text(json.dumps({"fingerprint": "of another"}))
    with pytest.raises(KernelamError, match=r"b/decode_dev is not of the model that .*b/decode_dev was of"):
        run("--tuned-on", tmp_path / "ab/decode_dev", *data, *two, tmp_path / "ba")
    assert not (tmp_path / "ba").exists()


def test_the_models_that_were_combined_are_told(
    data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path
) -> None:
    """Of a GMM, too, which has no fingerprint. Lattices of a model that was replaced are refused."""
    network, gmm = {"fingerprint": "of a"}, {"kind": "gmm", "seed": 1}
    for folder, about in zip(two, (network, gmm), strict=True):
        for place in (folder, folder.parent):
            (place / "model.json").write_text(json.dumps(about))
    run(*data, *two, tmp_path / "out")
    models = [system["model"] for system in read_result(tmp_path / "out")["systems"]]
    assert models == ["of a", digest(gmm)]
    for folder, about in zip(two, ({"fingerprint": "of another"}, {"kind": "gmm", "seed": 2}), strict=True):
        before = (folder / "model.json").read_text()
        (folder.parent / "model.json").write_text(json.dumps(about))
        with pytest.raises(KernelamError, match=f"{folder} was decoded with another model than the one that is now in"):
            run(*data, *two, tmp_path / "again")
        (folder.parent / "model.json").write_text(before)
    assert not (tmp_path / "again").exists()


def test_three_have_equal_weights(data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path) -> None:
    third = decoded(tmp_path / "c/decode_dev", {"s-1": SURE_1, "s-2": SURE_2, "s-3": SURE_1})
    out = tmp_path / "abc"
    run(*data, *two, out)
    run(*data, *two, third, out)
    assert [path.name for path in out.glob("scoring_kaldi/penalty_*/*")] == ["1_1_1_1.txt"]
    assert [path.name for path in out.glob("wer_*")] == ["wer_1_0.0_1_1_1"]
    assert hypotheses(out, "1_1_1_1") == TEXT


def test_utterances_that_a_system_lacks(data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path) -> None:
    less = decoded(tmp_path / "less", {"s-2": SURE_2})
    said = run(*data, two[0], less, tmp_path / "out")
    assert f"warning: {less} lacks 2 of 3 utterances, which are combined without it: s-1 s-3\n" in said
    assert str(two[0]) not in said
    assert hypotheses(tmp_path / "out", "1_1_9") == TEXT


@pytest.mark.parametrize("words", [SURE_1, [(1, 0.0), (3, 1.0)]])
def test_words_of_another_graph(
    data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path, words: Alternatives
) -> None:
    """A number that is not in the table, even of a word that nobody would choose; or is another word's."""
    other = decoded(tmp_path / "other", {"s-1": words})
    table = data[1].read_text()
    (other / "words.txt").write_text(table.replace("one 1", "uno 1") if words is SURE_1 else table)
    data[1].write_text(table.replace("three 3\n", ""))
    number = 1 if words is SURE_1 else 3
    with pytest.raises(KernelamError, match=rf"other/lat.1.gz, utterance s-1: word {number} is not in .*/words.txt"):
        run(*data, two[0], other, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_system_is_decoded_by_minimum_bayes_risk(
    data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path
) -> None:
    run(*data, two[0], tmp_path / "alone")
    (system,) = read_result(tmp_path / "alone")["systems"]
    assert system["folder"] == str(two[0])
    assert read_result(tmp_path / "alone")["parts"] == [1]


def test_bad_input(data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    long = decoded(tmp_path / "long", {"s-1": SURE_1}, frames=3)
    with pytest.raises(KernelamError, match=r"utterance s-1 has 1 frames in .*a/decode_dev and 3 in .*long: decode"):
        run(*data, two[0], long, out)
    with pytest.raises(KernelamError, match=r"there is no lattice in .*none; decode again"):
        run(*data, two[0], decoded(tmp_path / "none", {}), out)
    with pytest.raises(KernelamError, match=r"other has no utterance of the other systems: combine decodings of the"):
        run(*data, *two, decoded(tmp_path / "other", {"s-4": SURE_1}), out)
    with pytest.raises(KernelamError, match=r"a combination needs different decode directories, not .*decode_dev"):
        run(*data, two[0], two[0].parent / "../a/decode_dev", out)
    with pytest.raises(KernelamError, match="a combination needs different decode directories"):
        run(*data, two[0], two[0], out)
    with pytest.raises(KernelamError, match="b/decode_dev has lattices of its own: name a new directory last"):
        run(*data, *two, two[1])
    twice = decoded(tmp_path / "twice", {"s-1": SURE_1})
    shutil.copyfile(twice / "lat.1.gz", twice / "lat.2.gz")
    (twice / "num_jobs").write_text("2\n")
    with pytest.raises(KernelamError, match=r"lat.2.gz: utterance s-1 is also in an earlier file of .*twice"):
        run(*data, two[0], twice, out)
    (two[1] / "lat.1.gz").unlink()
    with pytest.raises(KernelamError, match=r"no such file .*b/decode_dev/lat.1.gz"):
        run(*data, *two, out)
    shutil.rmtree(two[1] / "scoring_kaldi")
    with pytest.raises(KernelamError, match=r"no such file .*b/decode_dev/scoring_kaldi/best_wer"):
        run(*data, *two, out)
    assert not out.exists()


@pytest.fixture
def timit(corpora: Path, tmp_path: Path) -> tuple[Path, list[Path]]:
    """Two systems with different trees, scored by us."""
    sample, folders = corpora / "kaldi-timit-sample", []
    for name in ("tri1", "tri3"):
        folder = tmp_path / name / "decode_dev"
        folder.mkdir(parents=True)
        for source in (sample / f"exp/{name}/decode_dev").glob("*"):
            if source.name == "num_jobs" or source.name.startswith("lat."):
                shutil.copyfile(source, folder / source.name)
        jobs = [folder / f"lat.{job}.gz" for job in (1, 2, 3)]
        for job in jobs:
            run(sample / "data/lang/words.txt", job, job.with_suffix(".paths"), command=paths)
        run(sample / "data/dev", folder, *(job.with_suffix(".paths") for job in jobs), command=write)
        folders.append(folder)
    return sample, folders


def test_systems_of_different_trees(timit: tuple[Path, list[Path]], tmp_path: Path) -> None:
    sample, folders = timit
    run(sample / "data/dev", sample / "data/lang/words.txt", *folders, tmp_path / "both")
    both, one, three = (read_scored(folder).total.errors for folder in (tmp_path / "both", *folders))
    assert both < min(one, three)


def test_a_system_with_itself(timit: tuple[Path, list[Path]], tmp_path: Path) -> None:
    sample, folders = timit
    shutil.copytree(folders[1], tmp_path / "again")
    run(sample / "data/dev", sample / "data/lang/words.txt", folders[1], tmp_path / "again", tmp_path / "both")
    names = {number: word for word, number in read_symbols(sample / "data/lang/words.txt").items()}
    lmwt, wip, _ = read_weights(folders[1])
    expected = {
        utt: [names[item.word] for item in minimum_bayes_risk(lattice, lmwt, wip)]
        for job in (1, 2, 3)
        for utt, lattice in read_lattices(folders[1] / f"lat.{job}.gz")
    }
    for part in range(1, 10):
        assert hypotheses(tmp_path / "both", f"1_{part}_{10 - part}") == expected


def test_record_of_a_combination_is_whole(data: tuple[Path, Path], two: tuple[Path, Path], tmp_path: Path) -> None:
    """All that a single system's result has is in a combination's."""
    for folder in two[:1]:
        run("--lmwts", 10, data[1], folder / "lat.1.gz", folder / "paths", command=paths)
        run(data[0], folder, folder / "paths", command=write)
    run(*data, *two, tmp_path / "out")
    alone, both = (json.loads((f / "scoring_kaldi/result.json").read_text()) for f in (two[0], tmp_path / "out"))
    assert both.keys() - alone.keys() == {"systems", "parts"}
    assert alone.keys() < both.keys()
