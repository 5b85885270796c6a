import gzip
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.hmm.dictionary import Pronunciation
from kernelam.hmm.lang import Lang, check_phones, prepare_lang
from kernelam.hmm.lexicon import disambiguate, mark_positions
from kernelam.kaldi.fst import Fst, load_fst, parse
from kernelam.kaldi.tables import read_symbols


def text_files(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.suffix in (".txt", ".int", ".csl", ""))
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def assert_equal(ours: Fst, kaldis: Fst) -> None:
    """The same states and arcs; arcs of one state in any order."""
    rows = []
    for fst in (ours, kaldis):
        fields = [fst.arcs[name] for name in ("nextstate", "weight", "ilabel", "olabel")]
        order = np.lexsort((*fields, fst.source))
        rows.append(np.stack([*fields, fst.source])[:, order])
    assert ours.start == kaldis.start
    assert np.array_equal(ours.final, kaldis.final)
    assert np.allclose(rows[0], rows[1], atol=1e-5, rtol=0)


def test_timit_as_kaldi_makes_it(corpora: Path, tmp_path: Path) -> None:
    sample = corpora / "kaldi-timit-sample/data"
    options = {"position_dependent_phones": False, "sil_prob": 0.0, "num_sil_states": 3}
    prepare_lang(sample / "local/dict", "sil", tmp_path / "lang", **options)  # type: ignore[arg-type]
    assert text_files(tmp_path / "lang") == text_files(sample / "lang")
    for name in ("L.fst", "L_disambig.fst"):
        assert_equal(load_fst(tmp_path / "lang" / name), load_fst(sample / "lang" / name))


def test_iban_as_kaldi_makes_it(corpora: Path, tmp_path: Path) -> None:
    sample = corpora / "kaldi-iban/data"
    prepare_lang(sample / "local/dict", "<UNK>", tmp_path / "lang")
    ours, kaldis = text_files(tmp_path / "lang"), text_files(sample / "lang_test")
    assert ours.keys() == kaldis.keys()
    assert [name for name in ours if ours[name] != kaldis[name]] == []
    assert_equal(load_fst(tmp_path / "lang/L.fst"), load_fst(sample / "lang_test/L.fst.gz"))
    assert_equal(load_fst(tmp_path / "lang/L_disambig.fst"), load_fst(sample / "lang_test/L_disambig.fst"))


def test_disambiguation() -> None:
    entries = [
        Pronunciation(word, 1.0, tuple(phones))
        for word, phones in zip("uvwxy", ["ab", "abc", "ab", "c", "ca"], strict=True)
    ]
    marked, count = disambiguate(entries)
    assert [" ".join(entry.phones) for entry in marked] == ["a b #1", "a b c", "a b #2", "c #1", "c a"]
    assert count == 2
    assert mark_positions(entries[1]).phones == ("a_B", "b_I", "c_E")
    assert mark_positions(entries[3]).phones == ("c_S",)


def test_pronunciation_and_silence_costs(dict_dir: Callable[..., Path], tmp_path: Path) -> None:
    prepare_lang(dict_dir(lexiconp="<UNK> 1.0 SPN\nab 0.25 a b\n"), "<UNK>", tmp_path / "lang", sil_prob=0.2)
    fst = load_fst(tmp_path / "lang/L.fst")
    start = fst.arcs[fst.offsets[0] : fst.offsets[1]]["weight"]
    assert sorted(start.tolist()) == pytest.approx([-math.log(0.8), -math.log(0.2)])
    lang = Lang(tmp_path / "lang")
    word = fst.arcs[fst.arcs["olabel"] == lang.words["ab"]]
    assert word["weight"].tolist() == pytest.approx([-math.log(0.25)])


def test_sets_of_several_phones_and_shared_silence(dict_dir: Callable[..., Path], tmp_path: Path) -> None:
    source = dict_dir(nonsilence_phones="a b\nc\n")
    prepare_lang(source, "<UNK>", tmp_path / "l", position_dependent_phones=False, share_silence_phones=True)
    assert (
        tmp_path / "l/phones/roots.txt"
    ).read_text() == "not-shared not-split SIL SPN\nshared split a b\nshared split c\n"
    assert Lang(tmp_path / "l").phone_sets() == [[1, 2], [3, 4], [5]]
    assert not (tmp_path / "l/phones/word_boundary.txt").exists()


