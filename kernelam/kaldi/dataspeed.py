"""Data directories of the same speech, faster or slower."""

import shlex
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.kaldi.datadir import DataDir, check_speaker_order, publishing, write_utt2spk
from kernelam.kaldi.pipes import is_pipe
from kernelam.kaldi.tables import write_table
from kernelam.progress import say

KEPT = ("text", "spk2gender", "reco2file_and_channel")  # under the new ids, as they are


def perturb_speed(source: str | Path, dest: str | Path, factor: float) -> None:
    """`source` played `factor` times as fast, which also raises its pitch; all ids begin with sp<factor>-.

    Its wav.scp has commands that change the sound when it is read; features are to be made anew.
    """
    data = DataDir(source)
    if not data.has("wav.scp"):
        raise KernelamError(f"no such file {data.path}/wav.scp: the speed of sound is changed, not that of features")
    prefix = f"sp{factor:g}-"
    utt2spk = {prefix + utt: prefix + spk for utt, spk in data.utt2spk.items()}
    check_speaker_order(Path(dest) / "utt2spk", utt2spk)
    with publishing(dest, data) as folder:
        write_utt2spk(folder, utt2spk)
        for name in filter(data.has, KEPT):
            write_table(folder / name, {prefix + key: value for key, value in data.lines_of(name).items()})
        places = data.lines_of("wav.scp")
        write_table(folder / "wav.scp", {prefix + key: _played(place, factor) for key, place in places.items()})
        if data.has("segments"):
            write_table(
                folder / "segments",
                {
                    prefix + utt: f"{prefix}{one.recording} {one.start / factor:.4f} {one.end / factor:.4f}"
                    for utt, one in data.segments.items()
                },
            )
        if data.has("utt2dur"):
            times = {prefix + utt: float(seconds) / factor for utt, seconds in data.lines_of("utt2dur").items()}
            write_table(folder / "utt2dur", {utt: f"{seconds:.7g}" for utt, seconds in times.items()})
    say(f"{dest}: {len(utt2spk)} utterances at {factor:g} times the speed")


def _played(place: str, factor: float) -> str:
    change = f"kernelam features speed {factor:g}"
    return f"{place} {change} - |" if is_pipe(place) else f"{change} {shlex.quote(place)} |"
