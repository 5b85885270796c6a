"""Counts against those of NIST's sclite (Debian's package sctk).

sclite minimises 4 substitutions + 3 insertions + 3 deletions, Kaldi the number of errors. On transcripts that resemble
their reference the totals agree; on bad ones sclite takes, say, six insertions and deletions (18) for five
substitutions (20), and counts an error more.
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelam.scoring.alignment import count_errors
from kernelam.scoring.wer import compute_wer, read_transcripts

Texts = dict[str, list[str]]


def sclite(program: str, folder: Path, refs: Texts, hyps: Texts, name: str) -> list[int]:
    """Words, substitutions, deletions, insertions, errors of the whole set."""
    for file, texts in (("ref.trn", refs), (name, hyps)):
        (folder / file).write_text("".join(f"{' '.join(w)} ({u.replace('_', '-')})\n" for u, w in texts.items()))
    command = ["sclite", "-s", "-r", "ref.trn", "trn", "-h", name, "trn", "-i", "spu_id", "-o", "rsum"]
    subprocess.run([program, *command], cwd=folder, check=True, capture_output=True)
    row = next(line for line in (folder / f"{name}.raw").read_text().splitlines() if line.strip().startswith("| Sum"))
    _, words, _, *errors, _ = map(int, re.findall(r"\d+", row))
    return [words, *errors]


def ours(refs: Texts, hyps: Texts) -> list[int]:
    t = compute_wer(refs, hyps).total
    return [t.ref_words, t.substitutions, t.deletions, t.insertions, t.errors]


def noisy_set(seed: int, error: float) -> tuple[Texts, Texts]:
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{i}" for i in range(250)]

    def recognised(ref: list[str]) -> list[str]:
        hyp: list[str] = []
        for word in ref:
            kind = rng.choice(4, p=[1 - error, 0.6 * error, 0.2 * error, 0.2 * error])
            hyp += [[word], [rng.choice(vocabulary)], [], [word, rng.choice(vocabulary)]][kind]
        return hyp

    refs = {f"s{i % 10}-{i:04d}": list(rng.choice(vocabulary, rng.integers(4, 16))) for i in range(300)}
    return refs, {utt: recognised(ref) for utt, ref in refs.items()}


def timit(corpora: Path, system: str, part: str) -> tuple[Texts, Texts]:
    folder = corpora / "kaldi-timit-sample/expected/compute-wer"
    files = (folder / f"{system}.{part}.ref.txt", folder / f"{system}.{part}.lmwt7.hyp.txt")
    refs, hyps = map(read_transcripts, files)
    return refs, hyps


@pytest.mark.parametrize("error", [0.02, 0.1, 0.2, 0.35])
def test_totals_agree_on_realistic_sets(need_program: Callable[[str], str], tmp_path: Path, error: float) -> None:
    refs, hyps = noisy_set(int(100 * error), error)
    theirs, mine = sclite(need_program("sctk"), tmp_path, refs, hyps, "hyp"), ours(refs, hyps)
    assert (mine[0], mine[-1]) == (theirs[0], theirs[-1])


@pytest.mark.parametrize("system", ["tri1", "tri3"])
@pytest.mark.parametrize("part", ["dev", "test"])
def test_counts_agree_on_phones(
    need_program: Callable[[str], str], corpora: Path, tmp_path: Path, system: str, part: str
) -> None:
    refs, hyps = timit(corpora, system, part)
    assert ours(refs, hyps) == sclite(need_program("sctk"), tmp_path, refs, hyps, "hyp")


def test_counts_agree_on_words(need_program: Callable[[str], str], corpora: Path, tmp_path: Path) -> None:
    iban = corpora / "kaldi-iban"
    files = (iban / "data-fbank/dev/text", iban / "exp/gmm/decode_dev/hyp.txt")
    refs, hyps = map(read_transcripts, files)
    theirs, mine = sclite(need_program("sctk"), tmp_path, refs, hyps, "hyp"), ours(refs, hyps)
    assert (mine[0], mine[-1]) == (theirs[0], theirs[-1])


def test_where_sclite_counts_more(need_program: Callable[[str], str], tmp_path: Path) -> None:
    ref, hyp = ["p", "q", "r", "a", "b"], ["a", "b", "s", "t", "u"]
    assert count_errors(ref, hyp).errors == 5
    assert sclite(need_program("sctk"), tmp_path, {"s-1": ref}, {"s-1": hyp}, "hyp") == [5, 0, 3, 3, 6]
