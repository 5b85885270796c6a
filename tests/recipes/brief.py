"""Recipes in little: all stages on a look-alike, with systems of a size of their own."""

import json
import shutil
import subprocess
from pathlib import Path

SIZES = Path(__file__).parent / "sizes"


def recipe(root: Path, name: str, folder: Path) -> Path:
    """A folder like egs/<name>/s5 whose size `brief` is sizes/<name>.sh."""
    original = root / "egs" / name / "s5"
    folder.mkdir(exist_ok=True)
    for each in ("steps", "utils", "local", "path.sh", "cmd.sh"):
        (folder / each).symlink_to(original / each)
    shutil.copy(original / "run.sh", folder)
    shutil.copytree(original / "conf", folder / "conf")
    if (SIZES / f"{name}.sh").exists():
        shutil.copy(SIZES / f"{name}.sh", folder / "conf/brief.sh")
    return folder


def call(folder: Path, *commands: list[str]) -> str:
    """Run one after the other; what the last said."""
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def result(folder: Path, model: str, tested: str = "test") -> dict:
    """What scoring found on a set, with weights tuned on another."""
    found = json.loads((folder / "exp" / model / f"decode_{tested}/scoring_kaldi/result.json").read_text())
    assert found["tuned_on"] == "../decode_dev"
    return found
