"""Data directories: Kaldi's tables about a set of utterances, read when asked for, typed, checked together."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from kernelam.errors import KernelamError
from kernelam.files import beside
from kernelam.kaldi.datatables import RECO, SPK, TABLES, UTT, Segment, fixing, parsed
from kernelam.kaldi.tables import read_table, write_table

T = TypeVar("T")
CONSTANTS = ("frame_shift", "feature_opts", "glm")  # files about the whole set, copied as they are


def check_speaker_order(path: Path, utt2spk: Mapping[str, str]) -> None:
    """Sorted by utterance, `utt2spk` must be sorted by speaker too: Kaldi reads both in one pass."""
    for (utt, spk), (next_utt, next_spk) in pairwise(utt2spk.items()):
        if spk > next_spk:
            raise KernelamError(
                f"{path} is not sorted by speaker: {utt} of {spk} comes before {next_utt} of {next_spk};"
                " make each speaker's id, and a -, the beginning of the ids of its utterances"
            )


def speakers_utterances(utt2spk: Mapping[str, str]) -> dict[str, list[str]]:
    """Speaker → utterances, both in C order."""
    spk2utt: dict[str, list[str]] = {spk: [] for spk in sorted(set(utt2spk.values()))}
    for utt in sorted(utt2spk):
        spk2utt[utt2spk[utt]].append(utt)
    return spk2utt


class DataDir:
    """A data directory. `utt2spk` is primary; a table that is asked for and is not there is an error."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise KernelamError(f"no such data directory {path}")
        if not self.has("utt2spk"):
            raise KernelamError(f"{path} is not a data directory: it has no utt2spk")

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    @property
    def names(self) -> list[str]:
        """The tables that are there."""
        return [name for name in TABLES if self.has(name)]

    def table(self, name: str) -> dict[str, str]:
        """The lines of a table as they stand, sorted; read anew at each call."""
        table = read_table(self.path / name, empty_values=name == "text")
        if not table:
            raise KernelamError(f"{self.path / name} is empty")
        return table

    def _typed(self, name: str) -> dict[str, Any]:
        return parsed(self.path / name, self.table(name))

    @cached_property
    def utt2spk(self) -> dict[str, str]:
        return self._typed("utt2spk")

    @cached_property
    def spk2utt(self) -> dict[str, list[str]]:
        """From utt2spk, whatever the file of this name says."""
        return speakers_utterances(self.utt2spk)

    @cached_property
    def text(self) -> dict[str, list[str]]:
        return self._typed("text")

    @cached_property
    def wav_scp(self) -> dict[str, str]:
        return self._typed("wav.scp")

    @cached_property
    def segments(self) -> dict[str, Segment]:
        return self._typed("segments")

    @cached_property
    def feats_scp(self) -> dict[str, str]:
        return self._typed("feats.scp")

    @cached_property
    def cmvn_scp(self) -> dict[str, str]:
        return self._typed("cmvn.scp")

    @cached_property
    def utt2dur(self) -> dict[str, float]:
        return self._typed("utt2dur")

    @cached_property
    def utt2num_frames(self) -> dict[str, int]:
        return self._typed("utt2num_frames")

    @cached_property
    def spk2gender(self) -> dict[str, str]:
        return self._typed("spk2gender")

    @cached_property
    def reco2file_and_channel(self) -> dict[str, tuple[str, str]]:
        return self._typed("reco2file_and_channel")

    @cached_property
    def utts(self) -> list[str]:
        return list(self.utt2spk)

    @cached_property
    def spks(self) -> list[str]:
        return list(self.spk2utt)

    def ids(self, kind: str, utts: Iterable[str] | None = None) -> list[str]:
        """The utterances, speakers or recordings, in C order, of `utts` or of all utterances."""
        utts = self.utts if utts is None else utts
        if kind == SPK:
            return sorted({self.utt2spk[utt] for utt in utts})
        if kind == RECO and self.has("segments"):
            return sorted({segment.recording for segment in pick(self.segments, utts, self.path / "segments").values()})
        return sorted(utts)

    def lines_of(self, name: str, utts: Iterable[str] | None = None) -> dict[str, str]:
        """The lines of a table that `utts` need, or all utterances; one that is not there is an error."""
        return pick(self.table(name), self.ids(TABLES[name].kind, utts), self.path / name)

    def validate(self, *, feats: bool = True, text: bool = True, wav: bool = True, spk_sort: bool = True) -> None:
        """Raise KernelamError at the first thing that is wrong.

        A False allows feats.scp, text or wav.scp to be missing (not to be wrong), or utt2spk not to be sorted by
        speaker. An empty transcript is allowed, as in Kaldi.
        """
        self._check_presence(feats=feats, text=text, wav=wav)
        if spk_sort:
            check_speaker_order(self.path / "utt2spk", self.utt2spk)
        for name in self.names:
            _check_line_ends(self.path / name)
            table = self.table(name)
            values = parsed(self.path / name, table)
            self._check_ids(name, table)
            if name == "spk2utt":
                self._check_spk2utt(values)

    def _check_presence(self, *, feats: bool, text: bool, wav: bool) -> None:
        hints = {"spk2utt": f"{fixing(self.path)} makes it"}
        hints |= {"feats.scp": "steps/make_mfcc.sh makes it, --no-feats if this is by design"} if feats else {}
        hints |= {"text": "--no-text if this is by design"} if text else {}
        hints |= {"wav.scp": "--no-wav if this is by design"} if wav else {}
        if self.has("segments"):
            hints["wav.scp"] = f"{self.path}/segments needs it"
        for name, hint in hints.items():
            if not self.has(name):
                raise KernelamError(f"no such file {self.path / name} ({hint})")

    def _check_ids(self, name: str, table: Mapping[str, str]) -> None:
        kind = TABLES[name].kind if self.has("segments") or TABLES[name].kind != RECO else UTT
        expected = self.ids(kind)
        if list(table) == expected:
            return
        differing = set(expected) ^ set(table)
        first = min(differing)
        this, other = self.path / name, self.path / ("segments" if kind == RECO else "utt2spk")
        if first in table:
            this, other = other, this
        raise KernelamError(
            f"{this} lacks the {kind} {first}, which is in {other} ({len(differing)} such differences between the two);"
            f" {fixing(self.path)} keeps what all files have"
        )

    def _check_spk2utt(self, spk2utt: Mapping[str, list[str]]) -> None:
        for spk, utts in self.spk2utt.items():
            if spk2utt[spk] != utts:
                utt = min(set(utts) ^ set(spk2utt[spk]), default="the order of the utterances")
                raise KernelamError(
                    f"{self.path}/spk2utt and {self.path}/utt2spk disagree about speaker {spk}: {utt};"
                    f" {fixing(self.path)} rebuilds spk2utt"
                )


