"""Files of images: MNIST's idx, gzipped or not, and the binary batches of CIFAR-10."""

import gzip
import struct
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError

UBYTE = 8  # the type of what MNIST stores
LARGEST = 1 << 31
CIFAR_ROW = 1 + 3 * 32 * 32


def find(folder: Path, name: str) -> Path:
    """`name`, or `name`.gz; the files of MNIST are also seen with a dot for the last hyphen of their names."""
    for stem in (name, name.replace("-idx", ".idx")):
        for path in (folder / stem, folder / f"{stem}.gz"):
            if path.exists():
                return path
    raise KernelamError(f"no such file {folder / name} (nor gzipped)")


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        if data[:2] != b"\x1f\x8b":
            return data
        with gzip.open(path) as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise KernelamError(f"cannot read {path}: {error.strerror or error}") from error
    except EOFError as error:
        raise KernelamError(f"{path} is cut short: {error}") from error
    if len(data) > LARGEST:
        raise KernelamError(f"{path} holds more than 2 GiB")
    return data


def read_idx(path: Path, axes: int) -> np.ndarray:
    """The array of bytes with so many axes that an idx file holds: 0, 0, the type, the number of axes, then their
    lengths as big-endian 32-bit numbers, then the bytes."""
    data = _read(path)
    if len(data) < 4 + 4 * axes or data[:4] != bytes((0, 0, UBYTE, axes)):
        raise KernelamError(
            f"{path} is no idx file of bytes with {axes} axes: it begins with {data[:4].hex(' ') or 'nothing'}, not"
            f" {bytes((0, 0, UBYTE, axes)).hex(' ')}"
        )
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    needed, found = int(np.prod(shape, dtype=object)), len(data) - 4 - 4 * axes
    if needed != found:
        raise KernelamError(f"{path} says that it has {needed} bytes of {' × '.join(map(str, shape))}, and has {found}")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def read_mnist(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images, n × 784 from 0 to 1, and their digits; `part` is train or t10k."""
    images = find(folder, f"{part}-images-idx3-ubyte")
    labels = find(folder, f"{part}-labels-idx1-ubyte")
    x, y = read_idx(images, 3), read_idx(labels, 1)
    if len(x) != len(y):
        raise KernelamError(f"{images} has {len(x)} images, {labels} {len(y)} labels")
    if x.shape[1:] != (28, 28) or y.max(initial=0) > 9:
        raise KernelamError(f"{images} and {labels} are not 28 × 28 images of ten digits")
    return x.reshape(len(x), -1).astype(np.float32) / 255, y.astype(np.int64)


def read_cifar(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images, n × 3072 from 0 to 1, colour after colour, and their classes, of a batch of the binary version."""
    data = np.frombuffer(_read(path), np.uint8)
    if not len(data) or len(data) % CIFAR_ROW:
        raise KernelamError(f"{path} is no binary batch of CIFAR-10: {len(data)} bytes are no multiple of {CIFAR_ROW}")
    rows = data.reshape(-1, CIFAR_ROW)
    if rows[:, 0].max() > 9:
        raise KernelamError(f"{path} is no binary batch of CIFAR-10: image {rows[:, 0].argmax()} has no class below 10")
    return rows[:, 1:].astype(np.float32) / 255, rows[:, 0].astype(np.int64)
