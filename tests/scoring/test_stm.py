"""STM references with CTM hypotheses: what belongs to a segment, alternatives, GLM rules; against sclite."""

import random
from pathlib import Path

import pytest

from kernelam.errors import KernelamError
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.bootstrap import compare
from kernelam.scoring.directory import read_scored, score_directory
from kernelam.scoring.glm import Rules
from kernelam.scoring.networks import align_networks, count_networks
from kernelam.scoring.sclite import program, sclite
from kernelam.scoring.stm import Stm, read_ctm, read_stm
from kernelam.scoring.tuning import Weights
from kernelam.scoring.wer import compute_wer

WORDS = ["a", "b", "c", "d", "e", "uh", "um", "gonna", "ok", "any", "more", "frag-", "-ment", "fragment", "twenty-one"]
GLM = """;; rules of the kinds that real files have
* name "x"
* format = 'NIST1'
* max_nrules = '50'
* copy_no_hit = 'T'
* case_sensitive = 'F'
UH         => (%HESITATION) / [ ] __ [ ]
UM         => %HESITATION / [ ] __ [ ] ;; hesitation token
GONNA      => [{GOING TO / GONNA}] / [ ] __ [ ]
[ANY MORE] => [ANYMORE] / [ ] __ [ ]
OK         => O. K. / [ ] __ [ ]
MORE       => MUCH / [TWENTY ONE ] __ [ ]
;; INPUT_DEPENDENT_APPLICATION = "hyp"
D          => E / [ ] __ [ ]
"""


def some_text(rng: random.Random, count: int) -> str:
    def word() -> str:
        found = rng.choice(WORDS)
        return f"({found})" if rng.random() < 0.1 and found.isalpha() and found != "gonna" else found

    tokens = []
    for _ in range(count):
        ways = [" ".join(word() for _ in range(rng.randint(1, 2))) for _ in range(rng.randint(2, 3))]
        ways += ["@"] * (rng.random() < 0.4)
        tokens.append(f"{{ {' / '.join(ways)} }}" if rng.random() < 0.12 else word())
    return " ".join(tokens)


def write_pair(folder: Path, seed: int, recordings: int = 40) -> None:
    """Segments with gaps and ignored stretches; words that resemble them, on and beside the borders."""
    rng, stm, ctm = random.Random(seed), [], []
    for number in range(recordings):
        show, time, words = f"show{number:02d}", 0.0, [(0.05, "e")]
        for segment in range(rng.randint(2, 5)):
            count = rng.randint(0, 7)
            end = time + 0.5 * count + 0.3
            text = "IGNORE_TIME_SEGMENT_IN_SCORING" if rng.random() < 0.15 else some_text(rng, count)
            stm.append(f"{show} 1 s{segment % 2} {time:.2f} {end:.2f} <o,f{segment % 3},male> {text}")
            heard = [token.strip("()") for token in text.split() if token.strip("{}/@") and token[0] != "I"]
            for place in range(rng.randint(0, count + 1)):
                said = rng.choice(heard) if heard and rng.random() < 0.6 else rng.choice(WORDS)
                words.append((time + 0.1 + 0.5 * place + 0.01 * rng.randint(0, 9), said))
            time = end + rng.choice([0, 0, 0.7])
        ctm += [f"{show} 1 {begin:.2f} 0.30 {word}" for begin, word in sorted(words)]
    for name, rows in (("ref", [";; a comment", *stm]), ("hyp", ctm)):
        (folder / name).write_text("\n".join([*rows, ""]))
    (folder / "glm").write_text(GLM)


def ours(folder: Path, glm: Path | None) -> ErrorCounts:
    stm = Stm(folder / "ref", glm)
    return compute_wer(stm.refs, stm.cut(read_ctm(folder / "hyp")), count=count_networks).total


