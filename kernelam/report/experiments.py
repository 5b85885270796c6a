"""Experiments: trained systems with their scored decode directories, and what they are called."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.models.description import check_decoded, describe
from kernelam.report import parts
from kernelam.scoring.directory import check_tuning, read_result, read_scored
from kernelam.scoring.wer import WerResult

KINDS = ("gmm", "dnn", "kernel", "ridge", "pursuit", "svm", "multilayer", "combination", "lattices")
KERNELS = ("laplacian", "gaussian", "sparse-gaussian")
TRICKS = ("NT", "B", "R", "BR")
COSTS = ("frames", "seconds", "flops", "memory")


@dataclass(frozen=True)
class Run:
    """A model directory with a scored decode directory of the set `sets` names first, where its weights were tuned,
    and one of the set that is reported. Where these are of combined lattices there is no model. Of a run that is `kept`
    there are its figures alone, and no directory.

    Runs with the same first of `identity` differ in their seeds alone, which are the second. `cost` is that of a
    trained one; None where what it was made of is gone.
    """

    folder: Path
    about: dict[str, Any]
    dev: dict[str, Any]
    test: dict[str, Any]
    words: WerResult  # of the test set
    identity: tuple[str, list[Any]]
    cost: dict[str, Any] | None
    kept: bool = False

    @classmethod
    def read(cls, folder: Path, sets: tuple[str, str]) -> "Run":
        places = [folder / f"decode_{name}" for name in sets]
        dev, test = map(read_result, places)
        check_tuning(places[1], places[0])
        for place in places:
            check_decoded(folder, place)
        words = read_scored(places[1])
        combined = "systems" in test and not (folder / "model.json").exists()
        with whole(places[1] if combined else folder / "model.json"):
            about = _lattices(places, [dev, test]) if combined else _with_members(folder, describe(folder))
            cost = parts.cost(folder, about) if "training" in about else None
            results = [dev, test, {utt: astuple(one) for utt, one in words.utterances.items()}]
            run = cls(folder, about, dev, test, words, parts.identity(folder, about, results), cost)
            run.check_model()
        for place, told in zip(places, (dev, test), strict=True):
            with whole(place / "scoring_kaldi/result.json"):
                check_result(told)
        return run

    @property
    def trained(self) -> bool:
        return "training" in self.about

    def check_model(self) -> None:
        """What reports tell of every model is there, and its figures are numbers."""
        about, figures = self.about, [self.about.get("num_parameters", 0)]
        system(about)
        if heldout := about.get("heldout"):
            figures += [heldout[name] for name in ("ce", "entropy", "erll", "frame_error")]
        if self.trained:
            origin, machine = about["provenance"], about["provenance"]["machine"]
            _ = about["seed"], about["num_parameters"], origin["git"], dict(origin["versions"])
            _ = [machine[name] for name in ("processor", "cores", "system")]
            figures += [value for name in COSTS if (value := (self.cost or {}).get(name)) is not None]
        _check_numbers(figures)


def check_result(told: dict[str, Any]) -> None:
    """What reports tell of the scores of every set is there."""
    weights = [] if "parts" in told else [told["lmwt"], told["wip"]]
    counts = [told[name] for name in ("ref_words", "utterances", "replicates")]
    _check_numbers([told["rate"], told["oracle"]["rate"], *weights, *counts])


def _check_numbers(figures: Iterable[Any]) -> None:
    for value in figures:
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{value!r} is no figure")


@contextmanager
def whole(place: Path) -> Iterator[None]:
    """What is not there, or not what it should be, is told of the file `place`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        said = f"it has no {error}" if isinstance(error, KeyError) else error
        raise KernelamError(f"{place} is damaged: {said}") from None


def _with_members(folder: Path, about: dict[str, Any]) -> dict[str, Any]:
    """A combination tells what its members are, not how they were trained: what they tell themselves is more."""
    found = parts.members(folder, about) if about["kind"] == "combination" else None
    return {**about, "config": {**about["config"], "members": [one for _, one in found]}} if found else about


