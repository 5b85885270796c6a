"""Small experiments to report: models that were scored, no more of them than their records."""

import json
from pathlib import Path

from kernelam.models.description import decoded_by
from kernelam.scoring.directory import score_directory
from kernelam.scoring.tuning import Weights

REFS = {f"s{i % 2}-{i:02d}": ["one", "two"] for i in range(20)}
UTT2SPK = {utt: utt[:2] for utt in REFS}
PROVENANCE = {
    "versions": {"torch": "1.2.3"},
    "git": "abc",
    "machine": {"processor": "a processor", "cores": 2, "system": "Linux"},
}
GMM = {"kind": "gmm", "config": {"gaussians": 300}, "training": {"frames": 5000, "seconds": 61.4}}
DNN = {
    "kind": "dnn",
    "config": {"layers": 4, "width": 1000, "activation": "tanh"},
    "training": {
        "frames": 5000,
        "seconds": 7.0,
        "epochs": 6,
        "search_frames": 1000,
        "flops": 1.25e12,
        "memory": 2**29,
        "options": {"rates": [0.1, 0.2]},
    },
    "heldout": {"ce": 1.2345, "entropy": 1.5, "erll": 2.7345, "frame_error": 0.25},
}


def experiment(folder: Path, about: dict, wrong: int) -> Path:
    """A model whose test hypotheses lack a word of the first `wrong` utterances, and whose dev ones are right."""
    folder.mkdir()
    files = {"model.safetensors": f"digest of {folder.name}"}
    record = {"seed": 7, "files": files, **about, "num_parameters": 12345, "provenance": PROVENANCE}
    (folder / "model.json").write_text(json.dumps(record))
    hyps = {utt: ["one"] if number < wrong else words for number, (utt, words) in enumerate(REFS.items())}
    weights = Weights(9, 0.5)
    score_directory(folder / "decode_dev", REFS, {weights: REFS}, UTT2SPK)
    score_directory(folder / "decode_test", REFS, {weights: hyps}, UTT2SPK, tuned_on=folder / "decode_dev")
    return folder


def cells(page: str, start: str) -> list[list[str]]:
    return [[c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith(f"| {start}")]


def seeded(folder: Path, seed: int, wrong: int = 4, settings: dict | None = None, **config: float) -> Path:
    """A DNN whose settings are known."""
    told = {"settings": settings or {}, "options": {"rates": [0.1, 0.2], "seed": seed}, "data": ["x"]}
    training = {**DNN["training"], **told, "configurations": 2}
    about = {**DNN, "config": {**DNN["config"], **config}, "training": training}
    return experiment(folder, {**about, "seed": seed, "fingerprint": f"print of {folder.name}"}, wrong)


def combined(folder: Path, members: list[Path], wrong: int = 2, kind: str = "combination") -> Path:
    """Of models, or, where the kind is kernel, of the blocks within the folder."""
    digests = [{"model.safetensors": f"digest of {member.name}"} for member in members]
    training = {"members": digests, "weights": "fitted", "frames": 100, "seconds": 1.0}
    if kind == "kernel":
        config = {"kernel": {"name": "gaussian"}, "features": 8, "bottleneck": 0}
        return experiment(folder, {"kind": kind, "config": config, "training": training}, wrong)
    told = [{"folder": str(member), "weight": 0.5} for member in members]
    config = {"weights": [0.5, 0.5], "members": [DNN, DNN]}
    return experiment(folder, {"kind": kind, "config": config, "training": training, "members": told}, wrong)


def combined_lattices(folder: Path, members: list[Path], parts: tuple[int, ...]) -> Path:
    for part, tuned_on in (("dev", None), ("test", folder / "decode_dev")):
        places = [member / f"decode_{part}" for member in members]
        systems = [{"folder": str(one), "lmwt": 9, "wip": 0.5, "model": decoded_by(one)} for one in places]
        hyps = {Weights(1, 0.0, parts): REFS}
        score_directory(folder / f"decode_{part}", REFS, hyps, UTT2SPK, tuned_on, systems=systems)
    return folder
