"""Our own: frame stores, models, what unfinished trainings leave, and records that reports are made of."""

import contextlib
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from formats import Format, put
from torch import Tensor

from kernelam.claims.kept import Kept, read_kept, written
from kernelam.claims.outcomes import Outcome
from kernelam.current import run_once
from kernelam.errors import KernelamError
from kernelam.experiments import Cell, Experiments, Work
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.kernels import (
    ArcCosine,
    Composition,
    FeatureMap,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Posteriors,
    SparseGaussian,
    Sum,
)
from kernelam.models import load_model
from kernelam.models.combination import Combination
from kernelam.models.directory import is_whole, save_model
from kernelam.models.dnn import Dnn, Network
from kernelam.models.energies import Energies
from kernelam.models.kernel_pca import KernelPca
from kernelam.models.multilayer import Multilayer
from kernelam.models.posterior import Inputs, PosteriorModel
from kernelam.models.pursuit import KernelExpansion
from kernelam.models.ridge import Ridge
from kernelam.models.softmax import KernelSoftmax
from kernelam.models.svm import KernelSvm, Svm
from kernelam.report.evidence import read_alignments, read_class_means, read_epochs, read_selection, read_speakers
from kernelam.report.experiments import Run, experiments_of, names
from kernelam.report.kept import kept, read_runs
from kernelam.report.results import read_results, tables
from kernelam.scoring.alignment import ErrorCounts
from kernelam.scoring.directory import score_directory
from kernelam.scoring.tuning import Weights
from kernelam.scoring.wer import WerResult
from kernelam.training import checkpoint
from kernelam.training.search import Found, known

# Frame stores


def use_store(path: Path) -> None:
    store = FrameStore(path.parent)
    assert sum(len(store[utt]) for utt in store.utts) == len(store)
    assert store.labels is None or np.bincount(store.labels[store.labels < 1000]).sum() <= len(store)