@pytest.mark.parametrize("with_glm", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_sclite(need_program, tmp_path, seed, with_glm):
    need_program("sctk")
    write_pair(tmp_path, seed)
    glm = tmp_path / "glm" if with_glm else None
    assert ours(tmp_path, glm) == sclite(tmp_path / "ref", tmp_path / "hyp", glm)


def test_alternatives_optional_words_and_fragments():
    for ref, hyp, expected in (
        ("a { b / c d / @ } e", "a c d e", (0, 0, 0, 4)),
        ("a { b / c d / @ } e", "a e", (0, 0, 0, 2)),
        ("a { b / c d / @ } e", "a x e", (1, 0, 0, 2)),
        ("a {b/ {c / d} e} f", "a d e f", (0, 0, 0, 4)),
        ("a (uh) b", "A b", (0, 0, 0, 3)),
        ("a (uh) b", "a uh B", (0, 0, 0, 3)),
        ("fra- b", "fragment b", (0, 0, 0, 2)),
        ("either/or", "either/or", (0, 0, 0, 1)),
        ("", "a", (1, 0, 0, 0)),
        ("a b", "", (0, 2, 0, 2)),
    ):
        assert count_networks(ref.split(), hyp.split()) == ErrorCounts(*expected), (ref, hyp)
    assert align_networks(["a", "(uh)", "fra-"], ["a", "fragment"]) == [("a", "a"), ("(uh)", "(uh)"), ("fra-", "fra-")]


def test_words_belong_to_the_segment_of_their_middle(tmp_path):
    (tmp_path / "stm").write_text("x 1 s 0 1 a\nx 1 s 1 2 Ignore_Time_Segment_In_Scoring\nx 1 s 3 4 b\ny 1 s 0 1 c\n")
    (tmp_path / "ctm").write_text("x 1 0.8 0.3 a\nx 1 0.9 0.3 b\nx 1 2.5 0.1 c 0.9\nx 1 5 1 d\n")
    stm = Stm(tmp_path / "stm")
    assert list(stm.refs.values()) == [["a"], ["b"], ["c"]]
    assert list(stm.cut(read_ctm(tmp_path / "ctm")).values()) == [["a"], ["c", "d"], []]
    (tmp_path / "ctm").write_text("z 1 0 1 a\n")
    with pytest.raises(KernelamError, match="has no segment of z, channel 1"):
        stm.cut(read_ctm(tmp_path / "ctm"))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("x 1 s 0", "line 2: expected 'recording channel speaker begin end <labels> words', found 'x 1 s 0'"),
        ("x 1 s zero 1 a", "line 2: expected"),
        ("x 1 s 2 1 a", "line 2: .*2 to 1 is no time"),
        ("x 1 s 0 inf a", "is no time"),
        ("x 1 s 0 1 a { b / c", "a { without its } in"),
        ("x 1 s 0 1 a b }", "a } without its {"),
    ],
)
def test_lines_that_do_not_parse(tmp_path, line, sentence):
    (tmp_path / "stm").write_text(f";; head\n{line}\n")
    with pytest.raises(KernelamError, match=sentence):
        read_stm(tmp_path / "stm")


def test_a_file_of_another_kind(tmp_path):
    (tmp_path / "stm").write_bytes(b"x 1 s 0 1 caf\xe9\n")
    with pytest.raises(KernelamError, match="stm is not UTF-8 text"):
        read_stm(tmp_path / "stm")
    (tmp_path / "stm").write_text(";; nothing\n")
    with pytest.raises(KernelamError, match="has no segments"):
        read_stm(tmp_path / "stm")
    (tmp_path / "ctm").write_text("x 1 0 a\n")
    with pytest.raises(KernelamError, match="ctm, line 1: expected 'recording channel begin duration word'"):
        read_ctm(tmp_path / "ctm")


