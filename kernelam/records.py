"""What programs leave for programs: JSON files."""

import hashlib
import json
from pathlib import Path
from typing import Any

from kernelam.errors import KernelamError
from kernelam.files import replacing


def read_record(path: Path, absent: str) -> dict[str, Any]:
    """The object in a JSON file; where there is no such file, the sentence goes on with `absent`."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}: {absent}") from None
    except (ValueError, RecursionError) as error:
        raise KernelamError(f"{path} is damaged: {error}") from None
    if not isinstance(record, dict):
        raise KernelamError(f"{path} is damaged: it holds no JSON object")
    return record


def digest(record: Any) -> str:
    """Of what JSON can tell, however it is written."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def keep(path: Path, record: dict[str, Any]) -> None:
    """Write what `recall` reads."""
    with replacing(path, "w") as stream:
        json.dump({**record, "digest": digest(record)}, stream)


def recall(path: Path) -> dict[str, Any] | None:
    """What `keep` wrote, to the last digit; None where that is gone or damaged."""
    try:
        record = read_record(path, "nothing was kept")
        return record if record.pop("digest", None) == digest(record) else None
    except (KernelamError, RecursionError):
        return None


def check_place(path: Path, head: str, of: str) -> None:
    """Refuse to write over a file that does not begin with `head`, as those `of` some kind do."""
    if path.exists() and not (path.is_file() and path.read_bytes().startswith(head.encode())):
        raise KernelamError(f"{path} is no file of {of}, and would be lost: write to another --output")
