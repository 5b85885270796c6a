"""The details in Kaldi's layout, to the character."""

from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.scoring.bootstrap import Bootstrap, bootstrap
from kernelam.scoring.details import details
from kernelam.scoring.wer import compute_wer, read_transcripts

REFS = {
    "anna-1": ["the", "cat", "sat", "on", "mats"],
    "anna-2": ["yes"],
    "bert-1": [],
    "bert-2": ["née"],
}
HYPS = {
    "anna-1": ["the", "big", "cat", "sat", "mat"],
    "bert-1": ["uh"],
    "bert-2": ["née"],
}
UTT2SPK = {"anna-1": "anna", "anna-2": "anna", "bert-1": "bert", "bert-2": "bert"}
BOOT = Bootstrap(np.array([0.2, 0.2]), 2)

PER_UTT = """\
anna-1 ref  the  ***  cat  sat   on  mats
anna-1 hyp  the  big  cat  sat  ***   mat
anna-1 op    C    I    C    C    D     S\x20
anna-1 #csid 3 1 1 1
anna-2 ref  yes
anna-2 hyp  ***
anna-2 op    D\x20
anna-2 #csid 0 0 0 1
bert-1 ref  ***
bert-1 hyp   uh
bert-1 op    I\x20
bert-1 #csid 0 0 1 0
bert-2 ref  née
bert-2 hyp  née
bert-2 op    C\x20
bert-2 #csid 1 0 0 0
"""

PER_SPK = """\
SPEAKER         id       #SENT      #WORD       Corr        Sub        Ins        Del        Err      S.Err
anna            raw          2          6          3          1          1          2          4          2
anna            sys          2          6      50.00      16.67      16.67      33.33      66.67     100.00
bert            raw          2          1          1          0          1          0          1          1
bert            sys          2          1     100.00       0.00     100.00       0.00     100.00      50.00
SUM             raw          4          7          4          1          2          2          5          3
SUM             sys          4          7      57.14      14.29      28.57      28.57      71.43      75.00
"""

OPS = """\
correct        cat     cat    1
correct        née     née    1
correct        sat     sat    1
correct        the     the    1
deletion        on     ***    1
deletion       yes     ***    1
insertion      ***     big    1
insertion      ***      uh    1
substitution  mats     mat    1
"""


def test_layout() -> None:
    assert details(REFS, HYPS, UTT2SPK, BOOT) == {
        "per_utt": PER_UTT,
        "per_spk": PER_SPK,
        "ops": OPS,
        "wer_bootci": "Set1: %WER 20.00 95% Conf Interval [ 20.00, 20.00 ]\n",
    }


def test_frequent_operations_come_first_and_columns_end_at_sixteen() -> None:
    word = "counterrevolutionary"
    ops = details({"u": ["b", "b", "a", word]}, {"u": ["b", "b", "a", word]}, {"u": "s"}, BOOT)["ops"]
    pad = " " * 15
    assert ops.splitlines() == [
        f"correct       {pad}b    {pad}b    2",
        f"correct       {pad}a    {pad}a    1",
        f"correct       {word}    {word}    1",
    ]


def test_a_long_speaker_name_widens_its_column() -> None:
    table = details({"u": ["a"]}, {"u": ["a"]}, {"u": "s" * 20}, BOOT)["per_spk"].splitlines()
    assert [line[20:25] for line in table] == [" id  ", *[" raw ", " sys "] * 2]


def test_a_speaker_without_words_has_no_percentages() -> None:
    table = details({"u": [], "v": ["a"]}, {"u": ["b"]}, {"u": "s", "v": "t"}, BOOT)["per_spk"].splitlines()
    assert [line.split()[:2] for line in table[1:]] == [
        ["s", "raw"],
        ["t", "raw"],
        ["t", "sys"],
        ["SUM", "raw"],
        ["SUM", "sys"],
    ]


def test_totals_are_those_of_compute_wer(corpora: Path) -> None:
    iban = corpora / "kaldi-iban"
    files = ("data-fbank/dev/text", "exp/gmm/decode_dev/hyp.txt", "data-fbank/dev/utt2spk")
    refs, hyps, speakers = (read_transcripts(iban / file) for file in files)
    result = compute_wer(refs, hyps)
    utt2spk = {utt: fields[0] for utt, fields in speakers.items()}
    texts = details(refs, hyps, utt2spk, bootstrap(result))
    total = texts["per_spk"].splitlines()[-2].split()
    assert total[:4] == ["SUM", "raw", "147", "3352"]
    assert total[-2:] == [str(result.total.errors), str(result.sentence_errors)]
    assert sum(int(line.split()[-1]) for line in texts["ops"].splitlines() if not line.startswith("correct")) == 557


def test_bad_input() -> None:
    with pytest.raises(KernelamError, match="utterance u has no speaker"):
        details({"u": ["a"]}, {}, {"v": "s"}, BOOT)
    with pytest.raises(KernelamError, match=r"u has the word \*\*\*"):
        details({"u": ["a"]}, {"u": ["***"]}, {"u": "s"}, BOOT)
