import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def shell(root: Path) -> Run:
    def run(script: str, cwd: Path, nj: int = 2, **kwargs: object) -> subprocess.CompletedProcess[str]:
        text = f"set -euo pipefail; k={root} nj={nj}; . $k/path.sh; cd {cwd}\n{script}"
        command = ["bash", "-c", text]
        return subprocess.run(command, capture_output=True, text=True, timeout=900, **kwargs)  # type: ignore[call-overload]

    return run
