import io
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from kernelam.errors import KernelamError
from kernelam.frontend.audio import resampled, utterances


def tone(samples: int = 16000, channels: int = 1) -> np.ndarray:
    return (np.random.default_rng(channels).standard_normal((samples, channels)) * 3000).astype(np.int16)


MakeData = Callable[..., Path]


@pytest.fixture
def make_data(tmp_path: Path) -> MakeData:
    """make_data(wav_scp, segments=None, **tables): a data directory; sound is in tmp_path/sound."""
    (tmp_path / "sound").mkdir()
    soundfile.write(tmp_path / "sound/a.wav", tone(), 16000)
    soundfile.write(tmp_path / "sound/two.wav", tone(8000, 2), 16000)

    def make(wav_scp: dict[str, str], segments: dict[str, str] | None = None, **tables: dict[str, str]) -> Path:
        data = tmp_path / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        tables = {"wav.scp": wav_scp, "utt2spk": {utt: utt for utt in segments or wav_scp}, **tables}
        if segments:
            tables["segments"] = segments
        for name, table in tables.items():
            lines = (f"{key} {value.format(sound=tmp_path / 'sound')}\n" for key, value in table.items())
            (data / name).write_text("".join(lines))
        return data

    return make


@pytest.mark.parametrize("container", ["WAV", "FLAC", "NIST"])
def test_samples_are_16_bit_integers(make_data: MakeData, tmp_path: Path, container: str) -> None:
    soundfile.write(tmp_path / "sound/b", tone(), 16000, format=container, subtype="PCM_16")
    ((utt, samples, rate),) = utterances(make_data({"u": "{sound}/b"}), rate=16000)
    assert (utt, rate, samples.dtype) == ("u", 16000, np.float32)
    np.testing.assert_array_equal(samples, tone()[:, 0])


def test_sound_that_is_stored_as_floats_has_the_same_scale(make_data: MakeData, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "sound/f.wav", tone() / 32768, 16000, subtype="FLOAT")
    ((_, samples, _),) = utterances(make_data({"u": "{sound}/f.wav"}))
    np.testing.assert_allclose(samples, tone()[:, 0], atol=1e-2)


