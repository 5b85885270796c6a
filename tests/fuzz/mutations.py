"""Damaged copies of a file, and the watch over the code that reads them."""

import re
import resource
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

SECONDS = 10.0  # for one copy
ROOM = 1 << 28  # bytes of memory for all that reading a small file may need


def mutated(data: bytes, rng: Random) -> bytes:
    """A copy with some bytes changed, its end cut off, or a chunk repeated somewhere; sometimes with two of these."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        kind, place = rng.choice(("bytes", "bytes", "cut", "chunk")), rng.randrange(len(out))
        if kind == "cut":
            del out[max(place, 1) :]
        elif kind == "chunk":
            start = rng.randrange(len(out))
            out[place:place] = out[start : start + rng.randint(1, 64)]
        else:
            for _ in range(rng.randint(1, 5)):
                place = rng.randrange(len(out))
                flipped = out[place] ^ (1 << rng.randrange(8))
                out[place] = rng.choice((flipped, rng.randrange(256), 0x00, 0x7F, 0x80, 0xFF))
    return bytes(out)


NUMBERS = [
    b"nan",
    b"inf",
    b"-inf",
    b"-1",
    b"0",
    b"1.5",
    b"1e400",
    b"-1e300",
    b"4294967296",
    b"9" * 20,
    b"9" * 5000,
    b"1_0",
]
NUMBERS += ["٣".encode(), "１".encode(), "²".encode()]  # which Python takes for digits, or nearly
ENCODINGS = (b"\0", b"\xe9", b"\xc3", "\u2028".encode(), "\xa0".encode(), b"\r", b"\x0c", b"\x1b[31m", b"|", b"~")


def edited(data: bytes, rng: Random) -> bytes:
    """A copy as editors, spreadsheets and bad conversions leave texts; sometimes with two such changes."""
    for _ in range(rng.choice((1, 1, 2))):
        data = rng.choice((_lines_edited, _fields_edited, _fields_edited, _number_edited, _encoded_otherwise))(
            data, rng
        )
    return data or b"\n"


def _lines_edited(data: bytes, rng: Random) -> bytes:
    return b"".join(_shuffled(data.splitlines(keepends=True), rng))


def _fields_edited(data: bytes, rng: Random) -> bytes:
    """Words and what is between them, of one line."""
    rows = data.splitlines(keepends=True) or [data]
    row = rng.randrange(len(rows))
    rows[row] = b"".join(_shuffled(re.findall(rb"[\w.+-]+|\W", rows[row]), rng))
    return b"".join(rows)


def _shuffled(parts: list[bytes], rng: Random) -> list[bytes]:
    """One deleted, or there twice, or two in each other's place."""
    if parts:
        one, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.choice(("delete", "repeat", "exchange")):
            case "delete":
                del parts[one]
            case "repeat":
                parts.insert(other, parts[one])
            case "exchange":
                parts[one], parts[other] = parts[other], parts[one]
    return parts


def _number_edited(data: bytes, rng: Random) -> bytes:
    places = list(re.finditer(rb"-?\d+(\.\d+)?(e[+-]?\d+)?", data))
    if not places:
        return _fields_edited(data, rng)
    begin, end = rng.choice(places).span()
    return data[:begin] + rng.choice(NUMBERS) + data[end:]


def _encoded_otherwise(data: bytes, rng: Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    match rng.choice(("mark", "ends", "utf-16", "byte", "byte", "byte", "no end")):
        case "mark":
            return b"\xef\xbb\xbf" + data
        case "ends":
            return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")))
        case "utf-16":
            return data.decode(errors="replace").encode("utf-16")
        case "no end":
            return data.rstrip(b"\n")
    return data[:place] + rng.choice(ENCODINGS) + data[place:]


@contextmanager
def watched() -> Iterator[None]:
    """No more than ROOM bytes beyond what is in use; and no warning of numpy's passes unseen."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, _too_long)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (in_use + ROOM, hard))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def wind_up() -> None:
    """Give the next copy its time."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"a damaged file kept its reader busy for {SECONDS} s")
