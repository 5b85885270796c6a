"""Parts of data directories: split for parallel jobs, and subsets."""

import random
import shutil
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.files import beside
from kernelam.kaldi.datadir import CONSTANTS, DataDir, pick, publishing, write_utt2spk
from kernelam.kaldi.datatables import RECO, TABLES, UTT, fixing
from kernelam.kaldi.tables import entry, lines, write_table
from kernelam.progress import say


def _write_selection(data: DataDir, parts: Sequence[tuple[Path, Sequence[str]]]) -> None:
    """Write into each folder all that `data` knows about its utterances."""
    for folder, utts in parts:
        write_utt2spk(folder, {utt: data.utt2spk[utt] for utt in utts})
        for name in filter(data.has, CONSTANTS):
            shutil.copyfile(data.path / name, folder / name)
    for name in data.names:
        if name in ("utt2spk", "spk2utt"):
            continue
        table = data.table(name)
        if TABLES[name].kind == UTT and (unknown := table.keys() - data.utt2spk.keys()):
            raise KernelamError(
                f"{data.path / name} has {min(unknown)}, which is not in {data.path}/utt2spk;"
                f" {fixing(data.path)} keeps what all files have"
            )
        for folder, utts in parts:
            write_table(folder / name, pick(table, data.ids(TABLES[name].kind, utts), data.path / name))


def _copy_stm(data: DataDir, folder: Path, utts: Sequence[str]) -> None:
    """The comments and the recordings of `utts` of the reference for sclite."""
    recordings = set(data.ids(RECO, utts))
    with (folder / "stm").open("w", encoding="utf-8") as stream:
        for line in lines(data.path / "stm"):
            if line.startswith(";;") or entry(line)[0] in recordings:
                stream.write(line + "\n")


def split(path: str | Path, nj: int, *, per_utt: bool = False, dest: str | Path | None = None) -> Path:
    """`split<nj>/1` … by speaker, or `split<nj>utt/1` … by utterance; made anew only if the source has changed.

    They are made in `dest`, or in the data directory itself, as Kaldi makes them.
    """
    data = DataDir(path)
    folder = Path(dest or data.path) / (f"split{nj}utt" if per_utt else f"split{nj}")
    stamp = f"{data.path.resolve()}\n" + "".join(
        f"{name} {(data.path / name).stat().st_size} {(data.path / name).stat().st_mtime_ns}\n"
        for name in (*data.names, *filter(data.has, CONSTANTS))
    )
    if not _is_current(folder, nj, stamp):
        parts = _parts_by_utterance(data, nj) if per_utt else _parts_by_speaker(data, nj)
        with beside(folder) as partial:
            _write_selection(data, [(partial / str(job), utts) for job, utts in enumerate(parts, 1)])
            (partial / ".sources").write_text(stamp)
            _swap(partial, folder, nj, stamp)
    return folder


def _is_current(folder: Path, nj: int, stamp: str) -> bool:
    try:
        return (folder / ".sources").read_text() == stamp and all(
            (folder / str(job) / "utt2spk").is_file() for job in range(1, nj + 1)
        )
    except FileNotFoundError:
        return False


def _swap(partial: Path, folder: Path, nj: int, stamp: str) -> None:
    """Put `partial` in the place of `folder`, unless another process has just made the same."""
    if _is_current(folder, nj, stamp):
        return
    with beside(folder.with_name(f"{folder.name}.old")) as old:
        if folder.exists():
            folder.rename(old / "split")
        try:
            partial.rename(folder)
        except OSError:
            if not _is_current(folder, nj, stamp):
                raise