def pick(table: Mapping[str, T], keys: Iterable[str], path: Path) -> dict[str, T]:
    """The lines of `keys`, or a sentence that says that the file `path` lacks one."""
    try:
        return {key: table[key] for key in keys}
    except KeyError as error:
        raise KernelamError(f"{path} lacks {error.args[0]}; {fixing(path.parent)} keeps what all files have") from None


def _check_line_ends(path: Path) -> None:
    """Kaldi's programs read neither Windows line ends nor a last line without an end."""
    content = path.read_bytes()
    if b"\r\n" in content:
        raise KernelamError(f"{path} has Windows line ends; {fixing(path.parent)} converts them")
    if content and not content.endswith(b"\n"):
        raise KernelamError(f"{path} does not end in a newline: is it whole? If so, {fixing(path.parent)} adds it")


@contextmanager
def publishing(path: str | Path, *sources: DataDir) -> Iterator[Path]:
    """A temporary folder whose files become those of the data directory `path`, which keeps no other table."""
    path = Path(path).resolve()
    for source in sources:
        if source.path.resolve() == path:
            raise KernelamError(f"{source.path} cannot be source and destination at once; give another destination")
    with beside(path) as partial:
        yield partial
        if not path.exists():
            partial.rename(path)
            return
        for name in (*TABLES, *CONSTANTS, "stm"):
            if (partial / name).exists():
                (partial / name).replace(path / name)
            else:
                (path / name).unlink(missing_ok=True)


def write_utt2spk(folder: Path, utt2spk: Mapping[str, str]) -> None:
    write_table(folder / "utt2spk", utt2spk)
    write_table(folder / "spk2utt", {spk: " ".join(utts) for spk, utts in speakers_utterances(utt2spk).items()})