def make_store(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        feats = {f"utt{i}": np.ones((5 + i, 3), np.float32) for i in range(3)}
        FrameStore.build(folder / "frames", feats.items(), {utt: np.arange(len(x)) for utt, x in feats.items()})
        return folder / "frames" / name

    return make


# Models of five classes, of three features with a frame of context on each side

DIM = 9
ARRAYS = "model.safetensors"
COUNTS = np.arange(1.0, 6.0)


def common(context: tuple[int, int] = (1, 1)) -> tuple[Any, ...]:
    inputs = Inputs(context, np.zeros(3, np.float32), np.ones(3, np.float32))
    return Pipeline(deltas=1), inputs, COUNTS, torch.device("cpu")


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def softmax(kernel: Kernel, features: FeatureMap | None = None, bottleneck: int = 2) -> PosteriorModel:
    model = KernelSoftmax(kernel, features or kernel.feature_map(DIM, 8, 1), bottleneck, *common())
    model.initialise(seed=1)
    return model


def independent() -> PosteriorModel:
    kernel = SparseGaussian(1.5, 2)
    return softmax(kernel, kernel.feature_map(DIM, 8, 1, "independent"))


def layered() -> PosteriorModel:
    """Sums, compositions with a projection, posteriors as features."""
    within = Posteriors(None, "tanh")
    inner = within.map_of({"W0": random(DIM, 4), "b0": random(4), "W1": random(4, 3), "b1": random(3)})
    outer = Laplacian(2.0).feature_map(2, 4, 1)
    composed = Composition(Laplacian(2.0), within, projection="pca:2")
    kernel = Sum((0.5, 0.5), (composed, Linear()))
    arrays = {f"0.outer.{name}": array for name, array in outer.arrays.items()}
    arrays |= {f"0.inner.{name}": array for name, array in inner.arrays.items()}
    arrays |= {"0.matrix": random(3, 2), "0.offset": random(2), "1.inputs": torch.tensor(DIM)}
    return softmax(kernel, kernel.map_of(arrays), bottleneck=0)


def network(context: tuple[int, int] = (1, 1)) -> PosteriorModel:
    model = Dnn(Network(2, 4, "sigmoid", bottleneck=2, normalise=True), *common(context))
    model.initialise(seed=1)
    return model


def ridge(scheme: str) -> PosteriorModel:
    kernel = ArcCosine(1)
    classes = torch.tensor([0, 2, 4])
    model = Ridge(kernel, kernel.feature_map(DIM, 8, 1), scheme, classes, random(3, 8), *common())
    model.calibrate(random(3, 2).abs(), 2.0)
    return model


def machine() -> PosteriorModel:
    sizes = torch.tensor([2, 1, 3])
    svm = KernelSvm(Gaussian(2.0), torch.tensor([0, 1, 3]), sizes, random(6, DIM), random(2, 6), random(3))
    return Svm(svm, *common())


def multilayer() -> PosteriorModel:
    layer = KernelPca(ArcCosine(1), random(5, 7), random(5, 4), random(4))
    energies = Energies(random(3, 4), random(6, 3), torch.tensor([3, 3]), random(6, 2).abs(), 0.5)
    return Multilayer(torch.arange(7), [layer], energies, torch.tensor([1, 2]), *common())


MODELS: dict[str, Callable[[], PosteriorModel]] = {
    "kernel": lambda: softmax(Gaussian(1.5)),
    "sparse kernel": independent,
    "layered kernel": layered,
    "dnn": network,
    "ridge": partial(ridge, "one-vs-one"),
    "one-vs-rest ridge": partial(ridge, "one-vs-rest"),
    "pursuit": lambda: KernelExpansion(Gaussian(2.0), "parallel", random(4, DIM), random(4, 5), *common()),
    "svm": machine,
    "multilayer": multilayer,
    "combination": lambda: Combination.of([softmax(Gaussian(1.5)), network((0, 2))], [0.5, 0.7]),
}


def make_model(kind: str, name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "exp").mkdir()
        save_model(folder / "exp", MODELS[kind](), {"fingerprint": "f"})
        return folder / "exp" / name

    return make


def use_model(path: Path) -> None:
    is_whole(path.parent, "f")
    found = load_model(path.parent).log_likelihoods(np.ones((4, 3), np.float32))
    assert (found.shape, found.dtype) == ((4, 5), np.float32)


def use_signed(path: Path) -> None:
    """As if its maker had meant it so: model.json has its digest."""
    record = path.with_name("model.json")
    told = json.loads(record.read_text())
    told["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    record.write_text(json.dumps(told))
    use_model(path)


# What unfinished trainings leave. What is damaged there is no error, but must not pass for what is whole.


def use_checkpoint(path: Path) -> None:
    with contextlib.redirect_stderr(io.StringIO()):
        found = checkpoint.read(path, "the run")
    if found is None:
        raise KernelamError(f"{path} is not used")
    tensors, about = found
    assert about == ABOUT
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def make_checkpoint(folder: Path) -> Path:
    checkpoint.write(folder / "checkpoint.safetensors", TENSORS, {**ABOUT}, "the run")
    return folder / "checkpoint.safetensors"


TENSORS = {"W": random(3, 4), "seen": torch.arange(7), "half": random(5).bfloat16()}
ABOUT = {"epoch": 3, "rate": 0.25, "best": 1.5, "rows": [{"epoch": 1, "ce": None}], "fingerprint": "the run"}
FOUND = Found({"ce": 5.0}, [{"rate": 0.5, "l2": 0.0, "ce": 1.25, "frames": 100}, {"rate": 1.0, "l2": 0.0, "ce": None}])


def make_search(folder: Path) -> Path:
    FOUND.keep(folder / "search.json", "the run")
    return folder / "search.json"


def use_search(path: Path) -> None:
    found = known(path, "the run")
    if not found.trials:
        raise KernelamError(f"{path} is not used")
    assert found == FOUND


def make_clock(folder: Path) -> Path:
    clock = checkpoint.Clock(folder, "the run")
    clock._start -= 5000.0
    clock.keep()
    return clock.path


def use_clock(path: Path) -> None:
    seconds = checkpoint.Clock(path.parent, "the run").seconds
    if seconds < 1000:
        raise KernelamError(f"{path} is not used")
    assert 5000 <= seconds < 6000


def make_once(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "given").write_text("a")
        _once()
        return folder / ".once" / name

    return make


def _once() -> None:
    with contextlib.redirect_stderr(io.StringIO()):
        run_once([Path("given")], [Path("made")], ["cp", "given", "made"], force=False)


def use_once(path: Path) -> None:
    """Where the record is of no use, the command runs again, and all is as it was."""
    damaged = path.read_bytes()
    Path("made").write_text("b")
    _once()
    assert Path("made").read_text() == "a"
    if b"made" not in damaged:
        raise KernelamError(f"{path} was of no use")


# Records


REFS = {f"s{i % 2}-{i:02d}": ["one", "two"] for i in range(8)}
MODEL = {
    "kind": "dnn",
    "config": {"layers": 4, "width": 1000, "activation": "tanh", "bottleneck": 8},
    "num_parameters": 12345,
    "seed": 7,
    "files": {"model.safetensors": "a digest"},
    "heldout": {"ce": 1.2345, "entropy": 1.5, "erll": 2.7345, "frame_error": 0.25, "perplexity": 3.4},
    "training": {
        "frames": 5000,
        "seconds": 7.0,
        "epochs": 6,
        "flops": 1.25e12,
        "memory": 2**29,
        "settings": {"selection": ""},
        "options": {"rates": [0.1, 0.2], "schedule": "halving", "metric": "erll", "seed": 7},
        "data": ["x"],
    },
    "provenance": {
        "versions": {"torch": "1.2.3"},
        "git": "abc",
        "machine": {"processor": "a processor", "cores": 2, "system": "Linux"},
    },
}
SELECTION = {"kept": [1, 2], "survival": [0.9, 1.0], "chance": [0.5, 1.0], "input_weights": [1.0, 0.5]}
EPOCHS = [{"epoch": 0, "ce": 5.0}, {"epoch": 1, "ce": 2.5, "halved": True}, {"epoch": 2, "ce": None, "kept": False}]


def make_run(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        run = folder / "run"
        run.mkdir()
        (run / "model.json").write_text(json.dumps(MODEL))
        (run / "selection.json").write_text(json.dumps(SELECTION))
        (run / "epochs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in EPOCHS))
        hyps = {utt: words[: 1 + number % 2] for number, (utt, words) in enumerate(REFS.items())}
        speakers, weights = {utt: utt[:2] for utt in REFS}, Weights(9, 0.5)
        with contextlib.redirect_stderr(io.StringIO()):
            score_directory(run / "decode_dev", REFS, {weights: REFS}, speakers)
            score_directory(run / "decode_test", REFS, {weights: hyps}, speakers, tuned_on=run / "decode_dev")
        (folder / "RESULTS.json").write_text(kept(("dev", "test"), [[Run.read(run, ("dev", "test"))]]))
        return folder / name

    return make


def use_run(path: Path) -> None:
    _report(Path("run").absolute())
    read_selection(Path("run"))
    assert len(read_epochs(Path("run"))) >= 0
    assert read_alignments(Path("run/decode_test")).keys() <= REFS.keys() | {""} or path.name == "per_utt"
    assert len(read_speakers(Path("run/decode_test"))) >= 0


def use_results(path: Path) -> None:
    _report(path, path / "run")


def _report(place: Path, baseline: Path | None = None) -> None:
    with contextlib.redirect_stderr(io.StringIO()):
        assert tables(read_results("A report", [place], baseline or place, ("dev", "test")))
    assert names(experiments_of(read_runs([place], ("dev", "test"))))


def outcome(number: int) -> Kept:
    words = WerResult({"u1": ErrorCounts(1, 0, number, 5), "u2": ErrorCounts(0, 1, 0, 4)})
    found = Outcome({"ce": 2.0, "erll": 3.0, "perplexity": 7.4, "frame_error": 0.4}, [2.5, 2.25], 0.4, 0.25, words)
    return Kept(f"sign {number}", ["digest"], found, [Work("train", 1.5, 2.5)], ["a condition"])


CLAIMS = written({f"cell_{number}": outcome(number) for number in range(2)}).encode()


def use_claims(path: Path) -> None:
    cells = read_kept(path, {f"cell_{number}": f"sign {number}" for number in range(2)})
    for one in cells.values():
        found = one.outcome
        assert all(map(np.isfinite, [*found.heldout.values(), found.survival or 0, found.tuned or 0]))
        assert found.words is None or found.words.total.rate >= 0
        assert all(step.start <= step.end for step in one.work)
        assert "".join(one.conditions).isprintable()
    written(cells)


def make_cell(folder: Path) -> Path:
    put("cell.json", json.dumps({"work": [["train", 1.5, 2.5], ["decode_dev", 3.0, 4.0]]}).encode())(folder)
    return folder / "cell.json"


def use_cell(path: Path) -> None:
    cell = Cell("cell", path.parent, ["train.sh"])
    places: Sequence[Any] = ("title", path.parent, ["data"] * 5, ["decode.sh"], "graph", Path("dev"), Path("test"))
    for step in Experiments(*places, [cell]).work(cell):
        assert step.end >= step.start
        assert step.step + "a text"


def make_means(folder: Path) -> Path:
    from kernelam.models.arrays import write_arrays
    from kernelam.models.description import CLASS_MEANS

    arrays = {"classes": torch.arange(3), "frames": torch.arange(3), "means": random(3, 4)}
    write_arrays(folder / CLASS_MEANS, arrays, {"phones": ["a", "b", "c"]})
    return folder / CLASS_MEANS


def use_means(path: Path) -> None:
    found = read_class_means(path.parent)
    assert found is not None
    assert len(found.means @ found.means.T) == len(found.classes) == len(found.phones)
    assert all(isinstance(phone, str) for phone in found.phones)


RUN = (
    "model.json",
    "selection.json",
    "epochs.jsonl",
    *(
        f"decode_test/scoring_kaldi/{name}"
        for name in (
            "result.json",
            "best_wer",
            "test_filt.txt",
            "penalty_0.5/9.txt",
            "wer_details/per_utt",
            "wer_details/per_spk",
        )
    ),
)

OWN = {
    "frame store": Format(make_store("store.json"), use_store, "frames", text=True),
    "frame offsets": Format(make_store("offsets.i64"), use_store, "frames"),
    "frame features": Format(make_store("features.f32"), use_store),
    "frame labels": Format(make_store("labels.i32"), use_store),
    "model arrays": Format(make_model("kernel", ARRAYS), use_model),
    "model description": Format(make_model("kernel", "model.json"), use_model, text=True),
    "model counts": Format(make_model("kernel", "ali_train_pdf.counts"), use_model, text=True),
    **{f"{kind}, signed": Format(make_model(kind, ARRAYS), use_signed, "exp", text=True) for kind in MODELS},
    "checkpoint": Format(make_checkpoint, use_checkpoint, text=True),
    "search": Format(make_search, use_search, text=True),
    "seconds": Format(make_clock, use_clock, text=True),
    "record of a command": Format(make_once("made.json"), use_once, "once", text=True),
    "record of digests": Format(make_once("digests.json"), use_once, "once", text=True),
    **{f"{name} of a run": Format(make_run(f"run/{name}"), use_run, "run", text=True) for name in RUN},
    "results": Format(make_run("RESULTS.json"), use_results, text=True),
    "claims": Format(put("CLAIMS.json", CLAIMS), use_claims, text=True),
    "work of a cell": Format(make_cell, use_cell, text=True),
    "class means": Format(make_means, use_means),
}
