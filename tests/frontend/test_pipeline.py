"""The features of models: Kaldi's order of transforms, its option files, and what cannot fit together."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.frontend.pipeline import Pipeline
from kernelam.frontend.transforms import add_deltas, splice
from kernelam.kaldi.ark import ArkWriter, MatrixScp, read_ark, read_matrix, save_matrix, write_matrix
from kernelam.models import load_model

RNG = np.random.default_rng(3)
UTTS = ("a-1", "a-2", "b-1")
SPEAKERS = ("a", "b")


def write_data(folder: Path, dim: int = 4, cmvn: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with ArkWriter(folder / "feats.ark", folder / "feats.scp") as writer:
        for utt in UTTS:
            writer.write(utt, RNG.standard_normal((9, dim)).astype(np.float32))
    (folder / "utt2spk").write_text("".join(f"{utt} {utt[0]}\n" for utt in UTTS))
    if cmvn:
        with ArkWriter(folder / "cmvn.ark", folder / "cmvn.scp") as writer:
            for speaker in SPEAKERS:
                stats = np.abs(RNG.standard_normal((2, dim + 1)))
                stats[1] += 30
                stats[:, -1] = [18, 0]
                writer.write(speaker, stats)
    return folder


def write_ali(folder: Path, rows: int = 5, cols: int = 12, trans: tuple[int, int] | None = (5, 6)) -> Path:
    """Options and matrices of LDA (rows × cols, one frame of context) and fMLLR."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cmvn_opts").write_text("--norm-vars=true\n")
    (folder / "delta_opts").write_text("--delta-order=1 --delta-window=3\n")
    (folder / "splice_opts").write_text("--left-context=1 --right-context=1\n")
    (folder / "num_jobs").write_text("2\n")
    save_matrix(folder / "final.mat", RNG.standard_normal((rows, cols)).astype(np.float32))
    if trans:
        for job, speaker in enumerate(SPEAKERS, 1):
            with open(folder / f"trans.{job}", "wb") as stream:
                write_matrix(stream, speaker, RNG.standard_normal(trans).astype(np.float32))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


@pytest.fixture
def ali(tmp_path: Path) -> Path:
    return write_ali(tmp_path / "ali")


def normalised(data: Path, utt: str) -> np.ndarray:
    """(x − μ) / σ, by the definition."""
    stats = MatrixScp(data / "cmvn.scp", double=True)[utt[0]]
    mean = stats[0, :-1] / stats[0, -1]
    return (MatrixScp(data / "feats.scp")[utt] - mean) / np.sqrt(stats[1, :-1] / stats[0, -1] - mean**2)


def test_each_type_by_hand(data: Path, ali: Path) -> None:
    x = normalised(data, "b-1")
    np.testing.assert_allclose(Pipeline().open(data)["b-1"], MatrixScp(data / "feats.scp")["b-1"])
    deltas = Pipeline.of_directory(ali, "deltas").open(data)
    assert deltas.dim == 8
    np.testing.assert_allclose(deltas["b-1"], add_deltas(x, 1, 3), atol=1e-5)
    lda = Pipeline.of_directory(ali, "lda").open(data)
    assert lda.dim == 5
    projected = splice(x, 1, 1) @ read_matrix(ali / "final.mat").T
    np.testing.assert_allclose(lda["b-1"], projected, atol=1e-5)
    ((_, transform),) = read_ark(ali / "trans.2")
    adapted = Pipeline.of_directory(ali, "fmllr").open(data, ali)
    np.testing.assert_allclose(adapted["b-1"], projected @ transform[:, :-1].T + transform[:, -1], atol=1e-4)


def test_the_type_shows_in_the_files(data: Path, ali: Path, tmp_path: Path) -> None:
    """A Kaldi GMM's directory says nothing but what is in it; without option files Kaldi's defaults hold."""
    assert Pipeline.of_directory(ali) == Pipeline.of_directory(ali, "fmllr")
    for file in ali.glob("trans.*"):
        file.unlink()
    assert Pipeline.of_directory(ali) == Pipeline.of_directory(ali, "lda")
    (tmp_path / "plain").mkdir()
    assert Pipeline.of_directory(tmp_path / "plain") == Pipeline(norm_means=True, deltas=2)
    (ali / "splice_opts").unlink()
    assert Pipeline.of_directory(ali).context == (4, 4)


