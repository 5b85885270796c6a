"""The experiments that the papers' claims are tested on, which follow from a declaration of where and how large.

title = "The claims"
folder = "exp/claims"                   # --quick works in exp/claims_quick
data, decode, graph, tuned, tested      # as in a grid
options = "--splice 5 --num-threads 1"  # of every training
combine = "steps/combine.sh"
augment = "mask:0.1"
seeds = [1, 2, 3]
grid_seeds = [1]                        # those of kernels × tricks × selection, where they are not all

[kernel]
train = "steps/train_kernel.sh --rates '16 32'"
bandwidths = { laplacian = 1.0, gaussian = 0.6, sparse-gaussian = 1.0 }
features = [1250, 2500, 5000]           # D; all models but those that show what D does have the last
whole = "--rates '256 512'"             # of models without a bottleneck
bottleneck = "--bottleneck 64 --rates 8" # and of those with one
selection = "--selection 10 --selection-frames 100000"
blocks = "--blocks 4"                   # instead of training all features jointly
sgd = "--rates '8 16'"                  # of two models without bottleneck: one by SGD,
sag = "--optimiser sag --rates '1 2'"   # the other by SAG

[dnn]
train = "steps/train_dnn.sh --layers 3 --width 512"
whole = ""
bottleneck = "--bottleneck 64"

[quick]                                 # what --quick has instead, in tables of the same names too
seeds = [1]

All but grid_seeds are needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from kernelam.declaration import Declaration
from kernelam.errors import KernelamError
from kernelam.experiments import Cell, Experiments

KERNELS = ("laplacian", "gaussian", "sparse-gaussian")
TRICKS = ("nt", "b", "r", "br")  # none, bottleneck, rate by ERLL, both (may2017, table 3)
PLAIN = ("nt", "b", "br")  # the kernel models that every seed has
_TEXTS = {
    "": ("options", "combine", "augment"),
    "kernel": ("train", "whole", "bottleneck", "selection", "blocks", "sgd", "sag"),
    "dnn": ("train", "whole", "bottleneck"),
}


class Key(NamedTuple):
    system: str  # of KERNELS, or sum, dnn
    setting: str  # of TRICKS, with -fs where features are selected, or what else sets the model apart
    seed: int

    @property
    def name(self) -> str:
        return f"{self.system}_{self.setting}_{self.seed}"


@dataclass(frozen=True)
class Scale:
    """Which models there are."""

    seeds: tuple[int, ...]
    grid_seeds: tuple[int, ...]
    features: tuple[int, ...]


@dataclass(frozen=True)
class Study(Experiments):
    scale: Scale
    keys: dict[str, Key]  # of cells by their names
    settings: dict[str, str]  # what the declaration says in words

    @classmethod
    def read(cls, path: Path, variables: Mapping[str, str], quick: bool = False) -> "Study":
        told = Declaration.read(path, variables)
        scale = _check(told)
        if quick:
            changed = {"title": f"{told.text('title')} (quick)", "folder": f"{told.text('folder')}_quick"}
            told = replace(told, given={**_merged(told.given, told.given["quick"]), **changed})
            scale = _check(told)
        folder = Path(told.filled(told.text("folder")))
        made = _Cells(told, folder, scale).all()
        cells = sorted(made.values(), key=lambda cell: len(cell.needs) > 0)
        keys = {key.name: key for key in made}
        return cls(told.text("title"), folder, *told.places, cells, scale, keys, dict(_texts(told)))


class _Cells:
    """The cells of a study by their keys, in the order in which they are made."""

    def __init__(self, told: Declaration, folder: Path, scale: Scale) -> None:
        self.told, self.folder, self.scale = told, folder, scale
        self.kernel, self.dnn = told.given["kernel"], told.given["dnn"]
        self.made: dict[Key, Cell] = {}

    def all(self) -> dict[Key, Cell]:
        for seed in self.scale.grid_seeds:  # first those that take longest
            self._selected(seed)
        for seed in self.scale.seeds:
            for kernel in KERNELS:
                for name in ("blocks", "sag", "sgd"):
                    options = [*self._trick("nt", self.kernel), *self.told.words(self.kernel[name])]
                    self._kernel(Key(kernel, name, seed), options, decoded=False)
                for trick in TRICKS if seed in self.scale.grid_seeds else PLAIN:
                    self._kernel(Key(kernel, trick, seed), self._trick(trick, self.kernel))
                self._kernel(Key(kernel, "mask", seed), self._masked(self.kernel), decoded=False)
                for count in self.scale.features[:-1]:
                    options = [*self._trick("b", self.kernel), "--num-features", str(count)]
                    self._kernel(Key(kernel, f"b-{count}", seed), options, decoded=False)
            self._kernel(Key("sum", "b", seed), self._trick("b", self.kernel))
            for trick in TRICKS:
                self._dnn(Key("dnn", trick, seed), self._trick(trick, self.dnn))
            self._dnn(Key("dnn", "mask", seed), self._masked(self.dnn), decoded=False)
            for kernel in KERNELS:
                self._combination(Key(kernel, "with-dnn", seed))
        return self.made

    def _trick(self, trick: str, table: Mapping[str, Any]) -> list[str]:
        rank = self.told.words(table["bottleneck" if "b" in trick else "whole"])
        return [*rank, *(["--metric", "erll"] if "r" in trick else [])]

    def _masked(self, table: Mapping[str, Any]) -> list[str]:
        return [*self._trick("b", table), "--augment", self.told.text("augment")]

    def _selected(self, seed: int) -> None:
        """Models with a bottleneck select; the others take their features."""
        for kernel in KERNELS:
            options = [*self._trick("b", self.kernel), *self.told.words(self.kernel["selection"])]
            self._kernel(Key(kernel, "b-fs", seed), options)
        for kernel in KERNELS:
            origin = Key(kernel, "b-fs", seed)
            for trick in ("nt", "r", "br"):
                options = [*self._trick(trick, self.kernel), "--features-of", str(self.folder / origin.name)]
                self._kernel(Key(kernel, f"{trick}-fs", seed), options, needs=[origin])

    def _kernel(self, key: Key, options: Sequence[str], needs: Sequence[Key] = (), decoded: bool = True) -> None:
        widths = self.kernel["bandwidths"]
        if key.system == "sum":
            what = ["--kernel", " + ".join(f"{name}@{widths[name]}" for name in ("gaussian", "laplacian"))]
        else:
            what = ["--kernel", key.system, "--bandwidth", str(widths[key.system])]
        what += ["--num-features", str(self.scale.features[-1])]
        self._train(key, [*self.told.command(self.kernel["train"]), *what], options, needs, decoded)

    def _dnn(self, key: Key, options: Sequence[str], decoded: bool = True) -> None:
        self._train(key, self.told.command(self.dnn["train"]), options, (), decoded)

    def _train(
        self, key: Key, script: Sequence[str], options: Sequence[str], needs: Sequence[Key], decoded: bool
    ) -> None:
        """The last of options of one name counts: those of a cell stand behind those that all have."""
        shared = self.told.words(self.told.text("options"))
        words = [script[0], *shared, *script[1:], *options, "--seed", str(key.seed), *self.told.data]
        self._add(key, words, needs, decoded)

    def _combination(self, key: Key) -> None:
        members = [Key(key.system, "br", key.seed), Key("dnn", "br", key.seed)]
        _, heldout, lang, _, ali = self.told.data
        folders = [str(self.folder / member.name) for member in members]
        self._add(key, [*self.told.command(self.told.text("combine")), heldout, lang, ali, *folders], members)

    def _add(self, key: Key, words: list[str], needs: Sequence[Key] = (), decoded: bool = True) -> None:
        place, names = self.folder / key.name, tuple(need.name for need in needs)
        self.made[key] = Cell(key.name, place, [*words, str(place)], names, decoded)


def _merged(given: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """`given` with the values of `other`, table by table."""
    both = [
        name for name in given.keys() & other.keys() if isinstance(given[name], dict) and isinstance(other[name], dict)
    ]
    return {**given, **other, **{name: _merged(given[name], other[name]) for name in both}}


def _check(told: Declaration) -> Scale:
    """Every key there, and the values that are not checked by those who take them."""
    told.check({*_TEXTS[""], "kernel", "dnn", "seeds", "quick"}, {"grid_seeds"})
    path, given = told.path, told.given
    _check_tables(path, given)
    for name, text in _texts(told):
        if not isinstance(text, str):
            raise KernelamError(f"{path}: {name} must be a string, not {text!r}")
    widths = given["kernel"]["bandwidths"]
    if not isinstance(widths, dict) or widths.keys() != set(KERNELS):
        raise KernelamError(f"{path}: kernel.bandwidths is a table of {', '.join(KERNELS)}")
    if odd_ones := [value for value in widths.values() if type(value) not in (int, float) or not 0 < value < inf]:
        raise KernelamError(f"{path}: a bandwidth is a number above zero, not {odd_ones[0]!r}")
    features = _numbers(path, "kernel.features", given["kernel"]["features"], 1)
    if len(features) < 3:
        raise KernelamError(f"{path}: kernel.features are at least three numbers, for the gain of more to change")
    seeds = _numbers(path, "seeds", given["seeds"], 0)
    grid_seeds = _numbers(path, "grid_seeds", given.get("grid_seeds", list(seeds)), 0)
    if not set(grid_seeds) <= set(seeds):
        raise KernelamError(f"{path}: grid_seeds has {min(set(grid_seeds) - set(seeds))}, which is not among the seeds")
    return Scale(seeds, grid_seeds, features)


def _check_tables(path: Path, given: Mapping[str, Any]) -> None:
    for name in ("kernel", "dnn", "quick"):
        if not isinstance(given[name], dict):
            raise KernelamError(f"{path}: {name} is a table, as in [{name}]")
    known = {"kernel": {*_TEXTS["kernel"], "bandwidths", "features"}, "dnn": {*_TEXTS["dnn"]}}
    for name, keys in known.items():
        if odd := sorted(given[name].keys() ^ keys):
            problem = "has the unknown key" if odd[0] in given[name] else "lacks the key"
            raise KernelamError(f"{path} {problem} {odd[0]} in [{name}]")


def _texts(told: Declaration) -> Iterator[tuple[str, Any]]:
    """What should be texts, under their names: options, kernel.train, …"""
    for name, keys in _TEXTS.items():
        table, within = (told.given[name], f"{name}.") if name else (told.given, "")
        yield from ((f"{within}{key}", table[key]) for key in keys)


def _numbers(path: Path, name: str, values: Any, least: int) -> tuple[int, ...]:
    """Whole numbers that increase."""
    sound = isinstance(values, list) and values and all(type(value) is int and value >= least for value in values)
    if not sound or any(b <= a for a, b in pairwise(values)):
        raise KernelamError(f"{path}: {name} is a list of whole numbers from {least} on, in order, not {values!r}")
    return tuple(values)
