"""kernelam doctor: what this machine has, what is missing."""

import os
import platform
import shutil
import subprocess
import sys

import click

from kernelam import __version__
from kernelam.errors import KernelamError
from kernelam.requirements import ROOT, installed, name_of, required, unmet

PROGRAMS = {
    "sctk": "NIST's scorer, for cross-checks",
    "shellcheck": "for tests/run.sh",
    "latgen-faster-mapped": "Kaldi's decoder, can stand in for ours",
    "sbatch": "Slurm, for Kaldi's slurm.pl",
}


@click.command()
def command() -> None:
    """Report what this machine has; exit 1 when a required package is missing."""
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
