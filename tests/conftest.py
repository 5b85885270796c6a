import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The first example pays for imports and compilation. One commit, one result; --hypothesis-profile=explore looks on.
settings.register_profile("kernelam", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("kernelam")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The toolkit's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real data that KERNELAM_CORPORA names; without it the test is skipped."""
    folder = os.environ.get("KERNELAM_CORPORA")
    if not folder:
        pytest.skip("KERNELAM_CORPORA is not set")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def need_program() -> Callable[[str], str]:
    """need_program("sctk"): its path; without it the test is skipped, and .ci/run fails on such a skip."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"needs the program {name}")
        return path

    return find


@pytest.fixture
def kernelam() -> Callable[..., subprocess.CompletedProcess[str]]:
    """kernelam("validate", path, cwd=…): run the command line in a process of its own."""

    def run(*args: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "kernelam", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=600, **kwargs)  # type: ignore[call-overload]

    return run