def test_fmllr_on_deltas(data: Path, tmp_path: Path) -> None:
    ali = write_ali(tmp_path / "sat", trans=(8, 9))
    (ali / "final.mat").unlink()
    assert Pipeline.of_directory(ali).open(data, ali)["a-1"].shape == (9, 8)


def test_settings_are_restored(ali: Path, tmp_path: Path) -> None:
    (ali / "cmvn_opts").write_text("--norm-means=true --skip-dims=1:3\n")
    pipeline = Pipeline.of_directory(ali)
    assert pipeline.skip_dims == (1, 3)
    settings = json.loads(json.dumps(pipeline.settings()))
    assert Pipeline.restore(settings, ali) == pipeline
    assert Pipeline.restore(settings, tmp_path).lda == tmp_path / "final.mat"


def test_skipped_dimensions_stay(data: Path, ali: Path) -> None:
    (ali / "cmvn_opts").write_text("--norm-vars=true --skip-dims=1:3\n")
    (ali / "delta_opts").write_text("--delta-order=0\n")
    found, raw = Pipeline.of_directory(ali, "deltas").open(data)["a-1"], MatrixScp(data / "feats.scp")["a-1"]
    np.testing.assert_array_equal(found[:, [1, 3]], raw[:, [1, 3]])
    np.testing.assert_allclose(found[:, [0, 2]], normalised(data, "a-1")[:, [0, 2]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("cmvn_opts", "--norm-meanss=true", "cmvn_opts: --norm-meanss=true is not understood"),
        ("cmvn_opts", "--norm-means=yes", "cmvn_opts: --norm-means is true or false, not yes"),
        ("cmvn_opts", "--norm-means=false --norm-vars=true", "variances cannot be normalised without means"),
        ("cmvn_opts", "--skip-dims=1:x", "cmvn_opts: --skip-dims is a small whole number, not x"),
        ("splice_opts", "--left-context=-1", "splice_opts: --left-context is a small whole number, not -1"),
        ("splice_opts", "--left-context", "splice_opts: --left-context is not understood"),
    ],
)
def test_bad_option_files(ali: Path, file: str, text: str, message: str) -> None:
    (ali / file).write_text(text + "\n")
    with pytest.raises(KernelamError, match=message):
        Pipeline.of_directory(ali)


