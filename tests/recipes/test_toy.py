"""The whole job on a toy: words of three tones each, spoken by three voices, through every step to error rates."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from toy_corpus import write_corpus

from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.alignment import read_alignment_dir
from kernelam.kaldi.counts import read_counts

STORY = """
for x in train heldout dev test; do
    $k/steps/make_mfcc.sh --mfcc-config $k/egs/mini/s5/conf/mfcc.conf --nj $nj data/$x
    $k/steps/compute_cmvn_stats.sh data/$x
done
$k/utils/prepare_lang.sh data/local/dict '<UNK>' data/local/lang data/lang
kernelam lm estimate --order 2 --vocab data/lang/words.txt data/train/text data/lm.arpa.gz
$k/utils/format_lm.sh data/lang data/lm.arpa.gz data/lang_test
$k/steps/train_mono.sh --nj $nj --num-iters 6 --max-iter-inc 4 --totgauss 40 data/train data/lang exp/mono
for x in train heldout; do $k/steps/align_si.sh --nj $nj data/$x data/lang exp/mono exp/ali_$x; done
$k/utils/mkgraph.sh data/lang_test exp/mono exp/mono/graph
sets="data/train data/heldout data/lang exp/ali_train exp/ali_heldout"
common="--splice 2 --search-frames 500 --max-epochs 3 --num-threads 1"
$k/steps/train_kernel.sh $common --num-features 200 --rates '2 8' $sets exp/kernel
$k/steps/train_dnn.sh $common --layers 2 --width 32 --momentum 0.9 --rates '0.1 0.4' $sets exp/dnn
for m in mono kernel dnn; do
    $k/steps/decode.sh --nj $nj --acwt 0.2 --scoring-opts "--min-lmwt 1" exp/mono/graph data/dev exp/$m/decode_dev
    $k/steps/decode.sh --nj $nj --acwt 0.2 --scoring-opts "--min-lmwt 1" --tuned-on exp/$m/decode_dev \\
        exp/mono/graph data/test exp/$m/decode_test
