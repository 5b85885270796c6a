"""From sound to labels of adapted states in context without Kaldi, on the corpus of tones."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from toy_corpus import write_corpus

from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.kaldi.ark import MatrixScp
from kernelam.models.gmm import GmmModel

PREPARE = """
for x in train dev test; do
    $k/steps/make_mfcc.sh --mfcc-config $k/egs/mini/s5/conf/mfcc.conf --nj 2 data/$x
    $k/steps/compute_cmvn_stats.sh data/$x
done
$k/utils/prepare_lang.sh data/local/dict '<UNK>' data/local/lang data/lang
kernelam lm estimate --order 2 --vocab data/lang/words.txt data/train/text data/lm.arpa.gz
$k/utils/format_lm.sh data/lang data/lm.arpa.gz data/lang_test
$k/steps/train_mono.sh --nj 2 --num-iters 4 --max-iter-inc 3 --totgauss 40 data/train data/lang exp/mono
"""
TRAIN = """
brief="--nj $nj --num-iters 6 --max-iter-inc 4 --realign-iters 3"
$k/steps/align_si.sh --nj $nj data/train data/lang exp/mono exp/mono_ali
$k/steps/train_deltas.sh $brief 30 60 data/train data/lang exp/mono_ali exp/tri1
$k/steps/align_si.sh --nj $nj data/train data/lang exp/tri1 exp/tri1_ali
$k/steps/train_lda_mllt.sh $brief --dim 15 --mllt-iters 2 30 60 data/train data/lang exp/tri1_ali exp/tri2
$k/steps/align_si.sh --nj $nj data/train data/lang exp/tri2 exp/tri2_ali
$k/steps/train_sat.sh $brief --fmllr-iters "2 4" 30 60 data/train data/lang exp/tri2_ali exp/tri3
$k/steps/align_fmllr.sh --nj $nj data/train data/lang exp/tri3 exp/tri3_ali
"""
DECODE = """
$k/utils/mkgraph.sh data/lang_test exp/tri3 exp/tri3/graph
options=(--nj 2 --acwt 0.2 --scoring-opts "--min-lmwt 1")
$k/steps/decode_fmllr.sh "${options[@]}" exp/tri3/graph data/dev exp/tri3/decode_dev
$k/steps/decode_fmllr.sh "${options[@]}" --tuned-on exp/tri3/decode_dev exp/tri3/graph data/test exp/tri3/decode_test
$k/steps/make_fmllr_feats.sh --transform-dir exp/tri3/decode_dev data-fmllr/dev data/dev exp/tri3
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, shell: Run) -> Path:
    folder = tmp_path_factory.mktemp("triphones")
    write_corpus(folder)
    done = shell(PREPARE, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    shutil.copytree(folder, folder.with_name("prepared"), symlinks=True)
    done = shell(TRAIN + DECODE, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_words_come_out(trained):
    result = json.loads((trained / "exp/tri3/decode_test/scoring_kaldi/result.json").read_text())
    assert result["rate"] < 0.4


def test_directories_are_kaldis(trained):
    """What Kaldi's scripts look for in them, read by the strict readers."""
    for name, files in {
        "tri1": ["delta_opts"],
        "tri2": ["splice_opts", "final.mat"],
        "tri3": ["splice_opts", "final.mat", "final.alimdl", "trans.1", "trans.2"],
        "tri3_ali": ["splice_opts", "final.mat", "trans.1", "trans.2", "ali.1.gz", "ali.2.gz", "num_jobs"],
    }.items():
        for file in ("tree", "final.mdl", "cmvn_opts", "phones.txt", *files):
            assert (trained / "exp" / name / file).exists(), f"{name}/{file}"
    for name in ("tri1", "tri2", "tri3"):
        folder = trained / "exp" / name
        tree, model = ContextTree.load(folder / "tree"), GmmModel.read(folder / "final.mdl")
        assert tree.width == 3
        assert tree.num_pdfs == model.num_classes > 12
        assert not [path.name for path in folder.glob("[0-9]*.mdl")]
        assert not (folder / "frames").exists()
        model.write(trained / "text.mdl", binary=False)
        tree.save(trained / "text.tree", binary=False)
        assert GmmModel.read(trained / "text.mdl").gmms.num_pdfs == ContextTree.load(trained / "text.tree").num_pdfs


def test_models_do_not_depend_on_the_number_of_jobs(trained, shell):
    other = trained.with_name("prepared")
    done = shell(TRAIN, other, nj=1)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in (
        "tri1/final.mdl",
        "tri1/tree",
        "tri2/final.mdl",
        "tri2/final.mat",
        "tri3/final.mdl",
        "tri3/final.alimdl",
    ):
        assert (trained / "exp" / name).read_bytes() == (other / "exp" / name).read_bytes(), name
    ours, theirs = (read_alignment_dir(folder / "exp/tri3_ali") for folder in (trained, other))
    for utt in ours:
        np.testing.assert_array_equal(ours[utt], theirs[utt])


def test_features_for_other_models(trained):
    """Those that were written are those that the GMM decoded with."""
    written = MatrixScp(trained / "data-fmllr/dev/feats.scp")
    pipeline = Pipeline.of_directory(trained / "exp/tri3", "fmllr")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(trained)
        own = pipeline.open("data/dev", trained / "exp/tri3/decode_dev")
        for utt in own:
            np.testing.assert_allclose(written[utt], own[utt], atol=1e-4)
    assert not (trained / "data-fmllr/dev/cmvn.scp").exists()


def test_states_follow_the_phones(trained):
    transitions = TransitionModel.load(trained / "exp/tri3_ali/final.mdl")
    before = TransitionModel.load(trained / "exp/mono_ali/final.mdl")
    first, last = (read_alignment_dir(trained / f"exp/{name}_ali") for name in ("mono", "tri3"))
    assert first.keys() == last.keys()
    for utt, ids in last.items():
        spoken = [phone for phone, _ in transitions.ali_to_phones(ids) if phone > 10]
        assert spoken == [phone for phone, _ in before.ali_to_phones(first[utt]) if phone > 10]


@pytest.mark.parametrize(
    ("damage", "script", "sentence"),
    [
        (
            "true",
            "$k/steps/train_deltas.sh x 60 data/train data/lang exp/mono_ali exp/x",
            "are whole numbers, not x and 60",
        ),
        (
            "true",
            "$k/steps/train_deltas.sh 60 30 data/train data/lang exp/mono_ali exp/x",
            "30 Gaussians are fewer than 60",
        ),
        (
            "true",
            "$k/steps/train_deltas.sh 30 60 data/train data/lang exp/mono exp/mono",
            "exp/mono is the alignment direct",
        ),
        (
            "true",
            "$k/steps/train_deltas.sh --context-opts '--context-width=3 --central-position=3' 30 60 data/train"
            " data/lang exp/mono_ali exp/x",
            "--central-position 3 is not in a window of 3 phones",
        ),
        (
            "true",
            "$k/steps/train_lda_mllt.sh --dim 400 30 60 data/train data/lang exp/tri1_ali exp/x",
            "LDA to 400 dimensions of 91: --dim is from 1 to 91",
        ),
        (
            "sed -i 's/^shared split/shared spilt/' data/lang/phones/roots.int",
            "$k/steps/train_deltas.sh 30 60 data/train data/lang exp/mono_ali exp/x",
            "data/lang/phones/roots.int: a line is 'shared split' or 'not-…' and phones, not 'shared spilt",
        ),
        (
            "cp exp/tri1/final.mdl exp/tri3/final.alimdl",
            "$k/steps/align_fmllr.sh --nj 1 data/dev data/lang exp/tri3 exp/x",
            "they belong to two models",
        ),
        (
            "true",
            "$k/steps/make_fmllr_feats.sh --transform-dir exp/tri3/decode_dev data/dev data/dev exp/tri3",
            "data/dev has the features that these are made of",
        ),
    ],
)
def test_bad_input_is_a_sentence(trained, shell, tmp_path, damage, script, sentence):
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy, symlinks=True)
    assert shell(damage, copy).returncode == 0
    done = shell(script, copy)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (copy / "exp/x/final.mdl").exists()


def test_phones_and_leaves_that_the_frames_do_not_have_are_named(trained, shell):
    """SPN was never seen."""
    done = shell(
        "$k/steps/train_deltas.sh --nj 1 --num-iters 2 5000 6000 data/train data/lang exp/mono_ali exp/large", trained
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "more leaves are asked for than the frames allow" in done.stderr
    assert "5 phones are in no alignment and get the Gaussian of all frames: SPN SPN_B" in done.stderr


def test_a_speaker_with_little_speech_keeps_its_features(trained, shell):
    done = shell(
        "$k/utils/subset_data_dir.sh data/dev 1 data/short; kernelam gmm fmllr --judge exp/tri3/final.alimdl"
        " --features exp/tri3/final.alimdl exp/tri3/final.mdl data/short data/lang exp/tri3/decode_dev trans.short",
        trained,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "1 of 1 speakers of data/short have less than 500 frames of speech and keep their features as they are"
        in done.stderr
    )


def test_sound_files_are_transcribed_by_a_model_on_adapted_features(trained, shell):
    done = shell(
        """for x in train dev; do
            $k/steps/align_fmllr.sh --nj 1 data/$x data/lang exp/tri3 exp/labels_$x
            $k/steps/make_fmllr_feats.sh --transform-dir exp/labels_$x adapted/$x data/$x exp/tri3
        done
        $k/steps/train_kernel.sh --splice 2 --search-frames 500 --max-epochs 2 --num-threads 1 --num-features 200 \\
            --rates 8 adapted/train adapted/dev data/lang exp/labels_train exp/labels_dev exp/kernel
        kernelam transcribe exp/kernel exp/tri3/graph wav/e-test000.wav wav/e-test001.wav""",
        trained,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["e-test000", "e-test001"]
    assert all(len(line.split()) > 1 for line in done.stdout.splitlines())
    assert (trained / "exp/kernel/feature_opts").read_text().splitlines()[1] == f"fmllr {trained}/exp/tri3"
