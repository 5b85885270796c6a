"""Kaldi's text tables: an identifier and the rest of the line, sorted by identifier in C order, each once."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelam.errors import KernelamError
from kernelam.files import replacing


def lines(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 text file without their ends; a sentence when it is missing or is not text."""
    try:
        with open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    text = line.decode()
                except UnicodeDecodeError as error:
                    where = f"byte {error.start + 1} of line {number}"
                    raise KernelamError(f"{path} is not UTF-8 text ({error.reason} at {where})") from None
                if "\0" in text:  # which no name of a file may have
                    raise KernelamError(f"{path} is no text: line {number} has a NUL character in it")
                yield text.rstrip("\r\n")
    except FileNotFoundError:
        raise KernelamError(f"no such file {path}") from None


def entry(line: str) -> tuple[str, str]:
    """Identifier and rest of a line. Only space and tab separate: Unicode spaces belong to the words, as in Kaldi."""
    key, _, value = line.strip(" \t").partition(" ")
    if "\t" in key:
        key, _, value = line.strip(" \t").partition("\t")
    return key, value.strip(" \t")


def read_table(path: str | Path, *, empty_values: bool = False, sort: bool = True) -> dict[str, str]:
    """Identifier → rest of the line, in file order. Duplicate, unsorted (if `sort`) or valueless lines are errors."""
    table: dict[str, str] = {}
    previous = ""
    for number, line in enumerate(lines(path), 1):
        key, value = entry(line)
        if not key:
            raise KernelamError(f"{path}, line {number}: empty line")
        if key in table:
            hint = f"; utils/fix_data_dir.sh {Path(path).parent} drops repeated lines" if sort else ""
            raise KernelamError(f"{path}, line {number}: {key} occurs twice{hint}")
        if not value and not empty_values:
            raise KernelamError(f"{path}, line {number}: {key} has no value")
        if sort and key < previous:  # code points compare as their UTF-8 bytes do: this is C order
            raise KernelamError(
                f"{path}, line {number}: {key} comes after {previous}, which is not C order;"
                f" utils/fix_data_dir.sh {Path(path).parent} sorts it"
            )
        previous = key
        table[key] = value
    return table


def write_table(path: str | Path, table: Mapping[str, str]) -> None:
    """Write `table` sorted in C order."""
    with replacing(path, "w") as stream:
        for key in sorted(table):
            stream.write(f"{key} {table[key]}".rstrip() + "\n")


def whole_number(text: str) -> int:
    """A number of up to nine plain digits. ValueError for others, also those that Python takes for one: ٣, 1_0."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError(f"{text} is no number of up to nine digits")
    return int(text)


def read_symbols(path: str | Path) -> dict[str, int]:
    """A symbol table such as words.txt: symbol → number, each of both once; 0 is <eps>'s."""
    symbols: dict[str, int] = {}
    taken: set[int] = set()
    for number, line in enumerate(lines(path), 1):
        try:
            symbol, text = line.split()
            value = whole_number(text)
        except ValueError:
            raise KernelamError(f"{path}, line {number}: expected a symbol and its number") from None
        if symbol in symbols or value in taken:
            raise KernelamError(f"{path}, line {number}: {symbol} {value} repeats a symbol or a number")
        if (symbol == "<eps>") != (value == 0):
            raise KernelamError(
                f"{path}, line {number}: {symbol} {value}; the number 0 belongs to <eps>, and only to it"
            )
        symbols[symbol] = value
        taken.add(value)
    if not symbols:
        raise KernelamError(f"{path} is empty")
    return symbols
