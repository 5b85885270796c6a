"""Scoring in other units than words, and compute-wer's text on the command line."""

import re
import subprocess
import unicodedata

import pytest

from kernelam.scoring.units import to_characters, token_map, units_name, unlisted
from kernelam.scoring.wer import compute_wer, read_transcripts


def test_characters() -> None:
    assert to_characters(["né", "<unk>", "[noise]", "!SIL", "a<b", ""]) == [*"né", "<unk>", "[noise]", "!SIL", *"a<b"]
    assert to_characters([]) == []


def test_characters_are_code_points_of_composed_text() -> None:
    """Bengali vowel signs and the nukta count, whichever way ো and ড় are written; so does each Han character."""
    composed, apart = "\u0995\u09cb", "\u0995\u09c7\u09be"
    assert to_characters([composed]) == to_characters([apart]) == ["\u0995", "\u09cb"]
    assert to_characters(["\u09dc"]) == to_characters(["\u09a1\u09bc"]) == ["\u09a1", "\u09bc"]
    assert to_characters(["e\u0301"]) == ["\u00e9"]
    assert to_characters(["我哋", "去街", "OK"]) == [*"我哋去街OK"]


def test_sclite_counts_the_same_characters(need_program, tmp_path) -> None:
    program = need_program("sctk")
    for name, text in (("ref", "আমি কো ড় 我哋 ok 去街"), ("hyp", "আম কো ড 我地 ok 街")):
        (tmp_path / name).write_text(unicodedata.normalize("NFC", text) + " (a-1)\n")
        (tmp_path / f"{name}.txt").write_text(f"a-1 {text}\n")
    command = f"{program} sclite -r ref trn -h hyp trn -i spu_id -e utf-8 -c -o pralign stdout".split()
    shown = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, encoding="utf-8").stdout
    correct, *errors = map(int, re.search(r"Scores: \(#C #S #D #I\) (\d+) (\d+) (\d+) (\d+)", shown).groups())
    texts = (read_transcripts(tmp_path / name) for name in ("ref.txt", "hyp.txt"))
    refs, hyps = ({utt: to_characters(words) for utt, words in text.items()} for text in texts)
    total = compute_wer(refs, hyps).total
    assert [total.substitutions, total.deletions, total.insertions] == errors
    assert total.ref_words == correct + errors[0] + errors[1]


def test_sclite_counts_the_same_with_ascii_whole(need_program, tmp_path) -> None:
    """As Babel is scored: Han characters each, hesitations and words in Latin letters whole, or left out."""
    refs = {
        "a-1": "我哋 <hes> 去 OK 街 b_b_c 喇",
        "a-2": "A餐 一个 <hes> 唔该",
        "a-3": "<hes> 听日见",
        "a-4": "ক খো né",
    }
    hyps = {"a-1": "我地 <hes> 去 ok 街 b_b_d", "a-2": "餐 一 个 该 <hes>", "a-3": "听 日 见 OK", "a-4": "ক খ ne"}
    for units, marks in (("noascii", True), ("unmarked,noascii", False)):
        texts = []
        for name, text in (("ref", refs), ("hyp", hyps)):
            kept = {utt: words if marks else words.replace("<hes>", "") for utt, words in text.items()}
            (tmp_path / name).write_text("".join(f"{words} ({utt})\n" for utt, words in kept.items()))
            texts.append({utt: token_map(units)(words.split()) for utt, words in text.items()})
        program = f"{need_program('sctk')} sclite -s -e utf-8 -c NOASCII -i spu_id"
        command = f"{program} -r ref trn -h hyp trn -o rsum stdout".split()
        shown = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, encoding="utf-8").stdout
        _, words, _, *errors, _ = map(int, re.findall(r"\d+", re.search(r"\| Sum .*", shown)[0]))
        total = compute_wer(*texts).total
        assert [total.ref_words, total.errors] == [words, errors[-1]]


