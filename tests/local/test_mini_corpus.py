"""The synthetic corpus: its grammar, its speakers, and that the same seed gives the same bytes."""

import hashlib
import importlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kernelam.errors import KernelamError

MINI = Path(__file__).resolve().parents[2] / "local" / "mini"


@pytest.fixture(autouse=True)
def _mini_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MINI))


@pytest.fixture
def mini() -> Callable[[str], ModuleType]:
    return importlib.import_module


@pytest.fixture
def synthesiser() -> None:
    pytest.importorskip("espeakng_loader", reason="espeakng-loader is not installed")


def grammar_of(mini: Callable[[str], ModuleType], folder: Path, text: str):
    path = folder / "grammar.txt"
    path.write_text(text)
    return mini("grammar").read_grammar(path)


def test_grammar_follows_its_weights(mini, tmp_path: Path) -> None:
    grammar = grammar_of(
        mini, tmp_path, "# a comment\n<s>\n    3  go <where> | stay\n    2  -\n<where>\n    1  home , now\n"
    )
    rng = np.random.default_rng(1)
    found = Counter(" ".join(grammar.sample(rng)) for _ in range(8000))
    assert set(found) == {"go home , now", "stay", ""}
    assert found["stay"] / 8000 == pytest.approx(3 / 8, abs=0.02)
    assert found[""] / 8000 == pytest.approx(2 / 8, abs=0.02)
    assert grammar.vocabulary() == ["go", "home", "now", "stay"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no rule"),
        ("    1  word\n", "line 1: an alternative stands before the first rule"),
        ("<s>\n    1  a\ns\n", "line 3: 's' should be a rule's name in angle brackets"),
        ("<s>\n    1  a\n<s>\n    1  b\n", "line 3: the rule <s> is defined twice"),
        ("<s>\n    a b\n", "line 2: 'a' should be a positive weight"),
        ("<s>\n    0  b\n", "line 2: '0' should be a positive weight"),
        ("<s>\n    1  a |\n", "line 2: an alternative is empty; write '-' if that is meant"),
        ("<s>\n    1\n", "line 2: an alternative is empty"),
        ("<s>\n    1  Twenty\n", "line 2: 'Twenty' is neither a lower-case word, a comma nor a <name>"),
        ("<s>\n    1  a <t>\n", "line 2: no rule defines <t>"),
        ("<s>\n", "the rule <s> has no alternative"),
        ("<s>\n    1  a <t>\n<t>\n    1  b <t>\n", "the rule <s> never ends in words"),
    ],
)
def test_bad_grammar_is_a_sentence(mini, tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(KernelamError) as caught:
        grammar_of(mini, tmp_path, text)
    assert sentence in str(caught.value)
    assert "grammar.txt" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("train f02 f2 50 165", "line 5: expected 'set speaker variant pitch rate range'"),
        ("train f02 f2 50 fast 50", "line 5: expected"),
        ("eval f02 f2 50 165 50", "line 5: eval is not one of the sets"),
        ("train x02 f2 50 165 50", "line 5: x02 should begin with f or m"),
        ("train f01 f2 50 165 50", "line 5: f01 should begin with f or m and occur once"),
        ("test f02 f1 50 165 50", "line 5: the variant f1 is already in train"),
    ],
)
def test_bad_speakers_are_a_sentence(mini, tmp_path: Path, line: str, sentence: str) -> None:
    good = "train f01 f1 50 165 50\nheldout m01 m1 50 1 1\ndev m02 m2 50 1 1\ntest m03 m3 50 1 1\n"
    path = tmp_path / "speakers.txt"
    path.write_text(good)
    assert len(mini("plan").read_speakers(path)) == 4
    path.write_text(good + line + "\n")
    with pytest.raises(KernelamError, match="line 5") as caught:
        mini("plan").read_speakers(path)
    assert sentence in str(caught.value)


@pytest.fixture
def utterances(mini) -> list:
    plan = mini("plan")
    sentences = plan.Sentences(mini("grammar").read_grammar(MINI / "grammar.txt"), 1)
    return plan.make_plan(sentences, plan.read_speakers(MINI / "speakers.txt"), 1)