def remove_speaker(folder: Path) -> None:
    (folder / "trans.2").unlink()
    (folder / "num_jobs").write_text("1\n")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda ali: (ali / "trans.2").unlink(), r"cannot open .*/trans\.2"),
        (remove_speaker, r"speaker b of utterance b-1 of .*/data has no transform in .*/ali/trans"),
        (lambda ali: (ali / "trans.2").write_bytes((ali / "trans.1").read_bytes()), r"trans\.2: a is also in"),
        (lambda ali: write_ali(ali, trans=(5, 9)), r"the transform of a is 5 × 9, but there are 5 features a frame in"),
        (lambda ali: write_ali(ali, cols=99), r"data/feats\.scp has 4 .*, 12 with 1 \+ 1 .*/final\.mat is for 99"),
        (lambda ali: (ali / "final.mat").write_bytes(b"\0BFM"), r"final\.mat is cut short"),
    ],
)
def test_what_does_not_fit(data: Path, ali: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(ali)
    with pytest.raises(KernelamError, match=message):
        Pipeline.of_directory(ali).open(data, ali)["b-1"]


def test_what_becomes_infinite(data: Path, ali: Path) -> None:
    save_matrix(ali / "final.mat", np.full((5, 12), 3e38, np.float32))
    with pytest.raises(KernelamError, match=r"utterance a-1 of .* are not finite after .*/ali/final\.mat"):
        Pipeline.of_directory(ali, "lda").open(data)["a-1"]


def test_transforms_are_given_when_and_only_when_they_are_needed(data: Path, ali: Path) -> None:
    with pytest.raises(KernelamError, match="--transform-dir names the directory with trans"):
        Pipeline.of_directory(ali).open(data)
    with pytest.raises(KernelamError, match=r"take no transforms, but .*/ali is given"):
        Pipeline.of_directory(ali, "lda").open(data, ali)


def test_choice_for_training(data: Path, ali: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets, alis = [data, write_data(tmp_path / "held")], [ali, ali]
    plain = Pipeline.choose("plain", "--norm-vars=true", 1, sets, alis)
    assert plain == Pipeline(norm_means=True, norm_vars=True, deltas=1)
    assert Pipeline.choose("fmllr", "", 0, sets, alis) == Pipeline.of_directory(ali)
    fmllr_sets = [write_data(tmp_path / name, cmvn=False) for name in ("f1", "f2")]
    assert Pipeline.choose("plain", "--norm-vars=true", 0, fmllr_sets, alis) == Pipeline()
    assert "f1 has no cmvn.scp: its features are taken without CMVN" in capsys.readouterr().err
    with pytest.raises(KernelamError, match=r"f2 has no cmvn\.scp, as the other has"):
        Pipeline.choose("plain", "--norm-means=true", 0, [data, fmllr_sets[1]], alis)
    with pytest.raises(KernelamError, match="type lda take their CMVN and delta options from"):
        Pipeline.choose("lda", "--norm-means=true", 0, sets, alis)
    with pytest.raises(KernelamError, match="the alignments are of two models"):
        Pipeline.choose("lda", "", 0, sets, [ali, write_ali(tmp_path / "other")])
    (ali / "trans.1").unlink()
    with pytest.raises(KernelamError, match=r"there is no .*/ali/trans\.1"):
        Pipeline.choose("fmllr", "", 0, sets, alis)
    (ali / "final.mat").unlink()
    with pytest.raises(KernelamError, match=r"there is no .*/ali/final\.mat"):
        Pipeline.choose("lda", "", 0, sets, alis)


@pytest.mark.parametrize(
    ("part", "transforms"),
    [("train", "exp/tri3_ali"), ("dev", "exp/tri3/decode_dev"), ("test", "exp/tri3/decode_test")],
)
def test_kaldis_fmllr_features(corpora: Path, monkeypatch: pytest.MonkeyPatch, part: str, transforms: str) -> None:
    """The archives that Kaldi made by apply-cmvn, splice-feats and transform-feats; and what a GMM makes of them."""
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    model = load_model("exp/tri3", transform_dir=Path(transforms))
    made, expected = model.open(f"data/{part}"), MatrixScp(f"data-fmllr-tri3/{part}/feats.scp")
    assert list(made) == list(expected)
    for utt in expected:
        np.testing.assert_allclose(made[utt], expected[utt], atol=2e-5)
    utt = next(iter(expected))
    likelihoods = model.log_likelihoods(made[utt])
    assert np.abs(likelihoods - model.log_likelihoods(expected[utt])).max() < 0.01


def test_a_gmm_on_lda_takes_transforms_where_they_are_given(corpora: Path) -> None:
    """exp/gmm of Iban has final.mat and no trans.*."""
    place = corpora / "kaldi-iban/exp/gmm"
    assert not load_model(place).pipeline.fmllr
    assert load_model(place, transform_dir=corpora / "kaldi-iban/exp/gmm_ali_dev").pipeline.fmllr


def test_wrong_features_for_a_gmm(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpora / "kaldi-timit-sample")
    with pytest.raises(KernelamError, match=r"data-fbank/test/feats\.scp has 40 .* exp/tri3/final\.mat is for 91"):
        load_model("exp/tri3", transform_dir=Path("exp/tri3/decode_test")).open("data-fbank/test")
    with pytest.raises(KernelamError, match=r"data-fbank/test/feats\.scp gives 120 .* the gmm model takes 39"):
        load_model("exp/tri1").open("data-fbank/test")
