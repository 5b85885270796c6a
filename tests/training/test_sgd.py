"""The trainer on a small problem: the halving rule, resuming after a kill, choice of the rate, metrics."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

from kernelam.errors import KernelamError
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training import sgd
from kernelam.training.halving import Halving
from kernelam.training.metrics import evaluate

OPTIONS = sgd.SgdOptions(rates=(0.5, 4.0), search_frames=300, batch=32, max_epochs=6, max_halvings=3, seed=5)
CPU = torch.device("cpu")


def batches(folder: Path, seed: int) -> Batches:
    rng = np.random.default_rng(seed)
    labels = {f"u{i}": rng.integers(3, size=100, dtype=np.int32) for i in range(6)}
    matrices = {utt: rng.standard_normal((100, 4)).astype(np.float32) + y[:, None] for utt, y in labels.items()}
    store = FrameStore.build(folder, matrices.items(), labels)
    return Batches(store, (0, 0), np.zeros(4, np.float32), np.ones(4, np.float32), CPU)


@pytest.fixture
def sets(tmp_path) -> tuple[Batches, Batches]:
    return batches(tmp_path / "train", 1), batches(tmp_path / "heldout", 2)


def model() -> KernelSoftmax:
    kernel = Gaussian(2.0)
    inputs = Inputs((0, 0), np.zeros(4, np.float32), np.ones(4, np.float32))
    return KernelSoftmax(kernel, kernel.feature_map(4, 40, 1), 0, Pipeline(), inputs, np.ones(3), CPU)


def test_metrics_against_scikit_learn(sets):
    train, heldout = sets
    trained = model()
    trained.initialise(1)
    for x, y in train.shuffled(32, 1, 1):
        trained.step(x, y, 2.0)
    x, y = next(heldout.in_order(len(heldout)))
    p = torch.softmax(trained.logits(x), dim=1).numpy()
    metrics = evaluate(trained, heldout, size=77)
    assert metrics["ce"] == pytest.approx(log_loss(y, p, labels=[0, 1, 2]), rel=1e-5)
    entropy = -(p * np.log(p)).sum(axis=1).mean()
    assert metrics["entropy"] == pytest.approx(entropy, rel=1e-5)
    assert metrics["erll"] == pytest.approx(metrics["ce"] + entropy, rel=1e-5)
    assert metrics["frame_error"] == pytest.approx((p.argmax(axis=1) != y.numpy()).mean())


def test_the_halving_rule():
    rule = Halving(rate=8.0, best=2.0, max_halvings=3)
    assert rule.judge(1.9) == (True, False)  # 5 % better: go on
    assert rule.judge(1.89) == (True, True)  # half a per cent better: kept, but the rate is halved
    assert rule.rate == 4.0
    assert rule.judge(1.95) == (False, True)  # worse: back to where the epoch began
    assert (rule.rate, rule.best, rule.ended) == (2.0, 1.89, False)
    assert rule.judge(float("nan")) == (False, True)  # divergence is worse
    assert rule.ended


def test_training_lowers_the_heldout_loss_and_tells_its_story(sets, tmp_path):
    trained = model()
    epochs = sgd.fit(trained, *sets, OPTIONS, tmp_path, "f")
    kept = [row["ce"] for row in epochs if row.get("kept", True)]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] < 0.8 * kept[0]
    assert evaluate(trained, sets[1])["ce"] == pytest.approx(kept[-1], rel=1e-6)
    lines = [json.loads(line) for line in (tmp_path / "epochs.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in lines] == list(range(len(lines)))
    assert {row["rate"] for row in lines[0]["search"]} == {0.5, 4.0}


def test_a_run_that_is_killed_ends_where_an_uninterrupted_one_does(sets, tmp_path, monkeypatch):
    whole = model()
    (tmp_path / "whole").mkdir()
    sgd.fit(whole, *sets, OPTIONS, tmp_path / "whole", "f")

    real = sgd._epoch
    for stop in (1, 3):  # killed in the first epoch, then in the third

        def dying(*args, stop=stop):
            if args[-1] == stop:
                raise KeyboardInterrupt
            return real(*args)

        monkeypatch.setattr(sgd, "_epoch", dying)
        with pytest.raises(KeyboardInterrupt):
            sgd.fit(model(), *sets, OPTIONS, tmp_path, "f")
    monkeypatch.setattr(sgd, "_epoch", real)
    resumed = model()
    sgd.fit(resumed, *sets, OPTIONS, tmp_path, "f")
    for name, array in whole.parameters.items():
        assert torch.equal(array, resumed.parameters[name])


def test_the_story_is_whole_whenever_the_last_checkpoint_is(sets, tmp_path, monkeypatch):
    """A run that is killed as it writes the checkpoint of its last epoch has no epoch left to write a story after."""
    real = sgd.checkpoint.write

    def killed(*args):
        real(*args)
        raise KeyboardInterrupt

    options = replace(OPTIONS, max_epochs=1)
    monkeypatch.setattr(sgd.checkpoint, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        sgd.fit(model(), *sets, options, tmp_path, "f")
    assert len(sgd.fit(model(), *sets, options, tmp_path, "f")) == 2
    assert len((tmp_path / "epochs.jsonl").read_text().splitlines()) == 2


def test_a_damaged_or_foreign_checkpoint_is_not_used(sets, tmp_path, capsys):
    sgd.fit(model(), *sets, OPTIONS, tmp_path, "f")
    path = tmp_path / "checkpoint.safetensors"
    sgd.fit(model(), *sets, OPTIONS, tmp_path, "another")
    assert "other data or settings" in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:100])
    sgd.fit(model(), *sets, OPTIONS, tmp_path, "another")
    assert "is damaged" in capsys.readouterr().err


def test_divergence_at_every_rate_is_a_sentence(sets, tmp_path):
    options = sgd.SgdOptions(rates=(1e38, float("inf")), search_frames=600, batch=32)
    with pytest.raises(KernelamError, match=r"no learning rate of 1e\+38, inf lowered the heldout ce"):
        sgd.fit(model(), *sets, options, tmp_path, "f")


def test_an_epoch_that_diverges_is_broken_off_and_told_without_nan(sets, tmp_path, monkeypatch):
    monkeypatch.setattr(sgd, "choose_rate", lambda *_: [{"rate": float("inf"), "frames": 300, "ce": float("nan")}])
    options = sgd.SgdOptions(rates=(float("inf"),), search_frames=300, batch=2, max_epochs=1)
    trained = model()
    sgd.fit(trained, *sets, options, tmp_path, "f")
    search, epoch = (json.loads(line) for line in (tmp_path / "epochs.jsonl").read_text().splitlines())
    assert search["search"][0]["ce"] is None
    assert (epoch["ce"], epoch["train_ce"], epoch["kept"], epoch["frames"]) == (None, None, False, 128)
    assert all(torch.isfinite(tensor).all() for tensor in trained.arrays().values())


@pytest.mark.parametrize(("rates", "side"), [((1e-3, 1e-2), "higher"), ((4.0, 1e38), "lower")])
def test_a_rate_at_the_edge_of_those_tried_is_said(sets, tmp_path, capsys, rates, side):
    options = sgd.SgdOptions(rates=rates, search_frames=600, batch=32, max_epochs=1)
    sgd.fit(model(), *sets, options, tmp_path, "f")
    assert f"at the edge of those tried: {side} --rates may do better" in capsys.readouterr().err
