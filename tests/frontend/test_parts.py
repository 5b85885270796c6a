"""Features of data directories, by command and by step."""

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from kernelam.frontend.features import Extractor
from kernelam.kaldi.ark import MatrixScp

Run = Callable[..., subprocess.CompletedProcess[str]]

MADE = ["feats.scp", "utt2num_frames", "utt2dur", "frame_shift"]


def sound(seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(4000 + 400 * seed) * 1000).astype(np.int16)


@pytest.fixture
def here(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe's folder with data (7 utterances of 3 speakers), conf, wav."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("wav").mkdir()
    Path("conf").symlink_to(root / "egs/mini/s5/conf")
    tables: dict[str, list[str]] = {"wav.scp": [], "utt2spk": [], "text": []}
    for i in range(7):
        soundfile.write(f"wav/{i}.wav", sound(i), 16000)
        utt, speaker = f"s{i // 3}-{i}", f"s{i // 3}"
        tables["wav.scp"].append(f"{utt} wav/{i}.wav")
        tables["utt2spk"].append(f"{utt} {speaker}")
        tables["text"].append(f"{utt} yes no")
    tables["spk2utt"] = ["s0 s0-0 s0-1 s0-2", "s1 s1-3 s1-4 s1-5", "s2 s2-6"]
    for name, content in tables.items():
        Path("data", name).write_text("\n".join(content) + "\n")
    return tmp_path


def keep_two_utterances() -> None:
    for name in ("wav.scp", "utt2spk", "text"):
        path = Path("data", name)
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    Path("data/spk2utt").write_text("s0 s0-0 s0-1\n")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith("split") or part == "log" for part in path.parts)
    }


def step(root: Path, *command: object) -> subprocess.CompletedProcess[str]:
    name, *args = map(str, command)
    return subprocess.run([root / "steps" / name, *args], capture_output=True, text=True, timeout=120)


def test_steps_give_the_same_bytes_for_any_number_of_jobs(here: Path, root: Path) -> None:
    seen = []
    for nj in (1, 3):
        run = step(root, "make_mfcc.sh", "--nj", nj, "data", "exp/log", "feats")
        assert run.returncode == 0, run.stderr
        run = step(root, "compute_cmvn_stats.sh", "data", "exp/log", "feats")
        assert run.returncode == 0, run.stderr
        seen.append({**snapshot(here / "data"), **snapshot(here / "feats")})
    seen[1].pop(".backup/feats.scp")
    assert seen[0] == seen[1]
    assert sorted(os.listdir("feats")) == ["cmvn_data.ark", "raw_mfcc_data.ark"]
    feats = MatrixScp("data/feats.scp")
    for i, utt in enumerate(feats):
        expected = Extractor("mfcc", "conf/mfcc.conf")(sound(i).astype(np.float32))
        assert feats[utt].shape == expected.shape
        np.testing.assert_allclose(feats[utt], expected, atol=0.05 * np.abs(expected).max())
    assert Path("data/feats.scp").read_text().startswith("s0-0 feats/raw_mfcc_data.ark:5\n")
    assert Path("data/utt2num_frames").read_text().startswith("s0-0 23\ns0-1 26\n")
    assert Path("data/utt2dur").read_text().startswith("s0-0 0.25\ns0-1 0.275\n")
    assert Path("data/frame_shift").read_text() == "0.01\n"


def test_step_defaults_and_switches(here: Path, root: Path) -> None:
    """More jobs asked for than there are utterances, too."""
    keep_two_utterances()
    run = step(root, "make_fbank.sh", "--nj", 20, "--compress", "false", "--write-utt2num-frames", "false", "data")
    assert run.returncode == 0, run.stderr
    assert sorted(os.listdir("data/data")) == ["raw_fbank_data.ark"]
    assert list(Path("data/log").glob("*.1.log"))
    assert not Path("data/utt2num_frames").exists()
    expected = Extractor("fbank", "conf/fbank.conf")(sound(1).astype(np.float32))
    np.testing.assert_array_equal(MatrixScp("data/feats.scp")["s0-1"], expected)


