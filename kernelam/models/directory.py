"""A model directory explains itself: arrays, configuration, class counts, and where it all came from."""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernelam import __version__
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frontend.pipeline import Pipeline
from kernelam.kaldi.binary import KaldiReader
from kernelam.models.arrays import read_arrays, write_arrays
from kernelam.models.dnn import Dnn
from kernelam.models.posterior import Inputs, PosteriorModel
from kernelam.models.softmax import KernelSoftmax

KINDS: dict[str, type[PosteriorModel]] = {model.kind: model for model in (KernelSoftmax, Dnn)}


def save_model(folder: Path, model: PosteriorModel, about: dict[str, Any]) -> None:
    """Write model.safetensors, ali_train_pdf.counts and, last, model.json, whose presence says that all is there."""
    arrays = model.arrays()
    arrays |= {"input.mean": torch.from_numpy(model.inputs.mean), "input.scale": torch.from_numpy(model.inputs.scale)}
    write_arrays(folder / "model.safetensors", arrays, {})
    write_counts(folder / "ali_train_pdf.counts", model.counts)
    description = {
        "kind": model.kind,
        "config": model.config(),
        "num_classes": model.num_classes,
        "num_parameters": model.num_parameters(),
        "input": {"pipeline": model.pipeline.settings(), "context": model.inputs.context, "dim": model.inputs.dim},
        **about,
    }
    with replacing(folder / "model.json", "w") as stream:
        stream.write(json.dumps(description, indent=2) + "\n")


def describe(folder: str | Path) -> dict[str, Any]:
    """The contents of model.json."""
    path = Path(folder) / "model.json"
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}: {folder} holds no trained model") from None
    except json.JSONDecodeError as error:
        raise KernelamError(f"{path} is damaged: {error}") from None


def load_posterior_model(folder: Path, device: str = "cpu") -> PosteriorModel:
    """What `save_model` saved."""
    about = describe(folder)
    arrays, _ = read_arrays(folder / "model.safetensors")
    try:
        given = about["input"]
        mean, scale = (arrays.pop(f"input.{name}").numpy() for name in ("mean", "scale"))
        inputs = Inputs(tuple(given["context"]), mean, scale)
        counts = read_counts(folder / "ali_train_pdf.counts")
        if len(counts) != about["num_classes"]:
            raise KernelamError(
                f"{folder}/ali_train_pdf.counts has {len(counts)} classes, {folder}/model.json {about['num_classes']}"
            )
        common = (Pipeline(**given["pipeline"]), inputs, counts, torch.device(device))
        return KINDS[about["kind"]].restore(about["config"], arrays, *common)
    except (KeyError, TypeError) as error:
        raise KernelamError(f"{folder} holds no whole model: {error!r}") from None


def read_counts(path: str | Path) -> np.ndarray:
    """Frames of each class in the training alignment: a vector in Kaldi's form."""
    return KaldiReader.open(path).vector().astype(np.float64)


def write_counts(path: Path, counts: np.ndarray) -> None:
    with replacing(path) as stream:
        stream.write(b"[ " + b"".join(b"%d " % int(count) for count in counts) + b"]\n")


def provenance() -> dict[str, Any]:
    """The command, versions, git hash and machine: what a reader of the model needs to make it again."""
    root = Path(__file__).resolve().parents[2]
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    git = subprocess.run(command, capture_output=True, text=True, check=False)
    packages = ("torch", "numpy", "kaldifst", "kaldi-decoder", "kaldi-native-fbank")
    return {
        "command": " ".join(["kernelam", *sys.argv[1:]]),
        "git": git.stdout.strip() or "unknown",
        "versions": {"kernelam": __version__, "python": platform.python_version(), **{p: version(p) for p in packages}},
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "threads": torch.get_num_threads()},
    }
