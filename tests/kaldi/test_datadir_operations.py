"""Data directories from data directories: what must hold whatever the directory, and each bad input."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_datadir import SEGMENTED, write

from kernelam.errors import KernelamError
from kernelam.kaldi.datachange import combine, copy, fix
from kernelam.kaldi.datadir import DataDir
from kernelam.kaldi.dataselect import split, subset

FEW = settings(max_examples=15, deadline=None, database=None)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, hidden ones and its parts included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@st.composite
def directories(draw: st.DrawFn) -> dict[str, str]:
    """A valid directory of a few speakers, with or without segments. The speaker is a prefix, followed by -."""
    names = st.text("abZ09é", min_size=1, max_size=3)
    spks = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    utt2spk = {f"{spk}-{n}": spk for spk in spks for n in range(draw(st.integers(1, 4)))}
    utt2spk = dict(sorted(utt2spk.items()))
    if list(utt2spk.values()) != sorted(utt2spk.values()):  # a0-1 sorts behind a-1, but é or Z may not
        utt2spk = {utt: spk for utt, spk in utt2spk.items() if spk == min(spks)}
    spk2utt = {spk: [utt for utt in utt2spk if utt2spk[utt] == spk] for spk in sorted(set(utt2spk.values()))}
    tables = {
        "utt2spk": utt2spk,
        "spk2utt": {spk: " ".join(utts) for spk, utts in spk2utt.items()},
        "text": {utt: draw(st.sampled_from(["", "one", "one two"])) for utt in utt2spk},
        "feats.scp": {utt: f"f.ark:{n}" for n, utt in enumerate(utt2spk)},
        "utt2dur": {utt: str(n % 5 + 1) for n, utt in enumerate(utt2spk)},
        "spk2gender": dict.fromkeys(spk2utt, "f"),
        "cmvn.scp": {spk: f"c.ark:{n}" for n, spk in enumerate(spk2utt)},
    }
    recordings = {utt: utt for utt in utt2spk}
    if draw(st.booleans()):
        recordings = {utt: f"r{n // 3}" for n, utt in enumerate(utt2spk)}
        tables["segments"] = {utt: f"{reco} {n} {n + 1}" for n, (utt, reco) in enumerate(recordings.items())}
    tables["wav.scp"] = {reco: f"sox {reco}.flac -t wav - |" for reco in sorted(set(recordings.values()))}
    return {
        name: "".join(f"{key} {value}".rstrip() + "\n" for key, value in table.items())
        for name, table in tables.items()
    }


@FEW
@given(directories(), st.data())
def test_fix_repairs_what_was_shuffled_repeated_and_lost(files: dict[str, str], data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name) / "d"
        spoilt = {}
        for table, content in files.items():
            lines = content.splitlines(keepends=True)
            lost = data.draw(st.sampled_from([None, *range(1, len(lines))]))  # the first speaker's lines are kept
            lines = [line for number, line in enumerate(lines) if number != lost]
            lines += data.draw(st.lists(st.sampled_from(lines), max_size=2))
            spoilt[table] = "".join(data.draw(st.permutations(lines)))
        write(folder, spoilt)
        kept, out_of = fix(folder)
        DataDir(folder).validate()
        assert kept == len(DataDir(folder).utts)
        assert out_of == len(set(spoilt["utt2spk"].splitlines()))
        for path in (folder / ".backup").glob("*"):
            assert path.read_bytes() == spoilt[path.name].encode()
        fixed = contents(folder)
        assert set(fixed) >= set(files)
        for table in files:  # nothing invented, and what changed was kept
            if table != "spk2utt":
                assert set(fixed[table].decode().splitlines()) <= set(files[table].splitlines())
            assert fixed[table] == spoilt[table].encode() or f".backup/{table}" in fixed
        assert fix(folder) == (kept, kept)
        assert contents(folder) == fixed


@FEW
@given(directories(), st.data())
def test_split_is_a_partition_and_combines_to_the_original(files: dict[str, str], data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = write(Path(name) / "d", files)
        whole = DataDir(folder)
        per_utt = data.draw(st.booleans())
        nj = data.draw(st.integers(1, len(whole.utts if per_utt else whole.spks)))
        target = split(folder, nj, per_utt=per_utt)
        assert target == folder / (f"split{nj}utt" if per_utt else f"split{nj}")
        parts = [DataDir(target / str(job)) for job in range(1, nj + 1)]
        for part in parts:
            part.validate()
        assert [utt for part in parts for utt in part.utts] == whole.utts
        if not per_utt:
            assert [spk for part in parts for spk in part.spks] == whole.spks
        else:
            sizes = [len(part.utts) for part in parts]
            assert max(sizes) - min(sizes) <= 1
        combine(Path(name) / "joined", [part.path for part in parts])
        assert contents(Path(name) / "joined") == {name: content.encode() for name, content in files.items()}


@FEW
@given(directories(), st.text("ab-", max_size=2), st.text("ab-", max_size=2))
def test_copy_stays_valid_and_copies_combine(files: dict[str, str], prefix: str, suffix: str) -> None:
    with TemporaryDirectory() as name:
        folder = write(Path(name) / "d", files)
        copy(folder, Path(name) / "same")
        assert contents(Path(name) / "same") == contents(folder)
        copy(folder, Path(name) / "new", utt_prefix=f"+{prefix}", spk_prefix=f"+{prefix}", utt_suffix=suffix)
        new, old = DataDir(Path(name) / "new"), DataDir(folder)
        new.validate()
        assert new.utt2spk == {f"+{prefix}{utt}{suffix}": f"+{prefix}{spk}" for utt, spk in old.utt2spk.items()}
        assert new.text == {f"+{prefix}{utt}{suffix}": words for utt, words in old.text.items()}
        assert all(utt.startswith(spk) for utt, spk in new.utt2spk.items())
        combine(Path(name) / "both", [folder, new.path])
        both = DataDir(Path(name) / "both")
        both.validate()
        assert len(both.utts) == 2 * len(old.utts)


def many(folder: Path, sizes: list[int]) -> Path:
    utt2spk = {f"s{s:02d}-{u:03d}": f"s{s:02d}" for s, size in enumerate(sizes) for u in range(size)}
    frames = {utt: n * 7 % 31 + 1 for n, utt in enumerate(utt2spk)}
    return write(
        folder,
        {
            "utt2spk": "".join(f"{utt} {spk}\n" for utt, spk in utt2spk.items()),
            "utt2num_frames": "".join(f"{utt} {count}\n" for utt, count in frames.items()),
            "stm": ";; comment\n" + "".join(f"{utt} 1 {spk} 0 1 x\n" for utt, spk in utt2spk.items()),
        },
    )


def test_split_is_balanced(tmp_path: Path) -> None:
    folder = many(tmp_path / "d", [5, 9, 1, 20, 3, 3, 9, 10])
    parts = [len(DataDir(split(folder, 3) / str(job)).utts) for job in (1, 2, 3)]
    assert parts == [15, 26, 19]  # borders after 15 and 41 utterances, those nearest to 20 and 40
    parts = [len(DataDir(split(many(tmp_path / "one", [50, 1, 1, 1]), 4) / str(job)).utts) for job in (1, 2, 3, 4)]
    assert parts == [50, 1, 1, 1]


def test_split_is_made_anew_only_when_the_source_changed(tmp_path: Path) -> None:
    folder = many(tmp_path / "d", [3, 3])
    target = split(folder, 2)
    inode = target.stat().st_ino
    assert split(folder, 2).stat().st_ino == inode
    (folder / "text").write_text("".join(f"{utt} x\n" for utt in DataDir(folder).utts))
    assert split(folder, 2).stat().st_ino != inode
    assert len(DataDir(target / "1").text) == 3
    shutil.rmtree(target / "2")
    split(folder, 2)
    assert len(DataDir(target / "2").text) == 3
    os.utime(folder / "text", (0, 0))  # an older file put in its place is a change, too
    inode = target.stat().st_ino
    assert split(folder, 2).stat().st_ino != inode
    assert sorted(path.name for path in folder.iterdir()) == ["split2", "stm", "text", "utt2num_frames", "utt2spk"]


def test_splits_at_the_same_time(tmp_path: Path, root: Path) -> None:
    folder = many(tmp_path / "d", [3] * 10)
    command = [sys.executable, "-m", "kernelam", "data", "split", str(folder), "10"]
    env = {**os.environ, "PYTHONPATH": str(root)}
    jobs = [subprocess.Popen(command, env=env) for _ in range(4)]
    assert [job.wait() for job in jobs] == [0] * 4
    assert [len(DataDir(folder / "split10" / str(job)).utts) for job in range(1, 11)] == [3] * 10
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize(("nj", "per_utt", "words"), [(3, False, "--per-utt"), (7, True, "smaller nj")])
def test_split_into_too_many(tmp_path: Path, nj: int, per_utt: bool, words: str) -> None:
    folder = many(tmp_path / "d", [3, 3])
    before = contents(folder)
    with pytest.raises(KernelamError, match=words):
        split(folder, nj, per_utt=per_utt)
    assert contents(folder) == before


def test_subsets(tmp_path: Path) -> None:
    folder = many(tmp_path / "d", [10, 2, 8])
    whole = DataDir(folder)

    def taken(num: int, how: str = "spread") -> list[str]:
        subset(folder, tmp_path / "s", num, how)
        DataDir(tmp_path / "s").validate(feats=False, text=False, wav=False)
        return DataDir(tmp_path / "s").utts

    assert taken(5) == whole.utts[::4]
    assert taken(20) == whole.utts
    assert taken(3, "first") == whole.utts[:3]
    assert taken(3, "last") == whole.utts[-3:]
    shortest = sorted(whole.utt2num_frames.values())[:6]
    assert sorted(whole.utt2num_frames[utt] for utt in taken(6, "shortest")) == shortest
    assert [len(utts) for utts in (taken(4, "per-spk"), DataDir(tmp_path / "s").spk2utt["s01"])] == [10, 2]
    speakers = taken(9, "speakers")
    assert len(speakers) >= 9
    assert speakers == taken(9, "speakers")
    assert all(utts == whole.spk2utt[spk] for spk, utts in DataDir(tmp_path / "s").spk2utt.items())
    taken(1, "first")
    assert (tmp_path / "s" / "stm").read_text() == ";; comment\ns00-000 1 s00 0 1 x\n"


def test_subset_by_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = many(tmp_path / "d", [2, 2])
    (tmp_path / "list").write_text("s01-000 whatever\ns00-001\nnobody\n")
    subset(folder, tmp_path / "s", how="utt-list", keep=tmp_path / "list")
    assert DataDir(tmp_path / "s").utts == ["s00-001", "s01-000"]
    assert "nobody" in capsys.readouterr().err
    (tmp_path / "list").write_text("s01\n")
    subset(folder, tmp_path / "s", how="spk-list", keep=tmp_path / "list")
    assert DataDir(tmp_path / "s").utts == ["s01-000", "s01-001"]
    with pytest.raises(KernelamError, match="nothing that"):
        subset(folder, tmp_path / "t", how="utt-list", keep=tmp_path / "list")
    assert not (tmp_path / "t").exists()


def test_subset_refuses(tmp_path: Path) -> None:
    folder = many(tmp_path / "d", [2, 2])
    for num in (0, 5):
        with pytest.raises(KernelamError, match=f"cannot take {num} utterances"):
            subset(folder, tmp_path / "s", num)
    (folder / "utt2num_frames").unlink()
    with pytest.raises(KernelamError, match="utt2num_frames"):
        subset(folder, tmp_path / "s", 2, "shortest")
    with pytest.raises(KernelamError, match="source and destination"):
        subset(folder, folder / ".." / "d", 2)
    (folder / "text").write_text("s00-000 x\n")
    with pytest.raises(KernelamError, match="text lacks s00-001"):
        subset(folder, tmp_path / "s", 2, "first")
    assert not (tmp_path / "s").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", ["text", "feats.scp", "segments"])
def test_utterances_that_utt2spk_lacks_are_not_lost_in_silence(tmp_path: Path, name: str) -> None:
    write(tmp_path / "d", SEGMENTED)
    data = DataDir(tmp_path / "d")
    utts, line = data.utts, (tmp_path / "d" / name).read_text().splitlines()[-1]
    with open(tmp_path / "d" / name, "a") as stream:
        stream.write(line.replace(utts[-1], "zz-9") + "\n")
    before = contents(tmp_path)
    match = rf"d/{name} has zz-9, which is not in .*d/utt2spk; .*fix_data_dir.sh .* keeps what all files have"
    with pytest.raises(KernelamError, match=match):
        split(tmp_path / "d", 2, per_utt=True)
    with pytest.raises(KernelamError, match=match):
        subset(tmp_path / "d", tmp_path / "part", 1)
    assert contents(tmp_path) == before


def test_a_destination_keeps_no_old_table(tmp_path: Path) -> None:
    write(tmp_path / "old", SEGMENTED)
    (tmp_path / "old" / "notes").write_text("mine")
    copy(many(tmp_path / "d", [2]), tmp_path / "old")
    assert sorted(contents(tmp_path / "old")) == ["notes", "spk2utt", "stm", "utt2num_frames", "utt2spk"]
    DataDir(tmp_path / "old").validate(feats=False, text=False, wav=False)


def test_copy_with_segments_keeps_recordings(tmp_path: Path) -> None:
    copy(write(tmp_path / "d", SEGMENTED), tmp_path / "c", utt_prefix="p-", spk_prefix="p-")
    data = DataDir(tmp_path / "c")
    data.validate()
    assert list(data.wav_scp) == ["r1", "r2"]
    assert data.segments["p-b-1"].recording == "r2"
    assert data.cmvn_scp["p-a"] == "c.ark:2"


def test_copy_that_would_break_the_order(tmp_path: Path) -> None:
    files = {"utt2spk": "a-1 a\nab-1 ab\n"}
    with pytest.raises(KernelamError, match="not sorted by speaker: a-1 of az"):
        copy(write(tmp_path / "d", files), tmp_path / "c", spk_suffix="z")
    assert not (tmp_path / "c").exists()


def test_fix_keeps_what_all_know(tmp_path: Path, kernelam: Callable) -> None:
    folder = write(tmp_path / "d", {**SEGMENTED, "wav.scp": "r2 x.wav\nr9 y.wav\n", "text": "b-1 x\na-1 y\n"})
    run = kernelam("data", "fix", "d", cwd=tmp_path)
    assert run.returncode == 0
    assert "kept 1 utterances out of 3" in run.stderr
    assert "d/text lacks 1 utterances, the first is a-2" in run.stderr
    data = DataDir(folder)
    data.validate()
    assert (data.utts, data.spks, list(data.wav_scp)) == (["b-1"], ["b"], ["r2"])
    assert (folder / ".backup" / "text").read_text() == "b-1 x\na-1 y\n"


def test_fix_makes_spk2utt_and_plain_line_ends(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", {**SEGMENTED, "text": "a-1 x\r\n\r\na-2\r\nb-1 y"})
    (folder / "spk2utt").unlink()
    assert fix(folder) == (3, 3)
    DataDir(folder).validate()
    assert (folder / "text").read_bytes() == b"a-1 x\na-2\nb-1 y\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("text", "zz x\n", "no utterance of .* is in all of .*text"),
        ("text", "", "no utterance of .* is in all of .*text"),
        ("text", "b-1 x\na-1 y\nb-1 z\n", "text, line 3: b-1 occurs twice with different values"),
        ("text", "a-1 x\na-2 y\nb-1 <s>\n", "text: b-1 must be followed by words"),
        ("utt2spk", "b-1 a\na-1 b\na-2 b\n", "utt2spk is not sorted by speaker: a-2 of b comes before b-1 of a"),
        ("utt2spk", "b-1 b\na-1\na-2 a\n", "utt2spk: a-1 must be followed by one speaker"),
        ("segments", "b-1 r2 2 1\na-2 r1 0 1\n", "segments: b-1"),
        ("wav.scp", None, r"wav\.scp"),
    ],
)
def test_fix_refuses_and_changes_nothing(tmp_path: Path, name: str, content: str | None, words: str) -> None:
    folder = write(tmp_path / "d", {**SEGMENTED, **({name: content} if content is not None else {})})
    if content is None:
        (folder / name).unlink()
    before = contents(tmp_path)
    with pytest.raises(KernelamError, match=words):
        fix(folder)
    assert contents(tmp_path) == before


def test_combine_names_both_sources(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", SEGMENTED), many(tmp_path / "b", [2])
    (b / "utt2spk").write_text("b-1 b\n")
    with pytest.raises(KernelamError, match=r"utterance b-1 is in both .*/a/utt2spk and .*/b/utt2spk"):
        combine(tmp_path / "c", [a, b])
    copy(a, tmp_path / "b2", utt_prefix="b-", spk_prefix="b-")
    (tmp_path / "b2" / "wav.scp").write_text("r1 other.wav\nr2 wav/r2.wav\n")
    with pytest.raises(KernelamError, match=r"recording r1 is in both .*/a/wav\.scp and .*/b2/wav\.scp"):
        combine(tmp_path / "c", [a, tmp_path / "b2"])
    with pytest.raises(KernelamError, match="source and destination"):
        combine(a, [a, tmp_path / "b2"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "b2"]


def test_combine_leaves_out_what_some_lack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = write(tmp_path / "a", SEGMENTED), many(tmp_path / "b", [2])
    (a / "frame_shift").write_text("0.01\n")
    combine(tmp_path / "c", [a, b])
    assert sorted(contents(tmp_path / "c")) == ["spk2utt", "utt2num_frames", "utt2spk"]
    message = capsys.readouterr().err
    assert all(name in message for name in ("wav.scp", "segments", "frame_shift", "stm", "text", "cmvn.scp"))


def test_combine_with_segments_in_one_only(tmp_path: Path) -> None:
    a = write(tmp_path / "a", SEGMENTED)
    b = write(tmp_path / "b", {"utt2spk": "c-1 c\n", "wav.scp": "c-1 c.wav\n", "utt2dur": "c-1 2.5\n"})
    combine(tmp_path / "c", [a, b])
    data = DataDir(tmp_path / "c")
    data.validate(feats=False, text=False)
    assert data.segments["c-1"] == ("c-1", 0.0, 2.5)
    (b / "utt2dur").unlink()
    with pytest.raises(KernelamError, match="utt2dur"):
        combine(tmp_path / "d", [a, b])
    assert not (tmp_path / "d").exists()


def test_combine_of_one_speakers_parts_leaves_statistics_out(tmp_path: Path) -> None:
    for name, number in (("a", 1), ("b", 2)):
        write(tmp_path / name, {"utt2spk": f"s-{number} s\n", "cmvn.scp": f"s {name}.ark:2\n", "spk2gender": "s f\n"})
    combine(tmp_path / "c", [tmp_path / "a", tmp_path / "b"])
    assert sorted(contents(tmp_path / "c")) == ["spk2gender", "spk2utt", "utt2spk"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, root: Path) -> None:
    write(tmp_path / "d", SEGMENTED)
    with (tmp_path / "d" / "text").open("w") as stream:
        stream.writelines(f"{utt} {'word ' * 1000}\n" for utt in ("b-1", "a-1", "a-2"))
    before = contents(tmp_path)
    for command in ("copy d e", "split d 2", "fix d", "combine e d", "subset d 2 e"):
        limited = f"ulimit -f 2; {sys.executable} -m kernelam data {command}"
        env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(["bash", "-c", limited], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert run.returncode == 1, command
        assert run.stderr.splitlines()[-1].startswith("kernelam data"), run.stderr
        assert contents(tmp_path) == before
        if command.startswith("copy"):  # the fix is about order, the others about size
            (tmp_path / "d" / "text").write_bytes(b"".join(sorted(before["d/text"].splitlines(keepends=True))))
            before = contents(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    ["subset d 2", "subset d two e", "subset --first --last d 1 e", "subset --frist d 1 e", "subset --utt-list x d 1 e",
     "subset --utt-list nofile d e", "split d", "split d 0", "copy d", "combine e", "fix nowhere", "copy nowhere e"],
)  # fmt: skip
def test_bad_command_lines(tmp_path: Path, kernelam: Callable, arguments: str) -> None:
    write(tmp_path / "d", SEGMENTED)
    run = kernelam("data", *arguments.split(), cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert contents(tmp_path / "d") == {name: content.encode() for name, content in SEGMENTED.items()}
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


SCRIPTS = """
set -e
. "$root/path.sh"
cd "$root/utils"
PATH=$PWD:$PATH
cd "$folder"
copy_data_dir.sh --utt-prefix x- --spk-prefix x- "my data" x
combine_data.sh both "my data" x
split_data.sh --per-utt both 3
subset_data_dir.sh --per-spk both 1 few
fix_data_dir.sh few
validate_data_dir.sh --no-feats --no-spk-sort few
rm few/spk2utt
if validate_data_dir.sh few; then exit 9; fi
if split_data.sh both 5; then exit 9; fi
"""


def test_scripts_take_kaldis_options(tmp_path: Path, root: Path) -> None:
    write(tmp_path / "my data", SEGMENTED)
    env = {**os.environ, "VIRTUAL_ENV": sys.prefix, "root": str(root), "folder": str(tmp_path)}
    run = subprocess.run(["bash", "-c", SCRIPTS], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert DataDir(tmp_path / "few").utts == ["a-1", "b-1", "x-a-1", "x-b-1"]
    assert (tmp_path / "both" / "split3utt" / "3" / "utt2spk").exists()
    assert not (tmp_path / "both" / "split5").exists()
