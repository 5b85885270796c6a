"""The lang directory: symbols, phone sets, topology and lexicon transducer, made from a dictionary; and its reader."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import kaldifst

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.hmm.dictionary import Dictionary, Pronunciation
from kernelam.hmm.lexicon import disambiguate, lexicon_fst, mark_positions, sorted_by_words
from kernelam.hmm.topology import Topology
from kernelam.kaldi.fst import load_fst
from kernelam.kaldi.tables import lines, read_symbols, whole_number

_POSITIONS = {"": "nonword", "_B": "begin", "_E": "end", "_I": "internal", "_S": "singleton"}
_PLAIN_SETS = ("silence", "nonsilence", "optional_silence", "context_indep", "disambig")
Rows = list[str]


def prepare_lang(
    dict_dir: str | Path,
    oov_word: str,
    lang_dir: str | Path,
    *,
    position_dependent_phones: bool = True,
    sil_prob: float = 0.5,
    num_sil_states: int = 5,
    num_nonsil_states: int = 3,
    share_silence_phones: bool = False,
) -> None:
    """Write the lang directory that Kaldi's prepare_lang.sh makes of the same dictionary: same files, same numbers."""
    if not 0 <= sil_prob < 1:
        raise KernelamError(f"the silence probability, --sil-prob, is at least 0 and below 1, not {sil_prob}")
    if num_sil_states < 1 or num_nonsil_states < 1:
        raise KernelamError("--num-sil-states and --num-nonsil-states are at least 1")
    dictionary = Dictionary.load(dict_dir)
    if oov_word not in {entry.word for entry in dictionary.lexicon}:
        raise KernelamError(f"the word for unknown words, {oov_word}, is not in the lexicon of {dict_dir}")
    lexicon = dictionary.lexicon
    if position_dependent_phones:
        lexicon = [mark_positions(entry) for entry in lexicon]
    marked, num_disambig = disambiguate(lexicon)
    text = _phone_sets(dictionary, position_dependent_phones, share_silence_phones)
    text["phones/disambig.txt"] = [f"#{n}" for n in range(num_disambig + 2)]  # #0 for back-off, the last for silence
    phones = ["<eps>", *(row for name in ("silence", "nonsilence", "disambig") for row in text[f"phones/{name}.txt"])]
    words = ["<eps>", *sorted({entry.word for entry in lexicon}, key=str.encode), "#0", "<s>", "</s>"]
    phone_ids, word_ids = _numbered(phones), _numbered(words)
    text["phones.txt"], text["words.txt"] = _table(phone_ids), _table(word_ids)
    text["oov.txt"], text["oov.int"] = [oov_word], [str(word_ids[oov_word])]
    text["phones/align_lexicon.txt"] = _align_lexicon(lexicon, dictionary.optional_silence)
    _add_integers(text, phone_ids, word_ids)
    silence, nonsilence = ([int(row) for row in text[f"phones/{name}.int"]] for name in ("silence", "nonsilence"))
    text["topo"] = Topology.left_to_right(nonsilence, silence, num_nonsil_states, num_sil_states).topo_text()
    symbols = phone_ids, word_ids, dictionary.optional_silence, sil_prob
    l_fst = sorted_by_words(lexicon_fst(lexicon, *symbols))
    l_disambig = lexicon_fst(marked, *symbols, f"#{num_disambig + 1}")
    l_disambig = sorted_by_words(l_disambig, (phone_ids["#0"], word_ids["#0"]))
    for name in ("L.fst", "L_disambig.fst"):  # old lexicons must never stand beside new symbols
        (Path(lang_dir) / name).unlink(missing_ok=True)
    for name, rows in text.items():
        with replacing(Path(lang_dir) / name, "w") as stream:
            stream.writelines(f"{row}\n" for row in rows)
    l_disambig.save(Path(lang_dir) / "L_disambig.fst")
    l_fst.save(Path(lang_dir) / "L.fst")


def _phone_sets(dictionary: Dictionary, position_dependent: bool, share_silence: bool) -> dict[str, Rows]:
    """The files under phones/ that name phones."""
    suffixes = list(_POSITIONS) if position_dependent else [""]
    silence = {phone for phones in dictionary.silence for phone in phones}

    def forms(phone: str) -> list[str]:
        return [phone + suffix for suffix in suffixes if suffix or phone in silence or not position_dependent]

    def expand(sets: Iterable[Sequence[str]]) -> Rows:
        return [" ".join(form for phone in phones for form in forms(phone)) for phones in sets]

    plain = {name: " ".join(expand(sets)).split() for name, sets in _by_name(dictionary).items()}
    silence_sets = (
        [[phone for phones in dictionary.silence for phone in phones]] if share_silence else dictionary.silence
    )
    sets = expand([*silence_sets, *dictionary.nonsilence])
    kinds = ["not-shared not-split" if share_silence else "shared split", *["shared split"] * (len(sets) - 1)]
    questions = expand(dictionary.extra_questions)
    if position_dependent:
        questions += _position_questions(dictionary)
    text = {
        "phones/silence.txt": plain["silence"],
        "phones/nonsilence.txt": plain["nonsilence"],
        "phones/context_indep.txt": plain["silence"],
        "phones/optional_silence.txt": [dictionary.optional_silence],
        "phones/sets.txt": sets,
        "phones/roots.txt": [f"{kind} {phones}" for kind, phones in zip(kinds, sets, strict=True)],
        "phones/extra_questions.txt": questions,
    }
    if position_dependent:
        text["phones/word_boundary.txt"] = [_word_boundary(p) for name in _by_name(dictionary) for p in plain[name]]
    return text


