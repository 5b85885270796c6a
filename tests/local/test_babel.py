"""local/babel/prepare.sh: sets, markup and lexicon of a language pack; what it says of other folders and files."""

import importlib
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelam.hmm.dictionary import Dictionary
from kernelam.kaldi.datadir import DataDir
from kernelam.scoring.units import token_map

TRANSCRIPT = (
    "[0.000]\n<no-speech>\n[1.230]\n喂 <hes> 你 <no-speech> 好\n[3.400]\n[3.500]\n<breath> *我* 学- (())\n[5.000]\n"
)
LEXICON = """你	nei5	n ej _5
好	hou2	h ow _2	h ow _3
喂	wai2	w 6j _2
我	ngo5	N O: _5
我哋	ngo5dei6	N O: _5 . d ej _6
"""
SETS = ("train", "heldout", "dev", "test")


def name(caller: int, line: str = "inLine", code: str = "101") -> str:
    return f"BABEL_BP_{code}_{caller}_20111118_172644_{line}"


def sphere(seconds: float) -> str:
    """The header of a sound file."""
    rows = (f"sample_count -i {round(8000 * seconds)}", "sample_rate -i 8000", "sample_coding -s4 ulaw", "end_head")
    return "\n".join(["NIST_1A", "   1024", *rows, ""]).ljust(1024)


