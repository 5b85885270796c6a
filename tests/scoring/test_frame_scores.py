"""Frame errors by the command line, against a count by hand."""

from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.kernels import Gaussian
from kernelam.models.directory import save_model
from kernelam.models.posterior import Inputs
from kernelam.models.ridge import Ridge
from kernelam.scoring.frames import frame_errors


@pytest.fixture
def made(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Ridge]:
    """A ridge model of three classes of the many, beside real alignments."""
    import torch

    sample = corpora / "kaldi-timit-sample"
    monkeypatch.chdir(sample)
    count = TransitionModel.load(sample / "exp/tri1_ali_dev/final.mdl").num_pdfs
    kernel, rng = Gaussian(3.0), torch.Generator().manual_seed(0)
    inputs = Inputs((0, 0), np.zeros(13, np.float32), np.ones(13, np.float32))
    common = (Pipeline(), inputs, np.ones(count), torch.device("cpu"))
    classes, beta = torch.tensor([0, 5, 60]), torch.randn(3, 20, generator=rng)
    model = Ridge(kernel, kernel.feature_map(13, 20, 1), "one-vs-one", classes, beta, *common)
    folder = tmp_path / "exp"
    folder.mkdir()
    save_model(folder, model, {}, [sample / "exp/tri1_ali_dev" / name for name in ("final.mdl", "tree")])
    return folder, model


def test_frames_are_counted(made: tuple[Path, Ridge], kernelam) -> None:
    folder, model = made
    data, ali = Path("data/dev"), Path("exp/tri1_ali_dev")
    found = frame_errors(folder, data, ali)
    transitions = TransitionModel.load(ali / "final.mdl")
    features, alignments = model.open(data), read_alignment_dir(ali)
    assert found["probabilities"].utterances.keys() == alignments.keys()
    for utt, alignment in alignments.items():
        labels = transitions.ali_to_pdf(alignment)
        scores = {
            "probabilities": model.log_posteriors(features[utt]),
            "votes": model.votes(model.inputs.tensor(features[utt])).numpy(),
        }
        for way, score in scores.items():
            wrong = sum(row.argmax() != label for row, label in zip(score, labels, strict=True))
            assert found[way].utterances[utt].errors == wrong
    done = kernelam("score", "frames", data, ali, folder, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert [row[1] for row in rows] == ["probabilities", "votes"]
    for row in rows:
        total = found[row[1]].total
        assert row[2:4] == [f"{total.ref_words:,}", f"{100 * total.rate:.2f}"]
        low, high = map(float, row[4].split(" – "))
        assert low <= float(row[3]) <= high
    assert rows[0][5] == ""
    assert 0.0 < float(rows[1][5]) <= 1.0


def test_what_is_not_aligned_is_told_and_one_utterance_has_no_interval(
    made: tuple[Path, Ridge], tmp_path: Path, kernelam
) -> None:
    folder, _ = made
    for name in ("feats.scp", "utt2spk"):
        lines = (Path("data/dev") / name).read_text().splitlines(keepends=True)[:1]
        lines += (Path("data/test") / name).read_text().splitlines(keepends=True)[:2]
        (tmp_path / name).write_text("".join(sorted(lines)))
    done = kernelam("score", "frames", tmp_path, "exp/tri1_ali_dev", folder, cwd=Path.cwd())
    assert "warning: 2 of 3 utterances of " in done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert [row[4:] for row in rows] == [["–", ""], ["–", ""]]


def test_what_does_not_belong_together_is_a_sentence(made: tuple[Path, Ridge], tmp_path: Path) -> None:
    folder, _ = made
    data = Path("data/dev")
    with pytest.raises(KernelamError, match=r"tri3_ali_dev/final\.mdl and .*/final\.mdl number the states differently"):
        frame_errors(folder, data, Path("exp/tri3_ali_dev"))
    with pytest.raises(KernelamError, match="have no utterance in common"):
        frame_errors(folder, Path("data/test"), Path("exp/tri1_ali_dev"))
    with pytest.raises(KernelamError, match="mono holds no model of posteriors"):
        frame_errors(Path("exp/mono"), data, Path("exp/tri1_ali_dev"))