def _by_name(dictionary: Dictionary) -> dict[str, list[list[str]]]:
    return {"silence": dictionary.silence, "nonsilence": dictionary.nonsilence}


def _word_boundary(phone: str) -> str:
    suffix = phone[-2:] if phone[-2:] in _POSITIONS else ""
    return f"{phone} {_POSITIONS[suffix]}"


def _position_questions(dictionary: Dictionary) -> Rows:
    """Each position as a question, apart for silence and speech (with the blank that Kaldi leaves at the end)."""
    rows = []
    for sets, suffixes in ((dictionary.nonsilence, list(_POSITIONS)[1:]), (dictionary.silence, list(_POSITIONS))):
        for suffix in suffixes:
            rows.append("".join(f"{phone}{suffix} " for phones in sets for phone in phones))
    return rows


def _align_lexicon(lexicon: Iterable[Pronunciation], silence: str) -> Rows:
    rows = {f"<eps> <eps> {silence}"}
    rows |= {f"{entry.word} {entry.word} {' '.join(entry.phones)}" for entry in lexicon}
    return sorted(rows, key=str.encode)


def _numbered(symbols: Iterable[str]) -> dict[str, int]:
    return {symbol: number for number, symbol in enumerate(symbols)}


def _table(ids: dict[str, int]) -> Rows:
    return [f"{symbol} {number}" for symbol, number in ids.items()]


def _add_integers(text: dict[str, Rows], phone_ids: dict[str, int], word_ids: dict[str, int]) -> None:
    """The .int and .csl forms of the files under phones/."""

    def convert(name: str, change: Callable[[list[str]], Iterable[object]]) -> Rows:
        return [" ".join(map(str, change(row.split()))) for row in text[f"phones/{name}.txt"]]

    def phones(fields: Iterable[str]) -> list[int]:
        return [phone_ids[field] for field in fields]

    def words(fields: Iterable[str]) -> list[int]:
        return [word_ids[field] for field in fields]

    for name in (*_PLAIN_SETS, "sets", "extra_questions"):
        text[f"phones/{name}.int"] = convert(name, phones)
    for name in _PLAIN_SETS:
        text[f"phones/{name}.csl"] = [":".join(text[f"phones/{name}.int"])]
    text["phones/roots.int"] = convert("roots", lambda row: [*row[:2], *phones(row[2:])])
    text["phones/align_lexicon.int"] = convert("align_lexicon", lambda row: [*words(row[:2]), *phones(row[2:])])
    if "phones/word_boundary.txt" in text:
        text["phones/word_boundary.int"] = convert("word_boundary", lambda row: [*phones(row[:1]), row[1]])
    text["phones/wdisambig.txt"] = ["#0"]
    text["phones/wdisambig_phones.int"] = [str(phone_ids["#0"])]
    text["phones/wdisambig_words.int"] = [str(word_ids["#0"])]


def check_phones(lang_phones: Path, model_phones: Path) -> None:
    """Raise if the phones.txt of a lang and of a model, should the latter have one, number the phones differently.

    Disambiguation symbols may differ: they depend on the lexicon.
    """
    if not model_phones.exists():
        return
    lang, model = (
        {(symbol, number) for symbol, number in read_symbols(path).items() if not symbol.startswith("#")}
        for path in (lang_phones, model_phones)
    )
    if lang != model:
        symbol = min(lang ^ model)[0]
        raise KernelamError(
            f"{lang_phones} and {model_phones} differ in {symbol}: the model is of another lang directory"
        )


def silence_phones(folder: Path) -> list[int]:
    """Those of phones/silence.csl in a lang or graph directory."""
    path = folder / "phones" / "silence.csl"
    try:
        phones = [whole_number(field) for field in "".join(lines(path)).strip().split(":")]
    except ValueError:
        phones = [0]
    if not all(phones):
        raise KernelamError(f"{path} is no list of phones such as 1:2:3")
    return phones


