"""How a model's features are made from a data directory. The choice is stored with the model."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelam.errors import KernelamError
from kernelam.frontend import cmvn
from kernelam.frontend.transforms import add_deltas
from kernelam.kaldi.ark import MatrixScp
from kernelam.kaldi.tables import read_table


@dataclass(frozen=True)
class Pipeline:
    """CMVN per speaker (means, variances or neither), then deltas or nothing."""

    norm_means: bool = False
    norm_vars: bool = False
    deltas: int = 0

    @classmethod
    def parse(cls, cmvn_opts: str, delta_order: int) -> "Pipeline":
        """From Kaldi's option strings: '--norm-means=true --norm-vars=false', or nothing for features as they are."""
        chosen = {"norm_means": bool(cmvn_opts), "norm_vars": False}
        for word in cmvn_opts.split():
            name, _, value = word.removeprefix("--").replace("-", "_").partition("=")
            if name not in chosen or value not in ("true", "false"):
                raise KernelamError(f"{word} is no CMVN option; there are --norm-means and --norm-vars, true or false")
            chosen[name] = value == "true"
        return cls(**chosen, deltas=delta_order)

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    def open(self, data: str | Path) -> "Features":
        return Features(Path(data), self)


class Features(Mapping[str, np.ndarray]):
    """Utterance → processed features (frames × dim, float32), read when asked for."""

    def __init__(self, data: Path, pipeline: Pipeline) -> None:
        self.data, self.pipeline = data, pipeline
        self.raw = MatrixScp(data / "feats.scp")
        self.utt2spk: dict[str, str] = {}
        if pipeline.norm_means or pipeline.norm_vars:
            self.utt2spk = read_table(data / "utt2spk")
            self.stats = MatrixScp(data / "cmvn.scp", double=True)

    @property
    def dim(self) -> int:
        return self.raw.dim * (1 + self.pipeline.deltas)

    def __getitem__(self, utt: str) -> np.ndarray:
        features = self.raw[utt]
        if self.utt2spk:
            where = f"{self.data}/cmvn.scp, utterance {utt}"
            features = cmvn.apply(
                features, self._stats_of(utt), self.pipeline.norm_means, self.pipeline.norm_vars, where
            )
        return add_deltas(features, self.pipeline.deltas) if self.pipeline.deltas else features

    def _stats_of(self, utt: str) -> np.ndarray:
        if utt not in self.utt2spk:
            raise KernelamError(f"utterance {utt} of {self.data}/feats.scp has no speaker in {self.data}/utt2spk")
        speaker = self.utt2spk[utt]
        if speaker not in self.stats:
            raise KernelamError(
                f"speaker {speaker} of utterance {utt} has no CMVN statistics in {self.data}/cmvn.scp;"
                f" steps/compute_cmvn_stats.sh {self.data} makes them"
            )
        return self.stats[speaker]

    def __contains__(self, utt: object) -> bool:
        return utt in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)
