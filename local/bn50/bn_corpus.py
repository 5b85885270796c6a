#!/usr/bin/env python
"""Data directories and dictionary of Broadcast News.

Shows of LDC97S44 and LDC98S71 are trained on, a tenth of their speech, in whole shows, heldout; dev and test are
folders with sound and an STM file. Words are in lower case; a fragment is an unknown word, as one that the lexicon
lacks.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from bn_files import files, found_in, refuse, sounds_of, transcripts_of
from bn_words import UNKNOWN, read_lexicon, write_dictionary
from hub4_sgml import spoken, text_of

from kernelam.cli.mistakes import run
from kernelam.corpora import seconds_of, some
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frontend.audio import MAX_OVERSHOOT
from kernelam.kaldi.datawrite import Spoken, write_data_dir
from kernelam.kaldi.tables import lines
from kernelam.progress import say, warn
from kernelam.scoring.networks import EMPTY, network
from kernelam.scoring.stm import Reference, read_stm

HELDOUT = 0.1  # of the speech
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
        wanted = list(dict.fromkeys(Path(line.strip()).stem.lower() for line in lines(shows) if line.strip()))
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


def evaluation(folder: Path) -> Part:
    """The one STM file of a folder, as far as there is sound for it."""
    found = list(files([folder], (".stm",)))
    if not found:
        raise refuse([folder], "STM file", f"{folder.name}.stm")
    if len(found) > 1:
        raise KernelamError(f"{folder} has {len(found)} STM files, {some(path.name for path in found)}; one is needed")
    there, segments = sounds_of([folder]), read_stm(found[0])
    shows = sorted({one.recording for one in segments})
    sounds = {show: there[show.lower()] for show in shows if show.lower() in there}
    if missing := [show for show in shows if show not in sounds]:
        warn(
            f"{len(missing)} of {len(shows)} shows of {found[0]} are left out, for want of their sound: {some(missing)}"
        )
    if not sounds:
        raise KernelamError(f"{folder} has the sound of none of the shows of {found[0]}")
    rows = [row for row in lines(found[0]) if row.startswith(";;") or (row.split() or [""])[0] in sounds]
    return Part([one for one in segments if one.recording in sounds], sounds, "".join(f"{row}\n" for row in rows))


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
@click.option("--dev", type=PATH, help="A folder with sound and an STM file.")
@click.option("--test", type=PATH, help="Another.")
@click.option("--lexicon", type=PATH, help="Pronunciations in CMUdict's layout.")
@click.option("--glm", type=PATH, help="Mapping rules of the evaluation.")
@click.option("--text", default="", help="Files of more text.")
@click.argument("corpus")
@click.argument("data", type=PATH)
def main(
    transcripts: str,
    shows: Path | None,
    dev: Path | None,
    test: Path | None,
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
        "dev": dev or found_in(folders, r"dev-?04.*", "--dev, a folder with the sound and STM file of Dev04f,"),
        "test": test or found_in(folders, r"rt-?03.*", "--test, a folder with the sound and STM file of RT-03,"),
    }
    lexicon = lexicon or found_in(folders, r"(lexicon|cmudict).*", "--lexicon, pronunciations in CMUdict's layout,")
    if glm is None and any(path for folder in folders for path in folder.glob("*.glm")):
        glm = found_in(folders, r".*\.glm", "--glm, the mapping rules that are meant,")
    apart = list(places.values())
    sounds, texts = sounds_of(folders, apart), transcripts_of(paths(transcripts) or folders, apart)
    parts = training({show: texts[show] for show in chosen(shows, sounds, texts)}, sounds)
    parts |= {name: evaluation(place) for name, place in places.items()}
    said = {name: utterances(part) for name, part in parts.items()}
    texts_there = [folder / "text.txt" for folder in folders if (folder / "text.txt").is_file()]
    more = [spoken(row) for path in paths(text) or texts_there for row in text_of(path).splitlines()]
    rows = [*(one.words for name in ("train", "heldout") for one in said[name]), *more]
    counts = Counter(word for row in rows for word in row.split() if word != UNKNOWN)
    pronunciations, rules = read_lexicon(lexicon), text_of(glm) if glm else ""
    for name, part in parts.items():
        write_set(data / name, part, said[name], rules)
    write_dictionary(data / "local/dict", counts, pronunciations)
    with replacing(data / "local/text", "w") as stream:
        stream.writelines(f"{row}\n" for row in more if row)


if __name__ == "__main__":
    run(main)
