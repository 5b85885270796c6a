"""egs/bn50 on its look-alike, in little: all stages, from SGML and STM to error rates that sclite confirms."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def recipe(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the recipe after a run, and what it said."""
    place = tmp_path_factory.mktemp("egs") / "s5"
    source = root / "egs/bn50/s5"
    shutil.copytree(source / "conf", place / "conf")
    shutil.copy(root / "tests/recipes/bn50_brief.sh", place / "conf/brief.sh")
    shutil.copy(source / "run.sh", place)
    for name in ("path.sh", "cmd.sh", "steps", "utils", "local"):
        (place / name).symlink_to(source / name)
    make = [str(root / "local/bn50/make_lookalike.sh"), "--shows", "5", str(place / "corpus")]
    run = [str(place / "run.sh"), "--corpus", str(place / "corpus"), "--size", "brief", "--nj", "1"]
    said = []
    for command in (make, run):
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-3000:]
        said.append(done.stdout + done.stderr)
    return place, said[1]


def test_the_table_has_every_system(recipe):
    place, said = recipe
    table = (place / "RESULTS.md").read_text()
    assert table.startswith("# Broadcast News")
    for name in ("GMM, ", "Gaussian kernel, 600 features", "DNN, 1 × 64 tanh"):
        assert f"| {name}" in table
    rates = {}
    for name in ("tri3", "gaussian", "dnn_tanh", "combination"):
        result = json.loads((place / f"exp/{name}/decode_test/scoring_kaldi/result.json").read_text())
        assert (result["rule"], result["utterances"]) == ("sclite", 24)
        rates[name] = result["rate"]
    assert max(rates.values()) < 0.7
    assert "are left out" not in said


def test_sclite_counts_the_same(recipe, need_program):
    need_program("sctk")
    place, said = recipe
    assert said.count(" by sclite, exp/") == 8
    assert "sclite counts otherwise" not in said
    assert (place / "exp/gaussian/decode_test/scoring_sclite/hyp.ctm.sys").exists()


def test_what_is_ignored_has_no_words(recipe):
    place, _ = recipe
    stm = (place / "data/test/stm").read_text().splitlines()
    ignored = [line.split()[3] for line in stm if "IGNORE_TIME" in line]
    scored = [line.split()[0] for line in (place / "exp/tri3/decode_test/scoring_kaldi/test_filt.txt").open()]
    assert len(ignored) == 6
    assert not {f"{round(100 * float(begin)):07d}" for begin in ignored} & {name.split("-")[1] for name in scored}
    assert len((place / "data/test/text").read_text().splitlines()) == len(scored) == 24
