"""Frames packed once: features of a set as one memory-mapped array, labels beside it, utterance offsets."""

import hashlib
import json
import math
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.records import read_record


class FrameStore:
    """A folder with `features.f32` (N × d, row by row), `offsets.i64`, `labels.i32` (if labelled) and `store.json`.

    Utterance u has the frames offsets[u] … offsets[u+1] − 1.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        about = read_record(self.folder / "store.json", "these frames were never packed")
        self.utts: list[str] = about.get("utts", [])
        self.dim: int = about.get("dim", 0)
        self.digest: str = about.get("digest", "")
        if not (_are_strings(self.utts) and self.utts and isinstance(self.dim, int) and self.dim > 0):
            raise KernelamError(f"{self.folder}/store.json is damaged; pack the frames again")
        self._index = {utt: number for number, utt in enumerate(self.utts)}
        if len(self._index) < len(self.utts):
            raise KernelamError(f"{self.folder}/store.json has an utterance twice; pack the frames again")
        self.offsets = self._array("offsets.i64", np.int64, (len(self.utts) + 1,))
        if self.offsets[0] != 0 or (self.offsets[1:] <= self.offsets[:-1]).any():
            raise KernelamError(f"{self.folder}/offsets.i64 is damaged; pack the frames again")
        shape = (int(self.offsets[-1]), self.dim)
        self.features = self._array("features.f32", np.float32, shape)
        labelled = (self.folder / "labels.i32").exists()
        self.labels = self._array("labels.i32", np.int32, shape[:1]) if labelled else None
        if self.labels is not None and self.labels.min() < 0:
            raise KernelamError(f"{self.folder}/labels.i32 is damaged: it has a negative label; pack the frames again")

    def _array(self, name: str, kind: type[np.number], shape: tuple[int, ...]) -> np.memmap:
        """A file as an array; changes stay in memory."""
        path = self.folder / name
        expected = math.prod(shape) * np.dtype(kind).itemsize
        size = path.stat().st_size if path.exists() else 0
        if size != expected:
            raise KernelamError(f"{path} has {size} bytes, but {expected} belong to it; pack the frames again")
        return np.memmap(path, kind, "c", shape=shape)

    def __len__(self) -> int:
        return len(self.features)

    def __contains__(self, utt: str) -> bool:
        return utt in self._index

    def moments(self, chunk: int = 1 << 16) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each coordinate over all frames, in double precision.

        Sums are about the first frame: a coordinate that never changes has a deviation of exactly 0.
        """
        total, squares = np.zeros(self.dim), np.zeros(self.dim)
        shift = self.features[0].astype(np.float64)
        for start in range(0, len(self), chunk):
            part = self.features[start : start + chunk] - shift
            total += part.sum(axis=0)
            squares += np.square(part).sum(axis=0)
        mean = total / len(self)
        return shift + mean, np.sqrt(np.maximum(squares / len(self) - mean**2, 0.0))

    def __getitem__(self, utt: str) -> np.ndarray:
        """The frames of one utterance."""
        number = self._index[utt]
        return self.features[self.offsets[number] : self.offsets[number + 1]]

    def verify(self) -> None:
        """Refuse frames that are not those that were packed."""
        digest = hashlib.sha256()
        for utt, start, stop in zip(self.utts, self.offsets[:-1], self.offsets[1:], strict=True):
            if self.labels is not None:
                digest.update(self.labels[start:stop].data)
            digest.update(utt.encode())
            digest.update(self.features[start:stop].data)
        if digest.hexdigest() != self.digest:
            raise KernelamError(
                f"{self.folder} is damaged: its digest is not the one it was packed with; pack the frames again"
            )

    @classmethod
    def build(
        cls,
        folder: str | Path,
        utterances: Iterable[tuple[str, np.ndarray]],
        labels: Mapping[str, np.ndarray] | None = None,
    ) -> "FrameStore":
        """Pack `utterances` in their order. With labels, their length must be that of the features."""
        folder = Path(folder)
        partial = folder.with_name(f".{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        utts, offsets, dim = [], [0], 0
        digest = hashlib.sha256()
        try:
            with open(partial / "features.f32", "wb") as features, open(partial / "labels.i32", "wb") as targets:
                for utt, matrix in utterances:
                    dim = dim or matrix.shape[1]
                    if matrix.shape[1] != dim:
                        raise KernelamError(
                            f"utterance {utt} has {matrix.shape[1]} features a frame, others have {dim}"
                        )
                    if labels is not None:
                        if len(labels[utt]) != len(matrix):
                            raise KernelamError(
                                f"utterance {utt} has {len(matrix)} frames of features but an alignment of"
                                f" {len(labels[utt])} frames"
                            )
                        targets.write(frames := labels[utt].astype(np.int32).tobytes())
                        digest.update(frames)
                    features.write(frames := np.ascontiguousarray(matrix, np.float32).tobytes())
                    digest.update(utt.encode())
                    digest.update(frames)
                    utts.append(utt)
                    offsets.append(offsets[-1] + len(matrix))
            if not utts:
                raise KernelamError(f"there is no utterance to pack into {folder}")
            if labels is None:
                (partial / "labels.i32").unlink()
            np.array(offsets, np.int64).tofile(partial / "offsets.i64")
            (partial / "store.json").write_text(json.dumps({"dim": dim, "digest": digest.hexdigest(), "utts": utts}))
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
        except OSError as error:
            raise KernelamError(f"cannot write the frame store {folder}: {error.strerror}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return cls(folder)


def _are_strings(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
