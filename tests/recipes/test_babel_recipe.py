"""egs/babel on look-alikes of both packs, in a shortened form: all stages, to an error rate."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

SIZE = """
gmms=(100 60 200) em=(--num-iters 3 --max-iter-inc 2)
combined=(exp/gaussian exp/dnn_tanh) beams=(--beam 9 --lattice-beam 5 --max-active 1000)
_brief=(--search-frames 2000 --max-epochs 3 --num-threads 1)
may2017() { system gaussian train_kernel.sh --num-features 300 --precondition 16 --rates 256 "${_brief[@]}"; }
networks() { system dnn_tanh train_dnn.sh --layers 1 --width 128 --momentum 0.9 --rates 0.2 "${_brief[@]}"; }
"""
CODES = {"bengali": "OP1_103", "cantonese": "BP_101"}


def recipe(root: Path, folder: Path) -> Path:
    """A folder like egs/babel/s5, with systems of a smaller size."""
    original = root / "egs/babel/s5"
    for name in ("steps", "utils", "local", "path.sh", "cmd.sh"):
        (folder / name).symlink_to(original / name)
    shutil.copy(original / "run.sh", folder)
    shutil.copytree(original / "conf", folder / "conf")
    (folder / "conf/lookalike.sh").write_text(SIZE)
    return folder


@pytest.mark.parametrize(
    ("language", "options", "units", "limit"),
    [
        ("bengali", (), "words (unmarked)", 0.3),
        ("cantonese", ("--pieces", "80"), "characters (joined, unmarked, noascii)", 0.3),
    ],
)
def test_all_stages(root, tmp_path, language, options, units, limit):
    for package in ("espeakng_loader", "sentencepiece"):
        pytest.importorskip(package)
    folder = recipe(root, tmp_path)
    for command in (
        ["local/babel/make_lookalike.sh", "--nj", "1", "--language", language, "--conversations", "5", "corpus"],
        ["./run.sh", "--corpus", "corpus", "--language", language, "--size", "lookalike", "--nj", "1", *options],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-3000:]
    assert (folder / f"corpus/IARPA_BABEL_{CODES[language]}/conversational/dev/audio").is_dir()
    for model in ("tri3", "gaussian", "dnn_tanh", "combination"):
        scoring = folder / language / "exp" / model / "decode_test/scoring_kaldi"
        result = json.loads((scoring / "result.json").read_text())
        assert result["tuned_on"] == f"exp/{model}/decode_dev"
        assert result["units"] == units
        assert result["rate"] < (limit if model == "combination" else 0.9), model
    table = (folder / language / "RESULTS.md").read_text()
    assert f"test {'WER' if language == 'bengali' else 'CER'} %" in table
