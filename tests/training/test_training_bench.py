"""The training bench: what it counts, what it compares with, and what it says of runs."""

import builtins
import json
import math
import time

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kernelam.kernels import Gaussian
from kernelam.models.posterior import has_bfloat16
from kernelam.training import bench
from kernelam.training.bench import QUICK, Scale, Size, Stopwatch, compare, describe_bench, naive_step, table
from kernelam.training.bench_memory import Case, _store, epoch_memory
from kernelam.training.bench_optimisers import compare_optimisers, describe_optimisers, time_to

SIZES = [Size(60, 13, d=7, batch=5), Size(60, 30, 11, d=7, batch=5)]
IN_PLACE = {torch.ops.aten.addmm_: lambda _, a, b, **others: 2 * a[0] * a[1] * b[1]}  # not counted by itself


@pytest.mark.parametrize("size", SIZES)
def test_flops_are_those_that_pytorch_counts(size):
    x, labels = size.data()
    model = size.model(Gaussian(1.0))
    with FlopCounterMode(display=False, custom_mapping=IN_PLACE) as counter:
        model.step(x, labels, 0.1)
    assert counter.get_total_flops() == size.step_flops()
    with FlopCounterMode(display=False, custom_mapping=IN_PLACE) as counter:
        model.logits(x)
    assert counter.get_total_flops() == size.forward_flops()
    assert size.forward_flops() - size.forward_flops(5) == 2 * 5 * 60 * (7 - 5)


@pytest.mark.parametrize("size", SIZES)
def test_the_naive_step_is_the_same_step(size):
    """From the same weights, the same loss, and after ten steps too."""
    x, labels = size.data()
    model = size.model(Gaussian(3.0))
    torch.manual_seed(0)
    naive = naive_step(size, model.feature_map)
    torch.manual_seed(0)
    shapes = {"U": (size.D, size.r), "V": (size.r, size.C)} if size.r else {"theta": (size.D, size.C)}
    model._set({name: 0.01 * torch.randn(shape) for name, shape in shapes.items()} | {"bias": torch.zeros(size.C)})
    losses = [(float(model.step(x, labels, bench.RATE)) / len(x), naive(x, labels).item()) for _ in range(10)]
    assert losses[0][0] > losses[-1][0]
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-5)


def test_the_watch_takes_medians_without_the_first_round(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "process_time", lambda: now[0])
    durations = iter([50.0, 1.0, 9.0, 2.0])

    def task() -> None:
        now[0] += next(durations)

    products = iter(range(100))

    def product(a, b, out):
        now[0] += (0.7, 0.5, 0.9)[next(products) % 3]

    monkeypatch.setattr(torch, "mm", product)
    times = Stopwatch(1, Scale(peak=8, rounds=3))("test", {"task": task})
    assert times.median["task"] == 2.0
    assert times.peak == 2 * 8**3 / 0.5
    assert times.share("task", 512) == pytest.approx(0.125)


