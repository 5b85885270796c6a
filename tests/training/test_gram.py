"""A_i and g_i against plain products, whatever the number of jobs and however often they were killed."""

import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.kernels import FeatureMap, Gaussian
from kernelam.training import gram
from kernelam.training.bench import QUICK, Stopwatch
from kernelam.training.bench_gram import gram as bench
from kernelam.training.gram import Grams, Sums, accumulate, assemble, assign, units
from kernelam.training.triangles import Triangle

CPU = torch.device("cpu")
COUNTS = np.array([300, 0, 1, 40, 250])
D = 90


@pytest.fixture
def train(tmp_path: Path) -> Batches:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(5), COUNTS)).astype(np.int32)
    frames = rng.standard_normal((len(labels), 6)).astype(np.float32)
    store = FrameStore.build(tmp_path / "train", [("u", frames)], {"u": labels})
    return Batches(store, (1, 1), np.zeros(6, np.float32), np.ones(6, np.float32), CPU)


@pytest.fixture
def features() -> FeatureMap:
    return Gaussian(3.0).feature_map(18, D, 1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of 100 frames, in chunks of 32."""
    monkeypatch.setattr(gram, "UNIT", 100)
    monkeypatch.setattr(gram, "CHUNK", 32)


def summed(train: Batches, features: FeatureMap, folder: Path, jobs: int = 1) -> Grams:
    every, sums = units(COUNTS), Sums(folder, "f")
    for share in assign(every, jobs):
        accumulate(share, train, features, sums)
    return assemble(every, D, COUNTS, sums, CPU)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.f32")}


@pytest.mark.parametrize("r", [1, 8, 79, 100, 250])
def test_a_triangle_is_the_matrix(r: int) -> None:
    rng = torch.Generator().manual_seed(r)
    zt, v = (torch.randn(size, dtype=torch.float64, generator=rng) for size in ((r, 33), (5, r)))
    triangle, A = Triangle(r), zt @ zt.T
    packed = torch.zeros(triangle.size, dtype=torch.float64)
    triangle.add(packed, zt)
    assert sum(panel.numel() for _, panel in triangle.panels(packed)) == triangle.size
    torch.testing.assert_close(triangle.full(packed), A)
    torch.testing.assert_close(triangle.multiply(packed, v), v @ A)
    rows, columns = torch.triu_indices(r, r)
    torch.testing.assert_close(triangle.at(packed, rows, columns), A[rows, columns])
    assert r < 80 or triangle.size < 1.1 * r * (r + 1) / 2


def test_units_cover_each_class_once(small: None) -> None:
    every = units(COUNTS)
    assert [(unit.name, unit.frames) for unit in every] == [
        *(("0.0", 100), ("0.1", 100), ("0.2", 100), ("2", 1), ("3", 40)),
        *(("4.0", 100), ("4.1", 100), ("4.2", 50)),
    ]
    assert [unit.start for unit in every[1:]] == [unit.stop for unit in every[:-1]]
    for jobs in (1, 2, 3, 20):
        shares = assign(every, jobs)
        assert sorted((unit for share in shares for unit in share), key=lambda unit: unit.start) == every
        loads = [sum(unit.frames for unit in share) for share in shares]
        assert max(loads) - min(loads) <= 100


def test_sums_are_plain_products(train: Batches, features: FeatureMap, tmp_path: Path, small: None) -> None:
    grams = summed(train, features, tmp_path / "sums")
    x, labels = next(train.in_order(len(train)))
    z = features(x).double()
    for label in (0, 2, 3, 4):
        own = z[labels == label]
        torch.testing.assert_close(grams.full(label).double(), own.T @ own, rtol=0, atol=1e-5 * COUNTS[label] / D)
        torch.testing.assert_close(grams.g[label], own.sum(dim=0), rtol=0, atol=1e-5)
    assert 0 < grams.error < gram.BOUND
    assert not grams.g[1].any()
    assert sorted(contents(tmp_path / "sums")) == ["0.f32", "2.f32", "3.f32", "4.f32"]


def test_any_number_of_jobs_gives_the_same_bits(
    train: Batches, features: FeatureMap, tmp_path: Path, small: None
) -> None:
    for jobs in (1, 2, 3):
        summed(train, features, tmp_path / str(jobs), jobs)
    assert contents(tmp_path / "1") == contents(tmp_path / "2") == contents(tmp_path / "3")


@pytest.mark.parametrize("after", [0, 3, 6])
def test_a_kill_costs_a_unit(
    train: Batches, features: FeatureMap, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    whole, calls = summed(train, features, tmp_path / "whole"), [0]
    compute = gram._sum

    def count(*args: object) -> object:
        calls[0] += 1
        if calls[0] == after + 1:
            raise KeyboardInterrupt
        return compute(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(gram, "_sum", count)
    with pytest.raises(KeyboardInterrupt):
        summed(train, features, tmp_path / "sums")
    again = summed(train, features, tmp_path / "sums")
    assert calls[0] == len(units(COUNTS)) + 1
    assert contents(tmp_path / "sums") == contents(tmp_path / "whole")
    assert torch.equal(again.g, whole.g)


def test_a_wrong_sum_is_found(
    train: Batches, features: FeatureMap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = gram._sum

    def wrong(matrix: int, *args: object) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        packed, arrays = compute(matrix, *args)  # type: ignore[arg-type]
        return packed + (0.001 if matrix == 3 else 0.0), arrays

    monkeypatch.setattr(gram, "_sum", wrong)
    with pytest.raises(KernelamError, match=r"the sums over the frames of class 3 .* more than 1e-05"):
        summed(train, features, tmp_path / "sums")


def spoil(path: Path) -> None:
    """One bit, in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("3.f32", spoil, "3.f32 is damaged: its digest is not the one it was written with: it is summed again"),
        ("0.f32", spoil, "0.f32 is damaged: its digest is not the one it was written with: it is summed again"),
        ("3.f32", lambda path: path.write_bytes(b"1234"), "3.f32 has 4 bytes, but 17616 belong to it: it is summed"),
        ("3.safetensors", spoil, "3.safetensors is damaged"),
        ("3.safetensors", lambda path: path.write_bytes(b"{"), "3.safetensors is damaged"),
        ("3.safetensors", Path.unlink, "3.safetensors is not there: it is summed again"),
        ("3.f32", Path.unlink, ""),
    ],
)
def test_a_damaged_file_is_summed_again(
    train: Batches,
    features: FeatureMap,
    tmp_path: Path,
    small: None,
    capsys: pytest.CaptureFixture[str],
    name: str,
    damage: Callable[[Path], None],
    said: str,
) -> None:
    """Of one unit, and of several."""
    whole = summed(train, features, tmp_path / "whole")
    summed(train, features, tmp_path / "sums")
    capsys.readouterr()
    damage(tmp_path / "sums" / name)
    again = summed(train, features, tmp_path / "sums")
    assert said in capsys.readouterr().err
    assert contents(tmp_path / "sums") == contents(tmp_path / "whole")
    assert torch.equal(again.g, whole.g)


