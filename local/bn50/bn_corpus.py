#!/usr/bin/env python
"""Data directories and dictionary of Broadcast News.

Shows of LDC97S44 and LDC98S71 are trained on, a tenth of their speech, in whole shows, heldout; dev and test are
folders with sound and STM files. Words are in lower case; a fragment is an unknown word, as one that the lexicon
lacks.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from bn_files import files, found_in, refuse, sounds_of, transcripts_of
from bn_words import UNKNOWN, read_lexicon, write_dictionary
from hub4_sgml import show_of, spoken, text_of

from kernelam.cli.mistakes import run
from kernelam.corpora import seconds_of, some
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frontend.audio import MAX_OVERSHOOT
from kernelam.kaldi.datawrite import Spoken, write_data_dir
from kernelam.kaldi.tables import lines
from kernelam.progress import say, warn
from kernelam.scoring.glm import Rules
from kernelam.scoring.networks import EMPTY, network
from kernelam.scoring.stm import Reference, read_stm

HELDOUT = 0.1  # of the speech
GAP = "inter_segment_gap"  # a speaker of STM files, who says nothing
PATH = click.Path(path_type=Path)


@dataclass(frozen=True)
class Part:
    """A set to be written: its segments, the sound of each recording, and its STM file."""

    segments: list[Reference]
    sounds: Mapping[str, Path]
    stm: str


def chosen(shows: Path | None, sounds: Mapping[str, Path], texts: Mapping[str, list[Reference]]) -> list[str]:
    """The shows to train on; those that lack sound or transcript are listed and counted."""
    wanted = sorted(texts)
    if shows:
        wanted = list(dict.fromkeys(show_of(line.strip()) for line in lines(shows) if line.strip()))
    for kind, there in (("sound", sounds), ("transcript", texts)):
        if missing := [show for show in wanted if show not in there]:
            warn(f"{len(missing)} of {len(wanted)} shows are left out, for want of their {kind}: {some(missing)}")
    if left := sorted(sounds.keys() - texts.keys()):
        warn(f"{len(left)} shows have sound and no transcript: {some(left)}")
    result = [show for show in wanted if show in sounds and texts.get(show)]
    if len(result) < 2:
        raise KernelamError(f"{len(result)} shows have sound and transcript; train and heldout need one each")
    return result


def plain(text: str) -> str:
    """The words of STM text: of alternatives the first, all that may be missing, fragments as unknown ones."""
    graph = network(text.lower().split())
    path, place = [], graph.ends[0]
    while place:
        path.append(graph.words[place].strip("()"))
        place = graph.before[place][0]
    return " ".join(UNKNOWN if re.search(r"^-.|.-$", word) else word for word in reversed(path) if word != EMPTY)


def held_out(segments: Mapping[str, list[Reference]]) -> set[str]:
    """Shows in the order of a digest of their names, until they have a tenth of the speech; one is left to train on."""
    hours = {show: sum(one.end - one.begin for one in some) for show, some in segments.items()}
    order = sorted(hours, key=lambda show: hashlib.sha256(show.encode()).digest())
    apart: set[str] = set()
    while sum(hours[show] for show in apart) < HELDOUT * sum(hours.values()) and len(apart) < len(order) - 1:
        apart.add(order[len(apart)])
    return apart


def training(segments: Mapping[str, list[Reference]], sounds: Mapping[str, Path]) -> dict[str, Part]:
    apart, parts = held_out(segments), {}
    for name, members in (("train", segments.keys() - apart), ("heldout", apart)):
        own = [one for show in sorted(members) for one in segments[show]]
        stm = "".join(f"{one.line}\n" for one in own)
        parts[name] = Part(own, {show: sounds[show] for show in members}, stm)
    return parts


def mended(text: str) -> str:
    """STM text with each of several words in ( ) or (( )) in brackets of its own, and without marks of asides."""
    text = re.sub(r"<[BE]_ASIDE>\s*", "", text, flags=re.IGNORECASE)
    text = re.sub(r"\(+([^(){}/]*)\)+", lambda found: " ".join(f"({word})" for word in found[1].split()), text)
    return text.replace("((", "(")


def rows_of(path: Path, sounds: Container[str]) -> Iterator[str]:
    """Lines of an STM file as they are scored: comments, and what is said in recordings that are there."""
    for row in lines(path):
        recording, _, speaker = [*row.split(), "", "", ""][:3]
        if row.startswith(";;"):
            yield row
        elif recording in sounds and speaker != GAP:
            end = len("".join(re.findall(r"\S+\s*", row)[:5]))
            yield row[:end] + mended(row[end:])


def evaluation(folders: Sequence[Path]) -> Part:
    """The STM files in some folders, as far as there is sound for them."""
    found = {path: read_stm(path) for path in files(folders, (".stm",))}
    if not found:
        raise refuse(folders, "STM file", f"{folders[0].name}.stm")
    where: dict[str, Path] = {}
    for path, own in found.items():
        for show in sorted({one.recording for one in own}):
            if show in where:
                raise KernelamError(f"{where[show]} and {path} both have the show {show}; one of them is needed")
            where[show] = path
    there = sounds_of(folders)
    sounds = {show: there[show_of(f"{show}.stm")] for show in sorted(where) if show_of(f"{show}.stm") in there}
    names = some(map(str, found))
    if missing := sorted(where.keys() - sounds.keys()):
        warn(f"{len(missing)} of {len(where)} shows of {names} are left out, for want of their sound: {some(missing)}")
    if not sounds:
        raise KernelamError(f"{' '.join(map(str, folders))}: there is the sound of none of the shows of {names}")
    rows = [row for path in found for row in rows_of(path, sounds)]
    every = [one for own in found.values() for one in own if one.recording in sounds and one.speaker != GAP]
    segments = [replace(one, text=mended(one.text)) for one in every]
    return Part(segments, sounds, "".join(f"{row}\n" for row in rows))


def utterances(part: Part) -> list[Spoken]:
    """Segments with words, within their recordings; what lies outside is named."""
    made, outside = {}, []
    lengths = {show: seconds_of(path) for show, path in part.sounds.items()}
    for one in part.segments:
        text = "" if one.ignored else plain(one.text)
        seconds, sound = lengths[one.recording]
        if not text:
            continue
        if one.begin >= min(one.end, seconds) or one.end > seconds + MAX_OVERSHOOT:
            outside.append(f"{one.name} ({one.begin:g}–{one.end:g} s of {seconds:g})")
            continue
        times = (one.begin, min(one.end, seconds))
        channel = one.channel if one.channel in ("A", "B") else "1"
        made[one.name] = Spoken(one.name, one.who, text, sound, "", one.recording, times, channel)
    if outside:
        warn(f"{len(outside)} segments are left out, which are not within their recordings: {some(outside)}")
    return list(made.values())


def write_set(folder: Path, part: Part, spoken: list[Spoken], glm: str) -> None:
    write_data_dir(folder, spoken)
    used = {one.recording for one in spoken}
    for name, text in (("stm", part.stm), ("glm", glm)):
        if text:
            with replacing(folder / name, "w") as stream:
                stream.write(text)
    hours = sum(one.seconds[1] - one.seconds[0] for one in spoken if one.seconds) / 3600
    people = len({one.speaker for one in spoken})
    say(f"{folder}: {len(spoken)} segments of {people} speakers in {len(used)} shows, {hours:.2f} hours")


def paths(text: str) -> list[Path]:
    return [Path(name) for name in text.split()]


@click.command()
@click.option("--transcripts", default="", help="Folders; the corpus by default.")
@click.option("--shows", type=PATH, help="The shows to train on, one a line; default: all.")
@click.option("--dev", default="", help="Folders with sound and STM files.")
@click.option("--test", default="", help="Others.")
@click.option("--lexicon", type=PATH, help="Pronunciations in CMUdict's layout.")
@click.option("--glm", type=PATH, help="Mapping rules of the evaluation.")
@click.option("--text", default="", help="Files of more text.")
@click.argument("corpus")
@click.argument("data", type=PATH)
def main(
    transcripts: str,
    shows: Path | None,
    dev: str,
    test: str,
    lexicon: Path | None,
    glm: Path | None,
    text: str,
    corpus: str,
    data: Path,
) -> None:
    """Write DATA/{train,heldout,dev,test}, DATA/local/dict and DATA/local/text of the Broadcast News in CORPUS."""
    folders = paths(corpus)
    sounds_of(folders)
    places = {
        "dev": paths(dev) or [found_in(folders, r"dev-?04.*", "--dev, folders with sound and STM files of Dev04f,")],
        "test": paths(test) or [found_in(folders, r"rt-?03.*", "--test, folders with sound and STM files of RT-03,")],
    }
    lexicon = lexicon or found_in(folders, r"(lexicon|cmudict).*", "--lexicon, pronunciations in CMUdict's layout,")
    if glm is None and any(path for folder in folders for path in folder.glob("*.glm")):
        glm = found_in(folders, r".*\.glm", "--glm, the mapping rules that are meant,")
    apart = [folder for own in places.values() for folder in own]
    sounds = sounds_of(folders, apart)
    texts = transcripts_of(paths(transcripts) or folders, apart, sounds)
    parts = training({show: texts[show] for show in chosen(shows, sounds, texts)}, sounds)
    parts |= {name: evaluation(own) for name, own in places.items()}
    said = {name: utterances(part) for name, part in parts.items()}
    texts_there = [folder / "text.txt" for folder in folders if (folder / "text.txt").is_file()]
    more = [spoken(row) for path in paths(text) or texts_there for row in text_of(path).splitlines()]
    rows = [*(one.words for name in ("train", "heldout") for one in said[name]), *more]
    counts = Counter(word for row in rows for word in row.split() if word != UNKNOWN)
    pronunciations, rules = read_lexicon(lexicon), ""
    if glm:
        for side in ("ref", "hyp"):
            Rules(glm, side)  # what is wrong with them is told now, and not days later by the scoring
        rules = text_of(glm)
    for name, part in parts.items():
        write_set(data / name, part, said[name], rules)
    write_dictionary(data / "local/dict", counts, pronunciations)
    with replacing(data / "local/text", "w") as stream:
        stream.writelines(f"{row}\n" for row in more if row)


if __name__ == "__main__":
    run(main)