def test_units_in_turn_and_their_names(tmp_path, kernelam) -> None:
    assert token_map("joined,unmarked,noascii")(["▁今", "日", "<hes>", "▁O", "K"]) == ["今", "日", "OK"]
    assert token_map("joined")(["ক", "▁খ", "<unk>", "গ", "▁"]) == ["ক", "খ", "<unk>", "গ"]
    assert token_map("unmarked")(["!SIL", "a", "[noise]", "<a", "<unk>"]) == ["a", "<a"]
    assert units_name("words") == "words"
    assert units_name("joined,unmarked") == "words (joined, unmarked)"
    assert units_name("unmarked,noascii") == "characters (unmarked, noascii)"
    (tmp_path / "ref").write_text("u a\n")
    done = kernelam("score", "text", "--units", "unmarked,charcters", "ref", "ref", cwd=tmp_path)
    assert done.returncode == 1
    assert "no such file unmarked,charcters" in done.stderr


def test_tokens_that_a_map_does_not_list_are_named(tmp_path, kernelam) -> None:
    (tmp_path / "map").write_text("zh sh\nq\n")
    (tmp_path / "ref").write_text("u zh q aa\n")
    (tmp_path / "hyp").write_text("u sh bb\n")
    done = kernelam("score", "text", "--units", "map", "ref", "hyp", cwd=tmp_path)
    assert done.stdout.startswith("%WER 50.00 [ 1 / 2, 0 ins, 0 del, 1 sub ]\n")
    assert done.stderr == "map does not list 3 of 5 different tokens, which stay as they are: aa bb sh\n"
    assert unlisted(str(tmp_path / "map"), [["zh", "q"]]) is None
    assert unlisted("characters", [["zh"]]) is None


def test_empty_references_and_hypotheses(tmp_path, kernelam) -> None:
    for name, text in {"ref": "a x y\nb\n", "hyp": "a\nb x\n", "none": "", "blank": "a\nb\n"}.items():
        (tmp_path / name).write_text(text)
    done = kernelam("score", "text", "ref", "hyp", cwd=tmp_path)
    assert done.stdout.startswith("%WER 150.00 [ 3 / 2, 1 ins, 2 del, 0 sub ]\n%SER 100.00 [ 2 / 2 ]\n")
    done = kernelam("score", "text", "ref", "none", cwd=tmp_path)
    assert done.stdout.startswith("%WER 100.00 [ 2 / 2, 0 ins, 2 del, 0 sub ] [PARTIAL]\n")
    for name, sentence in (("none", "the reference is empty"), ("blank", "of the 2 utterances to score has no words")):
        done = kernelam("score", "text", name, "hyp", cwd=tmp_path)
        assert (done.returncode, done.stdout, sentence in done.stderr) == (1, "", True)


def test_a_file_maps_and_deletes_tokens(tmp_path):
    (tmp_path / "map").write_text("zh sh\nq\n")
    change = token_map(str(tmp_path / "map"))
    assert change(["q", "zh", "aa", "q"]) == ["sh", "aa"]
    assert token_map("words")(("a", "b")) == ["a", "b"]
    assert token_map("characters")(["ab"]) == ["a", "b"]


@pytest.mark.parametrize("mode", ["all", "present", "strict"])
def test_compute_wer_text_on_the_command_line(corpora, kernelam, mode):
    folder = corpora / "kaldi-timit-sample/expected/compute-wer"
    done = kernelam("score", "text", "--mode", mode, folder / "edge.ref.txt", folder / "edge.hyp.txt")
    assert done.stdout == (folder / f"edge.{mode}.stdout").read_text()
    assert done.returncode == (1 if mode == "strict" else 0)


def test_bad_maps_and_references(tmp_path, kernelam):
    (tmp_path / "ref").write_text("u a b\n")
    for name, text, sentence in (
        ("map", "a x\na y\n", "line 2: a occurs twice"),
        ("map", "ax ah ah\n", "ax has 2 columns behind it; a map has one, or none to delete it"),
        ("hyp", "w a\n", "has a reference"),
    ):
        (tmp_path / "map").write_text("")
        (tmp_path / "hyp").write_text("u a\n")
        (tmp_path / name).write_text(text)
        done = kernelam("score", "text", "--units", tmp_path / "map", tmp_path / "ref", tmp_path / "hyp")
        assert (done.returncode, sentence in done.stderr, done.stdout) == (1, True, "")
    done = kernelam("score", "text", "--units", tmp_path / "nosuch", tmp_path / "ref", tmp_path / "hyp")
    assert (done.returncode, "no such file" in done.stderr) == (1, True)
