"""Grids: what a declaration means, what is wrong with it, and a run of cells of which one fails."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kernelam.current import run_once
from kernelam.errors import KernelamError
from kernelam.grid import Grid

BIN = Path(__file__).parents[1] / "utils/bin"
DECLARATION = """
title = "A grid"
folder = "exp/grid"
train = "./train.sh --name 'a b'"
data = ["data/tr", "data/cv", "lang", "{corpus}/ali", "{corpus}/ali_cv"]
decode = "./decode.sh"
graph = "graph"
tuned = "data/cv"
tested = "data/test"
[axes.kernel]
gaussian = "--kernel gaussian"
laplacian = "--kernel laplacian"
[axes.selection]
plain = ""
fs = "--features-of exp/grid/{kernel}_plain"
"""


@pytest.fixture
def declared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text: str = DECLARATION) -> Path:
        Path("grid.toml").write_text(text)
        return Path("grid.toml")

    return write


def test_cells_are_the_product_of_the_axes(declared):
    grid = Grid.read(declared(), {"corpus": "/c d"})
    assert [cell.name for cell in grid.cells] == ["gaussian_plain", "laplacian_plain", "gaussian_fs", "laplacian_fs"]
    data = ["data/tr", "data/cv", "lang", "/c d/ali", "/c d/ali_cv"]
    options = ["--kernel", "laplacian", "--features-of", "exp/grid/laplacian_plain"]
    assert grid.cells[3].train == ["./train.sh", "--name", "a b", *options, *data, "exp/grid/laplacian_fs"]
    assert grid.cells[3].folder == Path("exp/grid/laplacian_fs")
    assert grid.cells[3].needs == ("laplacian_plain",)  # whose features it takes
    assert grid.waves == [range(1, 3), range(3, 5)]
    assert grid.baseline == "gaussian_plain"


COMBINED = f"{DECLARATION}[combine]\nscript = 'c.sh --a 1'\nboth = ['gaussian', 'laplacian']\n"


def test_models_of_the_first_axis_are_combined(declared):
    grid = Grid.read(declared(COMBINED), {"corpus": "c"})
    assert [cell.name for cell in grid.cells if "both" in cell.name] == ["both_plain", "both_fs"]
    assert grid.cells[5].needs == ("gaussian_fs", "laplacian_fs")
    members = ["exp/grid/gaussian_fs", "exp/grid/laplacian_fs"]
    assert grid.cells[5].train == ["c.sh", "--a", "1", "data/cv", "lang", "c/ali_cv", *members, "exp/grid/both_fs"]
    assert grid.waves == [range(1, 3), range(3, 6), range(6, 7)]


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        ("both = ['gaussian']", "both is no list of two or more of gaussian, laplacian"),
        ("both = ['gaussian', 'none']", "both is no list of two or more of gaussian, laplacian"),
        ("laplacian = ['gaussian', 'laplacian']", "laplacian cannot be the name of a combination"),
        ("'a/b' = ['gaussian', 'laplacian']", "a/b cannot be the name of a combination"),
    ],
)
def test_combinations_that_cannot_be_are_sentences(declared, new, sentence):
    with pytest.raises(KernelamError, match=f"grid.toml: in combine, {sentence}"):
        Grid.read(declared(COMBINED.replace("both = ['gaussian', 'laplacian']", new)), {"corpus": "c"})
    with pytest.raises(KernelamError, match="combine is a table with a script"):
        Grid.read(declared(COMBINED.replace("script =", "b =")), {"corpus": "c"})


def test_a_value_may_bring_the_script(declared):
    text = DECLARATION.replace("./train.sh --name", "--name").replace('"--kernel', '"./kernel.sh --kernel')
    grid = Grid.read(declared(text), {"corpus": "c"})
    assert grid.cells[0].train[:5] == ["./kernel.sh", "--name", "a b", "--kernel", "gaussian"]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("./train.sh --name", "--name", "no script"),
        ('"--kernel gaussian', '"other.sh --kernel gaussian', "the scripts ./train.sh and other.sh"),
    ],
)
def test_a_cell_without_its_one_script_is_a_sentence(declared, old, new, found):
    with pytest.raises(KernelamError, match=f"grid.toml: gaussian_plain has {found}: one, in `train`"):
        Grid.read(declared(DECLARATION.replace(old, new)), {"corpus": "c"})


CLASH = 'gaussian_x = ""\n[axes.selection]\nx_y = ""\ny = ""\n'


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('tested = "data/test"', 'tested = "other/cv"', "tuned and tested are two sets, whose folders have different"),
        ("plain =", "log =", "in axes.selection, log is no name with a text of options"),
        ("plain =", '".." =', r"in axes.selection, \.\. is no name with a text of options"),
        ("{kernel}_plain", "{kernel}_fs", "gaussian_fs needs a cell that needs it in turn"),
        (DECLARATION[DECLARATION.index("laplacian") :], CLASH, "two cells are called gaussian_x_y"),
    ],
)
def test_cells_that_would_be_in_each_others_way_are_a_sentence(declared, old, new, sentence):
    text = DECLARATION.replace(old, new)
    assert text != DECLARATION
    with pytest.raises(KernelamError, match=sentence):
        Grid.read(declared(text), {"corpus": "c"})


GRIDS = [path for path in sorted(BIN.parents[1].glob("egs/*/s5/conf/*.toml")) if path.stem != "claims"]


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_declarations_of_the_recipes_are_sound(path):
    variables = {"corpus": "/corpus", "precision": "single", "task": "digits"}
    grid = Grid.read(path, {name: variables[name] for name in variables if f"{{{name}}}" in path.read_text()})
    assert len(grid.cells) >= 3
    assert all((path.parents[1] / words[0]).exists() for words in (grid.cells[0].train, grid.decode))


MISTAKES = {
    "title": ("", "grid.toml lacks the key title"),
    "graph =": ("grahp =", "grid.toml lacks the key graph"),
    'title = "A grid"': ('title = "A grid"\nepochs = 3', "grid.toml has the unknown key epochs"),
    '"graph"': ("3", "grid.toml: graph must be a string, not 3"),
    '"lang", ': ("", "data is a list of five"),
    '"--kernel gaussian"': ("1", "in axes.kernel, gaussian is no name with a text of options"),
    "gaussian =": ('"../x" =', r"in axes.kernel, \.\./x is no name"),
    "{corpus}/ali_cv": ("{who}/ali_cv", "needs the variable who: give it as --set who=…"),
    "[axes.kernel]": (
        'baseline = "x"\n[axes.kernel]',
        "the baseline of grid.toml, x, is no cell such as gaussian_plain",
    ),
    "'a b'": ("'a b", "is no command: No closing quotation"),
    "data =": ("data", "grid.toml is not TOML"),
}


@pytest.mark.parametrize("old", MISTAKES)
def test_a_mistake_is_a_sentence(declared, old):
    new, sentence = MISTAKES[old]
    text = DECLARATION.replace(old, new, 1) if old != "title" else DECLARATION.replace('title = "A grid"\n', "")
    with pytest.raises(KernelamError, match=sentence):
        Grid.read(declared(text), {"corpus": "c"})
    with pytest.raises(KernelamError, match=r"cannot read none\.toml"):
        Grid.read(Path("none.toml"), {})


def test_a_variable_that_the_declaration_does_not_have_is_a_sentence(declared):
    with pytest.raises(KernelamError, match=r"^grid.toml has no variable \{foo\}: leave out --set foo=…$"):
        Grid.read(declared(), {"corpus": "c", "foo": "1"})


TRAIN = """#!/bin/bash
dir=${!#}
echo "$*" >> calls
while [[ -e wait && "$*" == *"$(cat wait)"* ]]; do touch waiting; sleep 0.05; done
[[ "$*" != *"$(cat fail)"* ]] || { echo "this cell cannot be"; exit 1; }
for f in model.safetensors ali_train_pdf.counts final.mdl model.json; do echo "$*" > $dir/$f; done
"""
DECODE = """#!/bin/bash
dir=${!#}
echo "$*" >> calls
rm -rf $dir; mkdir -p $dir/scoring_kaldi; cp result.json $dir/scoring_kaldi/result.json
touch $dir/scoring_kaldi/best_wer
"""


@pytest.fixture
def work(declared):
    """A declared grid with scripts that take no time, but for a cell that waits while the file `wait` is there."""
    declared()
    files = {"train.sh": TRAIN, "decode.sh": DECODE, "fail": "nothing at all", "result.json": "{}"}
    for name, text in files.items():
        Path(name).write_text(text)
        Path(name).chmod(0o755)
    for folder in ("data/tr", "data/cv", "data/test", "lang", "c/ali", "c/ali_cv", "graph"):
        Path(folder).mkdir(parents=True)
        (Path(folder) / "utt2spk").write_text("u s\n")
    return Grid.read(Path("grid.toml"), {"corpus": "c"})


RUNNER = [str(BIN / "run_local.sh"), "--max-jobs-run", "1"]
ITSELF = [str(BIN / "kernelam"), "grid", "--set", "corpus=c", "grid.toml", "--cell"]


def calls() -> list[str]:
    return Path("calls").read_text().splitlines()


def test_a_cell_that_fails_is_told_and_the_others_are_not_done_twice(work):
    Path("fail").write_text("laplacian --features")
    work.run(RUNNER, ITSELF)
    assert [work.done(cell) for cell in work.cells] == [True, True, True, False]
    told = ["this cell cannot be", "kernelam grid: ./train.sh failed with status 1"]
    assert work.failures() == {"laplacian_fs": told}
    first = calls()
    assert len(first) == 3 * 3 + 1
    Path("fail").write_text("nothing at all")
    work.run(RUNNER, ITSELF)
    assert len(calls()) == len(first) + 3
    assert not work.failures()


def test_a_run_that_was_killed_goes_on(work):
    """In the second cell: the first is not done again, and when it was done is known."""
    Path("wait").write_text("--kernel laplacian")
    command = [*RUNNER, "JOB=1:2", "exp/grid/log/cell.JOB.log", *ITSELF, "JOB"]
    killed = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    for _ in range(300):
        if Path("waiting").exists():
            break
        time.sleep(0.1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    Path("wait").unlink()
    assert [work.done(cell) for cell in work.cells] == [True, False, False, False]
    before = calls()
    work.run(RUNNER, ITSELF)
    assert not work.failures()
    assert len(before) == 3 + 1
    assert len(calls()) == 1 + 4 * 3
    steps = [(step.step, step.end >= step.start) for step in work.work(work.cells[0])]
    assert steps == [("train", True), ("decode_cv", True), ("decode_test", True)]


@pytest.mark.parametrize(
    ("words", "held"), [(["--cell", "1"], "exp/grid/gaussian_plain/log"), (["--cmd", " ".join(RUNNER)], "exp/grid")]
)
def test_the_second_of_two_runs_waits_for_the_first(work, words, held, monkeypatch):
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    Path("wait").write_text("--kernel gaussian")
    command = [str(BIN / "kernelam"), "grid", "--set", "corpus=c", "grid.toml", *words]
    runs = []
    for _ in range(2):
        runs.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        for _ in range(300):
            if Path("waiting").exists():
                break
            time.sleep(0.1)
    assert runs[1].stderr is not None
    assert runs[1].stderr.readline() == f"another process is at work in {held}: waiting for it to end\n"
    Path("wait").unlink()
    for run in runs:
        run.communicate()
    assert calls() == sorted(set(calls()), key=calls().index)


def test_work_that_was_done_again_counts_once(work):
    cell = work.cells[0]
    work.run_cell(cell)
    first = work.work(cell)
    Path("data/tr/utt2spk").write_text("v s\n")
    Path("train.sh").write_text(TRAIN.replace('echo "$*" > ', 'echo "again $*" > '))
    work.run_cell(cell)
    second = work.work(cell)
    assert [step.step for step in second] == ["train", "decode_cv", "decode_test"]
    assert all(new.start > old.start for new, old in zip(second, first, strict=True))
    (cell.folder / "cell.json").write_text('{"work": [["train", 1, 2], ["decode", 2, 3], ["decode", 3, 4]]}')
    Path("data/tr/utt2spk").write_text("w s\n")
    Path("train.sh").write_text(TRAIN)
    work.run_cell(cell)
    assert [step.step for step in work.work(cell)] == ["train", "decode_cv", "decode_test"]


def test_the_page_does_not_take_the_place_of_the_tables(work, kernelam):
    for name in ("RESULTS.html", "RESULTS"):
        ran = kernelam("grid", "--set", "corpus=c", "--output", name, "grid.toml")
        assert (ran.returncode, f"{name} cannot hold the tables, the page" in ran.stderr) == (1, True)
    for cmd, sentence in (("run.pl '", "--cmd run.pl ' is no command: No closing quotation"), (" ", "--cmd is empty")):
        ran = kernelam("grid", "--set", "corpus=c", "--cmd", cmd, "grid.toml")
        assert (ran.returncode, sentence in ran.stderr, "Traceback" in ran.stderr) == (1, True, False)
    Path("bench.json").write_text("{}")
    ran = kernelam("grid", "--set", "corpus=c", "--output", "bench.md", "grid.toml")
    assert (ran.returncode, "bench.json is no file of results, and would be lost" in ran.stderr) == (1, True)
    Path("RESULTS.json").write_text("of the recipe, not in the way")
    Path("exp/grid").mkdir(parents=True)
    Path("exp/grid/RESULTS.json").write_text("{}")
    ran = kernelam("grid", "--set", "corpus=c", "grid.toml")
    assert (ran.returncode, "grid: exp/grid/RESULTS.json is no file of results" in ran.stderr) == (1, True)
    assert not Path("calls").exists()


def test_a_runner_that_fails_and_cells_of_another_declaration_are_not_taken_for_done(work, declared):
    work.run(RUNNER, ITSELF)
    with pytest.raises(KernelamError, match="false failed with status 1, although no cell did"):
        work.run(["false"], ITSELF)
    other = Grid.read(
        declared(DECLARATION.replace("--kernel gaussian", "--kernel gaussian --bandwidth 2")), {"corpus": "c"}
    )
    other.run(["false"], ITSELF)
    assert other.failures() == {name: ["it was never begun"] for name in ("gaussian_plain", "gaussian_fs")}


def test_cells_are_made_again_when_an_archive_of_their_features_is(work):
    Path("raw.ark").write_text("old")
    Path("data/tr/feats.scp").write_text("u raw.ark:2\n")
    work.run_cell(work.cells[0])
    before = len(calls())
    work.run_cell(work.cells[0])
    assert len(calls()) == before
    Path("raw.ark").write_text("new")
    work.run_cell(work.cells[0])
    assert len(calls()) > before


def test_a_cell_that_is_looked_at_again_stays_done(work, monkeypatch):
    """Its mark stands while its steps are current, and is gone as soon as one of them runs or cannot."""
    cell, seen = work.cells[0], []
    work.run_cell(cell)
    monkeypatch.setattr(
        "kernelam.experiments.run_once", lambda *given, **more: seen.append(work.done(cell)) or run_once(*given, **more)
    )
    work.run_cell(cell)
    assert seen == [True] * 3
    Path("data/tr/utt2spk").write_text("v s\n")
    Path("train.sh").write_text(TRAIN.replace("dir=${!#}", "dir=${!#}; ls $dir > there"))
    work.run_cell(cell)
    assert "cell.done" not in Path("there").read_text()
    assert work.done(cell)
    Path("data/tr/utt2spk").unlink()
    Path("c/ali").rename("c/gone")
    with pytest.raises(KernelamError, match=r"c/ali, which \./train\.sh reads, is not there"):
        work.run_cell(cell)
    assert not work.done(cell)


@pytest.mark.parametrize(("command", "key"), [("grid", "[axes.kernel]"), ("claims", "grid_seeds = [1]")])
def test_help_has_the_keys_of_declarations(kernelam, command: str, key: str) -> None:
    assert key in kernelam(command, "--help").stdout
