"""egs/bn50 on its look-alike, in little: all stages, from SGML and STM to error rates that sclite confirms."""

from pathlib import Path

import pytest
from brief import call, recipe, result


@pytest.fixture(scope="module")
def ran(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the recipe after a run, and what it said."""
    folder = recipe(root, "bn50", tmp_path_factory.mktemp("bn50"))
    said = call(
        folder,
        ["local/bn50/make_lookalike.sh", "--shows", "5", "corpus"],
        ["./run.sh", "--corpus", "corpus", "--size", "brief", "--nj", "1"],
    )
    return folder, said


def test_the_table_has_every_system(ran):
    place, said = ran
    table = (place / "RESULTS.md").read_text()
    assert table.startswith("# Broadcast News")
    for name in ("GMM, ", "Gaussian kernel, 600 features", "DNN, 1 × 64 tanh"):
        assert f"| {name}" in table
    rates = {}
    for name in ("tri3", "gaussian", "dnn_tanh", "combination"):
        found = result(place, name)
        assert (found["rule"], found["utterances"]) == ("sclite", 24)
        rates[name] = found["rate"]
    assert max(rates.values()) < 0.7
    left_out = [line for line in said.splitlines() if "are left out" in line]
    assert left_out  # the example in its documentation, which has no sound
    assert all(line.endswith("of 6 shows are left out, for want of their sound: readme") for line in left_out)


def test_sclite_counts_the_same(ran, need_program):
    need_program("sctk")
    place, said = ran
    assert said.count(" by sclite, exp/") == 8
    assert "sclite counts otherwise" not in said
    assert (place / "exp/gaussian/decode_test/scoring_sclite/hyp.ctm.sys").exists()


def test_what_is_ignored_has_no_words(ran):
    place, _ = ran
    stm = (place / "data/test/stm").read_text().splitlines()
    ignored = [line.split()[3] for line in stm if "IGNORE_TIME" in line]
    scored = [line.split()[0] for line in (place / "exp/tri3/decode_test/scoring_kaldi/test_filt.txt").open()]
    assert len(ignored) == 6
    assert not {f"{round(100 * float(begin)):07d}" for begin in ignored} & {name.split("-")[1] for name in scored}
    assert len((place / "data/test/text").read_text().splitlines()) == len(scored) == 24
