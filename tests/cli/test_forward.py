"""kernelam forward on a real experiment: every way of writing holds the same matrices; models without phones.txt."""

import shutil
from pathlib import Path

import click
import kaldiio
import numpy as np
import pytest
from click.testing import CliRunner

from kernelam.cli.forward import command as forward
from kernelam.cli.train import command as train
from kernelam.errors import KernelamError
from kernelam.kaldi.ark import MatrixScp, read_ark


@pytest.fixture
def sample(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The experiment, which is gone into; data/{dev,train} of three utterances are in tmp_path."""
    folder = corpora / "kaldi-timit-sample"
    monkeypatch.chdir(folder)
    for name in ("dev", "train"):
        data = tmp_path / "data" / name
        data.mkdir(parents=True)
        for table in ("feats.scp", "utt2spk"):
            rows = (folder / "data" / name / table).read_text().splitlines(keepends=True)[:3]
            (data / table).write_text("".join(rows))
        shutil.copy(folder / "data" / name / "cmvn.scp", data)
    return folder


def run(command: click.Command, *arguments: object) -> None:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if isinstance(result.exception, KernelamError):
        raise result.exception
    assert result.exit_code == 0, result.output


def test_archives_in_text_and_with_a_list(sample: Path, tmp_path: Path) -> None:
    for output in ("ark:{}/b.ark", "ark,t:{}/t.ark", "ark,scp:{0}/s.ark,{0}/s.scp"):
        run(forward, "exp/tri1", tmp_path / "data/dev", output.format(tmp_path))
    matrices = dict(read_ark(tmp_path / "b.ark"))
    assert [matrix.shape[1] for matrix in matrices.values()] == [128] * 3
    assert (tmp_path / "s.ark").read_bytes() == (tmp_path / "b.ark").read_bytes()
    assert (tmp_path / "t.ark").read_bytes().isascii()
    others = [dict(read_ark(tmp_path / "t.ark")), MatrixScp(tmp_path / "s.scp")]
    others += [dict(kaldiio.load_ark(str(tmp_path / "t.ark"))), kaldiio.load_scp(str(tmp_path / "s.scp"))]
    for other in others:
        assert list(other) == list(matrices)
        for utt, matrix in matrices.items():
            np.testing.assert_allclose(other[utt], matrix, rtol=1e-6)


@pytest.mark.parametrize("output", ["ark,x:-", "ark,scp:only.ark", "scp:a.scp"])
def test_other_ways_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KernelamError, match=rf"{output}: write to ark:-, ark:FILE, ark,t:FILE \(text\), ark,scp:ARK"):
        run(forward, "exp/tri1", "data/dev", output)
    assert not list(tmp_path.iterdir())


def test_alignments_without_phones_take_those_of_the_lang_directory(sample: Path, tmp_path: Path) -> None:
    small = ("kernel", "--num-features", 8, "--max-epochs", 1, "--rates", 8, "--splice", 1)
    sets = ("exp/mono_ali", "exp/mono_ali")
    data = (tmp_path / "data/train", tmp_path / "data/train")
    assert not (sample / "exp/mono_ali/phones.txt").exists()
    run(train, *small, *data, "data/lang", *sets, tmp_path / "exp")
    assert (tmp_path / "exp/phones.txt").read_bytes() == (sample / "data/lang/phones.txt").read_bytes()
    run(forward, tmp_path / "exp", tmp_path / "data/dev", tmp_path / "out.ark")
    (tmp_path / "lang").mkdir()
    few = (sample / "data/lang/phones.txt").read_text().splitlines(keepends=True)[:40]
    (tmp_path / "lang/phones.txt").write_text("".join(few))
    with pytest.raises(KernelamError, match=r"phone 40 of exp/mono_ali/final.mdl is not in .*/lang/phones.txt"):
        run(train, *small, *data, tmp_path / "lang", *sets, tmp_path / "none")
    assert not (tmp_path / "none").exists()
