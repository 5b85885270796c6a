"""kernelam bench optimisers on a real experiment: every way is trained once, and timed to the same CE."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelam.cli.bench import command

DATA = ("data/dev", "data/dev", "data/lang", "exp/tri1_ali_dev", "exp/tri1_ali_dev")


@pytest.mark.parametrize(("bottleneck", "sag"), [(0, ["sag halving"]), (8, [])])
def test_every_way_is_trained_once(corpora: Path, tmp_path: Path, monkeypatch, bottleneck: int, sag: list[str]) -> None:
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    size = f"--num-features 32 --rates 2 --search-frames 2000 --splice 1 --bottleneck {bottleneck}"
    ways = "--seeds 1 --max-epochs 3 --decay-epochs 2 --precondition 4"
    places = ["--json", str(tmp_path / "out.json"), *DATA, str(tmp_path / "exp")]
    for _ in range(2):
        result = CliRunner().invoke(command, ["optimisers", *size.split(), *ways.split(), *places])
        assert result.exit_code == 0, result.output
    rows = {row["way"]: row for row in json.loads((tmp_path / "out.json").read_text())["optimisers"]}
    assert list(rows) == ["sgd halving", *sag, "sgd average 2", "sgd decay 2", "damped decay 2"]
    assert rows["sgd halving"]["share"] == 1.0
    assert rows["damped decay 2"]["ce"] != rows["sgd decay 2"]["ce"]
