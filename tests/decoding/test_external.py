"""Decoding by Kaldi's program: a stand-in takes its place, reads what it is sent, and answers with lattices."""

import gzip
import stat
import sys
from pathlib import Path

import pytest

SPY = """#!{python}
import os, sys
sys.path.insert(0, {root!r})
import kaldiio, numpy as np
from pathlib import Path
from kernelam.decoding.decoder import LatticeDecoder
from kernelam.decoding.search import Beams
from kernelam.hmm.graph import read_graph
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.lattices import write_lattice

*options, model, graph, feats, lattices = sys.argv[1:]
assert (feats, lattices) == ("ark:-", "ark:-"), sys.argv
given = dict(option[2:].split("=") for option in options)
if os.environ.get("DIE"):
    os.kill(os.getpid(), 11)
if os.environ.get("FAIL"):
    sys.exit("ERROR: no tokens survived")
beams = Beams(float(given["beam"]), float(given["lattice-beam"]), int(given["max-active"]), int(given["min-active"]))
decoder = LatticeDecoder(
    read_graph(graph), TransitionModel.load(Path(model)), float(given["acoustic-scale"]), beams
)
for number, (utt, matrix) in enumerate(kaldiio.load_ark(sys.stdin.buffer)):
    if not (os.environ.get("LOSE") and number == 0):
        write_lattice(sys.stdout.buffer, utt, decoder.decode(utt, np.array(matrix))[0])
"""


@pytest.fixture
def latgen(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "kaldi/src/bin/latgen-faster-mapped"
    program.parent.mkdir(parents=True)
    program.write_text(SPY.format(python=sys.executable, root=str(root)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("KALDI_ROOT", str(tmp_path / "kaldi"))
    return program


@pytest.fixture
def decode(corpora: Path, tmp_path: Path, kernelam):
    """The monophone GMM of the sample on three test utterances."""
    sample = corpora / "kaldi-timit-sample"
    data = tmp_path / "data"
    data.mkdir()
    for name in ("feats.scp", "utt2spk"):
        rows = (sample / "data/test" / name).read_text().splitlines(keepends=True)[:3]
        (data / name).write_text("".join(rows))
    (data / "cmvn.scp").write_text((sample / "data/test/cmvn.scp").read_text())

    def run(decoder: str, out: Path):
        args = ["--decoder", decoder, "--beam", 11, "--lattice-beam", 4, "exp/mono/graph", "exp/mono", data, out]
        return kernelam("decode", *args, cwd=sample)

    return run


def test_the_same_lattices_by_either_way(decode, latgen, tmp_path):
    outputs = []
    for decoder in ("embedded", "kaldi"):
        done = decode(decoder, tmp_path / f"{decoder}.gz")
        assert done.returncode == 0, done.stderr
        outputs.append(gzip.decompress((tmp_path / f"{decoder}.gz").read_bytes()))
    assert outputs[0] == outputs[1]
    assert "--acoustic-scale=0.1 --beam=11.0 --lattice-beam=4.0 --max-active=7000 --min-active=200" in done.stderr


def test_utterances_that_kaldi_lost_are_named(decode, latgen, tmp_path, monkeypatch):
    monkeypatch.setenv("LOSE", "1")
    done = decode("kaldi", tmp_path / "lat.gz")
    assert done.returncode == 0, done.stderr
    assert "latgen-faster-mapped made no lattice of 1 of 3 utterances: FALR0_SI1325" in done.stderr


def test_a_failure_of_kaldi_is_a_failure(decode, latgen, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIL", "1")
    done = decode("kaldi", tmp_path / "lat.gz")
    assert done.returncode == 1
    assert "latgen-faster-mapped ended with status 1" in done.stderr
    assert not (tmp_path / "lat.gz").exists()


def test_a_kaldi_that_crashes_is_a_failure(decode, latgen, tmp_path, monkeypatch):
    monkeypatch.setenv("DIE", "1")
    done = decode("kaldi", tmp_path / "lat.gz")
    assert done.returncode == 1
    assert "latgen-faster-mapped was killed by SIGSEGV" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "lat.gz").exists()


def test_without_kaldi_it_is_said(decode, tmp_path, monkeypatch):
    monkeypatch.setenv("KALDI_ROOT", str(tmp_path / "none"))
    done = decode("kaldi", tmp_path / "lat.gz")
    assert done.returncode == 1
    assert f"there is no latgen-faster-mapped on the PATH, nor in {tmp_path}/none/src/bin" in done.stderr
