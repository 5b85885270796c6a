"""The trainer on a small problem: schedules, resuming after a kill, the search, metrics, noise."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

from kernelam.errors import KernelamError
from kernelam.frames.augmentation import Augmentation, generator_for
from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import Gaussian
from kernelam.models.dnn import Dnn, Network
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training import optimisers, search, trainer
from kernelam.training.checkpoint import Clock
from kernelam.training.metrics import Metric, evaluate
from kernelam.training.schedules import Decay, Halving
from kernelam.training.trainer import TrainingOptions

OPTIONS = TrainingOptions(
    rates=(0.5, 4.0), search_frames=300, batch=32, schedule="halving", max_epochs=6, max_halvings=3, seed=5
)
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


def model(sigma: float = 2.0) -> KernelSoftmax:
    kernel = Gaussian(sigma)
    inputs = Inputs((0, 0), np.zeros(4, np.float32), np.ones(4, np.float32))
    return KernelSoftmax(kernel, kernel.feature_map(4, 40, 1), 0, Pipeline(), inputs, np.ones(3), CPU)


def fit(trained, sets, options, folder, fingerprint="f", rate=4.0):
    trained.initialise(options.seed)
    first = {"epoch": 0, **evaluate(trained, sets[1], options.metric)}
    return trainer.fit(trained, *sets, options, rate, first, folder, fingerprint)


def find(sets, options, folder, bandwidths=(2.0,), build=model, fingerprint="f"):
    place = (folder, fingerprint, Clock(folder, fingerprint))
    return search.search(build, search.Variants("bandwidth", bandwidths), *sets, options, *place)


def test_metrics_against_scikit_learn(sets):
    train, heldout = sets
    trained = model()
    trained.initialise(1)
    for frames in train.shuffled(32, 1, 1):
        trained.step(*train.take(frames), 2.0)
    x, y = next(heldout.in_order(len(heldout)))
    p = torch.softmax(trained.logits(x), dim=1).numpy()
    metrics = evaluate(trained, heldout, "top-k:0.25", size=77)
    assert metrics["ce"] == pytest.approx(log_loss(y, p, labels=[0, 1, 2]), rel=1e-5)
    entropy = -(p * np.log(p)).sum(axis=1).mean()
    assert metrics["entropy"] == pytest.approx(entropy, rel=1e-5)
    assert metrics["erll"] == pytest.approx(metrics["ce"] + entropy, rel=1e-5)
    assert metrics["frame_error"] == pytest.approx((p.argmax(axis=1) != y.numpy()).mean())
    assert metrics["accuracy"] == pytest.approx(1 - metrics["frame_error"])
    assert metrics["perplexity"] == pytest.approx(np.exp(metrics["ce"]))
    right = np.sort(p[np.arange(len(y)), y])[::-1]
    assert metrics["top-k:0.25"] == pytest.approx(-np.log(right[:150]).mean(), rel=1e-5)
    assert evaluate(trained, heldout, "capped")["capped"] == pytest.approx(-np.log(right + 0.01).mean(), rel=1e-5)
    assert evaluate(trained, heldout, "erll:-0.5")["erll:-0.5"] == pytest.approx(metrics["ce"] - entropy / 2, rel=1e-4)
    for same in ("erll:0", "capped:0", "top-k:1"):  # may2017: with these values all are the log loss
        assert evaluate(trained, heldout, same)[same] == pytest.approx(metrics["ce"], rel=1e-6)


@pytest.mark.parametrize(
    "text", ["", "wer", "ce:1", "erll:x", "capped:-1", "top-k:0", "top-k:1.5", "erll:inf", "erll:nan"]
)
def test_a_metric_that_is_none_is_a_sentence(text):
    with pytest.raises(KernelamError, match="no metric is called"):
        Metric.parse(text)


@pytest.mark.parametrize("text", ["ce", "erll", "erll:0.5", "capped:0.1", "top-k", "top-k:0.5"])
def test_a_metric_prints_as_it_is_written(text):
    assert str(Metric.parse(text)) == text


def test_the_halving_rule():
    rule = Halving(rate=8.0, best=2.0, max_epochs=20, max_halvings=3)
    assert rule.judge(1.9) == (True, False)  # 5 % better: go on
    assert rule.judge(1.89) == (True, True)  # half a per cent better: kept, but the rate is halved
    assert rule.rate_at(0.5) == 4.0
    assert rule.judge(1.95) == (False, True)  # worse: back to where the epoch began
    assert (rule.rate, rule.best, rule.ended) == (2.0, 1.89, False)
    assert rule.judge(float("nan")) == (False, True)  # divergence is worse
    assert rule.ended


def test_decay_falls_to_zero_and_repeats_what_diverged():
    rule = Decay(rate=8.0, untrained=3.0, max_epochs=2)
    assert [rule.rate_at(share) for share in (0.0, 0.5)] == [8.0, 6.0]
    assert rule.judge(float("nan")) == (False, True)
    assert rule.rate_at(0.0) == 4.0
    assert rule.judge(2.0) == (True, False)
    assert [rule.rate_at(share) for share in (0.0, 1.0)] == [2.0, 0.0]
    assert rule.judge(2.5) == (True, False)  # within the plan a worse epoch is no reason to go back
    assert rule.ended


def test_the_last_epoch_is_averaged(sets, tmp_path, monkeypatch):
    """Against the mean of weights recorded by hand, at a constant rate; earlier epochs are those of plain SGD."""
    monkeypatch.setattr(optimisers, "STRIDE", 3)
    averaged, plain, seen = model(), model(), []
    fit(averaged, sets, replace(OPTIONS, schedule="average", max_epochs=2), tmp_path)
    plain.initialise(OPTIONS.seed)
    for epoch in (1, 2):
        for number, frames in enumerate(sets[0].shuffled(32, OPTIONS.seed, epoch), 1):
            plain.step(*sets[0].take(frames), 4.0)
            if epoch == 2 and number % 3 == 0:
                seen.append({name: array.clone() for name, array in plain.arrays().items()})
    assert len(seen) == 6
    for name, array in averaged.arrays().items():
        expected = torch.stack([weights[name] for weights in seen]).mean(dim=0)
        torch.testing.assert_close(array, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("schedule", ["halving", "decay", "average"])
def test_training_lowers_the_heldout_loss_and_tells_its_story(sets, tmp_path, schedule):
    trained = model()
    epochs = fit(trained, sets, replace(OPTIONS, schedule=schedule), tmp_path)
    kept = [row["ce"] for row in epochs if row.get("kept", True)]
    assert kept == sorted(kept, reverse=True) or schedule != "halving"
    assert kept[-1] < 0.8 * kept[0]
    assert evaluate(trained, sets[1])["ce"] == pytest.approx(kept[-1], rel=1e-6)
    assert [row["epoch"] for row in epochs] == list(range(len(epochs)))


VARIANTS = {
    "halving": OPTIONS,
    "decay": replace(OPTIONS, schedule="decay", augment="noise:0.1"),
    "average": replace(OPTIONS, schedule="average"),
    "sag": replace(OPTIONS, optimiser="sag", l2s=(1e-3,)),
    "sag-average": replace(OPTIONS, optimiser="sag", schedule="average"),
    "sag-half": replace(OPTIONS, optimiser="sag", sag_table="half", schedule="decay"),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_that_is_killed_ends_where_an_uninterrupted_one_does(sets, tmp_path, monkeypatch, variant):
    options, whole = VARIANTS[variant], model()
    (tmp_path / "whole").mkdir()
    fit(whole, sets, options, tmp_path / "whole")

    real, calls = trainer.evaluate, 0
    for stop in (1, 3):  # killed in the first epoch, then in the third

        def dying(*args, stop=stop):
            nonlocal calls
            calls += 1
            if calls == stop:
                raise KeyboardInterrupt
            return real(*args)

        monkeypatch.setattr(trainer, "evaluate", dying)
        with pytest.raises(KeyboardInterrupt):
            fit(model(), sets, options, tmp_path)
    monkeypatch.setattr(trainer, "evaluate", real)
    resumed = model()
    fit(resumed, sets, options, tmp_path)
    for name, array in whole.parameters.items():
        assert torch.equal(array, resumed.parameters[name])


def test_the_story_is_whole_whenever_the_last_checkpoint_is(sets, tmp_path, monkeypatch):
    """A run that is killed as it writes the checkpoint of its last epoch has no epoch left to write a story after."""
    real = trainer.checkpoint.write

    def killed(*args):
        real(*args)
        raise KeyboardInterrupt

    options = replace(OPTIONS, max_epochs=1)
    monkeypatch.setattr(trainer.checkpoint, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(model(), sets, options, tmp_path)
    assert len(fit(model(), sets, options, tmp_path)) == 2


def test_a_damaged_or_foreign_checkpoint_is_not_used(sets, tmp_path, capsys):
    fit(model(), sets, OPTIONS, tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    fit(model(), sets, OPTIONS, tmp_path, "another")
    assert "other data or settings" in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:100])
    fit(model(), sets, OPTIONS, tmp_path, "another")
    assert "is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("optimiser", ["sgd", "sag"])
def test_an_epoch_that_diverges_is_broken_off_and_told_without_nan(sets, tmp_path, optimiser):
    options = replace(OPTIONS, batch=2, max_epochs=1, optimiser=optimiser)
    trained = model()
    _, epoch = fit(trained, sets, options, tmp_path, rate=float("inf"))
    assert (epoch["ce"], epoch["train_ce"], epoch["kept"], epoch["frames"]) == (None, None, False, 128)
    assert all(torch.isfinite(tensor).all() for tensor in trained.arrays().values())


def test_the_search_tries_every_pair_and_finds_the_best(sets, tmp_path):
    found = find(sets, OPTIONS, tmp_path, (0.02, 2.0))
    assert {(row["bandwidth"], row["rate"]) for row in found.trials} == {
        (bandwidth, rate) for bandwidth in (0.02, 2.0) for rate in OPTIONS.rates
    }
    assert [row["ce"] for row in found.trials] == sorted(row["ce"] for row in found.trials)
    assert found.trials[0]["bandwidth"] == 2.0
    assert found.untrained["ce"] == pytest.approx(np.log(3), rel=1e-6)


def test_the_search_tries_l2_and_momentum_too(sets, tmp_path, capsys):
    def network(dropout: float) -> Dnn:
        inputs = Inputs((0, 0), np.zeros(4, np.float32), np.ones(4, np.float32))
        return Dnn(Network(1, 8, dropout=dropout), Pipeline(), inputs, np.ones(3), CPU)

    options = replace(OPTIONS, rates=(0.1,), momenta=(0.0, 0.9), l2s=(0.0, 10.0))
    place = (tmp_path, "f", Clock(tmp_path, "f"))
    found = search.search(network, search.Variants("dropout", (0.0, 0.5)), *sets, options, *place)
    tried = [(row["dropout"], row["l2"], row["momentum"], row["rate"]) for row in found.trials]
    assert sorted(tried) == list(product((0.0, 0.5), (0.0, 10.0), (0.0, 0.9), (0.1,)))
    assert tried[0][1:3] == (0.0, 0.9)  # 300 frames are few for plain steps, and the penalty leaves no weights
    said = capsys.readouterr().err
    assert "dropout 0.5, l2 10, momentum 0.9, learning rate 0.1 on 300 frames" in said
    assert "the best momentum, 0.9, is at the edge of those tried: higher --momentum may do better" in said
    assert "the best l2" not in said  # nothing is below 0


def test_the_time_before_a_kill_counts(sets, tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("kernelam.training.checkpoint.time.monotonic", lambda: now[0])

    def build(bandwidth):
        now[0] += 7.0
        if bandwidth == 3.0:
            raise KeyboardInterrupt
        return model(bandwidth)

    with pytest.raises(KeyboardInterrupt):
        find(sets, OPTIONS, tmp_path, (2.0, 3.0), build)
    now[0] = 5.0  # of another process
    clock = Clock(tmp_path, "f")
    now[0] += 1.0
    assert clock.seconds == 8.0
    assert Clock(tmp_path, "of other data").seconds == 0.0
    (tmp_path / "seconds.json").write_text('{"seconds": null}')
    assert Clock(tmp_path, "f").seconds == 0.0


def test_a_search_that_was_killed_goes_on(sets, tmp_path):
    tried = []

    def build(bandwidth):
        tried.append(bandwidth)
        if len(tried) == 2:
            raise KeyboardInterrupt
        return model(bandwidth)

    with pytest.raises(KeyboardInterrupt):
        find(sets, OPTIONS, tmp_path, (1.0, 2.0, 3.0), build)
    found = find(sets, OPTIONS, tmp_path, (1.0, 2.0, 3.0), build)
    assert tried == [1.0, 2.0, 2.0, 3.0]
    (tmp_path / "search.json").unlink()
    assert find(sets, OPTIONS, tmp_path, (1.0, 2.0, 3.0)) == found
    find(sets, OPTIONS, tmp_path, (3.0,), build, "another")  # what was found for other data does not count
    assert tried[4:] == [3.0]


def test_what_is_given_twice_is_tried_once(sets, tmp_path):
    """As in a search that was killed between the two, which finds the second done."""
    twice = replace(OPTIONS, rates=(2.0, 4.0, 2.0), l2s=(0.0, 0.0))
    assert len(find(sets, twice, tmp_path, (1.0, 1.0)).trials) == 2
    assert find(sets, replace(OPTIONS, rates=(4.0, 4.0)), tmp_path / "none").trials[0]["frames"] == 0


def test_divergence_at_every_rate_is_a_sentence(sets, tmp_path):
    options = TrainingOptions(rates=(1e38, float("inf")), search_frames=600, batch=32)
    with pytest.raises(KernelamError, match=r"no learning rate of 1e\+38, inf lowered the heldout ce"):
        find(sets, options, tmp_path)
    assert json.loads((tmp_path / "search.json").read_text())["trials"][1]["ce"] is None


@pytest.mark.parametrize(("rates", "side"), [((1e-3, 1e-2), "higher"), ((4.0, 1e38), "lower")])
def test_a_rate_at_the_edge_of_those_tried_is_said(sets, tmp_path, capsys, rates, side):
    find(sets, TrainingOptions(rates=rates, search_frames=600, batch=32), tmp_path)
    assert f"at the edge of those tried: {side} --rates may do better" in capsys.readouterr().err


def test_an_l2_at_the_edge_and_rates_too_low_to_see_are_said(sets, tmp_path, capsys):
    find(sets, replace(OPTIONS, l2s=(1e-3, 100.0)), tmp_path)
    assert "the best l2, 0.001, is at the edge of those tried: lower --l2 may do better" in capsys.readouterr().err
    with pytest.raises(KernelamError, match="try higher --rates"):
        find(sets, replace(OPTIONS, rates=(1e-30, 1e-29)), tmp_path, fingerprint="another")


def test_a_single_configuration_is_not_tried(sets, tmp_path):
    found = find(sets, replace(OPTIONS, rates=(4.0,)), tmp_path)
    assert found.trials == [{"bandwidth": 2.0, "l2": 0.0, "momentum": 0.0, "rate": 4.0, "frames": 0}]


def test_noise_is_what_it_says_and_comes_again_with_the_seed():
    x = torch.ones(400, 500)
    masked = Augmentation.parse("mask:0.2")(x.clone(), generator_for(CPU, 1, 3))
    assert set(masked.unique().tolist()) == {0.0, 1.0}
    assert float((masked == 0).float().mean()) == pytest.approx(0.2, abs=0.01)
    noisy = Augmentation.parse("noise:0.3")(x.clone(), generator_for(CPU, 1, 3))
    assert float(noisy.std()) == pytest.approx(0.3, rel=0.02)
    assert torch.equal(noisy, Augmentation.parse("noise:0.3")(x.clone(), generator_for(CPU, 1, 3)))
    assert not torch.equal(noisy, Augmentation.parse("noise:0.3")(x.clone(), generator_for(CPU, 1, 4)))


@pytest.mark.parametrize(
    "text", ["mask", "mask:0", "mask:1", "noise:-1", "noise:nan", "blur:1", "noise:inf", "deform:0"]
)
def test_an_augmentation_that_is_none_is_a_sentence(text):
    with pytest.raises(KernelamError, match="no augmentation is called"):
        Augmentation.parse(text)


@pytest.mark.parametrize("text", ["ce", "erll", "erll:0.5", "capped:0.0123456789", "top-k:1"])
def test_a_metric_keeps_the_digits_it_was_given(text):
    assert str(Metric.parse(text)) == text
