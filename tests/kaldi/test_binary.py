import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from kernelam.errors import KernelamError
from kernelam.kaldi.binary import KaldiReader, KaldiWriter, read_bytes


def written(binary: bool) -> bytes:
    stream = io.BytesIO()
    writer = KaldiWriter(stream, binary)
    writer.token("<Thing>")
    writer.integer(-7)
    writer.unsigned(9)
    writer.real(0.1)
    writer.integers([3, 1, 2])
    writer.vector(np.array([1.5, -2.25], np.float32))
    writer.matrix(np.arange(6, dtype=np.float64).reshape(2, 3) if binary else np.arange(6).reshape(2, 3) * 1.0)
    writer.token("</Thing>")
    return stream.getvalue()


def read_all(data: bytes) -> list:
    reader = KaldiReader(data, "some.file")
    items = [reader.expect("<Thing>"), reader.integer(), reader.integer(), reader.real(), reader.integers().tolist()]
    items += [reader.vector().tolist(), reader.matrix().tolist(), reader.expect("</Thing>")]
    assert reader.at_end()
    return items


def test_binary_layout_is_kaldis() -> None:
    data = written(True)
    assert data.startswith(b"\0B<Thing> \x04\xf9\xff\xff\xff\xfc\x09\0\0\0\x04")
    assert b"\x04\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02\0\0\0FV \x04\x02\0\0\0" in data
    assert b"DM \x04\x02\0\0\0\x04\x03\0\0\0" in data


def test_text_layout_is_kaldis() -> None:
    assert written(False) == b"<Thing> -7 9 0.1 [ 3 1 2 ]\n [ 1.5 -2.25 ]\n [\n  0 1 2 \n  3 4 5 ]\n</Thing> "


@pytest.mark.parametrize("binary", [True, False])
def test_reading_back(binary: bool) -> None:
    items = read_all(written(binary))
    assert items[3] == pytest.approx(0.1)
    assert items[:3] + items[4:] == [
        "<Thing>", -7, 9, [3, 1, 2], [1.5, -2.25], [[0, 1, 2], [3, 4, 5]], "</Thing>",
    ]  # fmt: skip


@pytest.mark.parametrize("binary", [True, False])
def test_every_truncation_is_a_sentence_with_the_file(binary: bool) -> None:
    data = written(binary)
    for length in range(len(data) - 1):
        with pytest.raises(KernelamError, match=r"some\.file"):
            read_all(data[:length])


def test_every_flipped_byte_is_read_or_refused() -> None:
    data = written(True)
    for position in range(len(data)):
        for value in (0, 0x7F, 0xFF):
            try:
                read_all(data[:position] + bytes([value]) + data[position + 1 :])
            except (KernelamError, AssertionError):
                continue


def test_impossible_sizes_do_not_allocate() -> None:
    with pytest.raises(KernelamError, match="no whole array"):
        KaldiReader(b"\0BFM \x04\xff\xff\xff\x7f\x04\xff\xff\xff\x7f", "x").matrix()
    with pytest.raises(KernelamError, match="impossible size"):
        KaldiReader(b"\0BFV \x04\xff\xff\xff\xff", "x").vector()
    with pytest.raises(KernelamError, match="impossible number"):
        KaldiReader(b"\0B\x04\xff\xff\xff\x7f", "x").count(4, "number")


def test_text_that_is_no_number() -> None:
    with pytest.raises(KernelamError, match="instead of an integer"):
        KaldiReader(b"seven", "x").integer()
    with pytest.raises(KernelamError, match="a number that is none"):
        KaldiReader(b"[ 1 two ]", "x").vector()
    with pytest.raises(KernelamError, match="rows of different lengths"):
        KaldiReader(b"[\n 1 2\n 3 ]", "x").matrix()
    with pytest.raises(KernelamError, match="'<A>' where <B> should stand"):
        KaldiReader(b"<A> ", "x").expect("<B>")


def test_gzip_is_recognised_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(b"hello"))
    assert read_bytes(path) == b"hello"
    path.write_bytes(gzip.compress(b"hello")[:-5])
    with pytest.raises(KernelamError, match="not a whole gzip file"):
        read_bytes(path)
    with pytest.raises(KernelamError, match="no such file"):
        read_bytes(tmp_path / "y")
    with pytest.raises(KernelamError, match="cannot read"):
        read_bytes(tmp_path)
