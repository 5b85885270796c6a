"""Where a result comes from: command, versions, git hash, machine."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelam import __version__

PACKAGES = ("torch", "numpy", "kaldifst", "kaldi-native-fbank", "numba")


def provenance() -> dict[str, Any]:
    """What a reader of a model or a table needs to make it again."""
    return {
        "command": " ".join(["kernelam", *sys.argv[1:]]),
        "git": git_hash(),
        "versions": {"kernelam": __version__, "python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
        "machine": {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()},
    }


def git_hash() -> str:
    """The commit of the toolkit, with -dirty behind it if its code was changed since."""
    root = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False).stdout

    try:
        commit = git("rev-parse", "--short=12", "HEAD").strip()
        changed = git("status", "--porcelain", "--", "kernelam", "steps", "utils", "local")
    except OSError:
        return "unknown"
    return (commit or "unknown") + ("-dirty" if changed else "")


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