@pytest.mark.parametrize(
    ("oov", "options", "message"),
    [
        ("<oov>", {}, "<oov>, is not in the lexicon"),
        ("<UNK>", {"sil_prob": 1.0}, "silence probability"),
        ("<UNK>", {"num_sil_states": 0}, "--num-sil-states and --num-nonsil-states are at least 1"),
    ],
)
def test_nothing_is_written_for_bad_options(
    dict_dir: Callable[..., Path], tmp_path: Path, oov: str, options: dict, message: str
) -> None:
    with pytest.raises(KernelamError, match=message):
        prepare_lang(dict_dir(), oov, tmp_path / "lang", **options)
    assert not (tmp_path / "lang").exists()


def test_words_to_ids_counts_unknown_words(lang: Lang) -> None:
    assert lang.words_to_ids("u1", ["ab", "xyz", "#0"]) == [lang.words["ab"], lang.oov, lang.oov]
    assert lang.oov_counts == {"xyz": 1, "#0": 1}
    (lang.directory / "oov.txt").unlink()
    with pytest.raises(KernelamError, match=r"utterance u1: the word xyz is not in .*words.txt"):
        Lang(lang.directory).words_to_ids("u1", ["xyz"])


def test_reader(lang: Lang) -> None:
    assert lang.word_of[lang.words["ab"]] == "ab"
    assert lang.topology.num_pdf_classes(1) == 3
    (lang.directory / "phones/silence.int").write_text("SIL\n")
    with pytest.raises(KernelamError, match=r"silence\.int does not hold integers"):
        lang.phone_list("silence")
    with pytest.raises(KernelamError, match="no such lang directory"):
        Lang(lang.directory / "none")


@pytest.mark.parametrize("name", ["sets", "roots"])
@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        ("", "lacks the phone 5, which the topology has"),
        ("99\n", r"has 99, the number of no phone of .*phones\.txt"),
        ("4\n", "lacks the phone 5"),
        ("5 4\n", "has a phone twice"),
        ("²\n", "does not hold integers only"),
    ],
)
def test_phones_that_share_states(lang: Lang, name: str, last: str, sentence: str) -> None:
    """`last` is what stands for the last phone, 5."""
    lang.check_states(lang.topology)
    path = lang.directory / f"phones/{name}.int"
    *others, line = path.read_text().splitlines(keepends=True)
    path.write_text("".join(others) + (line.removesuffix("5\n") + last if last else ""))
    with pytest.raises(KernelamError, match=f"{name}\\.int {sentence}"):
        lang.check_states(lang.topology)


def test_damaged_l_is_a_sentence(lang: Lang) -> None:
    path = lang.directory / "L.fst"
    data = path.read_bytes()
    for length in range(0, len(data), 13):
        path.write_bytes(data[:length])
        with pytest.raises(KernelamError, match=r"L\.fst"):
            lang.fst("L.fst")
    path.write_bytes(gzip.compress(data))
    assert len(parse(data, path).final) == lang.fst("L.fst").num_states


def test_symbol_tables(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    for text, message in [
        ("", "is empty"),
        ("a 1\nb\n", "line 2: expected a symbol"),
        ("a 1\na 2\n", "line 2: a 2 repeats"),
    ]:
        path.write_text(text)
        with pytest.raises(KernelamError, match=message):
            read_symbols(path)


def test_phones_of_another_lang(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a", tmp_path / "b"
    ours.write_text("<eps> 0\nx 1\n#0 2\n")
    theirs.write_text("<eps> 0\nx 1\n#0 2\n#1 3\n")
    check_phones(ours, theirs)
    check_phones(ours, tmp_path / "none")
    theirs.write_text("<eps> 0\ny 1\n")
    with pytest.raises(KernelamError, match="differ in x"):
        check_phones(ours, theirs)
