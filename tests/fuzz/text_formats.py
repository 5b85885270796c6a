"""Texts about language: n-gram models, dictionaries, lang directories, references with times; and declarations."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
from formats import Format, put

from kernelam.claims.study import Study
from kernelam.decoding.words import read_rule
from kernelam.errors import KernelamError
from kernelam.grid import Grid
from kernelam.hmm.lang import Lang, check_phones, prepare_lang, silence_phones
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.fst import load_fst
from kernelam.lm.arpa import read_arpa, write_arpa
from kernelam.lm.fst import write_grammar
from kernelam.lm.mixing import mixed
from kernelam.lm.perplexity import perplexity
from kernelam.lm.pruning import pruned
from kernelam.lm.text import read_vocabulary
from kernelam.report.published import read_published
from kernelam.scoring.boundaries import distances, durations, read_segments
from kernelam.scoring.networks import count_networks
from kernelam.scoring.stm import Stm, read_ctm
from kernelam.scoring.wer import compute_wer, read_transcripts

# N-gram models

ARPA = rb"""
\data\
ngram 1=5
ngram 2=5
ngram 3=2

\1-grams:
-99	<s>	-0.4
-0.7	</s>
-0.6	a	-0.3
-0.8	b	-0.25
-1.2	<UNK>

\2-grams:
-0.3	<s> a	-0.1
-0.5	a b	-0.2
-0.9	a a
-0.4	b </s>
-1.5	b <UNK>

\3-grams:
-0.2	<s> a b
-0.1	a b </s>

