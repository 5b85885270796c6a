from pathlib import Path

import pytest
from small_experiments import DNN, GMM, experiment


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [experiment(tmp_path / "gmm", GMM, 20), experiment(tmp_path / "dnn", DNN, 4)]
