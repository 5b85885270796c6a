"""Features of a data directory: each job makes a part, and the parts merge to the same bytes however many they were.

A part is a folder with feats.ark, feats.scp, utt2dur, frame_shift and feature_opts, which has kind and options.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frontend.audio import utterances
from kernelam.frontend.features import Extractor
from kernelam.kaldi.ark import ArkWriter, MatrixScp
from kernelam.kaldi.datadir import DataDir
from kernelam.kaldi.tables import lines, read_table
from kernelam.progress import progress


def make_part(
    data: str | Path, part: str | Path, extract: Extractor, *, compress: bool, resample: bool = False
) -> None:
    """The features of every utterance of `data`, into the folder `part`."""
    part = Path(part)
    durations: dict[str, str] = {}
    with ArkWriter(part / "feats.ark", part / "feats.scp", compress=compress) as writer:
        sounds = utterances(data, rate=extract.rate, resample=resample)
        for utt, samples, rate in progress(sounds, "features", total=len(DataDir(data).utts)):
            feats = extract(samples)
            if len(feats) == 0:
                raise KernelamError(
                    f"{data}, {utt}: {len(samples)} samples ({len(samples) / rate:g} s) are too few for one frame;"
                    " delete its line of the whole data directory's utt2spk and run utils/fix_data_dir.sh on that"
                )
            writer.write(utt, feats)
            durations[utt] = f"{len(samples) / rate:.7g}"
        writer.flush()
        constants = {"frame_shift": {f"{extract.frame_shift:g}": ""}, "feature_opts": {extract.description: ""}}
        _write_tables(part, {"utt2dur": durations, **constants})


def merge_parts(data: str | Path, ark_path: str | Path, parts: Sequence[str | Path], *, utt2num_frames: bool) -> None:
    """The parts as one archive; in `data` utt2num_frames, utt2dur, frame_shift, feature_opts and, last, feats.scp."""
    directory = DataDir(data)
    found: dict[str, MatrixScp] = {}
    durations: dict[str, str] = {}
    constants: dict[str, set[str]] = {"frame_shift": set(), "feature_opts": set()}
    for part in map(Path, parts):
        scp = MatrixScp(part / "feats.scp")
        found.update(dict.fromkeys(scp, scp))
        durations.update(read_table(part / "utt2dur"))
        for name, values in constants.items():
            values.update(lines(part / name))
    for name, values in constants.items():
        if len(values) != 1:
            raise KernelamError(f"the parts of {data} differ in {name}: {', '.join(sorted(values))}")
    dims = {scp.dim for scp in found.values()}
    if len(dims) != 1:
        raise KernelamError(f"the parts of {data} have different dimensions: {' '.join(map(str, sorted(dims)))}")
    utts = directory.utts
    for utt in utts:
        if utt not in found or utt not in durations:
            raise KernelamError(f"{data}: no part has features of utterance {utt}; make them again")
    with ArkWriter(ark_path, directory.path / "feats.scp") as writer:
        for utt in utts:
            writer.write_record(utt, found[utt].record(utt))
        tables = {"utt2dur": {utt: durations[utt] for utt in utts}}
        tables |= {name: dict.fromkeys(values, "") for name, values in constants.items()}
        if utt2num_frames:
            tables["utt2num_frames"] = {utt: str(found[utt].num_frames(utt)) for utt in utts}
        writer.flush()
        _write_tables(directory.path, tables)
        if not utt2num_frames:
            (directory.path / "utt2num_frames").unlink(missing_ok=True)  # an older one would be wrong


def _write_tables(folder: Path, tables: Mapping[str, Mapping[str, str]]) -> None:
    """All of them or, when the disk is full, none."""
    with ExitStack() as stack:
        for name, table in tables.items():
            stream = stack.enter_context(replacing(folder / name, "w"))
            stream.writelines(f"{key} {value}".rstrip() + "\n" for key, value in table.items())
            stream.flush()
