"""The page of a study whose cells are done, some of them failed, and the command that runs it."""

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from kernelam.claims.estimates import Estimate
from kernelam.claims.kept import read_kept, signs
from kernelam.claims.outcomes import read_outcome
from kernelam.claims.page import duration, elapsed, page, read_findings, table
from kernelam.claims.papers import CLAIMS, Finding, Form, Part, Verdict
from kernelam.claims.study import Study
from kernelam.errors import KernelamError
from kernelam.experiments import Work

SIGNS: defaultdict[str, str] = defaultdict(str)
RUNNER = f"""#!/bin/bash
# run_local.sh for the cells whose numbers are in the file `these`: the others are as they are
range=${{1#JOB=}} log=$2; shift 2
for ((n = ${{range%:*}}; n <= ${{range#*:}}; n++)); do
    grep -qx $n these || continue
    mkdir -p $(dirname $log)
    PYTHONPATH={Path(__file__).parents[2]} {sys.executable} -m "${{@/JOB/$n}}" > ${{log/JOB/$n}} 2>&1
done
"""


def test_what_is_done_is_not_done_again_unless_what_it_needs_has_changed(study):
    calls = Path("calls").read_text().splitlines()
    assert len(calls) == len(study.cells) + 2 * sum(cell.decoded for cell in study.cells)
    origin, taker = (
        next(cell for cell in study.cells if cell.name == f"gaussian_{name}_1") for name in ("b-fs", "nt-fs")
    )
    for cell in (origin, taker):
        study.run_cell(cell)
    assert Path("calls").read_text().splitlines() == calls
    (origin.folder / "model.safetensors").write_text("another model")
    study.run_cell(taker)
    again = Path("calls").read_text().splitlines()[len(calls) :]
    assert again[0].endswith("exp/claims_quick/gaussian_nt-fs_1")
    (taker.folder / "model.safetensors").unlink()
    (taker.folder / "cell.json").write_text('{"work": [["train", 1, 2], ["decode", 2, 3], ["decode", 3, 4]]}')
    study.run_cell(taker)
    trainings = [step.start for step in study.work(taker) if step.step == "train"]
    assert len(trainings) == 1  # the one of the model that is there
    assert trainings[0] > 1


def test_a_cell_waits_for_what_it_needs(study):
    (study.folder / "gaussian_b-fs_1/cell.done").unlink()
    taker = next(cell for cell in study.cells if cell.name == "gaussian_nt-fs_1")
    with pytest.raises(KernelamError, match="gaussian_nt-fs_1 needs the model of gaussian_b-fs_1, which is not done"):
        study.run_cell(taker)
    assert not study.done(taker)


