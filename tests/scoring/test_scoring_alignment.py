"""Edit distance against a recursion written from its definition, tie rules against Kaldi's programs."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelam.scoring.alignment import ErrorCounts, align, count_errors
from kernelam.scoring.wer import read_transcripts

tokens = st.lists(st.sampled_from("abcd"), max_size=9)


def distance(ref: list[str], hyp: list[str]) -> int:
    @cache
    def best(m: int, n: int) -> int:
        if m == 0 or n == 0:
            return m + n
        return min(best(m - 1, n) + 1, best(m, n - 1) + 1, best(m - 1, n - 1) + (ref[m - 1] != hyp[n - 1]))

    return best(len(ref), len(hyp))


def counts_of(pairs: list[tuple[str | None, str | None]]) -> ErrorCounts:
    ins = sum(r is None for r, _ in pairs)
    dels = sum(h is None for _, h in pairs)
    subs = sum(r is not None and h is not None and r != h for r, h in pairs)
    return ErrorCounts(ins, dels, subs, len(pairs) - ins)


@given(tokens, tokens)
def test_counts_are_minimal_and_add_up(ref: list[str], hyp: list[str]) -> None:
    counts = count_errors(ref, hyp)
    assert counts.errors == distance(ref, hyp)
    assert counts.ref_words == len(ref)
    assert counts.insertions - counts.deletions == len(hyp) - len(ref)
    assert min(counts.insertions, counts.deletions, counts.substitutions) >= 0


@given(tokens, tokens)
def test_alignment_is_minimal_and_spells_both_sides(ref: list[str], hyp: list[str]) -> None:
    pairs = align(ref, hyp)
    assert [r for r, _ in pairs if r is not None] == ref
    assert [h for _, h in pairs if h is not None] == hyp
    assert (None, None) not in pairs
    assert counts_of(pairs).errors == distance(ref, hyp)


@given(tokens, tokens)
def test_swapping_the_sides_swaps_insertions_and_deletions(ref: list[str], hyp: list[str]) -> None:
    one, other = count_errors(ref, hyp), count_errors(hyp, ref)
    assert one.errors == other.errors
    assert one.insertions - one.deletions == other.deletions - other.insertions


@given(tokens)
def test_a_sequence_is_at_no_distance_from_itself(ref: list[str]) -> None:
    assert count_errors(ref, ref) == ErrorCounts(ref_words=len(ref))
    assert align(ref, ref) == [(token, token) for token in ref]


def test_the_two_rules_for_ties() -> None:
    ref, hyp = ["b", "a"], ["a", "c"]
    assert count_errors(ref, hyp) == ErrorCounts(1, 1, 0, 2)
    assert align(ref, hyp) == [("b", "a"), ("a", "c")]
    assert align(["a", "a"], ["a"]) == [("a", None), ("a", "a")]
    assert align(["a"], ["a", "a"]) == [(None, "a"), ("a", "a")]


def test_counts_add() -> None:
    total = sum([ErrorCounts(1, 2, 3, 10), ErrorCounts(0, 1, 0, 5)], ErrorCounts())
    assert total == ErrorCounts(1, 3, 3, 15)
    assert total.errors == 7
    assert total.rate == 7 / 15
    assert ErrorCounts(ref_words=0).rate == 0
    assert ErrorCounts(insertions=1).rate == float("inf")


@pytest.mark.parametrize("name", ["tri1.dev", "tri1.test", "tri3.dev", "tri3.test"])
def test_alignments_are_those_of_align_text(corpora: Path, name: str) -> None:
    folder = corpora / "kaldi-timit-sample/expected/compute-wer"
    files = (f"{name}.ref.txt", f"{name}.lmwt7.hyp.txt", f"{name}.lmwt7.align-text.txt")
    refs, hyps, theirs = (read_transcripts(folder / file) for file in files)
    ours = {utt: [f"{r or '***'} {h or '***'}" for r, h in align(refs[utt], hyps[utt])] for utt in refs}
    assert len(ours) == 24
    assert ours == {utt: " ".join(words).split(" ; ") for utt, words in theirs.items()}
