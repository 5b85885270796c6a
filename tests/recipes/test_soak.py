"""Training, decoding and scoring that is broken off at a random moment, and run again, ends where it would have.

A run of each fault; KERNELAM_SOAK=100 makes it a hundred.
"""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from test_toy import descendants
from toy_corpus import write_corpus

from kernelam.training.checkpoint import previous

RUNS = int(os.environ.get("KERNELAM_SOAK", "1"))
BEFORE = """
for x in train heldout dev test; do
    $k/steps/make_mfcc.sh --mfcc-config $k/egs/mini/s5/conf/mfcc.conf --nj 1 data/$x
    $k/steps/compute_cmvn_stats.sh data/$x
done
$k/utils/prepare_lang.sh data/local/dict '<UNK>' data/local/lang data/lang
kernelam lm estimate --order 2 --vocab data/lang/words.txt data/train/text data/lm.arpa.gz
$k/utils/format_lm.sh data/lang data/lm.arpa.gz data/lang_test
$k/steps/train_mono.sh --nj 1 --num-iters 6 --max-iter-inc 4 --totgauss 40 data/train data/lang exp/mono
for x in train heldout; do $k/steps/align_si.sh --nj 1 data/$x data/lang exp/mono exp/ali_$x; done
$k/utils/mkgraph.sh data/lang_test exp/mono exp/mono/graph
"""
AGAIN = """
$k/steps/train_kernel.sh --splice 2 --search-frames 500 --num-threads 1 --num-features 200 --bottleneck 10 \\
    --selection 5 --selection-frames 1000 --rates '2 8' --max-epochs 8 --schedule halving --max-halvings 8 \\
    data/train data/heldout data/lang exp/ali_train exp/ali_heldout exp/kernel
decode() { $k/steps/decode.sh --nj 2 --acwt 0.2 --scoring-opts "--min-lmwt 1" "$@"; }
decode exp/mono/graph data/dev exp/kernel/decode_dev
decode --tuned-on exp/kernel/decode_dev exp/mono/graph data/test exp/kernel/decode_test
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, shell: Run) -> Path:
    folder = tmp_path_factory.mktemp("soak")
    write_corpus(folder)
    done = shell(BEFORE, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def expected(made: Path, shell: Run) -> tuple[dict[str, bytes], float]:
    """What comes of a run that nothing happens to, and its seconds."""
    begin = time.monotonic()
    done = shell(AGAIN, made)
    assert done.returncode == 0, done.stderr[-3000:]
    seconds = time.monotonic() - begin
    return outcome(made), seconds


def outcome(folder: Path) -> dict[str, bytes]:
    """The model, the words of all weights, and the scores; then the place is free for another run."""
    kernel = folder / "exp/kernel"
    files = [kernel / "model.safetensors", kernel / "ali_train_pdf.counts", kernel / "selection.json"]
    for name in ("decode_dev", "decode_test"):
        files += sorted((kernel / name / "scoring_kaldi").glob("penalty_*/*.txt")) + sorted(
            (kernel / name).glob("wer_*")
        )
        files.append(kernel / name / "scoring_kaldi/result.json")
    assert len(files) > 40
    found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    shutil.rmtree(kernel)
    return found


def kill_after(seconds: float, root: Path, folder: Path) -> None:
    text = f"set -euo pipefail; k={root}; . $k/path.sh; cd {folder}\n{AGAIN}"
    process = subprocess.Popen(["bash", "-c", text], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    for victim in descendants(process.pid):
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    process.wait()


def flip(path: Path, random: Random) -> None:
    """A bit of the file."""
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


@pytest.mark.parametrize("number", range(RUNS))
def test_killed_at_a_random_moment(root, made, expected, shell, number):
    wanted, seconds = expected
    kill_after(Random(f"kill {number}").uniform(0.0, seconds), root, made)
    done = shell(AGAIN, made)
    assert done.returncode == 0, done.stderr[-3000:]
    assert outcome(made) == wanted


@pytest.mark.parametrize("number", range(RUNS))
def test_killed_and_the_newest_checkpoint_damaged(root, made, expected, shell, number):
    wanted, seconds = expected
    random = Random(f"flip {number}")
    kill_after(random.uniform(0.0, seconds), root, made)
    for name in ("checkpoint.safetensors", "selection.safetensors"):
        if (made / "exp/kernel" / name).exists():
            flip(made / "exp/kernel" / name, random)
    done = shell(AGAIN, made)
    assert done.returncode == 0, done.stderr[-3000:]
    assert outcome(made) == wanted
    assert not previous(made / "exp/kernel/checkpoint.safetensors").exists()


def mounted(mount: str) -> str:
    """AGAIN in a view of the file system of its own, where `mount` was done; without the right to that, a skip."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("may not mount file systems")
    return f"export k; unshare --mount bash -euo pipefail -c {shlex.quote(mount + AGAIN)}"


def assert_refused(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", range(RUNS))
def test_a_disk_that_is_full_and_then_is_not(made, expected, shell, number):
    size = Random(f"full {number}").choice([4, 16, 32, 64, 100])
    (made / "exp/kernel").mkdir()
    done = shell(mounted(f"mount -t tmpfs -o size={size}k none exp/kernel\n"), made)
    assert_refused(done, "No space left on device")
    done = shell(AGAIN, made)
    assert done.returncode == 0, done.stderr[-3000:]
    assert outcome(made) == expected[0]


def test_a_folder_that_may_not_be_written_to(made, expected, shell):
    (made / "exp/kernel").mkdir()
    done = shell(mounted("mount --bind exp exp\nmount -o remount,ro,bind exp\n"), made)
    assert_refused(done, "Read-only file system")
    done = shell(AGAIN, made)
    assert done.returncode == 0, done.stderr[-3000:]
    assert outcome(made) == expected[0]
