from pathlib import Path

import kaldifst
import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.kaldi.fst import ARC, Fst, load_fst, parse


def example() -> Fst:
    arcs = np.array([(1, 2, 0.5, 1), (0, 3, 1.5, 0), (4, 0, 0.25, 0)], ARC)
    return Fst.of(0, np.array([np.inf, 2.0]), np.array([0, 1, 0]), arcs)


def same(a: Fst, b: Fst) -> bool:
    arrays = [(a.final, b.final), (a.offsets, b.offsets), (a.arcs, b.arcs)]
    return a.start == b.start and all(np.array_equal(x, y) for x, y in arrays)


def test_openfst_reads_both_kinds_alike(tmp_path: Path) -> None:
    fst = example()
    text = set(str(fst.to_kaldifst()).split("\n"))
    fst.save(tmp_path / "const.fst", "const")
    const = kaldifst.StdConstFst.read(str(tmp_path / "const.fst"))
    assert set(str(const).split("\n")) == text
    assert "0      1      1      2      0.5" in text
    assert const.num_input_epsilons(1) == 1
    assert const.num_arcs(0) == 2
    assert same(Fst.from_kaldifst(fst.to_kaldifst()), fst)
    assert same(load_fst(tmp_path / "const.fst"), fst)
    assert (tmp_path / "const.fst").read_bytes()[8:13] == b"const"


def test_what_openfst_writes(tmp_path: Path) -> None:
    fst = example().to_kaldifst()
    table = kaldifst.SymbolTable()
    table.add_symbol("word", 2)
    fst.output_symbols = table
    fst.write(str(tmp_path / "with_symbols.fst"))
    assert same(load_fst(tmp_path / "with_symbols.fst"), example())


@pytest.mark.parametrize("kind", ["vector", "const"])
def test_every_truncation_is_a_sentence(kind: str) -> None:
    data = example().const_bytes() if kind == "const" else example().vector_bytes()
    for length in range(len(data)):
        with pytest.raises(KernelamError, match=r"x\.fst"):
            parse(data[:length], "x.fst")


@pytest.mark.parametrize("kind", ["vector", "const"])
def test_damage_never_reaches_openfst(kind: str) -> None:
    """Whatever a flipped byte does, the file is refused or gives an FST whose arcs lead somewhere."""
    data = example().const_bytes() if kind == "const" else example().vector_bytes()
    refused = 0
    for position in range(len(data)):
        for value in (0x7F, 0xFF):
            try:
                fst = parse(data[:position] + bytes([value]) + data[position + 1 :], "x.fst")
            except KernelamError:
                refused += 1
                continue
            assert (fst.arcs["nextstate"] < len(fst.final)).all()
            str(fst.to_kaldifst())
    assert refused > len(data) // 2


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match="no such file"):
        load_fst(tmp_path / "none")
    with pytest.raises(KernelamError, match="does not begin as one"):
        parse(b"some text", "x")
    log = example().vector_bytes().replace(b"standard", b"log\0\0\0\0\0")
    with pytest.raises(KernelamError, match="arcs"):
        parse(log, "x")
