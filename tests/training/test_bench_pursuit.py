"""How the time of pursuit grows: what it is measured by, and the command."""

import json
import math

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from test_combine_models import write_data, write_states
from test_pursuit import Table as Rings

from kernelam.cli.bench import command
from kernelam.errors import KernelamError
from kernelam.kernels import Gaussian, Polynomial
from kernelam.training.bench_pursuit import Study, describe_pursuit, fit_all, pursuit_bench
from kernelam.training.exact import Table
from kernelam.training.pursuit import PursuitOptions

OPTIONS = PursuitOptions(basis=60, first=5, added=5, penalty=0.1, searched=100)


def table(count: int) -> Table:
    made = Rings(count)
    return Table(made.x, made.labels)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Polynomial(2, 5.0)])
def test_the_model_of_all_samples_maximises_the_objective(kernel):
    """Eq. 5 with G of all samples, whose gradient in feature space, eq. 6, is 0 at c β_n = d_n."""
    data = table(80)
    fitted = fit_all(data, 4, kernel, 0.1)
    gram = kernel(data.x.double(), data.x.double())
    beta = torch.zeros(80, 4, dtype=torch.float64)
    own = torch.nn.functional.one_hot(data.labels, 4)
    for _ in range(20_000):
        beta += 2e-3 * (own - torch.softmax(gram @ beta, 1) - 0.1 * beta)
    log_p = torch.log_softmax(gram @ beta, 1).gather(1, data.labels[:, None]).sum()
    assert fitted.objective == pytest.approx(float(log_p - 0.05 * (beta * (gram @ beta)).sum()), rel=1e-3)


def test_times_are_until_the_share_is_reached():
    found = pursuit_bench(table(500), 4, Study("gaussian", 1.0, OPTIONS, (60, 120, 240), 2), 1)
    assert [row["samples"] for row in found["rows"]] == [60, 120, 240]
    assert [(row["samples"], row["trial"]) for row in found["trials"]] == [
        (size, number) for size in (60, 120, 240) for number in (1, 2)
    ]
    assert all(0.95 <= row["share"] <= 1.001 for row in found["trials"])
    assert all(row["basis"] < row["samples"] for row in found["trials"])
    sizes, seconds = np.log([60, 120, 240]), np.log([row["seconds_all"] for row in found["rows"]])
    assert found["slope_all"] == pytest.approx(np.polyfit(sizes, seconds, 1)[0])
    lines = describe_pursuit(found).splitlines()
    assert lines[0].split("  ")[0] == "samples"
    assert len(lines) == 6
    assert f"pursuit {found['slope']:.2f}" in lines[-1]


def test_what_cannot_be_is_a_sentence(monkeypatch):
    with pytest.raises(KernelamError, match="a model of 600 samples is asked for, and there are 500"):
        pursuit_bench(table(500), 4, Study("gaussian", 1.0, OPTIONS, (600,), 1), 1)
    with pytest.raises(KernelamError, match="whole numbers from 2 on, not 0"):
        Study("gaussian", 1.0, OPTIONS, (100, 0), 1)
    monkeypatch.setattr("kernelam.training.bench_pursuit.available", lambda device: 1000)
    with pytest.raises(KernelamError, match=r"a model of 100 samples takes .* smaller --sizes take less"):
        pursuit_bench(table(500), 4, Study("gaussian", 1.0, OPTIONS, (100,), 1), 1)


def test_the_command_takes_what_training_takes(tmp_path):
    write_data(tmp_path, write_states(tmp_path / "ali"))
    places = [str(tmp_path / name) for name in ("data", "data", "lang", "ali", "ali", "bench")]
    size = "--sizes 100,200 --trials 1 --splice 0 --first 4 --added 4 --basis 50 --penalty 0.1"
    result = CliRunner().invoke(command, ["pursuit", *size.split(), "--json", str(tmp_path / "out.json"), *places])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out.json").read_text())
    assert math.isfinite(found["slope"])
    assert f"all samples {found['slope_all']:.2f}" in result.output
    assert not list((tmp_path / "bench").iterdir())
    result = CliRunner().invoke(command, ["pursuit", "--kernel", "laplacian", *places])
    assert "not a differentiable function" in str(result.exception)