@dataclass(frozen=True)
class Root:
    """Phones that share a root of the decision tree: one for all pdf classes if `shared`, from which it grows if it
    `splits`."""

    phones: tuple[int, ...]
    shared: bool
    splits: bool


class Lang:
    """A lang directory; its files are read when they are first asked for."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        if not self.directory.is_dir():
            raise KernelamError(f"no such lang directory {directory}")
        self.oov_counts: Counter[str] = Counter()

    @cached_property
    def words(self) -> dict[str, int]:
        return read_symbols(self.directory / "words.txt")

    @cached_property
    def word_of(self) -> dict[int, str]:
        return {number: word for word, number in self.words.items()}

    @cached_property
    def phones(self) -> dict[str, int]:
        return read_symbols(self.directory / "phones.txt")

    def phone_list(self, name: str) -> list[int]:
        """The integers of phones/<name>.int: silence, nonsilence, disambig, optional_silence, context_indep, …"""
        return [phone for phones in self.phone_sets(name) for phone in phones]

    def phone_sets(self, name: str = "sets") -> list[list[int]]:
        """The integers of phones/<name>.int by line."""
        path = self.directory / "phones" / f"{name}.int"
        return [self._phones(line.split(), path, "does not hold integers only") for line in lines(path)]

    def _phones(self, fields: Sequence[str], path: Path, otherwise: str) -> list[int]:
        """Numbers of phones in the file `path`, which is told `otherwise` where they are none."""
        try:
            phones = [whole_number(field) for field in fields]
        except ValueError:
            raise KernelamError(f"{path} {otherwise}") from None
        if unknown := set(phones) - self._phone_numbers:
            raise KernelamError(f"{path} has {min(unknown)}, the number of no phone of {self.directory / 'phones.txt'}")
        return phones

    @cached_property
    def _phone_numbers(self) -> set[int]:
        return set(self.phones.values()) - {0}

    def check_states(self, topology: Topology) -> None:
        """Sets and roots, whose phones share states, have every phone of `topology` once, and no other."""
        rows = {"sets": self.phone_sets()}
        if (self.directory / "phones/roots.int").exists():
            rows["roots"] = [list(root.phones) for root in self.roots()]
        for name, sets in rows.items():
            path, phones = self.directory / "phones" / f"{name}.int", Counter(phone for row in sets for phone in row)
            if odd := set(phones) ^ set(topology.phones):
                lacks, has = ("the topology", path) if min(odd) in phones else (path, "the topology")
                raise KernelamError(f"{lacks} lacks the phone {min(odd)}, which {has} has, for the states of {path}")
            if not all(sets) or max(phones.values()) > 1:
                raise KernelamError(f"{path} has a phone twice, or an empty line")

    def roots(self) -> list[Root]:
        """phones/roots.int: by line `shared` or `not-shared`, `split` or `not-split`, then phones."""
        path = self.directory / "phones" / "roots.int"
        found = []
        for line in lines(path):
            shared, split, *phones = line.split() if len(line.split()) > 2 else ("", "")
            if not (shared in ("shared", "not-shared") and split in ("split", "not-split")):
                raise KernelamError(f"{path}: a line is 'shared split' or 'not-…' and phones, not {line.strip()!r}")
            numbers = self._phones(phones, path, "does not hold integers only behind 'shared split'")
            found.append(Root(tuple(numbers), shared == "shared", split == "split"))
        return found

    @cached_property
    def disambig(self) -> list[int]:
        return self.phone_list("disambig")

    @cached_property
    def oov(self) -> int | None:
        """The id of the word that stands for unknown words; None if the directory names none."""
        path = self.directory / "oov.txt"
        word = next(lines(path), "").strip() if path.exists() else ""
        if word and word not in self.words:
            raise KernelamError(f"{path}: {word} is not in {self.directory / 'words.txt'}")
        return self.words[word] if word else None

    @cached_property
    def topology(self) -> Topology:
        return Topology.load(self.directory / "topo")

    def fst(self, name: str) -> kaldifst.StdVectorFst:
        """L.fst, L_disambig.fst or G.fst, checked."""
        return load_fst(self.directory / name).to_kaldifst()

    def words_to_ids(self, utterance: str, words: Sequence[str]) -> list[int]:
        """Word ids; unknown words become the OOV word and are counted in `oov_counts`."""
        ids = []
        for word in words:
            if word in self.words and word not in ("<eps>", "#0", "<s>", "</s>"):
                ids.append(self.words[word])
            elif self.oov is None:
                raise KernelamError(
                    f"utterance {utterance}: the word {word} is not in {self.directory / 'words.txt'}, and"
                    f" {self.directory / 'oov.txt'} names no word to stand for it"
                )
            else:
                self.oov_counts[word] += 1
                ids.append(self.oov)
        return ids