def _parts_by_utterance(data: DataDir, nj: int) -> list[list[str]]:
    count = len(data.utts)
    if not 1 <= nj <= count:
        raise KernelamError(f"cannot split the {count} utterances of {data.path} in {nj}; use a smaller nj")
    return [data.utts[count * job // nj : count * (job + 1) // nj] for job in range(nj)]


def _parts_by_speaker(data: DataDir, nj: int) -> list[list[str]]:
    """Consecutive speakers; each border is the one nearest to equal numbers of utterances."""
    count = len(data.spks)
    if not 1 <= nj <= count:
        raise KernelamError(
            f"cannot split the {count} speakers of {data.path} in {nj}; use --per-utt or an nj of at most {count}"
        )
    before = [0, *accumulate(len(utts) for utts in data.spk2utt.values())]
    borders = [0]
    for job in range(1, nj):
        target = before[-1] * job / nj
        border = bisect_left(before, target)
        if target - before[border - 1] <= before[border] - target:
            border -= 1
        borders.append(min(max(border, borders[-1] + 1), count - nj + job))
    borders.append(count)
    return [
        sorted(utt for spk in data.spks[first:last] for utt in data.spk2utt[spk]) for first, last in pairwise(borders)
    ]


def subset(
    source: str | Path,
    dest: str | Path,
    num: int = 0,
    how: str = "spread",
    keep: str | Path | None = None,
) -> None:
    """Write a part of `source` to `dest`.

    `how` says which `num` utterances: "spread" evenly over all, "first", "last", "shortest", "speakers" (whole
    speakers, drawn with a fixed seed, until there are at least `num`), "per-spk" (up to `num` of each speaker, spread
    evenly); or, whatever the `num`, those that the first fields of the file `keep` name: "utt-list", "spk-list".
    """
    data = DataDir(source)
    if keep is not None:
        utts = _listed(data, Path(keep), by_speaker=how == "spk-list")
    else:
        if num < 1 or (num > len(data.utts) and how != "per-spk"):
            raise KernelamError(f"cannot take {num} utterances of the {len(data.utts)} of {data.path}")
        utts = _chosen(data, num, how)
    with publishing(dest, data) as folder:
        _write_selection(data, [(folder, utts)])
        if data.has("stm"):
            _copy_stm(data, folder, utts)
    say(f"{dest}: {len(utts)} of the {len(data.utts)} utterances of {data.path}")


def _chosen(data: DataDir, num: int, how: str) -> list[str]:
    if how == "first":
        return data.utts[:num]
    if how == "last":
        return data.utts[-num:]
    if how == "shortest":
        return sorted(sorted(data.utts, key=_lengths(data).__getitem__)[:num])
    if how == "per-spk":
        return sorted(utt for utts in data.spk2utt.values() for utt in _spread(utts, min(num, len(utts))))
    if how == "speakers":
        spks = random.Random(0).sample(data.spks, len(data.spks))
        utts: list[str] = []
        while len(utts) < num:
            utts += data.spk2utt[spks.pop()]
        return sorted(utts)
    return _spread(data.utts, num)


def _spread(items: Sequence[str], num: int) -> list[str]:
    return [items[len(items) * index // num] for index in range(num)]


def _lengths(data: DataDir) -> dict[str, float]:
    """In frames or in seconds: only their order matters."""
    lengths: Mapping[str, float]
    name = next(filter(data.has, ("utt2num_frames", "utt2dur", "segments")), None)
    if name == "utt2num_frames":
        lengths = data.utt2num_frames
    elif name == "utt2dur":
        lengths = data.utt2dur
    elif name == "segments":
        lengths = {utt: segment.end - segment.start for utt, segment in data.segments.items()}
    else:
        raise KernelamError(f"{data.path} has no utt2num_frames, utt2dur or segments: which are the shortest?")
    return pick(lengths, data.utts, data.path / name)


def _listed(data: DataDir, path: Path, *, by_speaker: bool) -> list[str]:
    wanted = {entry(line)[0] for line in lines(path)} - {""}
    known = data.spk2utt if by_speaker else data.utt2spk
    unknown = wanted.difference(known)
    if unknown == wanted:
        raise KernelamError(f"nothing that {path} lists is in {data.path}")
    if unknown:
        say(f"{path}: {len(unknown)} of {len(wanted)} ids are not in {data.path}, the first is {min(unknown)}")
    return [utt for utt, spk in data.utt2spk.items() if (spk if by_speaker else utt) in wanted]
