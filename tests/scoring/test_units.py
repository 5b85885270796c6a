"""Scoring in other units than words, and compute-wer's text on the command line."""

import pytest

from kernelam.scoring.units import to_characters, token_map


def test_characters() -> None:
    assert to_characters(["né", "<unk>", "[noise]", "!SIL", "a<b", ""]) == [*"né", "<unk>", "[noise]", "!SIL", *"a<b"]
    assert to_characters([]) == []


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