def _lattices(places: Sequence[Path], results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What stands for model.json where the lattices of several systems were decoded together: `results` of `places`, of
    which the last is reported. A system is called by its directory where that has no model, or nothing tells which one
    it had."""
    both = zip(places, results, strict=True)
    *_, models = ([_combined_model(place, member) for member in result["systems"]] for place, result in both)
    told = results[-1]
    members = [{"folder": str(Path(one["folder"]).parent), "model": one.get("model")} for one in told["systems"]]
    names = [system(one) if one else Path(m["folder"]).name for one, m in zip(models, members, strict=True)]
    weights = [part / sum(told["parts"]) for part in told["parts"]]
    return {"kind": "lattices", "members": members, "config": {"names": names, "weights": weights}}


def _combined_model(place: Path, member: dict[str, Any]) -> dict[str, Any] | None:
    """The model of a system among those that `place` combines, if it is there; refused if another one is."""
    model, folder = member.get("model"), Path(member["folder"]).parent
    found, now = parts.look(folder, place.parent, model), parts.there(folder, place.parent)
    if model and now and not found:
        raise KernelamError(
            f"{place} was made of lattices of another model than the one that is now in {now[0]}; combine them again"
            " with steps/score_combine.sh"
        )
    return found[1] if found else None


Experiment = list[Run]
"""The runs of one system, with as many seeds."""


def experiments_of(runs: Iterable[Run]) -> list[Experiment]:
    """In the order of the papers' tables. Of a run and its figures that were kept, the first is taken."""
    found: dict[str, Experiment] = {}
    for run in runs:
        key, seeds = run.identity
        others = found.setdefault(key, [])
        same = next((other for other in others if other.identity[1] == seeds), None)
        if same and not (same.kept or run.kept):
            raise KernelamError(
                f"{same.folder} and {run.folder} have the same settings and seed, which are no two seeds: report one"
            )
        if same is None:
            others.append(run)
        elif same.kept:
            others[others.index(same)] = run
    for others in found.values():
        others.sort(key=lambda run: run.identity[1])
    return _ordered(list(found.values()))


def _ordered(experiments: list[Experiment]) -> list[Experiment]:
    """By kind, kernel or shape, trick, selection, number of features."""
    families = list(dict.fromkeys([*KERNELS, *(_family(runs[0].about) for runs in experiments)]))

    def place(runs: Experiment) -> tuple[int, ...]:
        about = runs[0].about
        kind = KINDS.index(about["kind"]) if about["kind"] in KINDS else len(KINDS)
        of_kind = TRICKS.index(trick(about)), selected(about), about["config"].get("features", 0)
        return kind, families.index(_family(about)), *of_kind

    return sorted(experiments, key=place)


def _family(about: dict[str, Any]) -> str:
    config = about["config"]
    if "kernel" in config:
        return kernel_name(config["kernel"])
    if config.get("kernels"):
        return kernel_name(config["kernels"][0])
    return f"{config['layers']} × {config['width']} {config['activation']}" if about["kind"] == "dnn" else ""


def named(runs: Experiment) -> str:
    return system(*(run.about for run in runs))


def names(experiments: Sequence[Experiment]) -> list[str]:
    """Of each; those that others have too, as of models that differ in how they were trained, with the directory, and
    where that is not enough, with what it is in: a folder, or a file of figures."""
    plain = found = [named(runs) for runs in experiments]
    for depth in (1, 2):
        places = [Path(*runs[0].folder.parts[-depth:]) for runs in experiments]
        both = zip(plain, places, found, strict=True)
        found = [f"{name} ({place})" if found.count(before) > 1 else before for name, place, before in both]
    return found


def system(*abouts: dict[str, Any]) -> str:
    """What a model is, in a few words; of several that differ in their seeds, with ranges of what was found."""
    about = abouts[0]
    config, configs = about["config"], [one["config"] for one in abouts]
    match about["kind"]:
        case "gmm":
            return f"GMM, {config['gaussians']} Gaussians"
        case "kernel":
            rank = f", bottleneck {config['bottleneck']}" if config["bottleneck"] else ""
            number = f"{config['features']}{' selected' if selected(about) else ''} features"
            blocks = len(about.get("training", {}).get("members", []))
            joined = f" in {blocks} blocks" if blocks else ""
            return f"{kernel_title(config['kernel'])} kernel, {number}{joined}{rank}{_rule(about)}"
        case "dnn":
            dropouts = [one.get("dropout") or 0.0 for one in configs]
            texts = [
                f"DNN, {config['layers']} × {config['width']} {config['activation']}",
                f"bottleneck {config['bottleneck']}" if config.get("bottleneck") else "",
                "normalised" if config.get("normalise") else "",
                f"dropout {_range(dropouts, 'g')}" if any(dropouts) else "",
            ]
            begin = about.get("training", {}).get("settings", {}).get("pretraining", "")
            texts.append(f"{begin} pre-training" if begin else "")
            return ", ".join(filter(None, texts)) + _rule(about)
        case "ridge":
            name = kernel_title(config["kernel"])
            return f"{name} kernel ridge regression, {config['scheme']}, {config['features']} features"
        case "pursuit":
            return f"{kernel_title(config['kernel'])} kernel expansion, {config['basis']} vectors, {config['method']}"
        case "svm":
            numbers = _range([one["vectors"] for one in configs], "d")
            return f"{kernel_title(config['kernel'])} support vector machine, {numbers} vectors"
        case "multilayer":
            kernels, depth = config["kernels"], len(config["kernels"])
            name = f"{kernel_title(kernels[0])} multilayer" if kernels else "Multilayer"
            widths = dict.fromkeys("-".join(map(str, one["widths"])) for one in configs)
            shape = f"{depth} {'layer' if depth == 1 else 'layers'}, {' or '.join(widths)} features"
            return f"{name} kernel machine, {shape}"
        case "combination":
            members = zip(*(one["members"] for one in configs), strict=True)
            return _sum([one["weights"] for one in configs], (system(*same) for same in members))
        case "lattices":
            names = zip(*(one["names"] for one in configs), strict=True)
            return (
                f"lattices: {_sum([one['weights'] for one in configs], (' or '.join(dict.fromkeys(n)) for n in names))}"
            )
        case kind:
            return str(kind)


def _sum(weights: Sequence[Sequence[float]], names: Iterable[str]) -> str:
    """Of models whose weights are rows."""
    columns = zip(*weights, strict=True)
    return " + ".join(f"{_range(column, '.2f')} ({name})" for column, name in zip(columns, names, strict=True))


def _range(values: Sequence[float], form: str) -> str:
    return "–".join(dict.fromkeys(format(value, form) for value in (min(values), max(values))))


def selected(about: dict[str, Any]) -> bool:
    """Whether the features were selected, for this model or for the one that it has them of."""
    return bool(about.get("training", {}).get("settings", {}).get("selection"))


def trick(about: dict[str, Any]) -> str:
    """Of TRICKS: a bottleneck, a halving rule that judges by ERLL, both, none."""
    options = about.get("training", {}).get("options", {})
    by_erll = options.get("schedule") == "halving" and options["metric"].startswith("erll")
    return ("B" if about["config"].get("bottleneck") else "") + ("R" if by_erll else "") or "NT"


def kernel_title(settings: dict[str, Any]) -> str:
    """A kernel's name as a text has it: Sparse Gaussian, Gaussian + Laplacian."""
    name = kernel_name(settings).replace("sparse-", "sparse ")
    name = re.sub(r"\b(gaussian|laplacian)\b", lambda word: word[0].capitalize(), name)
    return name[0].upper() + name[1:]


def _rule(about: dict[str, Any]) -> str:
    """What the halving rule judged heldout frames by, if not by cross-entropy."""
    options = about.get("training", {}).get("options", {})
    by = options.get("metric", "ce").replace("erll", "ERLL")
    return f", rate by {by}" if options.get("schedule") == "halving" and by != "ce" else ""


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
        case "polynomial":
            return f"polynomial:{settings['degree']}"
        case name:
            return str(name)
