"""A decode directory scored against the STM file of its data, by our count and, where it is installed, by sclite's."""

import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.kaldi.datadir import DataDir, pick
from kernelam.kaldi.tables import lines
from kernelam.progress import warn
from kernelam.scoring.directory import score_directory
from kernelam.scoring.sclite import program, sclite
from kernelam.scoring.stm import Channel, Stm, Timed
from kernelam.scoring.tuning import Weights
from kernelam.scoring.wer import Transcripts, WerResult


def score_timed(folder: Path, data: Path, hyps: Mapping[Weights, Transcripts], tuned_on: Path | None) -> str:
    """Score the words, each followed by the frames where it begins and ends, of every point; lines to be shown."""
    directory = DataDir(data)
    glm = data / "glm" if directory.has("glm") else None
    stm = Stm(data / "stm", glm)
    placed = {weights: _placed(directory, texts) for weights, texts in hyps.items()}
    cut = {weights: stm.cut(words) for weights, words in placed.items()}
    scored = score_directory(folder, stm.refs, cut, stm.utt2spk, tuned_on, rule="sclite")
    ctm = folder / "scoring_sclite/words.ctm"
    shutil.rmtree(ctm.parent, ignore_errors=True)
    with replacing(ctm, "w") as stream:
        for (recording, channel), words in sorted(placed[scored.weights].items()):
            stream.writelines(f"{recording} {channel} {t.begin:.3f} {t.duration:.3f} {t.word}\n" for t in sorted(words))
    line = f"{scored.result.wer_line} {folder}/wer_{scored.weights.name}"
    return "\n".join([line, *_checked(scored.result, data / "stm", ctm, glm)])


def _placed(data: DataDir, texts: Transcripts) -> dict[Channel, list[Timed]]:
    """Words in seconds of their recordings."""
    shift = float(next(lines(data.path / "frame_shift"))) if data.has("frame_shift") else 0.01
    segments = pick(data.segments, texts, data.path / "segments")
    found: dict[Channel, list[Timed]] = defaultdict(list)
    for utt, tokens in texts.items():
        segment = segments[utt]
        channel = pick(data.reco2file_and_channel, [segment.recording], data.path / "reco2file_and_channel")
        for word, begin, end in _triples(utt, tokens):
            time = segment.start + begin * shift
            found[channel[segment.recording]].append(Timed(round(time, 3), round((end - begin) * shift, 3), word))
    return found


def _triples(utt: str, tokens: Sequence[str]) -> list[tuple[str, int, int]]:
    try:
        return [(word, int(b), int(e)) for word, b, e in zip(*(tokens[part::3] for part in range(3)), strict=True)]
    except ValueError:
        raise KernelamError(f"utterance {utt}: words without the frames where they begin and end") from None


def _checked(ours: WerResult, stm: Path, ctm: Path, glm: Path | None) -> list[str]:
    """What sclite has to say, if it is here: its reports stay beside `ctm`."""
    if not (program("sclite") and program("csrfilt.sh")):
        return []
    try:
        theirs = WerResult({"all": sclite(stm.resolve(), ctm.resolve(), glm and glm.resolve())})
    except KernelamError as error:
        warn(f"{ctm} is not scored by sclite: {error}")
        return []
    if theirs.total != ours.total:
        warn(f"sclite counts otherwise: {theirs.wer_line}")
    return [f"{theirs.wer_line} by sclite, {ctm.parent}/hyp.ctm.sys"]
