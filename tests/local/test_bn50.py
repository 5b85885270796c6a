"""local/bn50/prepare.sh: sets of Broadcast News from SGML and STM; what it says of other folders and of bad files."""

import importlib
import subprocess
from pathlib import Path

import pytest

from kernelam.kaldi.datadir import DataDir

OLD = """<!-- a comment -->
<Episode Filename=another.sph Program=ABC_Nightline Scribe=x Date=960523:2330 Version=1>
<Section S_time=0.000 E_time=2.000 Type=Commercial>
<Segment S_time=0.000 E_time=2.000 Speaker="Seller" Mode=Planned Fidelity=High>
buy this
</Segment>
</Section>
<Section S_time=2.000 E_time=9.000 Type=Story Topic="x">
<Background Time=2.000 Type=Music Level=High>
<Segment S_time=2.000 E_time=7.000 Speaker="Ted_Koppel" Mode=Planned Fidelity=High>
<Sync Time=2.500>
<Comment>not said</Comment>
<Comment> nor this
good evening {{breath}} @Peter +nucular+ ((is))
<Sync Time=5.000>
[[noise]] **newsish** wor- here
</Segment>
<Segment S_time=7.000 E_time=8.000 Speaker="Ted_Koppel" Mode=Planned Fidelity=High>
<Overlap S_time=7.000 E_time=8.000>
# not so #
</Overlap>
</Segment>
</Section>
</Episode>
"""
NEW = """<!DOCTYPE episode SYSTEM "utf.dtd">
<episode filename="{show}" program="CNN_Headline_News" language=English version=2>
<section type=report startTime=0.5 endTime=9 id={show}.1>
<turn speaker=Judy_Woodruff spkrtype=female dialect=native startTime=0.5 endTime=9 mode=spontaneous channel=medium>
<time sec=0.5>
the ^F. _f_b_i's man, %uh, from ^Iowa -- was there.
<time sec=4>
<foreign language=Spanish>buenos dias</foreign>
<time sec=5.5>
it <contraction e_form="[is=>is]">is fine.
</turn>
<turn speaker=Ted_Koppel startTime=7 endTime=8.5>
<overlap startTime=7 endTime=8>
<time sec=7>
no
<time sec=7.5>
never
</overlap>
<time sec=8>
well
</turn>
</section>
</episode>
"""
STM = """;; LABEL "O" "Overall" ""
{show} 1 inter 0 1 <o,,> IGNORE_TIME_SEGMENT_IN_SCORING
{show} 1 Bob_Smith 1 3 <o,f0,male> Good {{ evening / night }} (uh) there
{show} 1 Bob_Smith 3 5 <o,f0,male> it is fi-
"""
LEXICON = """;;; a comment
GOOD  G UH1 D
EVENING  IY1 V N IH0 NG
EVENING(2)  IY1 V AH0 N IH0 NG
IS  IH1 Z
it IH1 T # in another case
"""


