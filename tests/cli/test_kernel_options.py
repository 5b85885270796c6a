"""Feature selection with damped steps, and a second model on the features that the first one selected."""

import json
import shlex
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from kernelam.cli.train import command
from kernelam.errors import KernelamError
from kernelam.models.arrays import read_arrays
from kernelam.models.description import describe
from kernelam.training import kernel as module
from kernelam.training import selection

DATA = ["data/dev", "data/dev", "data/lang", "exp/tri1_ali_dev", "exp/tri1_ali_dev"]


def train(folder: Path, options: str) -> None:
    small = "--num-features 64 --rates 2 --search-frames 2000 --splice 1 --max-epochs 1 --precondition 4"
    result = CliRunner().invoke(command, ["kernel", *small.split(), *options.split(), *DATA, str(folder)])
    if isinstance(result.exception, KernelamError):
        raise result.exception
    assert result.exit_code == 0, result.output


def test_selected_features_are_damped_in_every_round_and_taken_again(corpora, tmp_path, monkeypatch):
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    seen = []

    def directions(model, *rest):
        seen.append(model.feature_map.arrays["omega"].clone())
        return leading(model, *rest)

    leading = module.leading_directions
    monkeypatch.setattr(module, "leading_directions", directions)
    first, second = tmp_path / "first", tmp_path / "second"
    train(first, "--selection 3 --selection-frames 1000")
    assert json.loads((first / "selection.json").read_text())["kept"] == [10, 21]
    arrays, _ = read_arrays(first / "model.safetensors")
    kept = next(array for name, array in arrays.items() if name.endswith("omega"))
    assert torch.equal(seen[-1], kept)
    assert len({tuple(omega[0].tolist()) for omega in seen}) == 3  # as drawn, after one round, after two

    train(second, f"--features-of {first} --bottleneck 8 --kernel laplacian")
    about = describe(second)
    assert about["config"]["kernel"]["name"] == "gaussian"
    assert about["training"]["settings"]["selection"] == "3"
    assert any(torch.equal(array, kept) for array in read_arrays(second / "model.safetensors")[0].values())

    before = (first / "model.safetensors").read_bytes()
    for options, sentence in (
        (f"--features-of {first}", "--features-of is the directory to train into"),
        (f"--features-of {second} --splice 2", r"in a context of \(1, 1\) frames, not"),
        (f"--features-of {tmp_path}/none", "none"),
    ):
        with pytest.raises(KernelamError, match=sentence):
            train(first, options)
        assert (first / "model.safetensors").read_bytes() == before


def test_a_damped_selection_that_is_killed_ends_where_an_uninterrupted_one_does(corpora, tmp_path, monkeypatch):
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    whole, killed, options = tmp_path / "whole", tmp_path / "killed", "--selection 4 --selection-frames 1000"
    train(whole, options)
    real, rounds = selection._train_round, []

    def dying(*args):
        rounds.append(args[-1])
        if len(rounds) == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(selection, "_train_round", dying)
    with pytest.raises(AssertionError):
        train(killed, options)
    assert not (killed / "model.safetensors").exists()
    train(killed, options)
    assert rounds == [1, 2, 2, 3]
    (ours, _), (theirs, _) = (read_arrays(folder / "model.safetensors") for folder in (killed, whole))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_model_is_trained_again_when_that_which_it_takes_its_features_of_has_changed(corpora, tmp_path, monkeypatch):
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    first, second = tmp_path / "first", tmp_path / "second"
    train(first, "--seed 1")
    train(second, f"--features-of {first}")
    before = (second / "model.safetensors").stat().st_mtime_ns
    train(second, f"--features-of {first}")
    assert (second / "model.safetensors").stat().st_mtime_ns == before
    train(first, "--seed 2")
    train(second, f"--features-of {first}")
    (ours, _), (theirs, _) = (read_arrays(folder / "model.safetensors") for folder in (second, first))
    (omega,) = (name for name in ours if name.endswith("omega"))
    assert torch.equal(ours[omega], theirs[omega])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("dnn --momentum 1.5", "--momentum is a number from 0 to below 1, not 1.5"),
        ("dnn --dropout '0 1'", "--dropout is a number from 0 to below 1, not 1"),
        ("kernel --l2 '0 -1'", "--l2 is a number from 0 to below inf, not -1"),
        ("ridge --ridge 1e30", "--ridge is a number from 0 to below 1e+15, not 1e+30"),
        ("kernel --l2 x", "option --l2 takes numbers with spaces or commas between them, not 'x'"),
    ],
)
def test_values_to_choose_from_that_cannot_be_are_a_sentence(tmp_path, words, sentence):
    result = CliRunner().invoke(command, [*shlex.split(words), *DATA, str(tmp_path / "model")])
    assert isinstance(result.exception, KernelamError)
    assert str(result.exception) == sentence
    assert not list(tmp_path.iterdir())