def test_the_page_tells_all(study):
    text = page(study, read_findings(study, SIGNS))
    assert text.startswith("# The claims (quick)\n")
    rows = [line for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert [row.split(".")[0] for row in rows] == [f"| {number}" for number in range(1, 14)]
    assert "| 7. Selected features survive | may2017, 6.5 | +0.40 | +0.40 to +0.40 | 3 | **held** |" in rows
    assert rows[0] == (
        "| 1. A bottleneck lowers TER | may2017, 6.3 | 0.0 % | 0.0 % to 0.0 % | 12 | **too small to tell** |"
    )
    assert f"\n{len(study.cells)} cells took " in text
    assert "- kernelam 0; commit abc\n- P, 2 cores, S\n" in text
    assert "- seeds 1; 50 100 200 features\n- options: `--splice 5`\n" in text
    assert "- kernel.sag: `--rates 8 --optimiser sag`\n" in text
    assert "## Failed" not in text


def test_a_cell_that_failed_leaves_the_rest(study, kernelam):
    """The command runs what is not done, ends with status 1, and what it can test it does."""
    only(study, "sum_b_1", "dnn_b_1")
    for name in ("sum_b_1", "dnn_b_1"):
        (study.folder / name / "model.safetensors").unlink()
    Path("fail").write_text("sum_b_1")
    given = ("--quick", "--set", "corpus=c", "--cmd", "./runner", "--output", "CLAIMS.md", "claims.toml")
    ran = kernelam("claims", *given)
    assert ran.returncode == 1
    assert ran.stderr.endswith("sum_b_1 failed: kernelam claims: ./train.sh failed with status 1\n")
    text = Path("CLAIMS.md").read_text()
    row = next(line for line in ran.stdout.splitlines() if line.startswith("| 11."))
    assert row.endswith("| **not tested**: cell sum_b_1 failed |")
    assert row in text
    assert text.count("not tested**") == 1
    failed = text[text.index("## Failed") :].splitlines()
    assert failed[2:] == [
        "sum_b_1:",
        "",
        "    this cell cannot be",
        "    kernelam claims: ./train.sh failed with status 1",
    ]
    Path("fail").write_text("nothing at all")
    ran = kernelam("claims", *given)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "not tested" not in Path("CLAIMS.md").read_text()


def only(study: Study, *names: str) -> None:
    """Let ./runner run these cells alone."""
    numbers = {cell.name: str(number) for number, cell in enumerate(study.cells, 1)}
    Path("these").write_text("\n".join(numbers[name] for name in names))
    Path("runner").write_text(RUNNER)
    Path("runner").chmod(0o755)


def test_a_study_goes_on_elsewhere_with_what_is_known(study, kernelam):
    given = ("--quick", "--set", f"corpus={Path('c').resolve()}", "--cmd", "./runner")
    only(study, *study.keys)
    Path("calls").unlink()  # the cells are of another path of the corpus
    ran = kernelam("claims", *given, "--output", "first.md", "claims.toml")
    assert (ran.returncode, ran.stderr) == (0, "")
    known, text = json.loads(Path("first.json").read_text()), Path("first.md").read_text()
    assert known["cells"].keys() == {cell.name for cell in study.cells}
    assert "/" not in Path("first.json").read_text().replace("/s", "")  # no path of this machine

    for name in ("gaussian_br_1", "gaussian_nt-fs_1"):
        del known["cells"][name]
    known["cells"]["dnn_nt_1"]["made"] = "by other commands"
    Path("known.json").write_text(json.dumps(known))
    shutil.rmtree(study.folder)
    Path("c").rename("d")
    Path("calls").unlink()
    given = ("--quick", "--set", f"corpus={Path('d').resolve()}", "--cmd", "./runner")
    ran = kernelam("claims", *given, "--known", "known.json", "--output", "second.md", "claims.toml")
    assert (ran.returncode, ran.stderr) == (0, "")
    made = {path.name for path in study.folder.glob("*_1")}
    assert made == {"gaussian_b-fs_1", "gaussian_br_1", "gaussian_nt-fs_1", "dnn_nt_1"}  # the first for its features
    assert Path("second.md").read_text().split("## Time")[0] == text.split("## Time")[0]
    assert json.loads(Path("second.json").read_text())["cells"].keys() == {cell.name for cell in study.cells}


def test_what_a_cell_needs_is_part_of_its_sign(declared):
    before = signs(declared, {"corpus": "/c"}, False)
    declared.write_text(declared.read_text().replace("--layers 3", "--layers 4"))
    after = signs(declared, {"corpus": "/elsewhere"}, False)
    changed = {name for name, sign in after.items() if sign != before[name]}
    assert changed == {name for name in after if "dnn" in name}  # with-dnn among them, whose own command is the same
    assert signs(declared, {"corpus": "c"}, False) != after  # no path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "known.json is damaged: "),
        ('{"format": "kernelam results 1"}', "known.json is no file of outcomes that kernelam claims has written"),
        ('{"format": "kernelam claims 1"}', "known.json is damaged: it has no 'cells'"),
        ('{"format": "kernelam claims 1", "cells": {"dnn_nt_1": {}}}', "known.json is damaged: it has no 'made'"),
        ('{"format": "kernelam claims 1", "cells": {"dnn_nt_1": {"made": "s"}}}', "known.json is damaged: "),
    ],
)
def test_what_is_no_file_of_outcomes_is_told(tmp_path, text, sentence):
    path = tmp_path / "known.json"
    with pytest.raises(KernelamError, match="there is no such file of outcomes"):
        read_kept(path, {})
    path.write_text(text)
    with pytest.raises(KernelamError, match=sentence):
        read_kept(path, {"dnn_nt_1": "s"})