def test_on_the_command_line(tmp_path, kernelam):
    (tmp_path / "stm").write_text("x 1 s 0 1 gonna { a / b c } d\nx 1 s 1 2 ignore_time_segment_in_scoring\n")
    (tmp_path / "ctm").write_text("x 1 0.1 0.1 going\nx 1 0.2 0.1 to\nx 1 0.3 0.1 c\nx 1 1.5 0.1 e\n")
    (tmp_path / "glm").write_text(GLM)
    done = kernelam("score", "stm", "--glm", "glm", "stm", "ctm", cwd=tmp_path)
    assert done.stdout.startswith("%WER 40.00 [ 2 / 5, 0 ins, 2 del, 0 sub ]\n"), done.stderr
    done = kernelam("score", "stm", "stm", "nosuch", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such file nosuch" in done.stderr


def test_systems_that_choose_other_alternatives_are_compared(tmp_path):
    refs = {"u-1": ["a", "{", "b", "/", "c", "d", "}"], "u-2": ["e"]}
    found = []
    for name, words in (("one", ["a", "b"]), ("two", ["a", "c", "d"])):
        hyps = {Weights(7, 0.0): {"u-1": words, "u-2": ["e"]}, Weights(8, 0.0): {"u-1": ["x"], "u-2": []}}
        scored = score_directory(tmp_path / name, refs, hyps, dict.fromkeys(refs, "u"), rule="sclite")
        assert scored.weights == Weights(7, 0.0)
        found.append(read_scored(tmp_path / name))
        assert found[-1] == scored.result
    assert [result.total.ref_words for result in found] == [3, 4]
    assert compare(*found).difference == 0.0
    per_utt = (tmp_path / "two/scoring_kaldi/wer_details/per_utt").read_text()
    assert "u-1 #csid 3 0 0 0" in per_utt


def test_rules(tmp_path):
    (tmp_path / "glm").write_text(GLM)
    reference, hypothesis = (Rules(tmp_path / "glm", side) for side in ("ref", "hyp"))
    assert reference("uh I'm gonna any more (um d) twenty-one") == (
        "(%HESITATION) I'M {GOING TO / GONNA} ANYMORE (%HESITATION) (D) TWENTY ONE"
    )
    assert (reference("d"), hypothesis("d")) == ("D", "E")
    assert reference("summer") == "SUMMER"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("GONNA", "line 2: expected a rule such as CANCELLED => CANCELED, found 'GONNA'"),
        ("=> A", "line 2: expected a rule"),
        ("* case_sensitive = 'T'", "line 2: case_sensitive 'T' is not supported; it is to be 'F'"),
        ("* format = 'NIST2'", "line 2: format 'NIST2' is not supported"),
        ("* nonsense", "line 2: expected"),
    ],
)
def test_rules_that_are_refused(tmp_path, line, sentence):
    (tmp_path / "glm").write_text(f";; head\n{line}\n")
    with pytest.raises(KernelamError, match=sentence):
        Rules(tmp_path / "glm", "ref")


def test_a_rule_that_is_cut_short_is_left_out(tmp_path, capsys):
    """As one of NIST's own is."""
    row = "[WEBSTER'S] => [{WEBSTER'S / WEBSTER IS / WEBSTER HAS}"
    section = ';; INPUT_DEPENDENT_APPLICATION = "ctm"'
    (tmp_path / "glm").write_text(f";; head\nOK => O. K. / [ ] __ [ ]\n{section}\n{row}\n")
    for side in ("ref", "hyp"):
        assert Rules(tmp_path / "glm", side)("webster's ok") == "WEBSTER'S O. K."
    told = f"{tmp_path}/glm, line 4: the rule '{row}' is left out, for want of a context, / [ ] __ [ ], behind its /"
    assert capsys.readouterr().err.count(told) == 1


def test_without_a_comment_at_the_head(tmp_path):
    (tmp_path / "glm").write_text("A => B\n")
    with pytest.raises(KernelamError, match="line 1: the first line of a GLM file is a comment"):
        Rules(tmp_path / "glm", "ref")


def test_without_sclite(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program("sclite") is None
    with pytest.raises(KernelamError, match="there is no program sclite"):
        sclite(tmp_path / "ref", tmp_path / "hyp", None)
