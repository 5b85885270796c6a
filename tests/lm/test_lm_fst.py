import math
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import kaldifst
import pytest

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import read_symbols
from kernelam.lm.arpa import read_arpa, write_arpa
from kernelam.lm.fst import write_grammar
from kernelam.lm.kneser_ney import estimate

ARPA = r"""\data\
ngram 1=5
ngram 2=5
ngram 3=3

\1-grams:
-99	<s>	-0.3
-0.5	a	-0.2
-0.7	b	-0.1
-0.6	c	-0.4
-0.4	</s>

\2-grams:
-0.1	<s> a	0.25
-0.9	a b	-0.6
-0.8	b </s>
-0.3	b a	-0.7
-0.2	a c	-0.15

\3-grams:
-0.05	<s> a b
-0.15	b a c
-0.25	a c c

\end\
"""  # c c is not listed: the history of "a c c" is c; "a b" goes on with nothing

Arc = tuple[int, int, float, int]


def arcs(fst: kaldifst.StdVectorFst, state: int) -> list[Arc]:
    found = [(a.ilabel, a.olabel, a.weight.value, a.nextstate) for a in kaldifst.ArcIterator(fst, state)]
    return sorted(found, key=lambda arc: arc[0])


def assert_same(ours: kaldifst.StdVectorFst, theirs: kaldifst.StdVectorFst, tolerance: float) -> None:
    """Walk both from the start: the same labels and weights, and states that pair off one to one."""
    pair, todo = {ours.start: theirs.start}, [ours.start]
    while todo:
        here = todo.pop()
        there = pair[here]
        assert ours.final(here).value == pytest.approx(theirs.final(there).value, abs=tolerance)
        mine, given = arcs(ours, here), arcs(theirs, there)
        assert [arc[:2] for arc in mine] == [arc[:2] for arc in given]
        assert len({arc[0] for arc in mine}) == len(mine)
        for (_, _, weight, into), (_, _, weight_, into_) in zip(mine, given, strict=True):
            assert abs(weight - weight_) < tolerance
            if into not in pair:
                todo.append(into)
            assert pair.setdefault(into, into_) == into_
    assert len(pair) == len(set(pair.values())) == ours.num_states == theirs.num_states


@pytest.mark.parametrize(
    ("lang", "arpa"),
    [("kaldi-timit-sample/data/lang_test_bg", "lm_phone_bg.arpa"), ("kaldi-iban/data/lang_test", "lm.arpa.gz")],
)
def test_equals_kaldi(corpora: Path, tmp_path: Path, lang: str, arpa: str) -> None:
    lang_dir = corpora / lang
    write_grammar(lang_dir / arpa, lang_dir / "words.txt", tmp_path / "G.fst")
    ours = kaldifst.StdVectorFst.read(str(tmp_path / "G.fst"))
    assert_same(ours, kaldifst.StdVectorFst.read(str(lang_dir / "G.fst")), 1e-5)
    assert ours.is_ilabel_sorted
    ours.write(str(tmp_path / "again.fst"))  # OpenFst's own file differs at most in the 8 bytes of properties it knows
    mine, again = (tmp_path / "G.fst").read_bytes(), (tmp_path / "again.fst").read_bytes()
    assert mine[:34] == again[:34]
    assert mine[42:] == again[42:]


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("<eps> 0\na 1\nb 2\nc 3\n#0 4\n<s> 5\n</s> 6\n")
    return path


def grammar(arpa: str, words: Path) -> kaldifst.StdVectorFst:
    (words.parent / "lm").write_text(arpa)
    write_grammar(words.parent / "lm", words, words.parent / "G.fst")
    return kaldifst.StdVectorFst.read(str(words.parent / "G.fst"))


