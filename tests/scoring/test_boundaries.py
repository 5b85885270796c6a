"""Boundaries of phones: agreement of two sources, durations, silence."""

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.scoring.boundaries import Phone, distances, durations, read_segments, silence_share


def segments(text: str) -> list[Phone]:
    """From "a3 b5": phones and their numbers of frames."""
    found, time = [], 0.0
    for word in text.split():
        found.append(Phone(word[0], time, time + float(word[1:])))
        time = found[-1].end
    return found


def test_boundaries_of_equal_phones():
    away = distances({"u": segments("a3 b5 c4")}, {"u": segments("a4 b6 c2"), "v": segments("a3")})
    assert away.tolist() == [1.0, 2.0]  # the end of the utterance is no boundary


def test_phones_that_only_one_has_are_left_out():
    """Of s a b c and a x b c, what stands in both is the boundary between b and c."""
    assert distances({"u": segments("s3 a3 b5 c4")}, {"u": segments("a6 x2 b5 c2")}).tolist() == [2.0]


def test_nothing_in_common():
    with pytest.raises(KernelamError, match="no phones of an utterance in common"):
        distances({"u": segments("a3")}, {"v": segments("a3")})


def test_durations_and_silence():
    told = {"u": segments("s10 a3 s2 a5 s20"), "v": segments("a3 b40")}
    of_a = durations(told)["a"]
    assert (of_a.count, of_a.mean, of_a.shortest) == (3, pytest.approx(11 / 3), pytest.approx(2 / 3))
    assert list(durations(told)) == ["a", "s", "b"]
    assert silence_share(told, ["s"]) == (pytest.approx(32 / 83), pytest.approx(2 / 83))


def test_a_file_of_times(tmp_path):
    (tmp_path / "ctm").write_text("u 1 0.00 0.10 SIL\nu 1 0.10 0.05 aa_B\n")
    assert read_segments(tmp_path / "ctm") == {"u": [Phone("SIL", 0.0, 10.0), Phone("aa", 10.0, pytest.approx(15.0))]}
    (tmp_path / "ctm").write_text("u 1 0.00 0.10 SIL\nu 1 aa\n")
    with pytest.raises(
        KernelamError, match="line 2: not an utterance, a channel, a start, a length and a phone: 'u 1 aa'"
    ):
        read_segments(tmp_path / "ctm")


def test_the_times_of_kaldi_are_those_of_its_alignment(corpora):
    """ali-to-phones --ctm-output of the same alignments."""
    folder = corpora / "kaldi-timit-sample"
    ours = read_segments(folder / "exp/tri1_ali_dev")
    numbers = read_segments(folder / "expected/tri1/ali-to-phones.dev.ctm")  # phones are numbers there
    for utt, phones in ours.items():
        np.testing.assert_allclose([p.end for p in phones], [p.end for p in numbers[utt]], atol=1e-6)


def test_the_command(corpora, kernelam):
    folder = corpora / "kaldi-timit-sample"
    done = kernelam(
        "labels", "quality", "--phones", "--reference", folder / "exp/tri1_ali_dev", folder / "data/lang",
        folder / "exp/tri3_ali_dev",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "| utterances | 24 |" in done.stdout
    within = float(next(line for line in done.stdout.splitlines() if "within 2 frames" in line).split()[-3])
    assert 85 < within < 100
    assert "| sil | " in done.stdout
