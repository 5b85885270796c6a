"""How much memory there is, asked before work that needs a lot of it."""

import ctypes
import os
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.ranks import beside


def available(device: Any = "cpu") -> int:
    """Bytes that this process may still take on a device of PyTorch: what the machine has free, or what its control
    group allows, shared with those that work with it; or what a GPU has."""
    if str(device).startswith("cuda"):
        import torch

        return torch.cuda.mem_get_info(device)[0]
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            free = min(
                free, int(Path(limit).read_text()) - int(Path(used).read_text()) + _reclaimable(Path(limit).parent)
            )
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return free // beside()


def installed() -> int:
    """Bytes that this process could ever have: of the machine, or those that its control group allows."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return min(sizes)


def _reclaimable(group: Path) -> int:
    """Bytes of files that the group keeps in memory and gives up when it is short of it."""
    rows = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int(rows.get("inactive_file", 0)) + int(rows.get("active_file", 0))


def mapped_now(folder: Path) -> int:
    """Bytes in memory of the files below a folder that this process has mapped."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if not words[0].endswith(":"):  # a mapping, with its file in the end
            inside = len(words) == 6 and Path(words[5]).is_relative_to(folder.resolve())
        elif inside and words[0] == "Rss:":
            total += 1024 * int(words[1])
    return total


def check_memory(needed: int, free: int, what: str, advice: str) -> None:
    """Refuse what will not fit, with both figures and what would help."""
    if needed > free:
        raise KernelamError(
            f"{what} takes {needed / 2**30:.2f} GiB of memory, and {free / 2**30:.2f} GiB are free; {advice}"
        )


def keep_no_gaps() -> None:
    """From now on, arrays of a MiB or more go back to the system when they are freed. glibc keeps them, up to 32 MiB,
    for arrays that may not fit into the gaps, and a process then takes more than can be estimated."""
    M_MMAP_THRESHOLD = -3
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):  # other libraries have none
        mallopt(M_MMAP_THRESHOLD, 1 << 20)