\end\
"""


def use_arpa(path: Path) -> None:
    words, text, fst = (path.with_name(name) for name in ("words.txt", "said", "G.fst"))
    words.write_text("<eps> 0\n<UNK> 1\na 2\nb 3\n#0 4\n<s> 5\n</s> 6\n")
    text.write_text("u1 a b c\nu2 b\n")
    model = read_arpa(path)
    assert np.isfinite(model.log10_prob(["a"], model.words[0]))
    write_arpa(path.with_name("again"), model)
    assert read_arpa(path.with_name("again")).words == model.words
    write_grammar(path, words, fst)
    assert load_fst(fst).to_kaldifst().num_states > 0
    for made in (pruned(model, 1e-3), mixed([model, model], [0.5, 0.5])):
        assert all(np.isfinite(level.log10_backoff).all() for level in made.levels)
        assert str(perplexity(made, text))


# Dictionaries and lang directories

DICTIONARY = {
    "lexicon.txt": "<UNK> spn\nab a b\nab a\nba b a\naß a\n",
    "lexiconp.txt": "<UNK> 1.0 spn\nab 0.5 a b\nab 1 a\nba 1e-3 b a\naß 0.9 a\n",
    "silence_phones.txt": "sil\nspn\n",
    "nonsilence_phones.txt": "a a1\nb\n",
    "optional_silence.txt": "sil\n",
    "extra_questions.txt": "sil spn\na b\n",
}


def make_dictionary(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "dict").mkdir()
        for file, text in DICTIONARY.items():
            if file != "lexiconp.txt" or name == file:  # which goes before the other
                (folder / "dict" / file).write_text(text)
        return folder / "dict" / name

    return make


def use_dictionary(path: Path) -> None:
    lang = path.parents[1] / "lang"
    prepare_lang(path.parent, "<UNK>", lang)
    use_lang(lang / "words.txt")


def make_lang(name: str, positions: bool = True) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        prepare_lang(
            make_dictionary("lexicon.txt")(folder).parent, "<UNK>", "lang", position_dependent_phones=positions
        )
        return folder / "lang" / name

    return make


def use_lang(path: Path) -> None:
    folder = path.parent if path.parent.name == "lang" else path.parents[1]
    lang = Lang(folder)
    check_phones(folder / "phones.txt", folder / "phones.txt")
    assert lang.words_to_ids("utt", ["ab", "zz"])[0] > 0
    assert all(phone > 0 for phone in [*silence_phones(folder), *lang.disambig, *lang.phone_list("silence")])
    lang.check_states(lang.topology)
    classes = {phone: lang.topology.num_pdf_classes(phone) for phone in lang.topology.phones}
    tree = ContextTree.monophone(lang.phone_sets(), classes)
    assert tree.num_pdfs <= sum(classes.values())
    assert all(root.phones for root in lang.roots())
    assert lang.fst("L_disambig.fst").num_states > 0
    rule, phone = read_rule(folder / "phones"), lang.phone_list("nonsilence")[0]
    try:
        assert rule((phone, phone), (1, 2), True) != (0, 0)
    except KernelamError as error:
        raise KernelamError(f"{folder}: {error}") from None  # only who has a lattice knows of the directory


# References with times

STM = """;; a comment
r1 A ann 0.00 1.50 <o,f0> he's GONNA { go / went } there
r1 A inter_segment_gap 1.50 2.00 <o,> ignore_time_segment_in_scoring
r1 A bob 2.00 3.25 <o,f0,m> (uh) cancelled wor- twenty-one
r2 1 ann 0.10 1.00 yes
"""
CTM = """r1 A 0.10 0.30 he's 0.9
r1 A 0.50 0.20 gonna
r1 A 2.10 0.40 canceled
;; another
r2 1 0.20 0.30 yes
"""
GLM = """;; rules
* name "rules"
* format = 'NIST1'
* copy_no_hit = 'T'
* case_sensitive = 'F'
CANCELLED => CANCELED
GONNA => [{GOING TO / GONNA}] / [ ] __ [ ]
;; INPUT_DEPENDENT_APPLICATION = "hyp"
[UH] => [] / [ ] __ [ ]
"""


def make_timed(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "timed").mkdir()
        for file, text in (("stm", STM), ("ctm", CTM), ("glm", GLM)):
            (folder / "timed" / file).write_text(text)
        return folder / "timed" / name

    return make


def use_timed(path: Path) -> None:
    stm = Stm(path.with_name("stm"), path.with_name("glm"))
    hyps = stm.cut(read_ctm(path.with_name("ctm")))
    assert hyps.keys() == stm.refs.keys() == stm.utt2spk.keys()
    assert all(count_networks(ref, hyps[name]).errors >= 0 for name, ref in stm.refs.items())


def use_phones(path: Path) -> None:
    segments = read_segments(path)
    assert np.isfinite(distances(segments, segments)).all()
    assert all(np.isfinite(one.mean) for one in durations(segments).values())


def use_transcripts(path: Path) -> None:
    refs = {"u1": ["a", "b"], "u2": ["c"]}
    assert compute_wer(refs, read_transcripts(path)).total.ref_words == 3


# Declarations

GRID = b"""
title = "A grid"
folder = "exp/grid"
train = "./train.sh --name 'a b'"
data = ["data/tr", "data/cv", "lang", "{corpus}/ali", "{corpus}/ali_cv"]
decode = "./decode.sh"
graph = "graph"
tuned = "data/cv"
tested = "data/test"
baseline = "gaussian_fs"
[axes.kernel]
gaussian = "--kernel gaussian"
laplacian = "--kernel laplacian"
[axes.selection]
plain = ""
fs = "--features-of exp/grid/{kernel}_plain"
[combine]
script = "c.sh --a 1"
both = ["gaussian", "laplacian"]
"""
STUDY = b"""
title = "The claims"
folder = "exp/claims"
data = ["data/tr", "data/cv", "lang", "{corpus}/ali", "{corpus}/ali_cv"]
decode = "./decode.sh"
graph = "graph"
tuned = "data/cv"
tested = "data/test"
options = "--splice 5"
combine = "./combine.sh"
augment = "mask:0.1"
seeds = [1, 2, 3]
grid_seeds = [1]
[kernel]
train = "./train.sh --precondition 32"
bandwidths = { laplacian = 1, gaussian = 0.6, sparse-gaussian = 2.0 }
features = [500, 1000, 2000]
whole = "--rates '64 128'"
bottleneck = "--bottleneck 64"
selection = "--selection 10"
blocks = "--blocks 4"
sgd = "--rates 8"
sag = "--rates 8 --optimiser sag"
[dnn]
train = "./train.sh --layers 3"
whole = ""
bottleneck = "--bottleneck 32"
[quick]
seeds = [1]
[quick.kernel]
features = [50, 100, 200]
"""


def use_grid(path: Path) -> None:
    grid = Grid.read(path, {"corpus": "c"})
    assert grid.baseline in [cell.name for cell in grid.cells]
    check_cells(grid)


def use_study(path: Path) -> None:
    for quick in (False, True):
        check_cells(Study.read(path, {"corpus": "c"}, quick))


def check_cells(experiments: Grid | Study) -> None:
    """Every command can be run, and every cell has a folder of its own under that of all."""
    assert sum(map(len, experiments.waves)) == len(experiments.cells)
    for cell in experiments.cells:
        assert cell.folder.parent == experiments.folder
        assert experiments.commands(cell).isprintable()
        assert not any("\0" in word for word in [*cell.train, *experiments.decode, experiments.graph])
        assert not experiments.done(cell)
    assert len({cell.folder for cell in experiments.cells}) == len(experiments.cells)


PUBLISHED = b"""paper,table,corpus,split,metric,model,setting,value
may2017,3,timit,test,TER,dnn,NT,18.2
may2017,3,timit,test,TER,"laplacian, sparse",BR,-17.5
lu2014,1,timit,test,TER,dnn,,20.1
"""
WORDS = (
    *("words.txt", "phones.txt", "oov.txt", "topo", "phones/sets.int", "phones/roots.int", "phones/disambig.int"),
    *("phones/silence.csl", "phones/silence.int", "phones/nonsilence.int", "phones/word_boundary.int"),
)
PHONES = b"u1 1 0.00 0.10 sil\nu1 1 0.10 0.05 a_B\nu1 1 0.15 0.08 b_E\nu2 1 0 0.3 sil\n"

TEXTS = {
    "ARPA": Format(put("lm.arpa", ARPA), use_arpa, "lm", text=True),
    "ARPA, gzipped": Format(put("lm.arpa.gz", gzip.compress(ARPA)), use_arpa, "lm"),
    "list of words": Format(put("words", b"a 1\nb 2\n<s> 3\n"), lambda path: print(read_vocabulary(path)), text=True),
    **{
        f"{name} of a dictionary": Format(make_dictionary(name), use_dictionary, "dict", text=True)
        for name in DICTIONARY
    },
    **{f"{name} of a lang directory": Format(make_lang(name), use_lang, "lang", text=True) for name in WORDS},
    "pronunciations": Format(make_lang("phones/align_lexicon.int", positions=False), use_lang, "lang", text=True),
    **{name.upper(): Format(make_timed(name), use_timed, "timed", text=True) for name in ("stm", "ctm", "glm")},
    "phones with times": Format(put("phones.ctm", PHONES), use_phones, text=True),
    "transcripts": Format(put("hyp.txt", b"u1 a b\nu2\n"), use_transcripts, text=True),
    "grid": Format(put("grid.toml", GRID), use_grid, text=True),
    "study": Format(put("claims.toml", STUDY), use_study, text=True),
    "published figures": Format(
        put("figures.csv", PUBLISHED), lambda path: print(read_published(path, "timit")), text=True
    ),
}
