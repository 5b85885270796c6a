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

    [combine]                               # models that are combined, by their values of the first axis
    script = "steps/combine.sh --num-threads 1"
    both = ["gaussian", "laplacian"]        # makes both_b_1 of gaussian_b_1 and laplacian_b_1

All but baseline and [combine] are needed. A cell is called by its values: gaussian_b_1. A script, whose name ends in
.sh, may stand in front of the options of a value instead of those of `train`. A cell whose options name the folder of
another one, such as exp/kernels/laplacian_b_{seed}, is run after it.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernelam.declaration import Declaration
from kernelam.errors import KernelamError
from kernelam.experiments import Cell, Experiments

NAME = r"(?!log$)\w[\w.-]*"  # of what may be a folder beside that of the logs


@dataclass(frozen=True)
class Grid(Experiments):
    baseline: str

    @classmethod
    def read(cls, path: Path, variables: Mapping[str, str]) -> "Grid":
        told = Declaration.read(path, variables)
        told.check({"train", "axes"}, {"baseline", "combine"})
        folder, axes = Path(told.filled(told.text("folder"))), _axes(told)
        cells = []
        for values in itertools.product(*axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            texts = [told.text("train"), *(axes[axis][value] for axis, value in chosen.items())]
            place = folder / "_".join(values)
            command = _command(path, place.name, [told.words(text, chosen) for text in texts])
            cells.append(Cell(place.name, place, [*command, *told.data, str(place)]))
        cells = _ordered(path, [*cells, *_combinations(told, folder, axes)])
        baseline = told.text("baseline") if "baseline" in told.given else cells[0].name
        if baseline not in (cell.name for cell in cells):
            raise KernelamError(f"the baseline of {path}, {baseline}, is no cell such as {cells[0].name}")
        return cls(told.text("title"), folder, *told.places, cells, baseline)


def _ordered(path: Path, cells: list[Cell]) -> list[Cell]:
    """Each behind those whose folders its command names, which it needs."""
    folders = {str(cell.folder): cell.name for cell in cells}
    if len(folders) < len(cells):
        twice = next(cell.name for number, cell in enumerate(cells) if cell.name in (c.name for c in cells[:number]))
        raise KernelamError(f"{path}: two cells are called {twice}")
    left, found = [], list[Cell]()
    for cell in cells:
        words = {part for word in cell.train[:-1] for part in re.split(r"[:\s()]+", word)}
        left.append(replace(cell, needs=tuple(name for folder, name in folders.items() if folder in words)))
    while left:
        before = {cell.name for cell in found}
        found += [cell for cell in left if before.issuperset(cell.needs)]
        if len(found) == len(before):
            raise KernelamError(f"{path}: {left[0].name} needs a cell that needs it in turn")
        left = [cell for cell in left if not before.issuperset(cell.needs)]
    return found


def _combinations(told: Declaration, folder: Path, axes: Mapping[str, Mapping[str, str]]) -> list[Cell]:
    """Of cells that differ in their value of the first axis alone."""
    given = told.given.get("combine", {"script": ""})
    if not isinstance(given, dict) or not isinstance(given.get("script"), str):
        raise KernelamError(
            f"{told.path}: combine is a table with a script, and names of combinations with their members"
        )
    first, *others = axes.values()
    _, heldout, lang, _, ali = told.data
    cells = []
    for name, members in given.items():
        if name == "script":
            continue
        known = isinstance(members, list) and all(isinstance(member, str) and member in first for member in members)
        if not known or not len(members) == len(set(members)) > 1:
            raise KernelamError(f"{told.path}: in combine, {name} is no list of two or more of {', '.join(first)}")
        if name in first or not re.fullmatch(NAME, name):
            raise KernelamError(f"{told.path}: in combine, {name} cannot be the name of a combination")
        for rest in itertools.product(*others):
            place, models = folder / "_".join((name, *rest)), ["_".join((member, *rest)) for member in members]
            command = [*told.command(given["script"]), heldout, lang, ali, *(str(folder / model) for model in models)]
            cells.append(Cell(place.name, place, [*command, str(place)]))
    return cells


def _command(path: Path, cell: str, parts: list[list[str]]) -> list[str]:
    """One script, then the options of all parts in their order."""
    scripts = [part[0] for part in parts if part and part[0].endswith(".sh")]
    if len(scripts) != 1:
        found = "no script" if not scripts else "the scripts " + " and ".join(scripts)
        raise KernelamError(f"{path}: {cell} has {found}: one, in `train` or in front of a value of an axis, trains it")
    return scripts + [word for part in parts for word in (part[1:] if part[:1] == scripts else part)]


def _axes(told: Declaration) -> dict[str, dict[str, str]]:
    axes = told.given["axes"]
    if not (isinstance(axes, dict) and axes and all(isinstance(axis, dict) and axis for axis in axes.values())):
        raise KernelamError(f"{told.path}: axes are tables of names and options, as in [axes.kernel] and gaussian = …")
    for name, axis in axes.items():
        for value, options in axis.items():
            if not isinstance(options, str) or not re.fullmatch(NAME, value):
                raise KernelamError(f"{told.path}: in axes.{name}, {value} is no name with a text of options")
    return axes