def write_part(folder: Path, callers: range, code: str = "101", audio: bool = True) -> None:
    for caller in callers:
        for line in ("inLine", "outLine"):
            for place in (f"audio/{name(caller, line, code)}.sph", f"transcription/{name(caller, line, code)}.txt"):
                if audio or not place.startswith("audio"):
                    (folder / place).parent.mkdir(parents=True, exist_ok=True)
                    (folder / place).write_text(TRANSCRIPT if place.endswith("txt") else sphere(4.9))


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Conversations: 20 of the limited pack, their sound with that of the 30 of the full one, 8 of dev."""
    root = tmp_path / "IARPA_BABEL_BP_101/conversational"
    for part, callers in (("sub-train", range(10, 30)), ("training", range(10, 40)), ("dev", range(50, 58))):
        write_part(root / part, range(callers.start + 10000, callers.stop + 10000), audio=part != "sub-train")
    (root / "dev/audio/BABEL_BP_101_37210_20111102_170037_O1_scripted.sph").touch()
    (root / "reference_materials").mkdir()
    (root / "reference_materials/lexicon.sub-train.txt").write_text(LEXICON)
    (root / "reference_materials/lexicon.txt").write_text(LEXICON + "学校\thok6haau6\th O: k _6 . h a:w _6\n")
    return root.parent


@pytest.fixture(scope="module")
def modules(root: Path):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "local/babel"))
        names = ("babel_transcripts", "babel_lexicon", "babel_pieces")
        yield {one.removeprefix("babel_"): importlib.import_module(one) for one in names}


def prepare(root: Path, pack: Path, data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(root / "local/babel/prepare.sh"), "--code", "101", *options, str(pack), str(data)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def callers_of(data: Path) -> dict[str, set[str]]:
    return {x: {speaker[:5] for speaker in DataDir(data / x).spk2utt} for x in SETS}


def test_sets_share_no_caller(root, pack, tmp_path):
    done = prepare(root, pack.parent, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    callers = callers_of(tmp_path / "data")
    assert {x: len(found) for x, found in callers.items()} == {"train": 18, "heldout": 2, "dev": 2, "test": 6}
    assert len(set.union(*callers.values())) == 28
    assert len(DataDir(tmp_path / "data/train").spk2utt) == 36
    for x in SETS:
        validated = subprocess.run([root / "utils/validate_data_dir.sh", "--no-feats", tmp_path / "data" / x])
        assert validated.returncode == 0


def test_a_limited_pack_with_sound_of_its_own(root, pack, tmp_path):
    shutil.copytree(pack / "conversational/training/audio", pack / "conversational/sub-train/audio")
    for caller in range(10030, 10040):
        for path in (pack / "conversational/sub-train/audio").glob(f"*_{caller}_*"):
            path.unlink()
    assert prepare(root, pack, tmp_path / "data").returncode == 0
    sound = DataDir(tmp_path / "data/train").wav_scp[name(10010)]
    assert sound.endswith(f"conversational/sub-train/audio/{name(10010)}.sph")


def test_packs_lie_in_folders_beside_each_other(root, pack, tmp_path):
    """As IARPA-babel101b-v0.4c-build/BABEL_BP_101 does; the one of the language is taken."""
    (tmp_path / "packs/IARPA-babel101b-v0.4c-build").mkdir(parents=True)
    pack.rename(tmp_path / "packs/IARPA-babel101b-v0.4c-build/BABEL_BP_101")
    (tmp_path / "packs/IARPA-babel103b-v0.4b-build/BABEL_OP1_103/conversational/dev").mkdir(parents=True)
    (tmp_path / "packs/IARPA-babel101b-v0.4c-Eval/BABEL_BP_101/conversational/eval").mkdir(parents=True)
    moved = tmp_path / "packs/IARPA-babel101b-v0.4c-build/BABEL_BP_101/conversational"
    (moved / "sub-train").rename(moved / "sub-train1")
    done = prepare(root, tmp_path / "packs", tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert "/BABEL_BP_101/" in DataDir(tmp_path / "data/train").wav_scp[name(10010)]


def test_turns_behind_the_sound_are_cut_or_named(root, pack, tmp_path):
    (pack / f"conversational/dev/audio/{name(10050)}.sph").write_text(sphere(3.45))
    done = prepare(root, pack, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    data = DataDir(tmp_path / "data/dev")
    assert [utt for utt in data.utts if utt.startswith("10050_A")] == ["10050_A_20111118_172644_0001230"]
    assert f"{name(10050)}.txt, line 7, is left out: " in done.stderr
    assert f"{name(10050)}.sph ends at 3.45 s, before it" in done.stderr
    assert data.segments["10050_B_20111118_172644_0003500"] == (name(10050, "outLine"), 3.5, 4.9)


def test_an_eval_folder_with_transcripts_is_the_test_set(root, pack, tmp_path):
    (pack / "conversational/eval/transcription").mkdir(parents=True)
    assert prepare(root, pack, tmp_path / "none").returncode == 0
    assert len(callers_of(tmp_path / "none")["dev"]) == 2
    write_part(pack / "conversational/eval", range(10070, 10073))
    assert prepare(root, pack, tmp_path / "data").returncode == 0
    sizes = {x: len(found) for x, found in callers_of(tmp_path / "data").items()}
    assert sizes == {"train": 18, "heldout": 2, "dev": 8, "test": 3}


def test_the_full_pack_and_a_list(root, pack, tmp_path):
    assert prepare(root, pack, tmp_path / "full", "--pack", "full").returncode == 0
    assert len(callers_of(tmp_path / "full")["train"]) == 27
    assert "学校 h O:_6 k h a:w_6" in (tmp_path / "full/local/dict/lexicon.txt").read_text()
    shutil.rmtree(pack / "conversational/sub-train")
    done = prepare(root, pack, tmp_path / "none")
    assert done.returncode == 1
    assert "has no folder sub-train, which is the limited pack: name its recordings with --train-list" in done.stderr
    (tmp_path / "list").write_text(f"{name(10011)}.sph\n{name(10012)}\n{name(99999)}\n")
    done = prepare(root, pack, tmp_path / "some", "--train-list", str(tmp_path / "list"))
    assert done.returncode == 0, done.stderr
    assert f"1 of the 3 recordings of {tmp_path}/list are not there, first {name(99999)}" in done.stderr
    assert list(DataDir(tmp_path / "some/train").spk2utt) == ["10011_A"]


def test_utterances_are_what_is_heard_between_two_times(root, pack, tmp_path):
    assert prepare(root, pack, tmp_path / "data").returncode == 0
    data = DataDir(tmp_path / "data/dev")
    first, second = data.utts[:2]
    assert (first, second) == ("10050_A_20111118_172644_0001230", "10050_A_20111118_172644_0003500")
    assert data.text[first] == ["喂", "<hes>", "你", "好"]
    assert data.text[second] == ["<v-noise>", "我", "<unk>", "<unk>"]
    assert data.segments[first] == (name(10050), 1.23, 3.4)
    assert data.wav_scp[name(10050)].endswith(f"conversational/dev/audio/{name(10050)}.sph")
    assert data.reco2file_and_channel[name(10050)] == (name(10050), "A")


def test_markup(modules):
    markup = modules["transcripts"].Markup()
    for text, words in {
        "ক <lipsmack> <cough> <laugh>": "ক <v-noise> <v-noise> <v-noise>",
        "<click> <ring> <dtmf> <int>": "<noise> <noise> <noise> <noise>",
        "<foreign> <overlap> <prompt> (())": "<unk> <unk> <unk> <unk>",
        "~ ক <sta> খ <male-to-female> <no-speech>": "ক খ",
        "*ক* -খ গ- b_b_c": "ক <unk> <unk> b_b_c",
        "\u09a1\u09bc \u09c7\u09be": "\u09a1\u09bc \u09cb",
    }.items():
        assert markup.words(text) == words.split()
    assert not markup.strange
    assert markup.words("<sneeze> ক") == ["<noise>", "ক"]
    assert markup.strange == {"<sneeze>": 1}


def test_the_dictionary_keeps_or_drops_tones(root, pack, tmp_path):
    assert prepare(root, pack, tmp_path / "keep").returncode == 0
    dictionary = Dictionary.load(tmp_path / "keep/local/dict")
    words = {(one.word, " ".join(one.phones)) for one in dictionary.lexicon}
    assert {("好", "h ow_2"), ("好", "h ow_3"), ("我哋", "N O:_5 d ej_6"), ("<hes>", "HES"), ("<unk>", "SPN")} <= words
    assert ["ej_5", "ej_6"] in dictionary.nonsilence
    assert ["O:_5", "ej_5"] in dictionary.extra_questions
    assert prepare(root, pack, tmp_path / "drop", "--tones", "drop").returncode == 0
    dictionary = Dictionary.load(tmp_path / "drop/local/dict")
    assert [one.phones for one in dictionary.lexicon if one.word == "好"] == [("h", "ow")]


def test_marks_in_pronunciations(modules, tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text('\ufeffআমি\tami\t" a . m i\nবন্ধু\tbondhu\tb o n . % d_d_h u # k\t\n<hes>\t<hes>\t<hes>\n')
    lexicon = modules["lexicon"].Lexicon(path, "none")
    assert lexicon.words == {"আমি": [("a", "m", "i")], "বন্ধু": [("b", "o", "n", "d-d-h", "u", "k")]}


def test_words_that_the_lexicon_lacks_are_spelled(root, pack, tmp_path, modules):
    for path in pack.rglob("sub-train/transcription/*.txt"):
        path.write_text("[0.0]\n你哋 好 ক্ষ\n[2.0]\n")
    assert prepare(root, pack, tmp_path / "data", "--spelling", "missing").returncode == 0
    lines = (tmp_path / "data/local/dict/lexicon.txt").read_text().splitlines()
    assert "你哋 n ej_5 d ej_6" in lines
    assert "ক্ষ g:ক g:ষ" in lines
    assert "好 h ow_3" in lines
    assert prepare(root, pack, tmp_path / "all", "--spelling", "all").returncode == 0
    lines = (tmp_path / "all/local/dict/lexicon.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("好")] == ["好 h ow_2"]


def test_units_of_an_open_vocabulary(root, pack, tmp_path):
    pytest.importorskip("sentencepiece")
    done = prepare(root, pack, tmp_path / "words")
    assert done.returncode == 0
    done = prepare(root, pack, tmp_path / "data", "--pieces", "20")
    assert done.returncode == 0, done.stderr
    for x in SETS:
        words, pieces = (DataDir(tmp_path / folder / x).text for folder in ("words", "data"))
        assert {utt: token_map("joined")(units) for utt, units in pieces.items()} == words
    lexicon = {line.split()[0]: line.split()[1:] for line in (tmp_path / "data/local/dict/lexicon.txt").open()}
    assert {unit for text in DataDir(tmp_path / "data/train").text.values() for unit in text} <= lexicon.keys()
    assert lexicon["▁喂"] == ["w", "6j_2"]
    done = prepare(root, pack, tmp_path / "few", "--pieces", "3")
    assert done.returncode == 1
    assert "sentencepiece cannot make 3 units of the training transcripts: " in done.stderr
    assert not (tmp_path / "few").exists()


@pytest.mark.parametrize(
    "words", [["আমি", "<hes>", "বাড়ি", "যাই"], ["今日", "OK", "<unk>", "好"], ["ঙঙ", "<noise>"], ["<hes>", "ক", "<unk>"]]
)
def test_units_round_trip_to_words(modules, words):
    """Also words of characters that training never saw."""
    pytest.importorskip("sentencepiece")
    pieces = modules["pieces"].Pieces.trained([["আমি", "বাড়ি", "যাব", "যাই", "今日", "OK"], ["আমি", "好"]] * 20, 30)
    assert token_map("joined")(list(pieces.split(words))) == words
    assert all(len(unit) > 1 or unit != "▁" for unit in pieces.units)


def test_folders_that_are_no_pack(root, pack, tmp_path):
    (tmp_path / "corpora/conversation").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bare/conversational/dev").mkdir(parents=True)
    for folder, sentence in (
        ("nosuch", "no such directory"),
        ("corpora", "has a folder conversational; it has conversation; conversation comes nearest"),
        (
            "empty",
            "neither it nor a folder in it has a folder conversational; it is empty",
        ),
        ("bare", "dev has no conversation: a file such as BABEL_BP_101_10470_20111118_172644_inLine.sph in audio"),
    ):
        done = prepare(root, tmp_path / folder, tmp_path / "data")
        assert done.returncode == 1
        assert sentence in done.stderr
        assert not (tmp_path / "data").exists()


def test_a_pack_of_another_language(root, pack, tmp_path):
    done = subprocess.run(
        [root / "local/babel/prepare.sh", "--code", "103", pack, tmp_path / "data"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"{name(10050)}.sph is of the language 101, and 103 is wanted" in done.stderr
    assert not (tmp_path / "data").exists()


def test_what_is_missing_is_listed(root, pack, tmp_path):
    part = pack / "conversational/training"
    (part / f"audio/{name(10011)}.sph").unlink()
    (part / f"transcription/{name(10012)}.txt").unlink()
    done = prepare(root, pack, tmp_path / "full", "--pack", "full")
    assert done.returncode == 0
    lost = f"audio/{name(10011)} transcription/{name(10012)}"
    assert f"training: 2 of 60 recordings are left out, for want of {lost}\n" in done.stderr
    assert len(DataDir(tmp_path / "full/train").spk2utt) == 52
    done = prepare(root, pack, tmp_path / "data")
    assert done.returncode == 0
    assert f"sub-train: 1 of 40 recordings are left out, for want of audio/{name(10011)}\n" in done.stderr
    assert len(DataDir(tmp_path / "data/train").spk2utt) == 35


def test_callers_of_two_sets_are_in_one(root, pack, tmp_path):
    write_part(pack / "conversational/dev", range(10011, 10012))
    done = prepare(root, pack, tmp_path / "data")
    assert "1 callers of the training set are in dev or test too, and left out of it: 10011" in done.stderr
    assert "10011" not in callers_of(tmp_path / "data")["train"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("喂\n[1.0]\n".encode(), "line 1: expected a time such as [0.000], found '喂'"),
        ("[0.0]\n喂\n[2.0]\n好\n[1.0]\n".encode(), "line 5: the time 1 follows 2, which is later"),
        ("[0.0]\n喂\n".encode(), "does not end with a time such as [600.000]"),
        (b"[0.0]\n\xff\xfe\n[1.0]\n", "is not UTF-8 text (invalid start byte at byte 1 of line 2)"),
    ],
)
def test_transcripts_that_are_wrong(root, pack, tmp_path, content, sentence):
    bad = pack / f"conversational/dev/transcription/{name(10053)}.txt"
    bad.write_bytes(content)
    done = prepare(root, pack, tmp_path / "data")
    assert done.returncode == 1
    assert f"{bad}" in done.stderr
    assert sentence in done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("line", "options", "sentence"),
    [
        ("哋\tdei6\td ej _x\n", (), "line 6: _x is no tone of this language"),
        ("哋\tdei6\td ej _6\n", ("--tones", "none"), "line 1: _5 is no tone of this language; is it the lexicon of"),
        ("哋\tdei6\t_6 .\n", (), "line 6: 哋 has a pronunciation without phones"),
    ],
)
def test_lexicons_that_are_wrong(root, pack, tmp_path, line, options, sentence):
    path = pack / "conversational/reference_materials/lexicon.sub-train.txt"
    path.write_text(LEXICON + line)
    done = prepare(root, pack, tmp_path / "data", *options)
    assert done.returncode == 1
    assert f"{path}, {sentence}" in done.stderr
    assert not (tmp_path / "data").exists()


def test_lines_of_a_lexicon_that_are_no_entries_are_left_out(root, pack, tmp_path):
    path = pack / "conversational/reference_materials/lexicon.sub-train.txt"
    path.write_text(LEXICON + "好 hou2 h ow _2\n你\tnei5\n你 好\tnei5hou2\tn ej _5 . h ow _2\n")
    done = prepare(root, pack, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert "3 lines are left out, not a word, its romanisation and pronunciations, tabs between them: " in done.stderr
    assert f"{path}, line 6, '好 hou2 h ow _2'; {path}, line 7, '你'; {path}, line 8, '你 好'" in done.stderr
    path.write_text(LEXICON.replace("\t", " "))
    done = prepare(root, pack, tmp_path / "none")
    assert done.returncode == 1
    assert f"{path} has no line of a word, its romanisation and pronunciations, tabs between them" in done.stderr


def test_marks_and_characters_that_nobody_knows_are_named(root, pack, tmp_path):
    path = pack / f"conversational/sub-train/transcription/{name(10013)}.txt"
    path.write_text("[0.0]\n喂 <sneeze> 喂क\n[1.0]\n")
    done = prepare(root, pack, tmp_path / "data")
    assert done.returncode == 0
    assert "the mark <sneeze>, 1 times in the transcripts, is not known, and taken for noise" in done.stderr
    assert "has 1 characters that no word of" in done.stderr
    assert "U+0915 क; the first is in the word 喂क" in done.stderr


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "--corpus is needed: the folder of a language pack"),
        (("--corpus", "nosuch"), "no such file"),
        (("--corpus", ".", "--language", "zulu"), "--language is bengali or cantonese, not zulu"),
        (("--corpus", ".", "--size", "huge"), "--size is papers, laptop or lookalike, not huge"),
        (("--corpus", ".", "--pieces", "many"), "--pieces is a number of units, not many"),
        (("--corpus", ".", "--train-list", "nosuch"), "no such file nosuch"),
    ],
)
def test_the_recipe_refuses_at_once(root, tmp_path, args, sentence):
    command = [str(root / "egs/babel/s5/run.sh"), *args]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert sentence in done.stderr