def test_one_bad_utterance_fails_the_step_and_leaves_nothing(here: Path, root: Path) -> None:
    Path("data/feats.scp").write_text("".join(f"s{i // 3}-{i} old.ark:{i}\n" for i in range(7)))
    Path("wav/5.wav").unlink()
    run = step(root, "make_mfcc.sh", "--nj", 2, "data", "log", "mfcc")
    assert run.returncode == 1
    assert "s1-5: wav/5.wav: no such file" in run.stderr
    assert not Path("data/feats.scp").exists()
    assert os.listdir("mfcc") == []


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["make_mfcc.sh", "--mfcc-config", "no.conf", "data"], "no such file no.conf"),
        (["make_mfcc.sh", "nodata"], "no such file nodata/utt2spk"),
        (["make_mfcc.sh"], "steps/make_mfcc.sh [options] <data>"),
        (["make_fbank.sh", "--mfcc-config", "x", "data"], "unknown option --mfcc-config"),
        (["compute_cmvn_stats.sh", "data"], "no such file data/feats.scp"),
    ],
)
def test_bad_calls_of_steps(here: Path, root: Path, command: list[str], sentence: str) -> None:
    run = step(root, *command)
    assert run.returncode == 1
    assert sentence in run.stderr


def test_too_short_for_one_frame(here: Path, kernelam: Run) -> None:
    soundfile.write("wav/2.wav", sound(2)[:300], 16000)
    run = kernelam("features", "mfcc", "data", "part")
    assert run.returncode == 1
    assert "data, s0-2: 300 samples (0.01875 s) are too few for one frame" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert os.listdir("part") == []


def test_sound_that_is_not_finite(here: Path, kernelam: Run) -> None:
    soundfile.write("wav/1.wav", np.full(1000, np.nan, np.float32), 16000, subtype="FLOAT")
    run = kernelam("features", "fbank", "data", "part")
    assert run.returncode == 1
    assert "data/wav.scp, s0-1: wav/1.wav has samples that are beyond all bounds, or no numbers" in run.stderr
    assert os.listdir("part") == []


def test_wrong_rate_names_both(here: Path, kernelam: Run) -> None:
    soundfile.write("wav/1.wav", sound(1), 8000)
    run = kernelam("features", "fbank", "--config", "conf/fbank.conf", "data", "part")
    assert run.returncode == 1
    assert "data/wav.scp, s0-1: wav/1.wav is sampled at 8000 Hz" in run.stderr
    assert "--sample-frequency=16000" in run.stderr
    assert os.listdir("part") == []


def test_full_disk(here: Path, kernelam: Run) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    run = kernelam("features", "mfcc", "data", "part", preexec_fn=small_files)
    assert run.returncode == 1
    assert run.stderr == "kernelam features mfcc: cannot write part/feats.ark: File too large\n"
    assert os.listdir("part") == []
    assert kernelam("features", "mfcc", "data", "part").returncode == 0
    run = kernelam("features", "merge", "data", "mfcc/a.ark", "part", preexec_fn=small_files)
    assert run.returncode == 1
    assert "cannot write mfcc/a.ark: File too large" in run.stderr
    assert os.listdir("mfcc") == []
    assert not any(Path("data", name).exists() for name in MADE)


def test_merge_checks_that_all_utterances_are_there(here: Path, kernelam: Run) -> None:
    assert kernelam("features", "mfcc", "data", "part").returncode == 0
    scp = Path("part/feats.scp")
    whole = scp.read_text()
    scp.write_text(whole.replace("s1-4 ", "x "))
    run = kernelam("features", "merge", "data", "mfcc/a.ark", "part")
    assert run.returncode == 1
    assert "no part has features of utterance s1-4" in run.stderr
    scp.write_text(whole)
    ark = Path("part/feats.ark")
    ark.write_bytes(ark.read_bytes()[:-1])
    run = kernelam("features", "merge", "data", "mfcc/a.ark", "part")
    assert run.returncode == 1
    assert "part/feats.scp, s2-6: part/feats.ark:" in run.stderr
    assert "is cut short" in run.stderr
    assert not any(Path("data", name).exists() for name in MADE)


def test_segments_and_pipes(here: Path, root: Path) -> None:
    Path("data/wav.scp").write_text("".join(f"r{i} cat wav/{i}.wav |\n" for i in range(7)))
    Path("data/segments").write_text("".join(f"s{i // 3}-{i} r{i} 0.05 0.2\n" for i in range(7)))
    run = step(root, "make_mfcc.sh", "--nj", 2, "data")
    assert run.returncode == 0, run.stderr
    feats = MatrixScp("data/feats.scp")
    assert [feats.num_frames(utt) for utt in feats] == [13] * 7