def sphere(path: Path, seconds: float, **fields: str) -> None:
    head = {"sample_count": f"{int(16000 * seconds)}", "sample_rate": "16000", "sample_coding": "pcm", **fields}
    rows = ["NIST_1A", "   1024", *(f"{name} -i {value}" for name, value in head.items()), "end_head", ""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("\n".join(rows).encode().ljust(1024))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "ldc"
    for number, show in enumerate(["a960521", "a960522", "ea970107", "ea970108"]):
        sphere(folder / (f"LDC98S71/x/{show}.sph" if number > 1 else f"LDC97S44/data/{show}_.sph"), 9)
        text = folder / (f"LDC98T28/{show}.sgml" if number > 1 else f"LDC97T22/hub4_eng_train_trans/abc_nli/{show}.txt")
        text.parent.mkdir(parents=True, exist_ok=True)
        text.write_text((NEW if number > 1 else OLD).format(show=show))
    (folder / "LDC97T22/readme.txt").write_text("transcripts have <Episode> and\n<Segment> and so on\n")
    for name in ("dev04f", "rt03"):
        sphere(folder / name / f"{name}_abc.sph", 6)
        (folder / name / "ref.stm").write_text(STM.format(show=f"{name}_abc"))
    (folder / "cmudict-0.7b").write_text(LEXICON)
    return folder


def prepare(root: Path, corpus: object, data: Path, *options: object) -> subprocess.CompletedProcess[str]:
    command = [str(root / "local/bn50/prepare.sh"), *map(str, options), str(corpus), str(data)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_sets_of_the_two_years_and_of_stm(root, corpus, tmp_path):
    data = tmp_path / "data"
    done = prepare(root, corpus, data)
    assert done.returncode == 0, done.stderr
    sets = {name: DataDir(data / name) for name in ("train", "heldout", "dev", "test")}
    for one in sets.values():
        one.validate(feats=False)
    shows = {name: set(one.wav_scp) for name, one in sets.items()}
    assert shows["train"] | shows["heldout"] == {"a960521", "a960522", "ea970107", "ea970108"}
    assert not shows["train"] & shows["heldout"]
    texts = {utt: " ".join(words) for name in ("train", "heldout") for utt, words in sets[name].text.items()}
    assert texts["a960521_Ted_Koppel-0000250-0000500"] == "good evening peter nucular is"
    assert texts["a960521_Ted_Koppel-0000500-0000700"] == "newsish <UNK> here"
    assert texts["ea970107_Judy_Woodruff-0000050-0000400"] == "the f. f. b. i.'s man uh from iowa was there"
    assert texts["ea970107_Judy_Woodruff-0000550-0000900"] == "it is fine"
    assert texts["ea970107_Ted_Koppel-0000800-0000850"] == "well"
    assert len(texts) == 10
    assert sets["dev"].text == {
        "dev04f_abc_Bob_Smith-0000100-0000300": ["good", "evening", "uh", "there"],
        "dev04f_abc_Bob_Smith-0000300-0000500": ["it", "is", "<UNK>"],
    }
    assert sets["dev"].reco2file_and_channel == {"dev04f_abc": ("dev04f_abc", "1")}
    assert (data / "dev/stm").read_text() == STM.format(show="dev04f_abc")
    assert not (data / "dev/glm").exists()
    lexicon = (data / "local/dict/lexicon.txt").read_text().splitlines()
    assert lexicon[2:] == ["evening IY V N IH NG", "evening IY V AH N IH NG", "good G UH D", "is IH Z", "it IH T"]
    assert "16 words, 77.3 % of the text, have no pronunciation and are <UNK>: f. b. fine from here" in done.stderr
    assert (data / "local/dict/missing.txt").read_text().startswith("f. 4\nb. 2\n")
    again = tmp_path / "again"
    assert prepare(root, corpus, again).returncode == 0
    assert (again / "heldout/segments").read_bytes() == (data / "heldout/segments").read_bytes()


def test_shows_that_are_listed_text_and_rules(root, corpus, tmp_path):
    (tmp_path / "list").write_text("a960521.sph\nEA970107\nb960601\nb960602\n")
    (corpus / "x.glm").write_text(";; rules\nA => B\n")
    (tmp_path / "more").write_bytes("Caf\xe9, it is GOOD!\n".encode("latin-1"))
    done = prepare(root, corpus, tmp_path / "data", "--shows", tmp_path / "list", "--text", tmp_path / "more")
    assert done.returncode == 0, done.stderr
    assert "2 of 4 shows are left out, for want of their sound: b960601 b960602" in done.stderr
    assert f"{tmp_path}/more is not UTF-8 text (invalid continuation byte at byte 3); it is read as ISO" in done.stderr
    names = {line.split()[0] for x in ("train", "heldout") for line in (tmp_path / "data" / x / "wav.scp").open()}
    assert names == {"a960521", "ea970107"}
    assert (tmp_path / "data/local/text").read_text() == "café it is good\n"
    assert (tmp_path / "data/test/glm").read_text() == ";; rules\nA => B\n"
    (corpus / "x.glm").write_text(";; rules\nA B\n")
    done = prepare(root, corpus, tmp_path / "none")
    assert done.returncode == 1
    assert f"{corpus}/x.glm, line 2: expected a rule such as CANCELLED => CANCELED, found 'A B'" in done.stderr
    assert not (tmp_path / "none").exists()


def test_stm_comes_before_sgml_and_segments_outside_are_left_out(root, corpus, tmp_path):
    rows = "A960521 1 s 0 2 good evening\na960521 1 s 2 12 it is\na960521 1 s 10 11 good\na960521 1 s 8 9.3 is good\n"
    (corpus / "LDC97T22/train.stm").write_text(rows)
    done = prepare(root, corpus, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert (
        "2 segments are left out, which are not within their recordings: a960521_s-0000200-0001200 (2–12 s of 9)"
        in (done.stderr)
    )
    found = [
        line for x in ("train", "heldout") for line in (tmp_path / "data" / x / "segments").open() if "a960521" in line
    ]
    assert found == [
        "a960521_s-0000000-0000200 a960521 0.000 2.000\n",
        "a960521_s-0000800-0000930 a960521 8.000 9.000\n",
    ]


def test_folders_that_are_not_the_corpus(root, corpus, tmp_path):
    (tmp_path / "other/a960523").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    for folder, options, sentence in (
        ("nosuch", (), "no such directory"),
        (
            "other",
            (),
            "there is no sound of Broadcast News, such as a960523.sph; it has a960523; a960523 comes nearest",
        ),
        ("empty", (), "such as a960523.sph; it is empty"),
        (
            "ldc",
            ("--transcripts", tmp_path / "other"),
            "there is no transcript: SGML with an <Episode>, or STM, such as",
        ),
        ("ldc", ("--dev", tmp_path / "other"), "there is no STM file, such as other.stm; it has a960523"),
        ("ldc/LDC97S44", (), "--dev, folders with sound and STM files of Dev04f, is needed: "),
    ):
        done = prepare(root, tmp_path / folder, tmp_path / "data", *options)
        assert done.returncode == 1
        assert sentence in done.stderr
        assert not (tmp_path / "data").exists()


def test_several_stm_files_apart_from_their_sound(root, corpus, tmp_path):
    """As in LDC2007S10: one for each show, with gaps, brackets too many and marks of asides."""
    place = "data/{}/eval03/english/bnews"
    folders = [corpus / "LDC2007S10" / place.format(kind) for kind in ("audio", "references")]
    for show in ("20010206_ABC", "20010217_VOA"):
        sphere(folders[0] / f"{show.lower()}.sph", 6)
        folders[1].mkdir(parents=True, exist_ok=True)
        (folders[1] / f"{show}.stm").write_text(
            f"{show} 1 inter_segment_gap 0 1 <o,,>\n"
            f"{show} 1 inter_segment_gap 1 1.001 <o,,>\n{show} 1 inter_segment_gap 1.001 1.002 <o,,>\n"
            f"{show} 1 Bob 1.002 3 <o,f0,male>  it ((uh) is <B_ASIDE> ((good evening)) <E_ASIDE> (( )) there\n"
        )
    done = prepare(root, corpus, tmp_path / "data", "--test", f"{folders[0]} {folders[1]}")
    assert done.returncode == 0, done.stderr
    data = DataDir(tmp_path / "data/test")
    assert list(data.wav_scp) == ["20010206_ABC", "20010217_VOA"]
    assert data.text["20010217_VOA_Bob-0000100-0000300"] == ["it", "uh", "is", "good", "evening", "there"]
    rows = (tmp_path / "data/test/stm").read_text().splitlines()
    assert [row.split() for row in rows] == [
        f"{show} 1 Bob 1.002 3 <o,f0,male> it (uh) is (good) (evening) there".split() for show in data.wav_scp
    ]
    (folders[1] / "again.stm").write_text("20010206_ABC 1 Bob 0 3 it is\n")
    done = prepare(root, corpus, tmp_path / "none", "--test", f"{folders[0]} {folders[1]}")
    assert done.returncode == 1
    assert "20010206_ABC.stm and " in done.stderr
    assert "again.stm both have the show 20010206_ABC; one of them is needed" in done.stderr


def test_odd_tags_and_times_lose_no_more_than_they_must(root, corpus, tmp_path):
    path = corpus / "LDC98T28/ea970107.sgml"
    text = path.read_text().replace("<time sec=5.5>", "<time sec=5.5>\nno time\n<time sec=5.2>")
    path.write_text(text.replace("speaker=Ted_Koppel", 'speaker="Ted_Koppel'))
    done = prepare(root, corpus, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert f"{path}, line 11: 1 stretches, this the first, are left out, since they take no time" in done.stderr
    names = [name for x in ("train", "heldout") for name in DataDir(tmp_path / "data" / x).utts if "ea970107" in name]
    assert names == [
        "ea970107_Judy_Woodruff-0000050-0000400",
        "ea970107_Judy_Woodruff-0000520-0000900",
        "ea970107_Ted_Koppel-0000800-0000850",
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        (
            "dev04f/ref.stm",
            "1 3 <o,f0",
            "one 3 <o,f0",
            "ref.stm, line 3: expected 'recording channel speaker begin end",
        ),
        ("rt03/ref.stm", "{ evening", "evening", "ref.stm, line 3: expected"),
        ("LDC98T28/ea970107.sgml", "sec=4", "sec=four", "ea970107.sgml, line 7: sec is a time in seconds, not 'four'"),
        ("LDC98T28/ea970107.sgml", "</turn>", "", "ea970107.sgml, line 12: a turn begins in another"),
        ("LDC98T28/ea970107.sgml", "well\n</turn>", "", "ea970107.sgml ends within a turn of Ted_Koppel"),
        (
            "LDC98T28/ea970107.sgml",
            "startTime=0.5 endTime=9 mode",
            "mode",
            "line 4: expected a time, starttime or s_time",
        ),
        ("LDC98T28/ea970107.sgml", "buenos", "< buenos", "line 8: a < that begins no tag, or one that does not end"),
        ("cmudict-0.7b", "GOOD  G UH1 D", "GOOD", "cmudict-0.7b, line 2: expected a word and its phones, found 'GOOD'"),
    ],
)
def test_lines_that_do_not_parse(root, corpus, tmp_path, file, old, new, sentence):
    path = corpus / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    done = prepare(root, corpus, tmp_path / "data")
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_files_of_another_kind(root, corpus, tmp_path):
    stm = corpus / "dev04f/ref.stm"
    stm.write_bytes(stm.read_bytes() + b"dev04f_abc 1 s 5 6 caf\xe9\n")
    done = prepare(root, corpus, tmp_path / "data")
    assert done.returncode == 1
    assert "ref.stm is not UTF-8 text" in done.stderr
    stm.write_text(STM.format(show="dev04f_abc") + "gone 1 s 0 1 it is\n")
    sphere(corpus / "LDC97S44/data/a960521_.sph", 9, sample_coding="pcm,embedded-shorten-v2.00")
    done = prepare(root, corpus, tmp_path / "data")
    assert done.returncode == 1
    assert "1 of 2 shows of" in done.stderr
    assert "a960521_.sph is compressed (pcm,embedded-shorten-v2.00): sph2pipe is needed on the PATH" in done.stderr
    assert not (tmp_path / "data").exists()


def test_marks_of_transcripts(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "local/bn50"))
    spoken = importlib.import_module("hub4_sgml").spoken
    for text, words in (
        ("^Mr. Clinton's {laugh} [noise] plan -- yes?", "mr clinton's plan yes"),
        ("_a_t_and_t _c_n_n", "_a_t_and_t c. n. n."),
        ('"So" (( he )) said;', "so he said"),
        ("{breath}", ""),
        ("~VCR's *poodleish caf&eacute;", "v. c. r.'s poodleish café"),
    ):
        assert spoken(text) == words


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "--corpus is needed: the folders of LDC97S44 and LDC98S71"),
        (("--corpus", "nosuch"), "no such file or directory nosuch"),
        (("--corpus", ". nosuch"), "no such file or directory nosuch"),
        (("--corpus", ".", "--size", "huge"), "--size is papers, laptop or lookalike, not huge"),
    ],
)
def test_the_recipe_refuses_at_once(root, tmp_path, args, sentence):
    command = [str(root / "egs/bn50/s5/run.sh"), *args]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert sentence in done.stderr
