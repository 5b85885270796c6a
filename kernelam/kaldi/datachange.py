"""Data directories repaired, renamed, joined: fix, copy, combine."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.files import beside
from kernelam.kaldi.datadir import CONSTANTS, DataDir, check_speaker_order, publishing, write_utt2spk
from kernelam.kaldi.datatables import RECO, SPK, TABLES, UTT, parsed
from kernelam.kaldi.tables import entry, lines, write_table
from kernelam.progress import say


def _merged(path: Path) -> dict[str, str]:
    """The table in C order; blank and repeated lines are dropped, contradicting and malformed ones are errors."""
    table: dict[str, str] = {}
    for number, line in enumerate(lines(path), 1):
        key, value = entry(line)
        if key and table.setdefault(key, value) != value:
            raise KernelamError(f"{path}, line {number}: {key} occurs twice with different values; delete one of them")
    parsed(path, table)
    return {key: table[key] for key in sorted(table)}


def fix(path: str | Path) -> tuple[int, int]:
    """Keep the utterances that every table knows, sort, rebuild spk2utt; how many were kept, out of how many.

    What is changed is first copied to `.backup/`. An empty transcript is a transcript, as in Kaldi.
    """
    data = DataDir(path)
    names = [name for name in data.names if name != "spk2utt"]
    tables = {name: _merged(data.path / name) for name in names}
    utt2spk = tables["utt2spk"]
    ids_of = {UTT: {utt: utt for utt in utt2spk}, SPK: utt2spk, RECO: {utt: utt for utt in utt2spk}}
    if "segments" in tables:
        if "wav.scp" not in tables:
            raise KernelamError(f"no such file {data.path}/wav.scp ({data.path}/segments needs it)")
        segments = parsed(data.path / "segments", tables["segments"])
        ids_of[RECO] = {utt: segment.recording for utt, segment in segments.items()}
    kept = list(utt2spk)
    for name, table in tables.items():
        before = kept
        kept = [utt for utt in kept if ids_of[TABLES[name].kind][utt] in table]
        _say_lost(data.path / name, before, kept)
    if not kept:
        raise KernelamError(f"no utterance of {data.path} is in all of {', '.join(names)}; nothing was changed")
    for name, table in tables.items():
        own = {ids_of[TABLES[name].kind][utt] for utt in kept}
        tables[name] = {key: value for key, value in table.items() if key in own}
    check_speaker_order(data.path / "utt2spk", tables["utt2spk"])
    _replace_changed(data.path, tables)
    return len(kept), len(utt2spk)


def _say_lost(path: Path, before: Sequence[str], after: Sequence[str]) -> None:
    if len(after) < len(before):
        first = min(set(before).difference(after))
        say(f"{path} lacks {len(before) - len(after)} utterances, the first is {first}")


def _replace_changed(path: Path, tables: Mapping[str, Mapping[str, str]]) -> None:
    path = path.resolve()
    with beside(path) as partial:
        for name, table in tables.items():
            write_table(partial / name, table)
        write_utt2spk(partial, tables["utt2spk"])
        changed = [name for name in (*tables, "spk2utt") if not _same(path / name, partial / name)]
        for name in changed:
            if (path / name).exists():
                (path / ".backup").mkdir(exist_ok=True)
                shutil.copy2(path / name, path / ".backup" / name)
        for name in changed:
            (partial / name).replace(path / name)


def _same(a: Path, b: Path) -> bool:
    return a.exists() and a.read_bytes() == b.read_bytes()


def copy(
    source: str | Path,
    dest: str | Path,
    *,
    utt_prefix: str = "",
    utt_suffix: str = "",
    spk_prefix: str = "",
    spk_suffix: str = "",
) -> None:
    """Copy `source` to `dest` with other utterance and speaker ids. Recordings keep theirs when there are segments."""
    data = DataDir(source)
    rename: dict[str, Callable[[str], str]] = {
        UTT: lambda utt: f"{utt_prefix}{utt}{utt_suffix}",
        SPK: lambda spk: f"{spk_prefix}{spk}{spk_suffix}",
    }
    rename[RECO] = str if data.has("segments") else rename[UTT]
    utt2spk = {rename[UTT](utt): rename[SPK](spk) for utt, spk in data.utt2spk.items()}
    renamed = utt2spk != data.utt2spk
    if renamed:
        check_speaker_order(Path(dest) / "utt2spk", dict(sorted(utt2spk.items())))
    with publishing(dest, data) as folder:
        write_utt2spk(folder, utt2spk)
        for name in data.names:
            if name not in ("utt2spk", "spk2utt"):
                new = rename[TABLES[name].kind]
                write_table(folder / name, {new(key): value for key, value in data.lines_of(name).items()})
        for name in filter(data.has, (*CONSTANTS, *(() if renamed else ("stm",)))):
            shutil.copyfile(data.path / name, folder / name)
    if renamed and data.has("stm"):
        say(f"{dest}: stm is left out, it has the old ids")


def combine(dest: str | Path, sources: Sequence[str | Path]) -> None:
    """Join `sources`: the tables that all of them have. An utterance may be in one only; other ids must not contradict.

    Where only some sources have segments, the utterances of the others become whole-recording segments.
    """
    parts = [DataDir(source) for source in sources]
    names = {name for part in parts for name in part.names}
    shared = {name for name in names if all(part.has(name) for part in parts)} - {"spk2utt"}
    if "segments" in names and "wav.scp" in shared:
        shared.add("segments")
    if "wav.scp" not in shared:
        shared -= {name for name in TABLES if TABLES[name].kind == RECO} | {"segments"}
    constants = [name for name in CONSTANTS if all(_same(part.path / name, parts[0].path / name) for part in parts)]
    if "cmvn.scp" in shared and _contradict(parts, "cmvn.scp"):
        shared.remove("cmvn.scp")  # statistics of a speaker's utterances of one source are not those of the whole
    utt2spk = _joined(parts, "utt2spk")
    check_speaker_order(Path(dest) / "utt2spk", dict(sorted(utt2spk.items())))
    with publishing(dest, *parts) as folder:
        write_utt2spk(folder, utt2spk)
        for name in sorted(shared - {"utt2spk"}):
            write_table(folder / name, _joined(parts, name))
        for name in constants:
            shutil.copyfile(parts[0].path / name, folder / name)
    left_out = names | {name for part in parts for name in (*CONSTANTS, "stm") if part.has(name)}
    left_out -= {*shared, *constants, "spk2utt"}
    if left_out:
        say(f"{dest}: left out {', '.join(sorted(left_out))}, which not all of the sources have, or not alike")
    say(f"{dest}: {len(utt2spk)} utterances of {len(parts)} directories")


def _joined(parts: Sequence[DataDir], name: str) -> dict[str, str]:
    joined: dict[str, str] = {}
    owner: dict[str, DataDir] = {}
    for part in parts:
        table = part.lines_of(name) if part.has(name) else _whole_recordings(part)
        for key, value in table.items():
            if key in joined and (TABLES[name].kind == UTT or joined[key] != value):
                raise KernelamError(
                    f"{TABLES[name].kind} {key} is in both {owner[key].path / name} and {part.path / name};"
                    " give one of them other ids (utils/copy_data_dir.sh --utt-prefix p- --spk-prefix p-)"
                )
            joined[key] = value
            owner[key] = part
    return joined


def _contradict(parts: Sequence[DataDir], name: str) -> bool:
    seen: dict[str, str] = {}
    return any(seen.setdefault(key, value) != value for part in parts for key, value in part.lines_of(name).items())


def _whole_recordings(data: DataDir) -> dict[str, str]:
    if not data.has("utt2dur"):
        raise KernelamError(
            f"{data.path} has neither segments, as the other directories have, nor utt2dur to make them"
        )
    return {utt: f"{utt} 0 {duration}" for utt, duration in data.utt2dur.items()}