def test_sets_share_neither_speaker_nor_voice_nor_sentence(utterances: list) -> None:
    texts = [u.text for u in utterances]
    assert len(set(texts)) == len(texts)
    for what in (lambda u: u.speaker.name, lambda u: u.voice.variant):
        homes: dict[str, set[str]] = {}
        for utterance in utterances:
            homes.setdefault(what(utterance), set()).add(utterance.speaker.set)
        assert all(len(sets) == 1 for sets in homes.values())
    assert len({u.speaker.name for u in utterances}) >= 30
    assert {u.speaker.name[0] for u in utterances if u.speaker.set == "test"} == {"f", "m"}
    names = [u.name for u in utterances]
    assert names == sorted(names)
    assert sum(len(u.text.split()) for u in utterances if u.speaker.set == "test") >= 1800
    assert 200 <= len({word for u in utterances for word in u.text.split()}) <= 400


def test_a_grammar_that_runs_dry(mini, tmp_path: Path) -> None:
    grammar = grammar_of(mini, tmp_path, "<s>\n    1  one two three four | one two three four five\n")
    sentences = mini("plan").Sentences(grammar, 1)
    sentences.draw(), sentences.draw()
    with pytest.raises(KernelamError, match="no new one after 2"):
        sentences.draw()


def test_fused_words_are_divided(mini) -> None:
    lexicon = mini("lexicon")
    said = lexicon.Pronunciations()
    said.add(["the", "for"], [("dh", 0, 0), ("ax", 1, 0), ("SIL", 2, -1), ("f", 3, 1), ("aor", 4, 1)])
    said.add(["for", "the"], [("f", 0, 0), ("er", 1, 0), ("dh", 2, 0), ("ax", 3, 0)])
    assert said.unheard(["for", "the", "tea"]) == ["tea"]
    assert said.lexicon({"tea": ("t", "iy")}) == [
        ("for", ("f", "aor")),
        ("for", ("f", "er")),
        ("tea", ("t", "iy")),
        ("the", ("dh", "ax")),
    ]
    assert lexicon.divide(["for", "the"], ("f", "er"), {"the": [("dh", "ax")]}) == []


def test_phone_times_cover_the_recording(mini) -> None:
    times = mini("make_corpus").phone_times([("ao", 0, 0), ("l", 200, 0), ("SIL", 200, -1)], 1000, 0.5, 1.0)
    assert times == [
        (0.0, 0.5, "SIL"),
        (0.5, pytest.approx(0.1), "ao"),
        (0.6, pytest.approx(0.1), "l"),
        (0.7, pytest.approx(0.3), "SIL"),
    ]


