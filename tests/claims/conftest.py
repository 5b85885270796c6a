"""A declared study in a folder of its own, whose training and decoding take no time."""

import contextlib
import json
import shutil
from pathlib import Path
from unittest import mock

import pytest

from kernelam.claims.study import Study

DECLARATION = """
title = "The claims"
folder = "exp/claims"
data = ["data/tr", "data/cv", "lang", "{corpus}/ali", "{corpus}/ali_cv"]
decode = "./decode.sh"
graph = "graph"
tuned = "data/cv"
tested = "data/test"
options = "--splice 5"
combine = "./combine.sh"
augment = "mask:0.1"
seeds = [1, 2, 3]
grid_seeds = [1]
[kernel]
train = "./train.sh --precondition 32"
bandwidths = { laplacian = 1, gaussian = 0.6, sparse-gaussian = 2.0 }
features = [500, 1000, 2000]
whole = "--rates '64 128'"
bottleneck = "--bottleneck 64"
selection = "--selection 10"
blocks = "--blocks 4"
sgd = "--rates 8"
sag = "--rates 8 --optimiser sag"
[dnn]
train = "./train.sh --layers 3"
whole = ""
bottleneck = "--bottleneck 32"
[quick]
seeds = [1]
[quick.kernel]
features = [50, 100, 200]
[quick.dnn]
train = "./train.sh --layers 1"
"""
TRAIN = """#!/bin/bash
dir=${!#}
echo "$*" >> calls
[[ "$*" != *"$(cat fail)" ]] || { echo "this cell cannot be"; exit 1; }
cp given/* $dir
"""
DECODE = """#!/bin/bash
dir=${!#}
echo "$*" >> calls
tuned=$dir
[[ $1 != --tuned-on ]] || tuned=$2
mkdir -p $dir/scoring_kaldi/penalty_0.0
cp decoded/* $dir/scoring_kaldi; cp decoded/10.txt $dir/scoring_kaldi/penalty_0.0
sed -i "s#TUNED#$tuned#" $dir/scoring_kaldi/result.json
"""
MODEL = {
    "kind": "kernel",
    "config": {"kernel": {"name": "gaussian"}, "features": 200, "bottleneck": 0},
    "num_parameters": 1000,
    "seed": 1,
    "heldout": {"ce": 2.0, "erll": 3.0, "perplexity": 7.4, "entropy": 1.0, "frame_error": 0.4},
    "training": {"seconds": 1.0},
    "provenance": {
        "versions": {"kernelam": "0"},
        "git": "abc",
        "machine": {"processor": "P", "cores": 2, "system": "S"},
    },
}
EPOCHS = [{"epoch": 0, "ce": 5.0}, {"epoch": 1, "ce": 2.5}, {"epoch": 2, "ce": None, "kept": False}]
SELECTION = {"kept": [1, 2], "survival": [0.9, 1.0], "chance": [0.5, 1.0], "input_weights": [1.0]}
GIVEN = {
    "model.json": json.dumps(MODEL),
    "epochs.jsonl": "\n".join(map(json.dumps, EPOCHS)) + "\n",
    "selection.json": json.dumps(SELECTION),
    "model.safetensors": "",
    "ali_train_pdf.counts": "",
    "final.mdl": "",
}
RESULT = {"rate": 0.25, "tuned_on": "TUNED", "lmwt": 10, "wip": 0.0, "ref_words": 8, "utterances": 2, "replicates": 9}
DECODED = {
    "result.json": json.dumps({**RESULT, "oracle": {"rate": 0.25}}),
    "best_wer": "%WER 25.00 x/wer_10_0.0\n",
    "test_filt.txt": "u1 a b c d\nu2 e f g h\n",
    "10.txt": "u1 a b c d\nu2 e f\n",
}


def _write(place: Path) -> None:
    for folder in ("data/tr", "data/cv", "data/test", "lang", "c/ali", "c/ali_cv", "graph", "given", "decoded"):
        (place / folder).mkdir(parents=True)
    files = {"train.sh": TRAIN, "decode.sh": DECODE, "combine.sh": TRAIN, "fail": "nothing at all"}
    files |= {f"{folder}/utt2spk": "u s\n" for folder in ("data/tr", "data/cv", "data/test")}
    files |= {f"given/{name}": text for name, text in GIVEN.items()}
    files |= {f"decoded/{name}": text for name, text in DECODED.items()}
    for name, text in (files | {"claims.toml": DECLARATION}).items():
        (place / name).write_text(text)
        (place / name).chmod(0o755)


@pytest.fixture
def declared(tmp_path, monkeypatch) -> Path:
    _write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Path("claims.toml")


@pytest.fixture(scope="session")
def all_done(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("study")
    _write(place)
    with contextlib.chdir(place), mock.patch("os.fsync"):  # what many small files wait for
        study = Study.read(Path("claims.toml"), {"corpus": "c"}, quick=True)
        for cell in study.cells:
            study.run_cell(cell)
    return place


@pytest.fixture
def study(all_done, tmp_path, monkeypatch) -> Study:
    """A quick one, all cells done."""
    shutil.copytree(all_done, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    return Study.read(Path("claims.toml"), {"corpus": "c"}, quick=True)
