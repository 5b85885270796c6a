"""Speech played faster and slower: ids, times, and the sound that the commands of wav.scp give."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from kernelam.frontend.audio import utterances
from kernelam.kaldi.datadir import DataDir

RATE, HERTZ = 16000, 1000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    tone = np.sin(2 * np.pi * HERTZ * np.arange(RATE) / RATE)
    soundfile.write(tmp_path / "a b.wav", 0.5 * np.stack([tone, 0 * tone], axis=1)[:, 0], RATE)
    folder = tmp_path / "data"
    folder.mkdir()
    for name, text in {
        "wav.scp": f"r1 {tmp_path}/a b.wav\nr2 cat '{tmp_path}/a b.wav' |\n",
        "segments": "s-1 r1 0.0 0.9\ns-2 r2 0.1 0.9\n",
        "utt2spk": "s-1 s\ns-2 s\n",
        "spk2utt": "s s-1 s-2\n",
        "text": "s-1 a\ns-2 b\n",
        "utt2dur": "s-1 0.9\ns-2 0.8\n",
        "feats.scp": "s-1 x:1\ns-2 x:2\n",
    }.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_sound_times_and_ids(data, root, tmp_path, factor, monkeypatch):
    monkeypatch.setenv("PATH", f"{root}/utils/bin", prepend=":")
    done = subprocess.run(
        [f"{root}/utils/perturb_data_dir_speed.sh", str(factor), data, tmp_path / "fast"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made = DataDir(tmp_path / "fast")
    assert made.utt2spk == {f"sp{factor}-s-{n}": f"sp{factor}-s" for n in (1, 2)}
    assert not made.has("feats.scp")
    assert float(made.lines_of("utt2dur")[f"sp{factor}-s-1"]) == pytest.approx(0.9 / factor)
    found = {utt: samples for utt, samples, _ in utterances(tmp_path / "fast")}
    for utt, seconds in ((f"sp{factor}-s-1", 0.9), (f"sp{factor}-s-2", 0.8)):
        assert len(found[utt]) == pytest.approx(seconds / factor * RATE, abs=2)
        inner = found[utt][500:-500]
        spectrum = np.abs(np.fft.rfft(inner * np.hanning(len(inner))))
        assert spectrum.argmax() * RATE / len(inner) == pytest.approx(HERTZ * factor, abs=2)
        assert np.abs(inner).max() == pytest.approx(0.5 * 32768, rel=0.01)


def test_what_cannot_be_played(data, kernelam, tmp_path):
    (data / "wav.scp").unlink()
    (data / "segments").unlink()
    done = kernelam("data", "perturb-speed", "0.9", data, tmp_path / "slow")
    assert (done.returncode, (tmp_path / "slow").exists()) == (1, False)
    assert "the speed of sound is changed, not that of features" in done.stderr
    done = kernelam("data", "perturb-speed", "0", data, tmp_path / "slow")
    assert done.returncode == 1
    done = kernelam("features", "speed", "0.9", data / "text")
    assert done.returncode == 1
    assert f"{data}/text cannot be read as sound" in done.stderr