done
kernelam report --title Toy --baseline exp/mono exp/mono exp/kernel exp/dnn
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory, shell: Run) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    write_corpus(folder)
    done = shell(STORY, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture
def copy(toy: Path, tmp_path: Path) -> Path:
    shutil.copytree(toy, tmp_path / "toy", symlinks=True)
    return tmp_path / "toy"


def words_of(folder: Path, model: str) -> list[str]:
    scoring = folder / f"exp/{model}/decode_test/scoring_kaldi"
    result = json.loads((scoring / "result.json").read_text())
    return (scoring / f"penalty_{result['wip']}/{result['lmwt']}.txt").read_text().splitlines()


def test_the_words_come_out(toy):
    for model, limit in {"mono": 0.4, "kernel": 0.15, "dnn": 0.15}.items():
        result = json.loads((toy / f"exp/{model}/decode_test/scoring_kaldi/result.json").read_text())
        assert result["tuned_on"] == "../decode_dev"
        assert result["rate"] < limit, model
    table = (toy / "RESULTS.md").read_text()
    assert table.count("\n| Gaussian kernel, 200 features") == 2
    assert "DNN, 2 × 32 tanh" in table


def test_weights_that_were_tuned_outside_the_grid_are_tried_too(copy, shell):
    tuned = json.loads((copy / "exp/mono/decode_dev/scoring_kaldi/result.json").read_text())["lmwt"]
    done = shell(
        f"$k/steps/score.sh --min-lmwt {tuned + 3} --max-lmwt {tuned + 4} --tuned-on exp/mono/decode_dev"
        " data/test exp/mono/graph exp/mono/decode_test",
        copy,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((copy / "exp/mono/decode_test/scoring_kaldi/result.json").read_text())["lmwt"] == tuned


def test_a_kernel_model_realigns_and_trains_on_its_own_alignments(copy, shell):
    done = shell(
        """for x in train heldout; do $k/steps/align.sh --nj $nj data/$x data/lang exp/kernel exp/kernel_ali_$x; done
        $k/steps/train_kernel.sh --splice 2 --search-frames 500 --max-epochs 2 --num-threads 1 --num-features 200 \\
            --rates 8 data/train data/heldout data/lang exp/kernel_ali_train exp/kernel_ali_heldout exp/kernel2""",
        copy,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    transitions = TransitionModel.load(copy / "exp/mono/final.mdl")
    first, second = (read_alignment_dir(copy / name) for name in ("exp/ali_train", "exp/kernel_ali_train"))
    assert first.keys() == second.keys()
    same = [transitions.ali_to_pdf(first[utt]) == transitions.ali_to_pdf(second[utt]) for utt in first]
    assert 0.5 < np.concatenate(same).mean() < 1.0
    counts = read_counts(copy / "exp/kernel2/ali_train_pdf.counts")
    assert counts.sum() == sum(map(len, second.values()))


def test_results_do_not_depend_on_the_number_of_jobs(toy, shell, tmp_path):
    write_corpus(tmp_path)
    done = shell(STORY, tmp_path, nj=1)
    assert done.returncode == 0, done.stderr[-3000:]
    files = ["data/train/data/raw_mfcc_train.ark", "data/train/feats.scp", "data/test/data/cmvn_test.ark"]
    files += ["exp/mono/final.mdl", "exp/mono/graph/HCLG.fst", "exp/kernel/model.safetensors"]
    files += ["exp/kernel/ali_train_pdf.counts", "exp/dnn/model.safetensors"]
    for file in files:
        assert (toy / file).read_bytes() == (tmp_path / file).read_bytes(), file
    for model in ("mono", "kernel", "dnn"):
        assert words_of(toy, model) == words_of(tmp_path, model)


def descendants(pid: int) -> list[int]:
    """A process and all that it started, directly or not, whatever their process groups."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


TRAIN = (
    "$k/steps/train_kernel.sh --splice 2 --search-frames 500 --num-threads 1 --num-features 200 --rates '2 8'"
    " {options} data/train data/heldout data/lang exp/ali_train exp/ali_heldout exp/again"
)


def test_training_that_is_killed_ends_where_it_would_have(copy, shell):
    script = TRAIN.format(options="--max-epochs 12 --max-halvings 12")
    assert shell(script, copy).returncode == 0
    expected = (copy / "exp/again/model.safetensors").read_bytes()
    shutil.rmtree(copy / "exp/again")
    text = f"set -euo pipefail; k={Path(__file__).parents[2]}; . $k/path.sh; cd {copy}; {script}"
    process = subprocess.Popen(["bash", "-c", text], start_new_session=True, stderr=subprocess.DEVNULL)
    checkpoint = copy / "exp/again/checkpoint.safetensors"
    while not checkpoint.exists():
        assert process.poll() is None
        time.sleep(0.01)
    for victim in descendants(process.pid):
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    process.wait()
    assert not (copy / "exp/again/model.json").exists()
    done = shell(script, copy)
    assert done.returncode == 0
    assert "going on after epoch" in (copy / "exp/again/log/train.log").read_text()
    assert (copy / "exp/again/model.safetensors").read_bytes() == expected


def test_the_same_training_again_does_nothing(copy, shell):
    before = (copy / "exp/kernel/model.json").read_bytes()
    script = TRAIN.replace("exp/again", "exp/kernel").format(options="--max-epochs 3")
    assert shell(script, copy).returncode == 0
    assert (copy / "exp/kernel/model.json").read_bytes() == before


def test_a_disk_that_fills_up(copy, shell):
    """A limit on the size of files stands in for it: a sentence, and no model that is half there."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    for script in (TRAIN.format(options="--max-epochs 1"), "kernelam forward exp/dnn data/dev out.ark"):
        assert shell(script, copy, preexec_fn=limit).returncode == 1
    assert not (copy / "exp/again/model.json").exists()
    assert not list((copy / "exp/again").glob("*.safetensors"))
    assert not (copy / "out.ark").exists()
    log = (copy / "exp/again/log/train.log").read_text()
    assert "Traceback" not in log
    assert "File too large" in log


@pytest.mark.parametrize(
    ("damage", "script", "sentence"),
    [
        ("rm data/train/feats.scp", TRAIN.format(options=""), "no such file data/train/feats.scp"),
        ("rm exp/ali_train/ali.2.gz", TRAIN.format(options=""), "no such file exp/ali_train/ali.2.gz"),
        ("true", TRAIN.format(options="--bottleneck 500"), "a bottleneck of 500 is no narrower than the 22 classes"),
        ("true", TRAIN.format(options="--rates 0.1,x"), "option --rates takes numbers with spaces"),
        ("true", TRAIN.format(options="--device cuda:9"), "there is no device cuda:9 here"),
        ("true", TRAIN.replace("exp/again", "exp/ali_train").format(options=""), "exp/ali_train is an alignment"),
        ("true", TRAIN.replace("exp/again", "exp/mono").format(options=""), "exp/mono/final.mdl is a GMM, which would"),
        ("true", TRAIN.format(options="--num-features 7"), "pairs need an even number"),
        ("true", "kernelam forward exp/kernel data/dev ark,x:-", "ark,x:-: write to ark:-"),
        ("true", "kernelam forward --device cuda:9 exp/kernel data/dev f", "there is no device cuda:9 here"),
        ("true", "$k/steps/score.sh --min-lmwt 0 data/dev exp/mono/graph exp/dnn/decode_dev", "at least 1, not '0'"),
        (
            "sed -i '/abc/d' exp/mono/graph/words.txt",
            "$k/steps/score.sh data/dev exp/mono/graph exp/dnn/decode_dev",
            "is not in exp/mono/graph/words.txt",
        ),
        (
            "$k/steps/score.sh data/test exp/mono/graph exp/dnn/decode_test",
            "kernelam report --title x --baseline exp/mono exp/dnn",
            "was scored with weights tuned on exp/dnn/decode_test",
        ),
        (
            "sed 's/--use-energy=false/--num-ceps=12/' $k/egs/mini/s5/conf/mfcc.conf > m; rm -r data/dev/data;"
            " $k/steps/make_mfcc.sh --mfcc-config m --nj 1 data/dev",
            "kernelam forward exp/kernel data/dev f",
            "data/dev/feats.scp gives 12 features a frame, deltas included, the kernel model takes 13",
        ),
        (
            "true",
            TRAIN.format(options="--kernel fancy"),
            "the kernel 'fancy' cannot be read: a kernel (gaussian, laplacian, ",
        ),
        ("true", TRAIN.format(options="--cmvn-opts --norm=true"), "CMVN options: --norm=true is not understood"),
        ("true", TRAIN.format(options="--no-such-option 1"), "unknown option --no-such-option"),
        (
            "echo 7 > exp/mono/graph/num_pdfs",
            "$k/steps/decode.sh exp/mono/graph data/dev exp/kernel/decode_x",
            "exp/mono/graph/num_pdfs says 7, exp/kernel/final.mdl has 22 pdfs: the graph is of another tree",
        ),
        (
            "truncate -s -100 exp/mono/graph/HCLG.fst",
            "$k/steps/decode.sh exp/mono/graph data/dev exp/kernel/decode_x",
            "exp/mono/graph/HCLG.fst",
        ),
        (
            "truncate -s 3000 data/dev/data/raw_mfcc_dev.ark",
            "kernelam forward exp/kernel data/dev out.ark",
            "data/dev/data/raw_mfcc_dev.ark",
        ),
        (
            "sed -i 's/^[^ ]* /x-none /' data/dev/utt2spk",
            "kernelam forward exp/mono data/dev out.ark",
            "data/dev/utt2spk",
        ),
        ("rm exp/kernel/model.safetensors", "kernelam forward exp/kernel data/dev out.ark", "exp/kernel"),
        ("rm -r exp/dnn/decode_test", "kernelam report --title x --baseline exp/mono exp/dnn", "exp/dnn/decode_test"),
        (
            "sed -i '2s/ .*/ sdfjk/' data/dev/text; rm data/lang/oov.txt",
            "$k/steps/align_si.sh --nj 1 data/dev data/lang exp/mono exp/ali_x",
            "the word sdfjk is not in data/lang/words.txt",
        ),
    ],
)
def test_bad_input_is_a_sentence(copy, shell, damage, script, sentence):
    assert shell(damage, copy).returncode == 0
    done = shell(script, copy)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(copy.glob("out.ark"))


def test_lengths_of_features_and_alignment_that_differ(copy, shell):
    """An alignment that lost its last frame is found before training, and its utterance is named."""
    from kernelam.kaldi.alignment import read_alignments, write_alignments

    path = copy / "exp/ali_train/ali.1.gz"
    alignments = dict(read_alignments(path))
    utt = next(iter(alignments))
    frames = len(alignments[utt])
    write_alignments(path, alignments | {utt: alignments[utt][:-1]})
    done = shell(TRAIN.format(options=""), copy)
    assert done.returncode == 1
    lengths = f"{frames} frames of features in data/train but an alignment of {frames - 1} frames in exp/ali_train"
    assert f"utterance {utt} has {lengths}" in done.stderr


def test_forward_writes_what_the_decoder_reads(copy, shell):
    from kernelam.kaldi.ark import read_ark

    script = "kernelam forward exp/kernel data/dev ark:- > out.ark; kernelam forward exp/kernel data/dev f"
    assert shell(script, copy).returncode == 0
    matrices = dict(read_ark(copy / "out.ark"))
    assert len(matrices) == 8
    assert (copy / "out.ark").read_bytes() == (copy / "f").read_bytes()
    assert {matrix.shape[1] for matrix in matrices.values()} == {22}


def test_a_picture_of_an_utterance(copy, shell):
    """Every word of the transcript and every phone of the alignment stand in it, and rows of probable phones."""
    from xml.etree import ElementTree

    utt, *words = (copy / "data/train/text").read_text().splitlines()[0].split()
    call = "kernelam labels picture --model exp/kernel data/train data/lang exp/ali_train"
    assert shell(f"{call} {utt} out.svg", copy).returncode == 0
    texts = [element.text for element in ElementTree.parse(copy / "out.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == f"{utt}: {' '.join(words)}"
    assert [text for text in texts[1:] if text in words] == words
    assert {"phones", "words", "0–8 kHz", "A", "SIL"} <= {*texts}
    done = shell(f"{call} nobody other.svg", copy)
    assert done.returncode == 1
    assert "utterance nobody is not aligned in exp/ali_train" in done.stderr
    assert not (copy / "other.svg").exists()


def test_sound_files_are_transcribed(toy, shell, tmp_path):
    spoken = dict(line.split(" ", 1) for line in (toy / "data/test/text").read_text().splitlines())
    names = sorted(spoken)[:3]
    files = " ".join(str(toy / f"wav/{name}.wav") for name in names)
    done = shell(f"kernelam transcribe --tuned-on exp/kernel/decode_dev exp/kernel exp/mono/graph {files}", toy)
    assert done.returncode == 0, done.stderr[-2000:]
    scored = dict(line.partition(" ")[::2] for line in words_of(toy, "kernel"))
    found = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    assert found.keys() == set(names)
    assert sum(found[name].split() == scored[name].split() for name in names) >= 2  # CMVN is of a file, not a speaker
    done = shell(f"kernelam transcribe --times exp/kernel exp/mono/graph {files}", toy)
    begin, duration, confidence = (float(done.stdout.split()[place]) for place in (2, 3, 5))
    assert 0 < begin < 1
    assert 0 < duration < 1
    assert 0 < confidence <= 1


@pytest.mark.parametrize(
    ("damage", "arguments", "sentence"),
    [
        ("true", "exp/kernel exp/mono/graph nosuch.wav", "no such file nosuch.wav"),
        ("true", "exp/kernel exp/mono/graph data/test/text", "cannot be read as sound"),
        ("rm exp/kernel/feature_opts", "exp/kernel exp/mono/graph wav/*test000.wav", "is not known"),
        ("true", "exp/nosuch exp/mono/graph wav/*test000.wav", "no such file exp/nosuch/final.mdl"),
    ],
)
def test_what_cannot_be_transcribed(copy, shell, damage, arguments, sentence):
    done = shell(f"{damage} && $k/steps/transcribe.sh {arguments}", copy)
    assert done.returncode == 1
    assert sentence in done.stderr
