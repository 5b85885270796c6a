"""Experiments: trained systems with their scored decode directories, and what they are called."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.models.description import describe
from kernelam.scoring.directory import read_result, read_scored
from kernelam.scoring.wer import WerResult


@dataclass(frozen=True)
class Run:
    """A model directory with a scored decode directory of the set `sets` names first, where its weights were tuned,
    and one of the set that is reported. Where these are of combined lattices there is no model."""

    folder: Path
    about: dict[str, Any]
    dev: dict[str, Any]
    test: dict[str, Any]
    words: WerResult  # of the test set

    @classmethod
    def read(cls, folder: Path, sets: tuple[str, str]) -> "Run":
        places = [folder / f"decode_{name}" for name in sets]
        dev, test = map(read_result, places)
        if Path(test["tuned_on"]) != places[0]:
            raise KernelamError(
                f"{places[1]} was scored with weights tuned on {test['tuned_on']}; score it again with"
                f" steps/score.sh --tuned-on {places[0]}"
            )
        combined = "systems" in test and not (folder / "model.json").exists()
        about = _lattices(test) if combined else describe(folder)
        return cls(folder, about, dev, test, read_scored(places[1]))

    @property
    def trained(self) -> bool:
        return "training" in self.about

    @property
    def key(self) -> str:
        """Runs of one key differ in their seed alone."""
        return _key(self.folder, self.about)


def _key(folder: Path, about: dict[str, Any]) -> str:
    """Of a combination, those of its members, if these are still there."""
    training = about.get("training", {})
    if "settings" in training:
        options = {name: value for name, value in training["options"].items() if name != "seed"}
        return json.dumps([about["kind"], training["settings"], options, training["data"]], sort_keys=True)
    members = [Path(member["folder"]) for member in about.get("members", [])]
    if members and all((member / "model.json").exists() for member in members):
        return json.dumps([about["kind"], *(_key(member, describe(member)) for member in members)])
    return str(folder)


def _lattices(result: dict[str, Any]) -> dict[str, Any]:
    """What stands for model.json where the lattices of several systems were decoded together."""
    folders = [Path(member["folder"]).parent for member in result["systems"]]
    names = [system(describe(one)) if (one / "model.json").exists() else one.name for one in folders]
    weights = [part / sum(result["parts"]) for part in result["parts"]]
    return {"kind": "lattices", "config": {"names": names, "weights": weights}}


Experiment = list[Run]
"""The runs of one system, with as many seeds."""


def read_experiments(folders: list[Path], sets: tuple[str, str]) -> list[Experiment]:
    """In the order of their first runs."""
    found: dict[str, Experiment] = {}
    for folder in folders:
        run = Run.read(folder, sets)
        found.setdefault(run.key, []).append(run)
    return list(found.values())


def system(about: dict[str, Any]) -> str:
    """What a model is, in a few words."""
    config = about["config"]
    match about["kind"]:
        case "gmm":
            return f"GMM, {config['gaussians']} Gaussians"
        case "kernel":
            rank = f", bottleneck {config['bottleneck']}" if config["bottleneck"] else ""
            number = f"{config['features']}{' selected' if selected(about) else ''} features"
            return f"{kernel_name(config['kernel']).capitalize()} kernel, {number}{rank}{_rule(about)}"
        case "dnn":
            parts = [
                f"DNN, {config['layers']} × {config['width']} {config['activation']}",
                f"bottleneck {config['bottleneck']}" if config.get("bottleneck") else "",
                "normalised" if config.get("normalise") else "",
                f"dropout {config['dropout']:g}" if config.get("dropout") else "",
            ]
            begin = about.get("training", {}).get("settings", {}).get("pretraining", "")
            parts.append(f"{begin} pre-training" if begin else "")
            return ", ".join(filter(None, parts)) + _rule(about)
        case "ridge":
            name = kernel_name(config["kernel"]).capitalize()
            return f"{name} kernel ridge regression, {config['scheme']}, {config['features']} features"
        case "combination":
            return _sum(config["weights"], map(system, config["members"]))
        case "lattices":
            return f"lattices: {_sum(config['weights'], config['names'])}"
        case kind:
            return str(kind)


def _sum(weights: Iterable[float], names: Iterable[str]) -> str:
    return " + ".join(f"{weight:.2f} ({name})" for weight, name in zip(weights, names, strict=True))


def selected(about: dict[str, Any]) -> bool:
    """Whether the features were selected, for this model or for the one that it has them of."""
    return bool(about.get("training", {}).get("settings", {}).get("selection"))


def _rule(about: dict[str, Any]) -> str:
    """What the halving rule judged heldout frames by, if not by cross-entropy."""
    options = about.get("training", {}).get("options", {})
    return f", by {options['metric']}" if options.get("schedule") == "halving" and options["metric"] != "ce" else ""


def kernel_name(settings: dict[str, Any]) -> str:
    """As an expression of --kernel without bandwidths and weights: gaussian + gaussian o fda:200."""

    def part(inside: dict[str, Any], *bracketed: str) -> str:
        return f"({kernel_name(inside)})" if inside["name"] in bracketed else kernel_name(inside)

    match settings["name"]:
        case "sum":
            return " + ".join(part(kernel, "sum") for kernel in settings["kernels"])
        case "product":
            return " * ".join(part(kernel, "sum", "product") for kernel in settings["kernels"])
        case "composition":
            outer, inner = (part(settings[side], "sum", "product", "composition") for side in ("outer", "inner"))
            return " o ".join(filter(None, (outer, settings["projection"], inner if inner != "linear" else None)))
        case "arccos":
            return f"arccos{settings['degree']}"
        case name:
            return str(name)
