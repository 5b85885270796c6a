"""Which cells follow from a declaration, and what is wrong with it."""

from pathlib import Path

import pytest

from kernelam.claims.study import Scale, Study
from kernelam.errors import KernelamError

ROOT = Path(__file__).parents[2]


def command(study: Study, name: str) -> str:
    return " ".join(next(cell.train for cell in study.cells if cell.name == name))


def test_cells_follow_from_the_scale(declared):
    study = Study.read(declared, {"corpus": "c"})
    assert study.scale == Scale((1, 2, 3), (1,), (500, 1000, 2000))
    of_the_grid, of_a_seed = 3 * 8, 3 * (3 + 1 + 2 + 1) + 1 + 5  # and nt, b, br where the grid has them not
    assert len(study.cells) == of_the_grid + 3 * of_a_seed + 2 * 3 * 3
    assert len({cell.name for cell in study.cells}) == len(study.cells)
    assert all(study.keys[cell.name].name == cell.folder.name == cell.name for cell in study.cells)
    start, data = "./train.sh --splice 5 --precondition 32 --kernel", "data/tr data/cv lang c/ali c/ali_cv exp/claims"
    name = "laplacian_br_1"
    assert command(study, name) == (
        f"{start} laplacian --bandwidth 1 --num-features 2000 --bottleneck 64 --metric erll --seed 1 {data}/{name}"
    )
    name = "sparse-gaussian_r-fs_1"
    assert command(study, name) == (
        f"{start} sparse-gaussian --bandwidth 2.0 --num-features 2000 --rates 64 128 --metric erll"
        f" --features-of exp/claims/sparse-gaussian_b-fs_1 --seed 1 {data}/{name}"
    )
    assert " --bottleneck 64 --num-features 500 " in command(study, "gaussian_b-500_3")
    assert " gaussian@0.6 + laplacian@1 --num-features 2000 " in command(study, "sum_b_2")
    assert " --rates 64 128 --rates 8 --optimiser sag --seed 2 " in command(study, "gaussian_sag_2")
    assert " --bottleneck 32 --augment mask:0.1 " in command(study, "dnn_mask_1")
    members = "exp/claims/gaussian_br_3 exp/claims/dnn_br_3 exp/claims/gaussian_with-dnn_3"
    assert command(study, "gaussian_with-dnn_3") == f"./combine.sh data/cv lang c/ali_cv {members}"


def test_cells_come_after_those_that_they_need(declared):
    study = Study.read(declared, {"corpus": "c"})
    numbers = {cell.name: number for number, cell in enumerate(study.cells, 1)}
    first, second = study.waves
    assert [*first, *second] == list(range(1, len(study.cells) + 1))
    for cell in study.cells:
        assert all(numbers[need] in first and numbers[cell.name] in second for need in cell.needs)
    assert study.cells[numbers["laplacian_with-dnn_2"] - 1].needs == ("laplacian_br_2", "dnn_br_2")


def test_quick_has_its_own_scale_and_folder(declared):
    study = Study.read(declared, {"corpus": "c"}, quick=True)
    assert (study.title, study.folder) == ("The claims (quick)", Path("exp/claims_quick"))
    assert study.scale == Scale((1,), (1,), (50, 100, 200))
    assert command(study, "dnn_nt_1").startswith("./train.sh --splice 5 --layers 1 --seed 1 ")
    assert " --bandwidth 0.6 --num-features 200 --bottleneck 64 " in command(study, "gaussian_b_1")


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("path", sorted(ROOT.glob("egs/*/s5/conf/claims.toml")), ids=lambda path: path.parts[-4])
def test_declarations_of_the_recipes_are_sound(path, quick):
    variables = {"corpus": "/corpus", "precision": "single"}
    used = {name: variables[name] for name in variables if f"{{{name}}}" in path.read_text()}
    study = Study.read(path, used, quick)
    assert len(study.cells) >= 51
    assert all((path.parents[1] / words[0]).exists() for words in (study.decode, *(c.train for c in study.cells)))


MISTAKES = {
    'options = "--splice 5"': ("", "claims.toml lacks the key options"),
    "[dnn]": ("[dnnn]", "claims.toml lacks the key dnn"),
    "[quick.dnn]": ("[quick.dnnn]", "claims.toml has the unknown key dnnn"),
    'sgd = "--rates 8"': ("", r"claims.toml lacks the key sgd in \[kernel\]"),
    'blocks = "--blocks 4"': ("block = 4", r"claims.toml has the unknown key block in \[kernel\]"),
    '"--bottleneck 32"': ("32", "dnn.bottleneck must be a string, not 32"),
    '"mask:0.1"': ("0.1", "augment must be a string, not 0.1"),
    "seeds = [1, 2, 3]": ("seeds = 1", "seeds is a list of whole numbers from 0 on, in order, not 1"),
    "grid_seeds = [1]": ("grid_seeds = [4]", "grid_seeds has 4, which is not among the seeds"),
    "[500, 1000, 2000]": ("[1000, 500, 2000]", "kernel.features is a list of whole numbers from 1 on, in order"),
    "[50, 100, 200]": ("[50, 100]", "kernel.features are at least three numbers"),
    ", sparse-gaussian = 2.0": ("", "bandwidths is a table of laplacian, gaussian, sparse-gaussian"),
    "gaussian = 0.6": ("gaussian = -0.6", "a bandwidth is a number above zero, not -0.6"),
    "'64 128'\"": ("'64 128\"", "is no command: No closing quotation"),
    "{corpus}/ali_cv": ("{who}/ali_cv", "needs the variable who: give it as --set who=…"),
    '"./train.sh --layers 1"': ('""', "claims.toml: a command is empty"),
    '"lang", ': ("", "data is a list of five"),
}


@pytest.mark.parametrize("old", MISTAKES)
def test_a_mistake_is_a_sentence(declared, old):
    new, sentence = MISTAKES[old]
    text = declared.read_text()
    assert old in text
    declared.write_text(text.replace(old, new, 1))
    with pytest.raises(KernelamError, match=sentence):
        Study.read(declared, {"corpus": "c"}, quick=True)


def test_tables_are_tables(declared):
    text = declared.read_text()
    declared.write_text("quick = 1\n" + text[: text.index("[quick]")])
    with pytest.raises(KernelamError, match=r"quick is a table, as in \[quick\]"):
        Study.read(declared, {"corpus": "c"}, quick=True)


def test_what_is_missing_is_told_before_any_work(declared, kernelam):
    Path("data/test/utt2spk").unlink()
    Path("data/test").rmdir()
    ran = kernelam("claims", "--set", "corpus=c", declared)
    assert ran.returncode == 1
    assert ran.stderr == "kernelam claims: there is no data/test, which the cells of exp/claims read\n"
    assert not Path("exp").exists()


def test_one_cell_of_those_there_are(declared, kernelam):
    ran = kernelam("claims", "--quick", "--set", "corpus=c", "--cell", 52, declared)
    assert (ran.returncode, ran.stderr) == (1, "kernelam claims: claims.toml has 51 cells, no number 52\n")
    ran = kernelam("claims", "--quick", "--set", "corpus", declared)
    assert (ran.returncode, ran.stderr) == (1, "kernelam claims: --set takes NAME=VALUE, not corpus\n")
