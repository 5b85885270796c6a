"""Declarations of experiments: TOML in which {name} stands for a variable given at the call."""

import re
import shlex
import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernelam.errors import KernelamError

TEXTS = ("title", "folder", "decode", "graph", "tuned", "tested")
"""What every declaration says in a text; `data` is a list beside them."""
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Declaration:
    path: Path
    given: dict[str, Any]
    variables: Mapping[str, str]

    @classmethod
    def read(cls, path: Path, variables: Mapping[str, str]) -> "Declaration":
        try:
            text = path.read_bytes().decode()
            given = tomllib.loads(text)
        except OSError as error:
            raise KernelamError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:  # of which a TOMLDecodeError is one
            raise KernelamError(f"{path} is not TOML: {error}") from error
        for name in variables:
            if f"{{{name}}}" not in text:
                raise KernelamError(f"{path} has no variable {{{name}}}: leave out --set {name}=…")
        return cls(path, given, variables)

    def check(self, needed: Set[str], optional: Set[str] = frozenset()) -> None:
        """Every key there, none that means nothing; the texts and the data that all declarations have are such."""
        for key in sorted({*TEXTS, "data", *needed} - self.given.keys()):
            raise KernelamError(f"{self.path} lacks the key {key}")
        if unknown := self.given.keys() - {*TEXTS, "data", *needed, *optional}:
            raise KernelamError(f"{self.path} has the unknown key {min(unknown)}")
        for key in TEXTS:
            self.text(key)
        if Path(self.given["tuned"]).name == Path(self.given["tested"]).name:
            raise KernelamError(f"{self.path}: tuned and tested are two sets, whose folders have different names")
        data = self.given["data"]
        if not (isinstance(data, list) and len(data) == 5 and all(isinstance(item, str) for item in data)):
            raise KernelamError(
                f"{self.path}: data is a list of five: training and heldout data, lang, and their two alignments"
            )

    def text(self, key: str) -> str:
        value = self.given[key]
        if not isinstance(value, str):
            raise KernelamError(f"{self.path}: {key} must be a string, not {value!r}")
        return value

    def filled(self, text: str, more: Mapping[str, str] = NOTHING) -> str:
        """`text` with the values of variables, and of `more`."""
        known = {**self.variables, **more}
        for name in re.findall(r"\{(\w+)\}", text):
            if name not in known:
                raise KernelamError(f"{self.path} needs the variable {name}: give it as --set {name}=…")
        return re.sub(r"\{(\w+)\}", lambda match: known[match[1]], text)

    def words(self, text: str, more: Mapping[str, str] = NOTHING) -> list[str]:
        """Those of a command; a value of a variable is one word, or part of one, whatever it has in it."""
        try:
            return [self.filled(word, more) for word in shlex.split(text)]
        except ValueError as error:
            raise KernelamError(f"{self.path}: {text!r} is no command: {error}") from error

    def command(self, text: str) -> list[str]:
        words = self.words(text)
        if not words:
            raise KernelamError(f"{self.path}: a command is empty")
        return words

    @property
    def data(self) -> list[str]:
        return [self.filled(item) for item in self.given["data"]]

    @property
    def places(self) -> tuple[list[str], list[str], str, Path, Path]:
        """The data, how cells are decoded, the graph, and the two sets."""
        graph, tuned, tested = (self.filled(self.given[key]) for key in ("graph", "tuned", "tested"))
        return self.data, self.command(self.given["decode"]), graph, Path(tuned), Path(tested)