def test_relative_paths(make_data: MakeData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(list(utterances(make_data({"u": "sound/a.wav"})))) == 1


def test_pipes(make_data: MakeData) -> None:
    ((_, samples, _),) = utterances(make_data({"u": "cat {sound}/a.wav | cat |"}))
    np.testing.assert_array_equal(samples, tone()[:, 0])


def test_a_stream_that_did_not_know_its_length(make_data: MakeData, tmp_path: Path) -> None:
    """Programs that write WAV into a pipe put the largest length there is into the header."""
    stream = io.BytesIO()
    soundfile.write(stream, tone(), 16000, format="WAV", subtype="PCM_16")
    content = bytearray(stream.getvalue())
    content[4:8] = content[40:44] = b"\xff\xff\xff\x7f"
    (tmp_path / "sound/s.wav").write_bytes(content)
    ((_, samples, _),) = utterances(make_data({"u": "cat {sound}/s.wav |"}))
    np.testing.assert_array_equal(samples, tone()[:, 0])


def test_segments(make_data: MakeData) -> None:
    segments = {"u1": "rec 0 0.25", "u2": "rec 0.25 0.50", "u3": "rec 0.9 1.2"}  # the last is cut: 0.2 s too long
    got = {utt: samples for utt, samples, _ in utterances(make_data({"rec": "{sound}/a.wav"}, segments))}
    np.testing.assert_array_equal(got["u1"], tone()[:4000, 0])
    np.testing.assert_array_equal(got["u2"], tone()[4000:8000, 0])
    np.testing.assert_array_equal(got["u3"], tone()[14400:, 0])


def test_a_recording_is_read_once(make_data: MakeData, tmp_path: Path) -> None:
    data = make_data(
        {"rec": f"echo x >> {tmp_path}/count; cat {{sound}}/a.wav |"}, {f"u{i}": f"rec 0.{i} 0.9" for i in range(5)}
    )
    assert len(list(utterances(data))) == 5
    assert (tmp_path / "count").read_text() == "x\n"


@pytest.mark.parametrize(("channel", "index"), [("A", 0), ("1", 0), ("B", 1)])
def test_channels(make_data: MakeData, channel: str, index: int) -> None:
    data = make_data({"u": "{sound}/two.wav"}, reco2file_and_channel={"u": f"two {channel}"})
    ((_, samples, _),) = utterances(data)
    np.testing.assert_array_equal(samples, tone(8000, 2)[:, index])


def test_bad_sound(make_data: MakeData, tmp_path: Path) -> None:
    sound = tmp_path / "sound"
    (sound / "empty.wav").touch()
    (sound / "text.wav").write_text("this is not sound\n" * 100)
    soundfile.write(sound / "nothing.wav", tone(0), 16000)
    soundfile.write(sound / "a.flac", tone(), 16000)
    for name in ("a.wav", "a.flac"):
        (sound / f"half-{name}").write_bytes((sound / name).read_bytes()[:16000])
    cases = {
        "{sound}/none.wav": "no such file",
        "{sound}": "no such file",
        "{sound}/empty.wav": "is empty",
        "{sound}/text.wav": "cannot be read as sound",
        "{sound}/nothing.wav": "has no samples",
        "{sound}/half-a.wav": "is cut short: it has 15956 of the 32000 bytes",
        "{sound}/half-a.flac": "cannot be read as sound: ",
        "{sound}/two.wav": "has 2 channels; name the one to use in reco2file_and_channel",
        "echo first >&2; echo bad tape >&2; exit 2 |": "failed with status 2: bad tape",
        "cat {sound}/none.wav | cat |": "failed with status 1: cat: ",
        "true |": "is empty",
    }
    for place, sentence in cases.items():
        data = make_data({"u": place})
        with pytest.raises(KernelamError) as error:
            list(utterances(data))
        assert sentence in str(error.value), place
        assert f"{data}/wav.scp, u: {place.format(sound=sound)}" in str(error.value)


def test_a_length_that_a_header_promises_takes_no_memory(make_data: MakeData, tmp_path: Path) -> None:
    """FLAC has 36 bits for the number of samples, 21 bytes from the beginning."""
    soundfile.write(tmp_path / "sound/b.flac", tone(), 16000)
    content = bytearray((tmp_path / "sound/b.flac").read_bytes())
    content[21] |= 0x0F
    (tmp_path / "sound/b.flac").write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(KernelamError, match=r"wav\.scp, u: .*b\.flac cannot be read as sound"):
        list(utterances(make_data({"u": "{sound}/b.flac"})))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10  # kB


@pytest.mark.parametrize("rate", [1, 2**31 - 1])
def test_a_rate_that_no_sound_has(make_data: MakeData, tmp_path: Path, rate: int) -> None:
    soundfile.write(tmp_path / "sound/b.wav", tone(), rate)
    with pytest.raises(KernelamError, match=rf"wav\.scp, u: .* is sampled at {rate} Hz, which is no rate of sound"):
        list(utterances(make_data({"u": "{sound}/b.wav"}), rate=16000, resample=True))


def test_another_rate(make_data: MakeData) -> None:
    data = make_data({"u": "{sound}/a.wav"})
    with pytest.raises(KernelamError, match=r"wav\.scp, u: .*at 16000 Hz, but .* --sample-frequency=8000"):
        list(utterances(data, rate=8000))


@pytest.mark.parametrize("segment", ["1.0 1.2", "0.5 1.5"])
def test_segment_beyond_the_recording(make_data: MakeData, segment: str) -> None:
    data = make_data({"rec": "{sound}/a.wav"}, {"u": f"rec {segment}"})
    with pytest.raises(KernelamError, match=r"segments, u is .* s of rec, which is only 1 s long"):
        list(utterances(data))


def test_segment_of_no_recording(make_data: MakeData) -> None:
    with pytest.raises(KernelamError, match=r"wav\.scp lacks other"):
        list(utterances(make_data({"rec": "{sound}/a.wav"}, {"u": "other 0 1"})))


@pytest.mark.parametrize(("old", "new"), [(44100, 16000), (8000, 16000), (48000, 16000), (16000, 8000), (11025, 8000)])
def test_resampled_tones(old: int, new: int) -> None:
    """A tone stays the same; one above half of the new rate is gone."""
    seconds = 0.5
    before, after = (np.arange(int(seconds * rate)) / rate for rate in (old, new))
    for hertz in (200, 1234, 0.4 * min(old, new)):
        made = resampled(np.sin(2 * np.pi * hertz * before).astype(np.float32), old, new)
        assert len(made) == len(after)
        inner = slice(new // 20, -new // 20)
        np.testing.assert_allclose(made[inner], np.sin(2 * np.pi * hertz * after)[inner], atol=2e-3)
    if old > 1.3 * new:
        made = resampled(np.sin(2 * np.pi * 0.62 * new * before).astype(np.float32), old, new)
        assert np.abs(made[new // 20 : -new // 20]).max() < 1e-3


def test_sound_of_another_rate_is_resampled_and_named(make_data: MakeData, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_data({"u": "{sound}/a.wav"})
    _, samples, rate = next(iter(utterances(data, rate=8000, resample=True)))
    assert rate == 8000
    assert len(samples) == -(-len(next(iter(utterances(data)))[1]) // 2)
    assert "a.wav is sampled at 16000 Hz, and resampled to 8000" in capsys.readouterr().err
