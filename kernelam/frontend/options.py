"""The options of features as Kaldi writes them, `--norm-vars=true --left-context=3`: in files beside a model."""

from collections.abc import Collection
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines

Options = dict[str, str]


def parse_options(text: str, known: Collection[str], where: str) -> Options:
    """Name → value of the words `--name=value`, all of them among `known`; `where` says who asked."""
    options: Options = {}
    for word in text.split():
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not equals or name not in known:
            raise KernelamError(f"{where}: {word} is not understood; there are {', '.join(f'--{n}=' for n in known)}")
        options[name] = value
    return options


def read_options(path: Path, known: Collection[str]) -> Options:
    """The options in a file such as cmvn_opts; a file that is not there has none."""
    return parse_options(" ".join(lines(path)), known, str(path)) if path.exists() else {}


def flag(options: Options, name: str, default: bool, where: str) -> bool:
    """A value that is true or false."""
    value = options.get(name, str(default).lower())
    if value not in ("true", "false"):
        raise KernelamError(f"{where}: --{name} is true or false, not {value}")
    return value == "true"


def count(options: Options, name: str, default: int, where: str) -> int:
    """A value that is 0, 1, 2 … 999."""
    value = options.get(name, str(default))
    if not (value.isdecimal() and value.isascii() and len(value) <= 3):
        raise KernelamError(f"{where}: --{name} is a small whole number, not {value}")
    return int(value)


def indices(options: Options, name: str, where: str) -> tuple[int, ...]:
    """Whole numbers with colons between them; none by default."""
    words = options[name].split(":") if options.get(name) else []
    return tuple(count({name: word}, name, 0, where) for word in words)
