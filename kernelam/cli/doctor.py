"""kernelam doctor: what this machine has, what is missing, what to run next."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click

from kernelam import __version__
from kernelam.errors import KernelamError
from kernelam.requirements import ROOT, installed, name_of, required, unmet

PROGRAMS = {
    "sctk": "NIST's scorer, for cross-checks",
    "shellcheck": "for tests/run.sh",
    "latgen-faster-mapped": "Kaldi's decoder, can stand in for ours",
    "sbatch": "Slurm, for run_slurm.sh",
}


@click.command()
def command() -> None:
    """Report what this machine has, which recipes can run, and what to run next; exit 1 when a required package is
    missing."""
    rows = {
        "kernelam": f"{__version__}, git {_git_hash()}, {ROOT}",
        "Python": f"{platform.python_version()}, {sys.executable}",
        "system": platform.platform(),
        "cores": f"{_cores()} to use of {os.cpu_count()}",
        "memory": _memory(),
        "disk": f"{shutil.disk_usage('.').free / 1e9:.1f} GB free here",
        "torch": _torch(),
    }
    requirements = required()
    rows |= {name_of(line): installed(name_of(line)) or "MISSING" for line in requirements if name_of(line) != "torch"}
    rows |= {name: shutil.which(name) or f"not found ({purpose}; optional)" for name, purpose in PROGRAMS.items()}
    for name, value in rows.items():
        click.echo(f"{name:<21}{value}")
    if missing := unmet(requirements):
        raise KernelamError(f"required but missing here: {', '.join(missing)}; source path.sh, which installs them")
    every = _recipes(ROOT)
    click.echo("\nrecipes")
    for recipe in every:
        click.echo(f"  {recipe.name:<8} {recipe.title}\n{'':11}{recipe.state}: {recipe.command}")
    click.echo(f"\nnext: {_next(every)}")


class Recipe(NamedTuple):
    """A folder of egs, with what its run.sh says of itself."""

    name: str
    title: str
    command: str
    state: str
    lookalike: str
    """How to try it without its corpus, if it can be."""


def _recipes(root: Path) -> list[Recipe]:
    return [_recipe(root, script) for script in sorted(root.glob("egs/*/s5/run.sh"))]


def _recipe(root: Path, script: Path) -> Recipe:
    name = script.parent.parent.name
    head = [line.removeprefix("# ") for line in script.read_text().splitlines() if line.startswith("# ")]
    usage = next((line for line in head if line.startswith("Usage: ./run.sh")), "")
    needed = usage.removeprefix("Usage: ./run.sh").partition("[")[0].rstrip()
    command = f"egs/{name}/s5/run.sh{needed}"
    if _there(script.parent, "report.html") or any(script.parent.glob("*.html")):
        state = "has run"
    elif _there(script.parent, "exp"):
        state = "begun, and goes on where it stopped"
    else:
        state = "needs its corpus" if "--corpus" in needed else "can run here"
    tried = f"local/{name}/make_lookalike.sh corpus && egs/{name}/s5/run.sh --corpus corpus --size lookalike"
    lookalike = tried if (root / "local" / name / "make_lookalike.sh").exists() else ""
    return Recipe(name, head[0] if head else "", command, state, lookalike)


def _there(folder: Path, name: str) -> bool:
    """In the folder of a recipe, or in one of it where some recipes work."""
    return (folder / name).exists() or any(folder.glob(f"*/{name}"))


def _next(recipes: list[Recipe]) -> str:
    """What goes on or needs nothing comes first, mini before others; then what can be tried on synthetic speech."""
    ahead = [recipe for recipe in recipes if recipe.state != "has run"]
    for recipe in sorted(ahead, key=lambda recipe: (not recipe.state.startswith("begun"), recipe.name != "mini")):
        if recipe.state != "needs its corpus":
            return recipe.command
    tried = [recipe.lookalike for recipe in ahead if recipe.lookalike]
    return next(iter(tried + [recipe.command for recipe in ahead]), "all recipes have run here")


def _git_hash() -> str:
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    page = os.sysconf("SC_PAGE_SIZE") / 1e9
    total = os.sysconf("SC_PHYS_PAGES") * page
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:  # macOS
        return f"{total:.1f} GB"
    return f"{total:.1f} GB, {os.sysconf('SC_AVPHYS_PAGES') * page:.1f} GB free"


def _torch() -> str:
    try:
        import torch
    except ImportError as error:
        return f"cannot be imported ({error})"
    cuda = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    return f"{torch.__version__}, {build}, {torch.get_num_threads()} threads, devices: {', '.join(['cpu', *cuda])}"