def test_sound_has_the_ratio_and_level_drawn(mini, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = mini("sound")
    monkeypatch.setattr(sound, "SNR_DB", (10.0, 10.0))
    monkeypatch.setattr(sound, "LEVEL_DB", (-30.0, -30.0))
    tone = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    for name in "abcdef":  # all three kinds of noise
        rng = sound.generator(1, name)
        samples, pause = sound.record(tone, np.zeros(8), rng.standard_normal(5000), rng)
        x = samples / 32767
        start = round(pause * 16000)
        amplitude = 2 * abs(np.mean(x[start : start + 16000] * np.exp(2j * np.pi * 440 * np.arange(16000) / 16000)))
        assert 10 * np.log10(amplitude**2 / 2) == pytest.approx(-30, abs=0.3)
        noise = sound.power(x) - amplitude**2 / 2 * 16000 / len(x)
        assert 10 * np.log10(amplitude**2 / 2 / noise) == pytest.approx(10, abs=0.5)


def test_resampling_and_channel(mini) -> None:
    sound = mini("sound")

    def tone(rate: int) -> np.ndarray:
        time = np.arange(rate) / rate
        return 0.5 * np.sin(2 * np.pi * 1000 * time) * np.sin(np.pi * time)

    resampled = sound.resampled((tone(22050) * 32768).astype(np.int16), 22050)
    assert np.max(np.abs(resampled - tone(16000))) < 1e-3
    gains = np.where(sound.CHANNEL_HZ == 1000, 6.0, 0.0)
    louder = sound.filtered(tone(16000), gains)
    assert 10 * np.log10(sound.power(louder) / sound.power(tone(16000))) == pytest.approx(6, abs=0.1)


def test_each_alone_keeps_order_and_reports(mini) -> None:
    each_alone = mini("processes").each_alone

    def work(task: int) -> int:
        time.sleep(0.02 * (task == 0))
        if task == 5:
            raise KernelamError("five is bad")
        if task == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return task * task

    assert list(each_alone(work, range(5), 3)) == [0, 1, 4, 9, 16]
    with pytest.raises(KernelamError, match="five is bad"):
        list(each_alone(work, [1, 5], 2))
    with pytest.raises(KernelamError, match="the process for 6 ended with status -9"):
        list(each_alone(work, [1, 6], 2))


GRAMMAR = """<sentence>
    2  turn <onoff> the <thing> for <who> | is the <thing> at a <thing> now
<onoff>
    1  on | off
<thing>
    1  lamp | light | door | bell | oven | heater | radio
<who>
    1  anna | hannah | tim | jim | paul | saul
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, mini, synthesiser, tmp_path_factory) -> ModuleType:
    """make_corpus with a small grammar and every third speaker saying two sentences."""
    here = tmp_path_factory.mktemp("mini")
    (here / "grammar.txt").write_text(GRAMMAR)
    (here / "phones.txt").write_bytes((MINI / "phones.txt").read_bytes())
    speakers = [line for line in (MINI / "speakers.txt").read_text().splitlines() if not line.startswith("#")]
    (here / "speakers.txt").write_text("\n".join(speakers[::3]) + "\n")
    make_corpus = mini("make_corpus")
    monkeypatch.setattr(make_corpus, "HERE", here)
    monkeypatch.setattr(make_corpus, "BABBLE_SENTENCES", 1)
    for set_ in mini("plan").UTTERANCES:
        monkeypatch.setitem(mini("plan").UTTERANCES, set_, 2)
    return make_corpus


def test_every_voice_and_word(mini, synthesiser, utterances: list) -> None:
    """phones.txt has all phones of every word, no voice is silent, and none depends on the time of day."""
    espeak, phones = mini("espeak"), mini("lexicon").PhoneMap(MINI / "phones.txt")
    words = mini("grammar").read_grammar(MINI / "grammar.txt").vocabulary()
    voices = list({u.speaker.name: u.speaker.voice for u in utterances}.values())

    def check(number: int) -> tuple[set[str], float, bytes]:
        speech = espeak.say(words[number :: len(voices)], voices[number])
        names = {name for name, _, _ in phones.segments(speech.phones, "the test")}
        return names, float(speech.samples.std()), hashlib.sha256(speech.samples).digest()

    results = list(mini("processes").each_alone(check, range(len(voices)), 2))
    assert set().union(*(names for names, _, _ in results)) == {*phones.nonsilence(), "SIL"}
    assert min(level for _, level, _ in results) > 300
    time.sleep(1.0)  # espeak by itself draws random numbers from the seconds of the clock
    assert list(mini("processes").each_alone(check, range(len(voices)), 1)) == results


def test_unknown_voice_and_phone(mini, synthesiser, tmp_path: Path) -> None:
    espeak, lexicon = mini("espeak"), mini("lexicon")
    with pytest.raises(KernelamError, match="no voice variant nonesuch"):
        espeak.say(["tea"], espeak.Voice("nonesuch", 50, 160, 50))
    (tmp_path / "phones.txt").write_text("# comment\nt t\n")
    with pytest.raises(KernelamError, match="no line for espeak's phoneme 'i:', found in the word tea"):
        lexicon.PhoneMap(tmp_path / "phones.txt").segments([espeak.Phone("i:", 0, 0)], "the word tea")
    (tmp_path / "phones.txt").write_text("t t\nt d\n")
    with pytest.raises(KernelamError, match="line 2: expected a new mnemonic and a phone"):
        lexicon.PhoneMap(tmp_path / "phones.txt")


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_same_bytes_whatever_the_number_of_processes(small: ModuleType, tmp_path: Path) -> None:
    one = small.make_corpus(tmp_path / "one", 1, 1, "x")
    two = small.make_corpus(tmp_path / "two", 1, 2, "x")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert one == two
    other = small.make_corpus(tmp_path / "other", 2, 2, "x")
    assert other["files"] != one["files"]
    known = set(one["phones"])
    assert {phone for _, *phones in one["lexicon"] for phone in phones} <= known
    ctm = "".join(path.read_text() for path in (tmp_path / "one").glob("*/phones.ctm"))
    assert {line.split()[4] for line in ctm.splitlines()} <= known | {"SIL"}


def test_a_corpus_is_current_only_when_whole(small: ModuleType, tmp_path: Path) -> None:
    made = small.make_corpus(tmp_path, 1, 2, "x")
    assert small.read_manifest(tmp_path, "x") == made
    assert small.read_manifest(tmp_path, "y") is None
    wav = tmp_path / next(iter(made["files"]))
    content = wav.read_bytes()
    wav.write_bytes(content[:-2])
    assert small.read_manifest(tmp_path, "x") is None
    wav.unlink()
    assert small.read_manifest(tmp_path, "x") is None
    (tmp_path / "train" / ".f01-001.wav.1.partial").write_bytes(b"RIFF")
    assert small.make_corpus(tmp_path, 1, 2, "x") == made
    assert wav.read_bytes() == content
    assert not list(tmp_path.glob("*/.*"))


def test_directories_are_kaldis(small: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small.main.main(["--nj", "2", "corpus", "data"], standalone_mode=False)
    for set_ in ("train", "heldout", "dev", "test"):
        folder = tmp_path / "data" / set_
        tables = {path.name: path.read_text().splitlines() for path in folder.iterdir()}
        assert set(tables) == {"wav.scp", "text", "utt2spk", "spk2utt", "spk2gender"}
        assert len(tables["text"]) == 2 * len(tables["spk2utt"])
        assert all(table == sorted(table) for table in tables.values())
        assert all(line.startswith(line.split()[1] + "-") for line in tables["utt2spk"])
        assert all((tmp_path / line.split()[1]).is_file() for line in tables["wav.scp"])
        assert tables["wav.scp"][0].split()[1].startswith(f"corpus/{set_}/")
    files = {path.name: path.read_text() for path in (tmp_path / "data" / "local" / "dict").iterdir()}
    assert files["lexicon.txt"].startswith("!SIL SIL\n<UNK> SPN\n")
    assert files["silence_phones.txt"] == "SIL\nSPN\n"
    assert files["optional_silence.txt"] == "SIL\n"
    assert not any(bad in files["nonsilence_phones.txt"] for bad in "# _@:'")
    assert len(files["nonsilence_phones.txt"].split()) in range(38, 50)


def test_errors_of_the_command(tmp_path: Path) -> None:
    def run(*args: object, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(MINI / "make_corpus.py"), *map(str, args)]
        environment = {**os.environ, "PYTHONPATH": str(MINI.parents[1]), **env}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)

    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "espeakng_loader.py").write_text("raise ImportError\n")
    (tmp_path / "file").write_text("")
    lacking = run(tmp_path / "c", tmp_path / "d", PYTHONPATH=f"{tmp_path / 'without'}:{MINI.parents[1]}")
    assert lacking.returncode == 1
    assert lacking.stderr.startswith(
        "make_corpus.py: the synthetic corpus needs espeak-ng (GPL), which is not installed"
    )
    assert lacking.stderr.count("\n") == 1
    assert not (tmp_path / "c").exists()
    for args in ((tmp_path / "file", tmp_path / "d"), ("--nj", "0", "c", "d"), ("c",)):
        bad = run(*args)
        assert bad.returncode == 1
        assert bad.stderr.count("\n") == 1
        assert bad.stderr.startswith("make_corpus.py: ")
