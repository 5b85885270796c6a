"""A folder that two processes want to write to."""

import subprocess
import sys

from kernelam.files import alone_in

HOLD = """
import sys, time
from pathlib import Path
from kernelam.files import alone_in
with alone_in(Path(sys.argv[1])):
    print("in", flush=True)
    sys.stdin.readline()
    print("out", flush=True)
"""


def hold(folder):
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_second_process_waits_for_the_first(tmp_path):
    first = hold(tmp_path / "model")
    assert first.stdout.readline() == "in\n"
    second = hold(tmp_path / "model")
    assert second.stderr.readline() == f"another process is at work in {tmp_path / 'model'}: waiting for it to end\n"
    assert first.communicate("\n")[0] == "out\n"
    assert second.communicate("\n")[0] == "in\nout\n"


def test_a_process_that_was_killed_holds_nothing(tmp_path):
    first = hold(tmp_path)
    assert first.stdout.readline() == "in\n"
    first.kill()
    first.wait()
    with alone_in(tmp_path):
        assert list(tmp_path.iterdir()) == []