def kaldilm(folder: Path, order: int) -> kaldifst.StdVectorFst:
    """G by kaldilm, in a process of its own since it aborts when it is not pleased."""
    code = (
        "import sys, kaldilm; print(kaldilm.arpa2fst(input_arpa=sys.argv[1], disambig_symbol='#0',"
        " read_symbol_table=sys.argv[2], max_order=int(sys.argv[3])))"
    )
    command = [sys.executable, "-c", code, str(folder / "lm"), str(folder / "words.txt"), str(order)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return kaldifst.compile(text, acceptor=False)


def cost(fst: kaldifst.StdVectorFst, labels: list[int], backoff: int) -> float:
    """The cheapest way through `labels` and out, #0 taken freely."""

    def close(at: dict[int, float]) -> dict[int, float]:
        todo = list(at)
        while todo:
            state = todo.pop()
            for ilabel, _, weight, into in arcs(fst, state):
                if ilabel == backoff and at[state] + weight < at.get(into, math.inf):
                    at[into] = at[state] + weight
                    todo.append(into)
        return at

    here = close({fst.start: 0.0})
    for label in labels:
        there: dict[int, float] = {}
        for state, so_far in here.items():
            for ilabel, _, weight, into in arcs(fst, state):
                if ilabel == label:
                    there[into] = min(there.get(into, math.inf), so_far + weight)
        here = close(there)
    return min(so_far + fst.final(state).value for state, so_far in here.items())


def follow(fst: kaldifst.StdVectorFst, labels: list[int], backoff: int) -> float:
    """The cost as the model means it: #0 is taken only where the next label has no arc."""
    total, state = 0.0, fst.start
    for label in [*labels, None]:
        while True:
            table = {arc[0]: arc for arc in arcs(fst, state)}
            if label in table or (label is None and fst.final(state).value < math.inf):
                break
            total += table[backoff][2]
            state = table[backoff][3]
        if label is not None:
            total += table[label][2]
            state = table[label][3]
    return total + fst.final(state).value


def test_pruned_model_by_hand(words: Path) -> None:
    fst = grammar(ARPA, words)
    ln10 = math.log(10)
    # histories: empty, <s>, a, b, <s> a, b a, a c; "a b" and c lead nowhere and are left out
    assert fst.num_states == 7
    assert follow(fst, [1, 2], 4) == pytest.approx(ln10 * (0.1 + 0.05 + 0.6 + 0.8), abs=1e-5)
    # a c is after "<s> a" by backoff (0.25, then listed); c after "a c"; then the backoff of c and </s>
    assert follow(fst, [1, 3, 3], 4) == pytest.approx(ln10 * (0.1 - 0.25 + 0.2 + 0.25 + 0.4 + 0.4), abs=1e-5)


def test_pruned_model_equals_kaldilm(words: Path) -> None:
    ours, theirs = grammar(ARPA, words), kaldilm(words.parent, 3)
    rng = random.Random(0)
    for _ in range(100):
        labels = [rng.randint(1, 3) for _ in range(rng.randint(0, 6))]
        assert cost(ours, labels, 4) == pytest.approx(cost(theirs, labels, 4), abs=1e-4)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_costs_are_the_models(tmp_path: Path, words: Path, order: int) -> None:
    rng = random.Random(order)
    text = "".join(f"u{i} {' '.join(rng.choices('aabc', k=rng.randint(1, 6)))}\n" for i in range(60))
    (tmp_path / "text").write_text(text)
    model = estimate(tmp_path / "text", order)
    write_arpa(tmp_path / "lm", model)
    model = read_arpa(tmp_path / "lm")
    write_grammar(tmp_path / "lm", words, tmp_path / "G.fst")
    fst = kaldifst.StdVectorFst.read(str(tmp_path / "G.fst"))
    for _ in range(50):
        sentence = rng.choices("abc", k=rng.randint(0, 8))
        total = follow(fst, [" abc".index(w) for w in sentence], 4)
        history = ["<s>", *sentence, "</s>"]
        expected = sum(model.log10_prob(history[:i], history[i]) for i in range(1, len(history)))
        assert total == pytest.approx(-math.log(10) * expected, abs=1e-4)


def test_words_without_a_number_are_dropped(words: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words.write_text(words.read_text().replace("c 3\n", ""))
    fst = grammar(ARPA, words)
    assert "4 n-grams of " in (err := capsys.readouterr().err)
    assert "(1 of its words not in " in err
    assert {arc[0] for state in range(fst.num_states) for arc in arcs(fst, state)} == {1, 2, 4}


def test_misplaced_sentence_ends_are_dropped(words: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = grammar(ARPA, words)
    more = ARPA.replace("2=5", "2=7").replace("\\3-grams:", "-0.1\t</s> a\n-0.2\ta <s>\n\n\\3-grams:")
    assert_same(grammar(more, words), plain, 1e-6)
    assert "2 n-grams of " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arpa", "table", "sentence"),
    [
        (ARPA.replace("-0.7\tb", "-0.x\tb"), None, "lm, line 9: -0.x is not a number"),
        (ARPA, "<eps> 0\na 1\n", "words.txt has no #0"),
        (ARPA, "<eps> 0\na x\n", "words.txt, line 2: expected a symbol and its number"),
        (ARPA, "<eps> 0\na 1\na 2\n", "words.txt, line 3: a 2 repeats a symbol or a number"),
        (ARPA, "<eps> 0\na 1\nb 1\n", "words.txt, line 3: b 1 repeats a symbol or a number"),
        (ARPA, "a 0\nb 1\n#0 2\n", "words.txt, line 1: a 0; the number 0 belongs to <eps>"),
        (ARPA, "<eps> 0\nz 1\n#0 2\n", "have no word in common"),
        (ARPA.replace("</s>", "d"), None, "lm has no </s> among its 1-grams: no sentence can end"),
        (ARPA.replace("<s>", "d"), None, "lm has no <s> among its 1-grams: no sentence can begin"),
        (ARPA.replace("\tc\t", "\t#0\t").replace(" c", " #0"), None, "lm has #0 as a word"),
    ],
)
def test_bad_input(words: Path, arpa: str, table: str | None, sentence: str) -> None:
    if table is not None:
        words.write_text(table)
    with pytest.raises(KernelamError, match=sentence):
        grammar(arpa, words)
    assert not (words.parent / "G.fst").exists()


def test_symbols(words: Path) -> None:
    assert read_symbols(words) == {"<eps>": 0, "a": 1, "b": 2, "c": 3, "#0": 4, "<s>": 5, "</s>": 6}


def test_command_line(words: Path, kernelam: Callable) -> None:
    folder = words.parent
    (folder / "lm").write_text(ARPA)
    assert kernelam("lm", "fst", folder / "lm", words, folder / "lang" / "G.fst").returncode == 0
    assert (folder / "lang" / "G.fst").exists()
    (folder / "text").write_text("u1 a b\n")
    done = kernelam("lm", "perplexity", folder / "lm", folder / "text")
    assert done.returncode == 0
    assert done.stdout.startswith(
        f"file {folder}/text: 1 sentences, 2 words, 0 OOVs\n0 zeroprobs, logprob= -1.55 ppl= "
    )
    (folder / "lm").write_text(ARPA[:-20])
    done = kernelam("lm", "fst", folder / "lm", words, folder / "G2.fst")
    assert done.returncode == 1
    assert done.stderr.startswith("kernelam lm fst: ")
    assert len(done.stderr.splitlines()) == 1
    assert not list(folder.glob("*G2*"))


def test_full_disk(words: Path, kernelam: Callable) -> None:
    (words.parent / "lm").write_text(ARPA)
    done = kernelam(
        *("lm", "fst", words.parent / "lm", words, words.parent / "G.fst"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert done.returncode == 1
    assert done.stderr == f"kernelam lm fst: cannot write {words.parent}/G.fst: File too large\n"
    assert not list(words.parent.glob("*G.fst*"))
