"""compute_wer against the output of Kaldi's compute-wer."""

from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import read_symbols
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.wer import WerResult, compute_wer, read_transcripts

REFS = {"u1": ["a", "b", "c"], "u2": ["d"], "u3": []}


@pytest.mark.parametrize("mode", ["strict", "all", "present"])
@pytest.mark.parametrize("name", ["tri1.dev", "tri1.test", "tri3.dev", "tri3.test"])
def test_text_is_that_of_compute_wer(corpora: Path, name: str, mode: str) -> None:
    folder = corpora / "kaldi-timit-sample/expected/compute-wer"
    result = compute_wer(
        read_transcripts(folder / f"{name}.ref.txt"), read_transcripts(folder / f"{name}.lmwt7.hyp.txt"), mode
    )
    assert result.text == (folder / f"{name}.lmwt7.{mode}.stdout").read_text()


@pytest.mark.parametrize("mode", ["all", "present"])
def test_missing_and_empty_hypotheses_as_in_compute_wer(
    corpora: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = corpora / "kaldi-timit-sample/expected/compute-wer"
    hyps = read_transcripts(folder / "edge.hyp.txt")
    result = compute_wer(read_transcripts(folder / "edge.ref.txt"), hyps, mode)
    assert result.text == (folder / f"edge.{mode}.stdout").read_text()
    fate = {"all": "count as deleted", "present": "are left out"}[mode]
    assert result.remarks == [
        f"1 of 5 utterances have no hypothesis and {fate}, first u3",
        "1 hypotheses have no reference and are not scored, first u9",
    ]


@pytest.mark.parametrize("system", ["mono", "tri1", "tri3"])
@pytest.mark.parametrize("part", ["dev", "test"])
def test_every_point_of_a_real_decode_directory(corpora: Path, system: str, part: str) -> None:
    """48 phones were recognised and 39 scored."""
    sample = corpora / "kaldi-timit-sample"
    decode, symbols = sample / f"exp/{system}/decode_{part}", read_symbols(sample / f"exp/{system}/graph/words.txt")
    phones = {str(i): phone for phone, i in symbols.items()}
    rows = [line.split() for line in (sample / "data/local/phones.60-48-39.map").read_text().splitlines()]
    to_39 = {row[1]: row[2] for row in rows if len(row) == 3}
    refs = read_transcripts(decode / "scoring/test_filt.txt")
    for lmwt in range(1, 11):
        hyps = {
            utt: [to_39[phones[i]] for i in ids]
            for utt, ids in read_transcripts(decode / f"scoring/{lmwt}.tra").items()
        }
        result = compute_wer(refs, hyps)
        assert result.text == (decode / f"wer_{lmwt}").read_text().split("\n", 1)[1]


def test_a_real_word_transcript(corpora: Path) -> None:
    iban = corpora / "kaldi-iban"
    result = compute_wer(
        read_transcripts(iban / "data-fbank/dev/text"), read_transcripts(iban / "exp/gmm/decode_dev/hyp.txt")
    )
    assert (iban / "exp/gmm/decode_dev/best").read_text().rstrip().endswith(result.wer_line)


def test_a_missing_hypothesis_is_deleted_unless_told_otherwise() -> None:
    result = compute_wer(REFS, {"u2": ["d"], "u3": ["x"]})
    assert result.missing == ("u1",)
    assert result.utterances["u1"] == ErrorCounts(deletions=3, ref_words=3)
    assert result.text == (
        "%WER 100.00 [ 4 / 4, 1 ins, 3 del, 0 sub ] [PARTIAL]\n"
        "%SER 66.67 [ 2 / 3 ]\n"
        "Scored 3 sentences, 1 not present in hyp.\n"
    )
    present = compute_wer(REFS, {"u2": ["d"], "u3": ["x"]}, mode="present")
    assert present.total == ErrorCounts(insertions=1, ref_words=1)
    assert list(present.utterances) == ["u2", "u3"]


def test_percentages_are_rounded_from_single_precision() -> None:
    """Kaldi divides in double precision, stores a float, and prints two decimals of that."""
    differ = 0
    for errors in range(1, 20000, 7):
        result = WerResult({"u": ErrorCounts(substitutions=errors, ref_words=20000)})
        expected = f"{float(np.float32(100.0 * errors / 20000)):.2f}"
        assert result.wer_line.split()[1] == expected
        differ += expected != f"{100.0 * errors / 20000:.2f}"
    assert differ > 0


@pytest.mark.parametrize(
    ("refs", "hyps", "mode", "sentence"),
    [
        ({}, {}, "all", "the reference is empty"),
        (REFS, {"u8": [], "u9": []}, "all", "none of the 2 hypotheses has a reference, u8 first"),
        (REFS, {"u1": ["a"]}, "strict", "2 of 3 utterances have no hypothesis, first u2"),
        (REFS, {}, "present", "has no words"),
        ({"u3": []}, {"u3": ["x"]}, "all", "has no words"),
    ],
)
def test_bad_input(refs: dict[str, list[str]], hyps: dict[str, list[str]], mode: str, sentence: str) -> None:
    with pytest.raises(KernelamError, match=sentence):
        compute_wer(refs, hyps, mode)