def test_without_scikit_learn_its_row_is_left_out(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    figures = compare(Size(40, 9, d=5, batch=4), Stopwatch(1, QUICK), "")
    assert "train_vs_sklearn_sag" not in figures
    assert figures["train_vs_autograd"] > 0


def test_columns_are_aligned():
    assert table("a  long", [["xyz", 1], ["y", 12.5]]) == "a    long\nxyz     1\ny    12.5"


def test_memory_of_an_epoch_holds_the_weights(tmp_path):
    assert len(_store(Case(10, 3, 0, 1203), tmp_path / "frames")) == 1203
    small, large = (epoch_memory(Case(D, 40, 0, 300), 1) for D in (100, 20_000))
    weights = 4 * 20_000 * (440 // 2 + 40)  # pairs halve the frequencies
    assert large[1] - small[1] > weights
    assert large[0] >= large[1]


def test_the_bench_of_many_frames_has_memory_and_speed(kernelam, tmp_path):
    done = kernelam("bench", "frames", "--quick", "--json", tmp_path / "frames.json")
    assert done.returncode == 0, done.stderr
    few, many = json.loads((tmp_path / "frames.json").read_text())
    assert (few["frames"], many["frames"]) == (1000, 3000)
    assert abs(many["private_gb"] - few["private_gb"]) < 0.05
    assert f"speed times {many['speed'] / few['speed']:.3f}" in done.stdout


def row(epoch: int, ce: float, seconds: float, kept: bool = True) -> dict:
    return {"epoch": epoch, "ce": ce, "cpu_seconds": seconds, "frames": 100, "kept": kept, "rate": 1.0}


SLOW = [{"epoch": 0, "ce": 5.0}, row(1, 3.0, 2.0), row(2, 2.0, 2.0), row(3, 2.5, 2.0, False), row(4, 1.9, 2.0)]
FAST = [{"epoch": 0, "ce": 5.0}, row(1, 2.1, 1.0), row(2, 1.8, 3.0)]


def test_time_to_a_heldout_ce():
    assert time_to(SLOW, 2.0) == {"epochs": 2, "frames": 200, "cpu_seconds": 4.0}
    assert time_to(SLOW, 1.95) == {"epochs": 4, "frames": 400, "cpu_seconds": 8.0}, "reverted epochs take time too"
    assert set(time_to(SLOW, 1.0).values()) == {None}
    rows = compare_optimisers(7, {"sgd halving": SLOW, "sgd decay 2": FAST}, "sgd halving")
    assert [(row["seed"], row["ce"], row["share"]) for row in rows] == [(7, 1.9, 1.0), (7, 1.8, 0.5)]
    assert "never" not in describe_optimisers(rows, "sgd halving")
    rows = compare_optimisers(7, {"sgd halving": SLOW, "sgd decay 2": FAST}, "sgd decay 2")
    assert "never" in describe_optimisers(rows, "sgd decay 2")


def test_the_command_writes_all_figures(kernelam, tmp_path):
    done = kernelam("bench", "--quick", "--json", tmp_path / "bench.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "bench.json").read_text())
    main = ("train_gemm_share", "forward_gemm_share", "train_vs_autograd", "sparse_vs_dense")
    for name in (*main, *(f"{name}_bottleneck" for name in main), "train_vs_sklearn_sag", "gram_share"):
        assert math.isfinite(found[name]), name
        assert found[name] > 0, name
    assert found["machine"]["threads"] == 1
    assert found["machine"]["torch"] == torch.__version__
    assert {"cpu", "clock"} <= found["machine"].keys()
    (network,) = found["networks"]
    assert min(network["gemm_share"], network["vs_torch_nn"]) > 0
    assert (network["mixed_vs_single"] is not None) == has_bfloat16()
    assert len(found["projections"]) == 1 + len(bench.KERNELS)
    assert found["memory"][0]["peak_gb"] > 0.05
    assert done.stdout.strip() == describe_bench(found)


def test_mistakes(kernelam, tmp_path):
    for arguments, said in (
        (["--json", tmp_path / "no/bench.json"], "there is no folder"),
        (["training", "--threads", "0"], "option --threads takes a whole number of at least 1, not '0'"),
        (["--quick", "decoder", "a", "b", "c"], "--quick comes after"),
        (
            ["optimiser"],
            "there is no command optimiser; there are decoder, frames, optimisers, pursuit, ranks, training",
        ),
        (["optimisers", "--decay-epochs", "0", *"abcdef"], "--decay-epochs are whole numbers above zero, not 0"),
        (["optimisers", "--target", "sag halving", "--bottleneck", "9", *"abcdef"], "for models without a bottleneck"),
    ):
        done = kernelam("bench", *arguments, cwd=tmp_path)
        assert done.returncode == 1, arguments
        assert said in done.stderr.splitlines()[-1], done.stderr
    assert not list(tmp_path.iterdir())
