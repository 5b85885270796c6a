"""MFCC and log-mel filterbanks as Kaldi computes them, configured by Kaldi's files (`--name=value`, # comments)."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.frontend.audio import Samples
from kernelam.kaldi.tables import lines
from kernelam.randomness import stream

# Kaldi's option → where kaldi-native-fbank keeps it
_FRAME = {
    "sample-frequency": "frame_opts.samp_freq",
    "frame-length": "frame_opts.frame_length_ms",
    "frame-shift": "frame_opts.frame_shift_ms",
    "dither": "frame_opts.dither",
    "preemphasis-coefficient": "frame_opts.preemph_coeff",
    "remove-dc-offset": "frame_opts.remove_dc_offset",
    "window-type": "frame_opts.window_type",
    "round-to-power-of-two": "frame_opts.round_to_power_of_two",
    "blackman-coeff": "frame_opts.blackman_coeff",
    "snip-edges": "frame_opts.snip_edges",
    "num-mel-bins": "mel_opts.num_bins",
    "low-freq": "mel_opts.low_freq",
    "high-freq": "mel_opts.high_freq",
    "use-energy": "use_energy",
    "energy-floor": "energy_floor",
    "raw-energy": "raw_energy",
    "htk-compat": "htk_compat",
}
_OPTIONS = {
    "mfcc": {**_FRAME, "num-ceps": "num_ceps", "cepstral-lifter": "cepstral_lifter"},
    "fbank": {**_FRAME, "use-log-fbank": "use_log_fbank", "use-power": "use_power"},
}
_CHUNK = 1 << 20
_LARGEST = 1e6  # number in a file of options
_LONGEST = 1 << 20  # window, in samples
_WINDOWS = ("hamming", "hanning", "povey", "rectangular", "sine", "blackman")
_LOG_EPSILON = np.log(np.finfo(np.float32).eps)  # what the log energy of an empty bin is floored to


class Extractor:
    """samples → frames × dimensions, float32. `kind` is "mfcc" or "fbank", `config` a file.

    Dither, 0 unless the file sets it, is the same noise for all utterances and in every run: results repeat.
    `description` is kind and options in a line.
    """

    def __init__(self, kind: str, config: str | Path | None = None) -> None:
        import kaldi_native_fbank as knf

        self._online, options = {
            "mfcc": (knf.OnlineMfcc, knf.MfccOptions),
            "fbank": (knf.OnlineFbank, knf.FbankOptions),
        }[kind]
        self._options = options()
        self._options.frame_opts.dither = 0.0
        self.description = kind
        if config is not None:
            self.description = " ".join([kind, *_configure(self._options, kind, config)])
        _check(self._options, kind, config or f"the {kind} configuration")
        self._dither, self._options.frame_opts.dither = float(self._options.frame_opts.dither), 0.0
        self.rate = float(self._options.frame_opts.samp_freq)
        self.frame_shift = float(self._options.frame_opts.frame_shift_ms) / 1000

    def __call__(self, samples: Samples) -> NDArray[np.float32]:
        if self._dither:
            samples = samples + self._dither * stream(0, "dither").standard_normal(len(samples), np.float32)
        computer = self._online(self._options)
        for start in range(
            0, len(samples), _CHUNK
        ):  # a list is three times faster than an array, and eight times larger
            computer.accept_waveform(self.rate, samples[start : start + _CHUNK].tolist())
        computer.input_finished()
        frames = [computer.get_frame(t) for t in range(computer.num_frames_ready)]
        return np.stack(frames) if frames else np.zeros((0, computer.dim), np.float32)


def _configure(options: Any, kind: str, config: str | Path) -> list[str]:
    """Set what the file says; what it says, without comments."""
    said = []
    for number, line in enumerate(lines(config), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        where = f"{config}, line {number}"
        name, equals, value = text.partition("=")
        name = name.strip().replace("_", "-")
        if not name.startswith("--"):
            raise KernelamError(f"{where}: {text!r} is not --name=value")
        if name[2:] not in _OPTIONS[kind]:
            known = " ".join(sorted(_OPTIONS[kind]))
            raise KernelamError(f"{where}: {name} is not an option of {kind} features; these are: {known}")
        group, _, attribute = _OPTIONS[kind][name[2:]].rpartition(".")
        target = getattr(options, group) if group else options
        kept = getattr(target, attribute)
        setattr(target, attribute, _value(value.strip() if equals else "true", type(kept), f"{where}: {name}"))
        said.append(f"{name}={value.strip() if equals else 'true'}")
    return said


def _value(text: str, kind: type, where: str) -> Any:
    try:
        if kind is bool:
            return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}[text.lower()]
        value = kind(text)
        if kind is float and not np.isfinite(value):
            raise ValueError
    except (KeyError, ValueError):
        expected = {bool: "true or false", int: "an integer", float: "a number"}[kind]
        raise KernelamError(f"{where} must be {expected}, not {text!r}") from None
    if kind in (int, float) and abs(value) > _LARGEST:
        raise KernelamError(f"{where} must lie between -{_LARGEST:g} and {_LARGEST:g}, which {text} does not")
    return value


def _check(options: Any, kind: str, where: str | Path) -> None:
    """What kaldi-native-fbank would answer by ending the process, or with numbers that mean nothing."""
    frame, mel = options.frame_opts, options.mel_opts
    for name, value in (("dither", frame.dither), ("energy-floor", options.energy_floor)):
        if value < 0:
            raise KernelamError(f"{where}: --{name}={value:g} is negative")
    if frame.samp_freq <= 0:
        raise KernelamError(f"{where}: --sample-frequency must be positive")
    length, shift = (int(frame.samp_freq * ms / 1000) for ms in (frame.frame_length_ms, frame.frame_shift_ms))
    if length < 2 or shift < 1:
        raise KernelamError(f"{where}: --frame-length must cover two samples and --frame-shift one")
    if max(length, shift) > _LONGEST:
        raise KernelamError(
            f"{where}: --frame-length or --frame-shift is {max(length, shift)} samples: no more than {_LONGEST}"
        )
    if length % 2 and not frame.round_to_power_of_two:
        raise KernelamError(f"{where}: --round-to-power-of-two=false needs an even number of samples, not {length}")
    if frame.window_type not in _WINDOWS:
        raise KernelamError(f"{where}: --window-type must be one of {' '.join(_WINDOWS)}, not {frame.window_type!r}")
    nyquist = frame.samp_freq / 2
    high = mel.high_freq if mel.high_freq > 0 else nyquist + mel.high_freq
    if not 0 <= mel.low_freq < high <= nyquist:
        raise KernelamError(
            f"{where}: --low-freq={mel.low_freq:g} to --high-freq={mel.high_freq:g} is not a band below {nyquist:g} Hz"
        )
    if not 3 <= mel.num_bins <= length or _has_empty_bins(options):
        raise KernelamError(f"{where}: --num-mel-bins={mel.num_bins} is too few, or too many for this frame length")
    if kind == "mfcc" and not 1 <= options.num_ceps <= mel.num_bins:
        raise KernelamError(f"{where}: --num-ceps={options.num_ceps} must lie between 1 and --num-mel-bins")


def _has_empty_bins(options: Any) -> bool:
    """Whether a filter has no bin of the Fourier transform under it: a click, whose spectrum is flat, shows it."""
    import kaldi_native_fbank as knf

    probe = knf.FbankOptions()
    probe.mel_opts = options.mel_opts
    probe.frame_opts = options.frame_opts
    computer = knf.OnlineFbank(probe)
    click = np.zeros(4 * int(options.frame_opts.samp_freq * options.frame_opts.frame_length_ms / 1000) + 1)
    click[len(click) // 8] = 32767.0
    computer.accept_waveform(options.frame_opts.samp_freq, click.tolist())
    return bool(computer.get_frame(0).min() < _LOG_EPSILON + 1e-3)
