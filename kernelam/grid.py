"""A declared set of experiments: every combination of some options is trained, decoded, scored and reported.

The declaration is TOML; {name} stands for a variable given at the call or, in options, for a value of another axis:

    title = "Kernels and tricks"
    folder = "exp/kernels"                  # cells are folders of it
    train = "steps/train_kernel.sh --num-features 5000 --num-threads 1"
    data = ["data/train", "data/heldout", "data/lang", "{corpus}/ali_train", "{corpus}/ali_heldout"]
    decode = "steps/decode.sh --nj 1 --acwt 0.1"
    graph = "exp/graph"
    tuned = "data/dev"                      # where the weights of decoding are tuned
    tested = "data/test"
    baseline = "gaussian_b_1"               # the cell that others are compared with; otherwise the first

    [axes.kernel]                           # names of values, and the options of `train` that they stand for
    gaussian = "--kernel gaussian"
    laplacian = "--kernel laplacian"
    [axes.tricks]
    b = "--bottleneck 100"
    [axes.seed]
    1 = "--seed 1"
"""

import itertools
import re
import shlex
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernelam.current import run_once
from kernelam.errors import KernelamError

TEXTS = ("title", "folder", "train", "decode", "graph", "tuned", "tested")
DONE = "cell.done"  # in the folder of a cell that came to its end
MODEL = ("model.safetensors", "ali_train_pdf.counts", "final.mdl", "model.json")


@dataclass(frozen=True)
class Cell:
    name: str
    folder: Path
    options: list[str]


@dataclass(frozen=True)
class Grid:
    title: str
    folder: Path
    train: list[str]
    data: list[str]
    decode: list[str]
    graph: str
    tuned: Path
    tested: Path
    baseline: str
    cells: list[Cell]

    @classmethod
    def read(cls, path: Path, variables: Mapping[str, str]) -> "Grid":
        try:
            with open(path, "rb") as stream:
                given = tomllib.load(stream)
        except OSError as error:
            raise KernelamError(f"cannot read {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise KernelamError(f"{path} is not TOML: {error}") from error
        _check(path, given)

        def filled(text: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
            known = {**variables, **more}
            for name in re.findall(r"\{(\w+)\}", text):
                if name not in known:
                    raise KernelamError(f"{path} needs the variable {name}: give it as --set {name}=…")
            return re.sub(r"\{(\w+)\}", lambda match: known[match[1]], text)

        def words(text: str, more: Mapping[str, str] = MappingProxyType({})) -> list[str]:
            return [filled(word, more) for word in shlex.split(text)]

        folder, axes = Path(filled(given["folder"])), given["axes"]
        cells = []
        for values in itertools.product(*axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            options = [word for axis, value in chosen.items() for word in words(axes[axis][value], chosen)]
            cells.append(Cell("_".join(values), folder / "_".join(values), options))
        baseline = given.get("baseline", cells[0].name)
        if baseline not in (cell.name for cell in cells):
            raise KernelamError(f"the baseline of {path}, {baseline}, is no cell such as {cells[0].name}")
        return cls(
            *(given["title"], folder, words(given["train"]), [filled(item) for item in given["data"]]),
            *(words(given["decode"]), filled(given["graph"]), Path(filled(given["tuned"]))),
            *(Path(filled(given["tested"])), baseline, cells),
        )

    def run_cell(self, cell: Cell) -> None:
        """Train, decode and score, unless it is done and current."""
        cell.folder.mkdir(parents=True, exist_ok=True)
        (cell.folder / DONE).unlink(missing_ok=True)
        tables = [Path(data, name) for data in self.data[:2] for name in ("feats.scp", "cmvn.scp", "utt2spk")]
        inputs = [table for table in tables if table.exists()] + [Path(ali) for ali in self.data[3:]]
        model = [cell.folder / name for name in MODEL]
        run_once(inputs, model, [*self.train, *cell.options, *self.data, str(cell.folder)], force=False)
        tuning = cell.folder / f"decode_{self.tuned.name}"
        for data in (self.tuned, self.tested):
            output = cell.folder / f"decode_{data.name}"
            more = [] if data == self.tuned else ["--tuned-on", str(tuning)]
            tables = [data / name for name in ("feats.scp", "cmvn.scp", "utt2spk", "text") if (data / name).exists()]
            needed = [*tables, *model, Path(self.graph), *([tuning / "scoring_kaldi/best_wer"] if more else [])]
            run_once(needed, [output], [*self.decode, *more, self.graph, str(data), str(output)], force=False)
        (cell.folder / DONE).touch()

    def log(self, number: int | str) -> Path:
        return self.folder / "log" / f"cell.{number}.log"

    def run(self, cmd: Sequence[str], itself: Sequence[str]) -> None:
        """All cells as jobs of `cmd`, each by the command `itself` with its number; those that fail are told later."""
        log = self.log("JOB")
        log.parent.mkdir(parents=True, exist_ok=True)
        jobs = f"JOB=1:{len(self.cells)}"
        subprocess.run([*cmd, jobs, str(log), *itself, "JOB"], check=False)

    def done(self, cell: Cell) -> bool:
        return (cell.folder / DONE).exists()

    def failures(self, lines: int = 5) -> dict[str, list[str]]:
        """The last lines of the log of each cell that has no result."""
        found = {}
        for number, cell in enumerate(self.cells, 1):
            if not self.done(cell):
                log = self.log(number)
                text = log.read_text(errors="replace").splitlines() if log.exists() else ["it was never begun"]
                found[cell.name] = [line for line in text if line.strip() and not line.startswith("#")][-lines:]
        return found


def _check(path: Path, given: Mapping[str, Any]) -> None:
    """Every key there, of its type, and none that means nothing."""
    for key in (*TEXTS, "data", "axes"):
        if key not in given:
            raise KernelamError(f"{path} does not say {key}")
    if unknown := given.keys() - {*TEXTS, "data", "axes", "baseline"}:
        raise KernelamError(f"{path} says {min(unknown)}, which means nothing")
    for key in (*TEXTS, *(["baseline"] if "baseline" in given else [])):
        if not isinstance(given[key], str):
            raise KernelamError(f"{path}: {key} is a text, not {given[key]!r}")
    data, axes = given["data"], given["axes"]
    if not (isinstance(data, list) and len(data) == 5 and all(isinstance(item, str) for item in data)):
        raise KernelamError(
            f"{path}: data is a list of five: training and heldout data, lang, and their two alignments"
        )
    if not (isinstance(axes, dict) and axes and all(isinstance(axis, dict) and axis for axis in axes.values())):
        raise KernelamError(f"{path}: axes are tables of names and options, as in [axes.kernel] and gaussian = …")
    for name, axis in axes.items():
        for value, options in axis.items():
            if not isinstance(options, str) or not re.fullmatch(r"[\w.-]+", value):
                raise KernelamError(f"{path}: in axes.{name}, {value} is no name with a text of options")
