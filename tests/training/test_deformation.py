"""Deformations of square images."""

import numpy as np
import pytest
import torch
from pretended_gpu import DEVICE, OnDevice, PretendedGpu

from kernelam.errors import KernelamError
from kernelam.frames.augmentation import Augmentation, generator_for
from kernelam.frames.deformation import deform

CPU = torch.device("cpu")


@pytest.fixture
def x() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).random((50, 28 * 28), np.float32))


def smooth(count: int = 50, side: int = 28) -> torch.Tensor:
    """Images whose pixels differ little from their neighbours: the sine of a plane."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:side, :side] / side
    a, b, c = rng.uniform(0, 2, (3, count, 1, 1))
    return torch.from_numpy(np.sin(a + b * x + c * y).astype(np.float32).reshape(count, -1))


def test_hardly_any_deformation_is_hardly_any_change(x):
    torch.testing.assert_close(deform(x, 1e-6, generator_for(CPU, 1, 1)), x, atol=1e-4, rtol=0)


def test_a_shift_by_whole_pixels_moves_them(x, monkeypatch):
    draw = torch.tensor([[[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]]).expand(50, 3, 2)  # t = (2, −2), A = 0
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: draw)
    monkeypatch.setattr(torch, "randn", lambda *shape, **_: torch.zeros(shape))
    found, images = deform(x, 2.0, generator_for(CPU, 1, 1)).view(50, 28, 28), x.view(50, 28, 28)
    torch.testing.assert_close(found[:, 2:, :-2], images[:, :-2, 2:], atol=1e-4, rtol=0)
    torch.testing.assert_close(found[:, 0, :-2], images[:, 0, 2:], atol=1e-4, rtol=0)  # beyond the edge, as there


def test_a_turn_by_a_right_angle(x, monkeypatch):
    """p + d(p) = (p_y, −p_x), if A = (−1, −1; 1, −1) half the side."""
    half = 13.5
    a = torch.tensor([[-1.0, -1.0], [1.0, -1.0]])
    draw = torch.cat([torch.full((1, 2), 0.5), (a + 1.0) / 2.0]).expand(50, 3, 2)
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: draw)
    monkeypatch.setattr(torch, "randn", lambda *shape, **_: torch.zeros(shape))
    found, images = deform(x, half, generator_for(CPU, 1, 1)).view(50, 28, 28), x.view(50, 28, 28)
    rows, columns = np.mgrid[:28, :28]
    torch.testing.assert_close(found, images[:, 27 - columns, rows], atol=1e-3, rtol=0)


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_pixels_come_from_about_as_far_as_it_says(size):
    images = smooth()
    ramp = torch.arange(28.0).repeat(28)[None].expand(400, -1).contiguous()  # whose pixels tell where they were
    moved = (deform(ramp, size, generator_for(CPU, 1, 1)) - ramp).view(400, 28, 28)[:, 8:20, 8:20]
    assert 0.5 * size < float(moved.std()) < size
    change = deform(images, size, generator_for(CPU, 1, 1)) - images
    assert 0.0 < float(change.abs().mean()) < 0.1 * size


def test_it_comes_again_with_the_seed_and_epoch(x):
    found = [Augmentation.parse("deform:1")(x.clone(), generator_for(CPU, 1, epoch)) for epoch in (3, 3, 4)]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert not torch.equal(found[0][0] - x[0], found[0][1] - x[1])


def test_it_stays_on_the_device(x):
    expected = deform(x, 1.0, generator_for(CPU, 1, 1))
    with PretendedGpu():
        found = deform(x.to(DEVICE), 1.0, generator_for(CPU, 1, 1))
        assert isinstance(found, OnDevice)
        torch.testing.assert_close(found.cpu(), expected)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((783, (0, 0), "shared"), "inputs of 783 numbers are no square images of one colour"),
        ((3072, (0, 0), "shared"), "inputs of 3072 numbers are no square images of one colour"),
        ((1, (0, 0), "shared"), "inputs of 1 numbers are no square images"),
        ((784, (1, 1), "shared"), "it needs --splice 0 and --scaling shared"),
        ((784, (0, 0), "each"), "it needs --splice 0 and --scaling shared"),
    ],
)
def test_inputs_that_are_no_images_are_a_sentence(given, sentence):
    with pytest.raises(KernelamError, match=sentence):
        Augmentation.parse("deform:1").check(*given)
    Augmentation.parse("noise:1").check(*given)


def test_images_are_taken():
    Augmentation.parse("deform:1").check(784, (0, 0), "shared")
