"""The README's way from a Kaldi experiment to an error rate, in a folder where another toolkit's scripts lie."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

STORY = """
. $k/path.sh
search="--nj 2 --beam 10 --lattice-beam 5 --acwt 0.2"
scoring="--min-lmwt 1 --max-lmwt 6 --units $out/to39"
$k/steps/train_kernel.sh --num-features 300 --rates "8 16" --max-epochs 8 --num-threads 1 \\
    --cmvn-opts "--norm-means=true" \\
    data-fmllr-tri3/train data-fmllr-tri3/dev data/lang exp/tri3_ali exp/tri3_ali_dev $out/kernel
$k/steps/decode.sh $search --scoring-opts "$scoring" \\
    exp/tri3/graph data-fmllr-tri3/dev $out/kernel/decode_dev
$k/steps/decode.sh $search --scoring-opts "$scoring" \\
    --tuned-on $out/kernel/decode_dev exp/tri3/graph data-fmllr-tri3/test $out/kernel/decode_test
cat $out/kernel/decode_test/scoring_kaldi/best_wer
"""
FOREIGN = "echo 'a script of another toolkit was called' >&2; exit 99\n"


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture(scope="module")
def place(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The experiment by links, with foreign scripts beside it; the folder for what is made."""
    folder, out = tmp_path_factory.mktemp("experiment"), tmp_path_factory.mktemp("out")
    for source in (corpora / "kaldi-timit-sample").iterdir():
        (folder / source.name).symlink_to(source)
    (folder / "path.sh").write_text(FOREIGN)
    for name in (
        "steps/decode.sh",
        "steps/train_kernel.sh",
        "steps/score.sh",
        "utils/parse_options.sh",
        "utils/run.pl",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{FOREIGN}")
        (folder / name).chmod(0o755)
    rows = (corpora / "kaldi-timit-sample/data/local/phones.60-48-39.map").read_text().splitlines()
    pairs = sorted({tuple(row.split()[1:]) for row in rows if len(row.split()) == 3})
    (out / "to39").write_text("".join(f"{phone} {to}\n" for phone, to in pairs))
    return folder, out


def run(script: str, root: Path, place: tuple[Path, Path], **extra: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "k": str(root), "out": str(place[1]), **extra}
    command = ["bash", "-c", f"set -euo pipefail\n{script}"]
    return subprocess.run(command, cwd=place[0], env=env, capture_output=True, text=True, timeout=600)


def test_from_alignments_to_an_error_rate(place, root, corpora):
    before = listing(place[0]), listing(corpora / "kaldi-timit-sample")
    done = run(STORY, root, place)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "another toolkit" not in done.stderr
    assert "\nwarning: data-fmllr-tri3/train has no cmvn.scp: its features are taken without CMVN\n" in done.stderr
    assert (listing(place[0]), listing(corpora / "kaldi-timit-sample")) == before
    result = json.loads((place[1] / "kernel/decode_test/scoring_kaldi/result.json").read_text())
    assert done.stdout.splitlines()[-1].startswith(f"%WER {100 * result['rate']:.2f} [ {result['errors']} / 880,")
    assert result["rate"] < 0.6
    assert result["missing"] == []


def test_likelihoods_for_a_decoder_of_ones_own(place, root):
    if not (place[1] / "kernel/model.json").exists():
        pytest.skip("the model was not trained")
    done = run(
        """. $k/path.sh
        kernelam forward $out/kernel data-fmllr-tri3/test ark:- > $out/likes.ark
        kernelam validate --data data-fmllr-tri3/test --graph exp/tri3/graph \\
            --counts $out/kernel/ali_train_pdf.counts $out/likes.ark""",
        root,
        place,
    )
    assert done.returncode == 0, done.stderr
    assert "24 utterances" in done.stderr
    assert "the prior subtracted once" in done.stderr


def test_a_model_and_a_graph_of_different_trees(place, root, tmp_path):
    """Said before anything is decoded, by either of the files that disagree."""
    if not (place[1] / "kernel/model.json").exists():
        pytest.skip("the model was not trained")
    shutil.copytree(place[1] / "kernel", tmp_path / "kernel")
    decode = f". $k/path.sh; $k/steps/decode.sh --nj 1 exp/tri1/graph data-fmllr-tri3/test {tmp_path}/kernel/decode_x"
    done = run(decode, root, place)
    assert done.returncode == 1
    assert "num_pdfs says 128" in done.stderr
    assert "final.mdl has 208 pdfs: the graph is of another tree" in done.stderr
    assert not list((tmp_path / "kernel/decode_x").glob("lat.*"))
    shutil.copy(place[0] / "exp/tri1/final.mdl", tmp_path / "kernel/final.mdl")
    done = run(decode, root, place)
    assert done.returncode == 1
    assert "kernel/final.mdl is not the file that" in done.stderr
