"""The results page of a set of experiments."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.models.description import describe
from kernelam.scoring.bootstrap import compare
from kernelam.scoring.directory import read_result, read_scored


@dataclass(frozen=True)
class Experiment:
    """A model directory with a scored decode directory of the set `sets` names first, where its weights were tuned,
    and one of the set that is reported."""

    folder: Path
    about: dict[str, Any]
    dev: dict[str, Any]
    test: dict[str, Any]

    @classmethod
    def read(cls, folder: Path, sets: tuple[str, str]) -> "Experiment":
        places = [folder / f"decode_{name}" for name in sets]
        dev, test = map(read_result, places)
        if Path(test["tuned_on"]) != places[0]:
            raise KernelamError(
                f"{places[1]} was scored with weights tuned on {test['tuned_on']}; score it again with"
                f" steps/score.sh --tuned-on {places[0]}"
            )
        return cls(folder, describe(folder), dev, test)


def system(about: dict[str, Any]) -> str:
    """What a model is, in a few words."""
    config = about["config"]
    match about["kind"]:
        case "gmm":
            return f"GMM, {config['gaussians']} Gaussians"
        case "kernel":
            rank = f", bottleneck {config['bottleneck']}" if config["bottleneck"] else ""
            number = f"{config['features']}{' selected' if _selected(about) else ''} features"
            return f"{kernel_name(config['kernel']).capitalize()} kernel, {number}{rank}{_rule(about)}"
        case "dnn":
            rank = f", bottleneck {config['bottleneck']}" if config.get("bottleneck") else ""
            begin = about["training"].get("settings", {}).get("pretraining", "")
            start = f", {begin} pre-training" if begin else ""
            return f"DNN, {config['layers']} × {config['width']} {config['activation']}{rank}{start}{_rule(about)}"
        case kind:
            return str(kind)


def _selected(about: dict[str, Any]) -> bool:
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


def write_results(
    path: Path, title: str, folders: list[Path], baseline: Path, sets: tuple[str, str] = ("dev", "test")
) -> None:
    """Write a Markdown page: error rates with their conditions, then what training cost.

    The weights of each experiment are tuned on the first of `sets` and applied to the second.
    """
    experiments = [Experiment.read(folder, sets) for folder in folders]
    sections = [
        f"# {title}",
        _errors(experiments, baseline, sets),
        _notes(experiments, baseline, sets),
        "## Training",
        _training(experiments),
        "## Conditions",
        _conditions(experiments),
    ]
    with replacing(path, "w") as stream:
        stream.write("\n\n".join(sections) + "\n")


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, [":--" if number == 0 else "--:" for number in range(len(header))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _errors(experiments: list[Experiment], baseline: Path, sets: tuple[str, str]) -> str:
    dev, test = sets
    reference = read_scored(baseline / f"decode_{test}")
    rows = []
    for one in experiments:
        interval = one.test["interval_95"]
        span = f"{100 * interval[0]:.2f} – {100 * interval[1]:.2f}" if interval else "–"
        p = "" if one.folder == baseline else f"{compare(reference, read_scored(one.folder / f'decode_{test}')).p:.4f}"
        weights = f"{one.test['lmwt']}, {one.test['wip']}"
        rates = [f"{100 * one.dev['rate']:.2f}", f"**{100 * one.test['rate']:.2f}**"]
        rows.append([system(one.about), *rates, span, p, weights, _oracle(one)])
    header = ["system", f"{dev} WER %", f"{test} WER %", "95 % interval", "p", "LM weight, penalty", f"{test} oracle %"]
    return _table(header, rows)


def _oracle(one: Experiment) -> str:
    return f"{100 * one.test['oracle']['rate']:.2f}"


def _notes(experiments: list[Experiment], baseline: Path, sets: tuple[str, str]) -> str:
    first, (dev, test) = experiments[0], sets
    return (
        f"LM weight and word insertion penalty are tuned on {dev} and applied to {test}; the oracle has them chosen on"
        f" {test} itself, for comparison only. Intervals are 95 % bootstrap intervals over {first.test['utterances']}"
        f" utterances, p is that of a paired bootstrap test against {system(describe(baseline))}"
        f" ({first.test['replicates']} replicates). {dev} has {first.dev['ref_words']} words, {test}"
        f" {first.test['ref_words']}."
    )


def _training(experiments: list[Experiment]) -> str:
    rows = []
    for one in experiments:
        training, heldout = one.about["training"], one.about.get("heldout")
        rates = training.get("options", {}).get("rates", [])
        search = f"{len(rates)} × {training['search_frames']:,}" if rates else "–"
        epochs = str(training.get("epochs", "–"))
        metrics = [f"{heldout[name]:.3f}" for name in ("ce", "entropy", "erll")] if heldout else ["–"] * 3
        metrics.append(f"{100 * heldout['frame_error']:.2f}" if heldout else "–")
        cost = [
            f"{one.about['num_parameters']:,}",
            f"{training['frames']:,}",
            epochs,
            search,
            f"{training['seconds']:.0f}",
        ]
        rows.append([system(one.about), *cost, *metrics, str(one.about["seed"])])
    header = ["system", "parameters", "frames", "epochs", "tuned on (rates × frames)", "seconds"]
    return _table([*header, "heldout CE", "entropy", "ERLL", "frame error %", "seed"], rows)


def _conditions(experiments: list[Experiment]) -> str:
    origin = experiments[-1].about["provenance"]
    versions = ", ".join(f"{name} {number}" for name, number in origin["versions"].items())
    machine = origin["machine"]
    return "\n".join(
        [
            f"- {versions}; commit {origin['git']}",
            f"- {machine['processor']}, {machine['cores']} cores, {machine['system']}",
        ]
    )
