"""The files of a scored decode directory."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import read_symbols
from kernelam.scoring.bootstrap import bootstrap, compare
from kernelam.scoring.directory import read_scored, read_weights, score_directory
from kernelam.scoring.tuning import Weights
from kernelam.scoring.units import to_characters
from kernelam.scoring.wer import read_transcripts

REFS = {"a-1": ["one", "two"], "a-2": ["three"], "b-1": ["four", "five", "six"]}
UTT2SPK = {"a-1": "a", "a-2": "a", "b-1": "b"}
GRID = {
    Weights(7, 0.0): {"a-1": ["one"], "a-2": ["tree"], "b-1": ["four", "five", "six"]},
    Weights(8, 0.0): {"a-1": ["one", "two"], "a-2": ["tree"], "b-1": ["four", "five", "six"]},
    Weights(9, 0.0): {"a-1": ["one", "two"], "a-2": [], "b-1": ["four", "five"]},
    Weights(7, 0.5): {"a-1": ["one", "two"], "a-2": [], "b-1": ["four", "five", "six"]},
}


def contents(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scored = score_directory("exp/decode_dev", REFS, GRID, UTT2SPK)
    assert scored.weights == Weights(8, 0.0)
    files = contents(Path("exp/decode_dev"))
    assert sorted(files) == [
        "scoring_kaldi/best_wer",
        "scoring_kaldi/penalty_0.0/7.txt",
        "scoring_kaldi/penalty_0.0/8.txt",
        "scoring_kaldi/penalty_0.0/9.txt",
        "scoring_kaldi/penalty_0.5/7.txt",
        "scoring_kaldi/result.json",
        "scoring_kaldi/test_filt.txt",
        *(f"scoring_kaldi/wer_details/{n}" for n in ("lmwt", "ops", "per_spk", "per_utt", "wer_bootci", "wip")),
        *("wer_7_0.0", "wer_7_0.5", "wer_8_0.0", "wer_9_0.0"),
    ]
    assert files["wer_8_0.0"] == (
        "# compute-wer --text --mode=all ark:exp/decode_dev/scoring_kaldi/test_filt.txt"
        " ark:exp/decode_dev/scoring_kaldi/penalty_0.0/8.txt\n"
        "%WER 16.67 [ 1 / 6, 0 ins, 0 del, 1 sub ]\n"
        "%SER 33.33 [ 1 / 3 ]\n"
        "Scored 3 sentences, 0 not present in hyp.\n"
    )
    line = "%WER 16.67 [ 1 / 6, 0 ins, 0 del, 1 sub ] exp/decode_dev/wer_8_0.0\n"
    assert files["scoring_kaldi/best_wer"] == line
    assert files["scoring_kaldi/test_filt.txt"] == "a-1 one two\na-2 three\nb-1 four five six\n"
    assert files["scoring_kaldi/penalty_0.0/9.txt"] == "a-1 one two\na-2\nb-1 four five\n"
    assert (files["scoring_kaldi/wer_details/lmwt"], files["scoring_kaldi/wer_details/wip"]) == ("8\n", "0.0\n")


def test_result(tmp_path: Path) -> None:
    scored = score_directory(tmp_path / "dev", REFS, GRID, UTT2SPK)
    record = json.loads((tmp_path / "dev/scoring_kaldi/result.json").read_text())
    counts = {"errors": 1, "insertions": 0, "deletions": 0, "substitutions": 1, "ref_words": 6, "rate": 1 / 6}
    assert record.pop("oracle") == {**counts, "lmwt": 8, "wip": 0.0}
    assert tuple(record.pop("interval_95")) == bootstrap(scored.result).interval
    assert tuple(record.pop("interval_95_by_speaker")) == bootstrap(scored.result, UTT2SPK).interval
    assert record == {
        **counts,
        "sentence_errors": 1,
        "utterances": 3,
        "speakers": 2,
        "missing": [],
        "lmwt": 8,
        "wip": 0.0,
        "tuned_on": ".",
        "seed": 0,
        "replicates": 10_000,
        "units": "words",
    }


def test_what_is_scored_may_be_other_than_the_words(tmp_path: Path) -> None:
    def fold(words: Sequence[str]) -> list[str]:
        return [{"zh": "sh"}.get(w, w) for w in words if w != "q"]

    grid = {Weights(7, 0.0): {"u": ["zh", "q"]}}
    for token_map, errors, reference in ((list, 2, "u q sh\n"), (to_characters, 3, "u q s h\n"), (fold, 0, "u sh\n")):
        scored = score_directory(tmp_path, {"u": ["q", "sh"]}, grid, {"u": "s"}, token_map=token_map)
        assert scored.result.total.errors == errors
        assert (tmp_path / "scoring_kaldi/test_filt.txt").read_text() == reference


def test_weights_of_dev_applied_to_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score_directory(tmp_path / "dev", REFS, {w: GRID[w if w[1] else Weights(9, 0.0)] for w in GRID}, UTT2SPK)
    assert read_weights(tmp_path / "dev") == Weights(7, 0.5)
    capsys.readouterr()
    scored = score_directory(tmp_path / "test", REFS, GRID | {Weights(7, 0.5): {}}, UTT2SPK, tuned_on=tmp_path / "dev")
    assert scored.weights == Weights(7, 0.5)
    folder = tmp_path / "test/scoring_kaldi"
    assert (folder / "best_wer").read_text().startswith("%WER 100.00 [ 6 / 6, 0 ins, 6 del, 0 sub ] [PARTIAL] ")
    assert (folder / "best_wer").read_text().endswith("test/wer_7_0.5\n")
    assert (folder / "oracle_wer").read_text().endswith("test/wer_8_0.0\n")
    record = json.loads((folder / "result.json").read_text())
    assert (record["tuned_on"], record["lmwt"], record["wip"]) == ("../dev", 7, 0.5)
    assert (record["oracle"]["lmwt"], record["oracle"]["errors"]) == (8, 1)
    assert record["missing"] == ["a-1", "a-2", "b-1"]
    assert capsys.readouterr().err == (
        f"{tmp_path}/test: 3 of 3 utterances have no hypothesis and count as deleted, first a-1\n"
    )


def test_tuning_as_a_real_experiment_did(corpora: Path, tmp_path: Path) -> None:
    """Its notes name the LM weight chosen on dev and the test rate with it."""
    sample = corpora / "kaldi-timit-sample"
    rows = [line.split() for line in (sample / "data/local/phones.60-48-39.map").read_text().splitlines()]
    to_39 = {row[1]: row[2] for row in rows if len(row) == 3}
    pattern = r"^(mono|tri1|tri3) LMWT\(dev\)=(\d+) .*test: (%WER [^]]*\])"
    notes = re.findall(pattern, (sample / "README.txt").read_text(), re.MULTILINE)
    assert len(notes) == 3
    for system, lmwt, line in notes:
        phones = {str(i): phone for phone, i in read_symbols(sample / f"exp/{system}/graph/words.txt").items()}
        for part, tuned_on in (("dev", None), ("test", tmp_path / f"{system}_dev")):
            decode = sample / f"exp/{system}/decode_{part}"
            refs = read_transcripts(decode / "scoring/test_filt.txt")
            grid = {
                Weights(w, 0.0): {
                    utt: [phones[i] for i in ids] for utt, ids in read_transcripts(decode / f"scoring/{w}.tra").items()
                }
                for w in range(1, 11)
            }
            utt2spk = {utt: utt.split("_")[0] for utt in refs}
            scored = score_directory(
                tmp_path / f"{system}_{part}", refs, grid, utt2spk, tuned_on, lambda words: [to_39[w] for w in words]
            )
        assert scored.weights == Weights(int(lmwt), 0.0)
        assert scored.result.wer_line == line


def test_warns_at_the_edge_of_the_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score_directory(tmp_path, REFS, {w: GRID[w] for w in (Weights(7, 0.0), Weights(8, 0.0))}, UTT2SPK)
    expected = f"{tmp_path}: the best LM weight, 8, is the highest tried: try higher ones with --max-lmwt\n"
    assert capsys.readouterr().err == expected


def test_scoring_again_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    for name in ("dev", "test", "fresh"):
        score_directory(tmp_path / name, REFS, GRID, UTT2SPK)
    smaller = {w: GRID[w] for w in (Weights(7, 0.0), Weights(8, 0.0))}
    (tmp_path / "test/wer_notes").write_text("mine")
    (tmp_path / "test/lat.1.gz").write_text("lattice")
    score_directory(tmp_path / "test", REFS, GRID, UTT2SPK, tuned_on=tmp_path / "dev")
    score_directory(tmp_path / "test", REFS, smaller, UTT2SPK)
    score_directory(tmp_path / "new", REFS, smaller, UTT2SPK)
    assert contents(tmp_path / "test").keys() - contents(tmp_path / "new").keys() == {"wer_notes", "lat.1.gz"}


def test_the_same_bytes_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for name, refs in (("one", REFS), ("two", dict(reversed(REFS.items())))):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        score_directory("decode", refs, dict(reversed(GRID.items())) if seen else GRID, UTT2SPK)
        seen.append(contents(Path("decode")))
    assert seen[0] == seen[1]


def test_scored_directories_compare(tmp_path: Path) -> None:
    one = score_directory(tmp_path / "one", REFS, {Weights(7, 0.0): GRID[Weights(7, 0.0)]}, UTT2SPK)
    two = score_directory(tmp_path / "two", REFS, {Weights(9, 0.0): {"a-1": ["one", "two"]}}, UTT2SPK)
    assert read_scored(tmp_path / "one") == one.result
    assert read_scored(tmp_path / "two") == two.result
    assert compare(read_scored(tmp_path / "one"), read_scored(tmp_path / "two")).difference == pytest.approx(2 / 6)


def test_weights_from_kaldis_own_best_wer(tmp_path: Path) -> None:
    best = tmp_path / "scoring_kaldi/best_wer"
    best.parent.mkdir()
    best.write_text("%WER 13.45 [ 2708 / 20138, 358 ins, 330 del, 2020 sub ] exp/tri3/decode/wer_17_0.5\n")
    assert read_weights(tmp_path) == Weights(17, 0.5)


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match=r"no such file .*best_wer"):
        score_directory(tmp_path / "test", REFS, GRID, UTT2SPK, tuned_on=tmp_path / "dev")
    (tmp_path / "dev/scoring_kaldi").mkdir(parents=True)
    best = tmp_path / "dev/scoring_kaldi/best_wer"
    best.write_text("%WER 1.00 [ 1 / 100, 0 ins, 0 del, 1 sub ]\n")
    with pytest.raises(KernelamError, match="does not end with the name"):
        score_directory(tmp_path / "test", REFS, GRID, UTT2SPK, tuned_on=tmp_path / "dev")
    best.write_text("%WER 1.00 [ 1 / 100, 0 ins, 0 del, 1 sub ] dev/wer_20_0.0\n")
    with pytest.raises(KernelamError, match=r"tuned to 20_0\.0, which is not among the points"):
        score_directory(tmp_path / "test", REFS, GRID, UTT2SPK, tuned_on=tmp_path / "dev")
    with pytest.raises(KernelamError, match="b-1 has no speaker"):
        score_directory(tmp_path / "test", REFS, GRID, {"a-1": "a", "a-2": "a"})
    with pytest.raises(KernelamError, match="reference, z-1 first"):
        score_directory(tmp_path / "test", REFS, {Weights(7, 0.0): {"z-1": ["one"]}}, UTT2SPK)
    with pytest.raises(KernelamError, match="the grid is empty"):
        score_directory(tmp_path / "test", REFS, {}, UTT2SPK)
    assert not (tmp_path / "test").exists()


def test_a_full_disk_leaves_no_result(tmp_path: Path, root: Path) -> None:
    """A file-size limit stands in for it: the earlier result must not vouch for what was not written."""
    score_directory(tmp_path / "decode", REFS, GRID, UTT2SPK)
    script = (
        "from kernelam.scoring.directory import *\n"
        "refs = {f'u{i}': ['word'] * 20 for i in range(50)}\n"
        f"score_directory({str(tmp_path / 'decode')!r}, refs, {{Weights(7, 0.0): refs}}, dict.fromkeys(refs, 's'))\n"
    )

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([sys.executable, "-c", script], preexec_fn=limit, env=env, capture_output=True, text=True)
    assert "KernelamError: cannot write" in run.stderr
    assert not (tmp_path / "decode/scoring_kaldi/result.json").exists()
    assert not (tmp_path / "decode/scoring_kaldi/best_wer").exists()
    assert not list(tmp_path.rglob("*.partial"))


def test_a_whole_grid_is_quick(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(300)]
    refs = {f"s{i % 10}-{i:03d}": [words[j] for j in rng.integers(300, size=10)] for i in range(500)}
    grid = {
        Weights(lmwt, wip): {u: [w if rng.random() > 0.2 else "x" for w in r] for u, r in refs.items()}
        for lmwt in range(7, 18)
        for wip in (0.0, 0.5, 1.0)
    }
    start = time.process_time()
    score_directory(tmp_path, refs, grid, {utt: utt.split("-")[0] for utt in refs})
    assert time.process_time() - start < 4


def test_weights_tuned_on_other_units_are_refused(tmp_path: Path) -> None:
    score_directory(tmp_path / "dev", REFS, GRID, UTT2SPK, token_map=to_characters, units="characters")
    with pytest.raises(KernelamError, match=r"dev was scored in characters, .*test is to be in words"):
        score_directory(tmp_path / "test", REFS, GRID, UTT2SPK, tuned_on=tmp_path / "dev")
    assert not (tmp_path / "test").exists()
