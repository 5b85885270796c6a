"""Files of images: MNIST's idx, gzipped or not, and the binary batches of CIFAR-10."""

import gzip
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from kernelam.errors import KernelamError

UBYTE = 8  # the type of what MNIST stores
LARGEST = 1 << 31  # bytes of a file, unpacked
CHUNK = 1 << 20
CIFAR_ROW = 1 + 3 * 32 * 32


def find(folder: Path, name: str) -> Path:
    """`name`, or `name`.gz; the files of MNIST are also seen with a dot for the last hyphen of their names."""
    for stem in (name, name.replace("-idx", ".idx")):
        for path in (folder / stem, folder / f"{stem}.gz"):
            if path.exists():
                return path
    raise KernelamError(f"no such file {folder / name} (nor gzipped)")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The contents of a file, unpacked if need be; what is wrong with it is a sentence."""
    try:
        with open(path, "rb") as file:
            if file.read(2) == b"\x1f\x8b":
                file.seek(0)
                with gzip.open(file) as stream:
                    yield stream  # type: ignore[misc]
            else:
                file.seek(0)
                yield file
    except (OSError, zlib.error) as error:
        raise KernelamError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    except EOFError as error:
        raise KernelamError(f"{path} is cut short: {error}") from error


def _taken(stream: BinaryIO, most: int) -> bytes:
    """So many bytes, or what there is; memory is taken for those alone."""
    data = bytearray()
    while len(data) < most and (part := stream.read(min(most - len(data), CHUNK))):
        data += part
    return bytes(data)


def read_idx(path: Path, axes: int) -> np.ndarray:
    """The array of bytes with so many axes that an idx file holds: 0, 0, the type, the number of axes, then their
    lengths as big-endian 32-bit numbers, then the bytes."""
    with _opened(path) as stream:
        head = stream.read(4 + 4 * axes)
        if head[:4] != bytes((0, 0, UBYTE, axes)):
            raise KernelamError(
                f"{path} is no idx file of bytes with {axes} axes: it begins with {head[:4].hex(' ') or 'nothing'}, not"
                f" {bytes((0, 0, UBYTE, axes)).hex(' ')}"
            )
        if len(head) < 4 + 4 * axes:
            raise KernelamError(f"{path} is cut short: its head of {4 + 4 * axes} bytes has {len(head)}")
        shape = struct.unpack(f">{axes}I", head[4:])
        needed = int(np.prod(shape, dtype=object))
        data = _taken(stream, min(needed, LARGEST) + 1)
    if len(data) != needed:
        found = "more" if len(data) > needed else len(data)
        raise KernelamError(f"{path} says that it has {needed} bytes of {' × '.join(map(str, shape))}, and has {found}")
    return np.frombuffer(data, np.uint8).reshape(shape)


def read_mnist(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images, n × 784 from 0 to 1, and their digits; `part` is train or t10k."""
    images = find(folder, f"{part}-images-idx3-ubyte")
    labels = find(folder, f"{part}-labels-idx1-ubyte")
    x, y = read_idx(images, 3), read_idx(labels, 1)
    if len(x) != len(y):
        raise KernelamError(f"{images} has {len(x)} images, {labels} {len(y)} labels")
    if not len(x):
        raise KernelamError(f"{images} has no images")
    if x.shape[1:] != (28, 28):
        raise KernelamError(f"{images} has images of {x.shape[1]} × {x.shape[2]}, not those of MNIST, of 28 × 28")
    if y.max() > 9:
        raise KernelamError(f"{labels}: image {y.argmax()} is of class {y.max()}, which is no digit")
    return x.reshape(len(x), -1).astype(np.float32) / 255, y.astype(np.int64)


def read_cifar(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images, n × 3072 from 0 to 1, colour after colour, and their classes, of a batch of the binary version."""
    with _opened(path) as stream:
        data = np.frombuffer(_taken(stream, LARGEST), np.uint8)
    if not len(data):
        raise KernelamError(f"{path} is empty")
    if len(data) % CIFAR_ROW:
        raise KernelamError(f"{path} is no binary batch of CIFAR-10: {len(data)} bytes are no multiple of {CIFAR_ROW}")
    rows = data.reshape(-1, CIFAR_ROW)
    if rows[:, 0].max() > 9:
        raise KernelamError(f"{path} is no binary batch of CIFAR-10: image {rows[:, 0].argmax()} has no class below 10")
    return rows[:, 1:].astype(np.float32) / 255, rows[:, 0].astype(np.int64)