def test_sums_of_other_data_are_not_used(train: Batches, features: FeatureMap, tmp_path: Path) -> None:
    summed(train, features, tmp_path / "sums")
    other, folder = Gaussian(3.0).feature_map(18, D, 2), tmp_path / "sums"
    accumulate(units(COUNTS), train, other, Sums(folder, "of other features"))
    accumulate(units(COUNTS), train, other, Sums(tmp_path / "other", "of other features"))
    assert contents(folder) == contents(tmp_path / "other")


def test_sums_whose_folder_is_gone_end(
    train: Batches, features: FeatureMap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that another training has overtaken."""
    compute = gram._sum

    def overtaken(*args: object) -> object:
        shutil.rmtree(tmp_path / "sums")
        return compute(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(gram, "_sum", overtaken)
    with pytest.raises(KernelamError, match="sums was removed while sums were made: another training has taken its"):
        summed(train, features, tmp_path / "sums")
    assert not (tmp_path / "sums").exists()


def test_a_full_disk_is_named(train: Batches, features: FeatureMap, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
        with pytest.raises(KernelamError, match=r"cannot write .*/0\.f32: File too large"):
            accumulate(units(COUNTS), train, features, Sums(tmp_path / "sums", "f"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert [path.name for path in (tmp_path / "sums").iterdir()] == ["0.safetensors"]


def test_the_share_of_the_peak_is_measured() -> None:
    found = bench(Stopwatch(1, QUICK), 64, 10)
    assert found["D"] == 64
    assert min(found.values()) > 0