def test_no_file_of_something_else_is_written_over(study, kernelam):
    Path("mine.json").write_text("[]")
    ran = kernelam("claims", "--quick", "--set", "corpus=c", "--output", "mine.md", "claims.toml")
    assert (ran.returncode, ran.stderr) == (
        1,
        "kernelam claims: mine.json is no file of outcomes, and would be lost: write to another --output\n",
    )
    assert Path("mine.json").read_text() == "[]"
    ran = kernelam("claims", "--quick", "--set", "corpus=c", "--output", "other.json", "claims.toml")
    assert (ran.returncode, ran.stderr) == (
        1,
        "kernelam claims: other.json cannot hold both the page and the outcomes: --output is to end in .md\n",
    )


def test_outcomes_of_other_data_are_refused(study):
    path = study.folder / "dnn_b_1/model.json"
    told = json.loads(path.read_text())
    for name, digest in (("dnn_b_1", "a"), ("dnn_nt_1", "b")):
        told["training"]["data"] = [digest, digest]
        (study.folder / name / "model.json").write_text(json.dumps(told))
    with pytest.raises(KernelamError, match="the cells dnn_nt_1 and dnn_b_1 were trained on different data"):
        read_findings(study, SIGNS)


def test_no_page_without_any_cell(declared):
    study = Study.read(declared, {"corpus": "c"}, quick=True)
    with pytest.raises(KernelamError, match="all 51 cells failed, laplacian_b-fs_1 with: it was never begun"):
        read_findings(study, SIGNS)


def test_outcomes_are_read_from_the_model(study):
    outcome = read_outcome(study.folder / "gaussian_sag_1", None)
    assert outcome.losses == [2.5, 2.5]
    assert outcome.survival == pytest.approx(0.4)
    path = study.folder / "gaussian_sag_1/model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "heldout": {}}))
    with pytest.raises(KernelamError, match=r"gaussian_sag_1/model\.json has no metrics of heldout frames"):
        read_outcome(path.parent, None)


def test_parts_have_rows_of_their_own():
    parts = [
        Part("first", Estimate(-0.034, (-0.05, -0.01), 9), Verdict.HELD),
        Part("second", Estimate(0.5, None, 2), Verdict.TOO_SMALL, Form.DIFFERENCE),
        Part("third", Estimate(5 / 8, (0.31, 0.863), 8), Verdict.TOO_SMALL, Form.SHARE),
        Part("fourth", Estimate(-0.0002, (-0.03, 0.0001), 8), Verdict.TOO_SMALL),
        Part("beside", Estimate(float("nan"), None, 2), None),
    ]
    assert table([Finding(CLAIMS[5], parts, Verdict.TOO_SMALL)]).rows == [
        ["6. More features help, with diminishing returns", "may2017, 6.4", "", "", "", "**too small to tell**"],
        ["– first", "", "−3.4 %", "−5.0 % to −1.0 %", "9", "held"],
        ["– second", "", "+0.50", "–", "2", "too small to tell"],
        ["– third", "", "62 %", "31 % to 86 %", "8", "too small to tell"],
        ["– fourth", "", "0.0 %", "−3.0 % to 0.0 %", "8", "too small to tell"],
        ["– beside", "", "–", "–", "2", ""],
    ]


def test_time_by_the_clock_counts_what_ran_side_by_side_once():
    work = [Work("train", 0, 10), Work("train", 5, 12), Work("decode", 6, 7), Work("decode", 100, 101)]
    assert elapsed(work) == 13
    assert elapsed([]) == 0
    assert [duration(seconds) for seconds in (20, 60 * 59, 3600 * 5 + 120)] == ["under a minute", "59 min", "5 h 2 min"]


def test_quick_in_the_jobs_too(declared):
    study = Study.read(declared, {"corpus": "c"}, quick=True)
    Path("echo").write_text('#!/bin/bash\necho "$@" >> jobs\n')
    Path("echo").chmod(0o755)
    command = ["-m", "kernelam", "claims", "--quick", "--set", "corpus=c", "--cmd", "./echo", str(declared)]
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, *command], env={"PYTHONPATH": str(root)}, capture_output=True, check=False)
    itself = "exp/claims_quick/log/cell.JOB.log kernelam claims --quick --set corpus=c claims.toml --cell JOB"
    jobs = [f"JOB={wave.start}:{wave.stop - 1} {itself}" for wave in study.waves]
    assert Path("jobs").read_text().splitlines() == jobs
