"""Which required packages an environment lacks. Runs on the standard library alone, before anything is installed.

A requirement is `name`, then comma-separated `==1.2.3`, `>=1.2` or `<2`; versions compare by their numbers, so that
2.13.0+cu126 satisfies ==2.13.0.
"""

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def read_requirements(path: Path) -> list[str]:
    """The lines of a requirements file without comments, or the `dependencies` of a pyproject.toml."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return list(tomllib.loads(text)["project"]["dependencies"])
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def required() -> list[str]:
    """The toolkit's own requirements, from its checkout or from its installed metadata."""
    pyproject = ROOT / "pyproject.toml"
    return read_requirements(pyproject) if pyproject.is_file() else metadata.requires("kernelam") or []


def name_of(requirement: str) -> str:
    return re.split(r"[=<>;\s]", requirement, maxsplit=1)[0]


def installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def satisfies(version: str, requirement: str) -> bool:
    bounds = re.findall(r"(==|>=|<)\s*([\w.+]+)", requirement)
    have = _numbers(version)
    compare = {"==": have.__eq__, ">=": have.__ge__, "<": have.__lt__}
    return all(compare[sign](_numbers(bound)) for sign, bound in bounds)


def unmet(requirements: list[str]) -> list[str]:
    """For each requirement that is not satisfied: what is wanted, and what is there."""
    missing = []
    for requirement in requirements:
        version = installed(name_of(requirement))
        if version is None:
            missing.append(requirement)
        elif not satisfies(version, requirement):
            missing.append(f"{requirement} (has {version})")
    return missing


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"[\d.]*", version)
    numbers = [int(part) for part in release.group().split(".") if part] if release else []
    while numbers and numbers[-1] == 0:
        numbers.pop()  # 1.0 is 1
    return tuple(numbers)


if __name__ == "__main__":
    lacking = unmet([line for path in sys.argv[1:] for line in read_requirements(Path(path))])
    print(", ".join(lacking))
    sys.exit(bool(lacking))
