"""How a model's features are made from a data directory. The choice is stored with the model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelam.errors import KernelamError
from kernelam.files import is_name
from kernelam.frontend import cmvn
from kernelam.frontend.options import Options, count, flag, indices, parse_options, read_options
from kernelam.frontend.transforms import add_deltas, apply_linear, read_transforms, splice
from kernelam.kaldi.ark import MatrixScp, read_matrix
from kernelam.kaldi.tables import read_table
from kernelam.progress import warn

_CMVN = ("norm-means", "norm-vars", "skip-dims")
_DELTA = ("delta-order", "delta-window")
_SPLICE = ("left-context", "right-context")


@dataclass(frozen=True)
class Pipeline:
    """Kaldi's order: CMVN per speaker; deltas, or splicing and the matrix in the file `lda`; fMLLR per speaker."""

    norm_means: bool = False
    norm_vars: bool = False
    skip_dims: tuple[int, ...] = ()
    deltas: int = 0
    delta_window: int = 2
    context: tuple[int, int] = (0, 0)
    lda: Path | None = None
    fmllr: bool = False

    @classmethod
    def parse(cls, cmvn_opts: str, delta_order: int) -> "Pipeline":
        """From Kaldi's option strings: '--norm-means=true --norm-vars=false', or nothing for features as they are."""
        options = parse_options(cmvn_opts, _CMVN, "CMVN options")
        return cls(**_cmvn(options, bool(options), "CMVN options"), deltas=delta_order)

    @classmethod
    def of_directory(cls, folder: Path, feat_type: str = "") -> "Pipeline":
        """The features of a Kaldi model or alignment directory, of `feat_type` or of the type that its files show.

        cmvn_opts and delta_opts for deltas; cmvn_opts, splice_opts and final.mat for LDA. With trans.1 there is fMLLR.
        """
        adapted = (folder / "trans.1").exists()
        lda = (folder / "final.mat").exists() and feat_type != "deltas"
        if feat_type == "lda" and not lda:
            raise KernelamError(f"there is no {folder}/final.mat, which LDA features need")
        if feat_type == "fmllr" and not adapted:
            raise KernelamError(f"there is no {folder}/trans.1: fMLLR features need the transforms of every speaker")
        normalised = _cmvn(read_options(folder / "cmvn_opts", _CMVN), True, f"{folder}/cmvn_opts")
        rest = _splicing(folder) if lda else _deltas(folder)
        return cls(**normalised, **rest, fmllr=adapted and feat_type in ("", "fmllr"))

    @classmethod
    def before_lda(cls, folder: Path) -> "Pipeline":
        """The features that LDA of spliced frames is yet to be estimated on, by cmvn_opts and splice_opts."""
        normalised = _cmvn(read_options(folder / "cmvn_opts", _CMVN), True, f"{folder}/cmvn_opts")
        return cls(**normalised, context=_splicing(folder)["context"])

    @classmethod
    def choose(
        cls, feat_type: str, cmvn_opts: str, delta_order: int, data: Sequence[Path], ali: Sequence[Path]
    ) -> "Pipeline":
        """For training: `plain` goes by the options, the other types by the files of the first alignment directory."""
        if feat_type == "plain":
            return _plain(cls.parse(cmvn_opts, delta_order), data)
        if cmvn_opts or delta_order:
            raise KernelamError(
                f"features of type {feat_type} take their CMVN and delta options from {ali[0]};"
                " options of your own need --feat-type plain"
            )
        pipeline = cls.of_directory(ali[0], feat_type)
        for other in ali[1:]:
            if pipeline.lda and (other / "final.mat").exists() and not _same(pipeline.lda, other / "final.mat"):
                raise KernelamError(f"{pipeline.lda} and {other}/final.mat differ: the alignments are of two models")
        return pipeline

    def settings(self) -> dict[str, Any]:
        """For model.json: the LDA matrix by its name, as its copy stands in the model's directory."""
        return {**asdict(self), "lda": self.lda and self.lda.name}

    @classmethod
    def restore(cls, settings: Mapping[str, Any], folder: Path) -> "Pipeline":
        """What `settings` gave, for the model in `folder`; ValueError where they are not of that kind."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
        }
        lda = given.get("lda")
        if lda is not None and not is_name(lda):  # a file elsewhere is none of the model's
            raise ValueError(f"{lda} is no name of a file in {folder}")
        made = cls(**{**given, "lda": folder / lda if lda else None})
        flags = (made.norm_means, made.norm_vars, made.fmllr)
        left, right = made.context
        numbers = (made.deltas, made.delta_window, left, right, *made.skip_dims)
        if not all(type(one) is bool for one in flags) or not all(
            type(one) is int and 0 <= one < 1000 for one in numbers
        ):
            raise ValueError(f"{dict(settings)} are no settings of features")
        return made

    def open(self, data: str | Path, transform_dir: str | Path | None = None) -> "Features":
        """The features of a data directory; `transform_dir` has its speakers' fMLLR transforms."""
        return Features(Path(data), self, Path(transform_dir) if transform_dir else None)


def _cmvn(options: Options, wanted: bool, where: str) -> dict[str, Any]:
    means, variances = flag(options, "norm-means", wanted, where), flag(options, "norm-vars", False, where)
    if variances and not means:
        raise KernelamError(f"{where}: variances cannot be normalised without means; use --norm-means=true")
    return {"norm_means": means, "norm_vars": variances, "skip_dims": indices(options, "skip-dims", where)}


def _deltas(folder: Path) -> dict[str, Any]:
    path = folder / "delta_opts"
    options = read_options(path, _DELTA)
    order, window = count(options, "delta-order", 2, str(path)), count(options, "delta-window", 2, str(path))
    if order and not window:
        raise KernelamError(f"{path}: --delta-window is at least 1")
    return {"deltas": order, "delta_window": window}


def _splicing(folder: Path) -> dict[str, Any]:
    path = folder / "splice_opts"
    options = read_options(path, _SPLICE)
    left, right = (count(options, name, 4, str(path)) for name in _SPLICE)
    return {"context": (left, right), "lda": folder / "final.mat"}


def _plain(pipeline: Pipeline, data: Sequence[Path]) -> Pipeline:
    """CMVN if it is asked for and there are statistics; directories of fMLLR features have none."""
    missing = [folder for folder in data if not (folder / "cmvn.scp").exists()]
    if not pipeline.norm_means or not missing:
        return pipeline
    if len(missing) < len(data):
        raise KernelamError(f"{missing[0]} has no cmvn.scp, as the other has; steps/compute_cmvn_stats.sh makes it")
    warn(f"{missing[0]} has no cmvn.scp: its features are taken without CMVN")
    return replace(pipeline, norm_means=False, norm_vars=False, skip_dims=())


def _same(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


class Features(Mapping[str, np.ndarray]):
    """Utterance → processed features (frames × dim, float32), read when asked for."""

    def __init__(self, data: Path, pipeline: Pipeline, transform_dir: Path | None = None) -> None:
        self.data, self.pipeline, self.transform_dir = data, pipeline, transform_dir
        self.raw = MatrixScp(data / "feats.scp")
        self.utt2spk: dict[str, str] = {}
        if pipeline.norm_means or pipeline.fmllr:
            self.utt2spk = read_table(data / "utt2spk")
        if pipeline.norm_means:
            self.stats = MatrixScp(data / "cmvn.scp", double=True)
        self.lda = self._lda() if pipeline.lda else None
        self.transforms = self._transforms()

    @property
    def dim(self) -> int:
        if self.lda is not None:
            return self.lda.shape[0]
        return self.raw.dim * (1 + self.pipeline.deltas)

    def __getitem__(self, utt: str) -> np.ndarray:
        with np.errstate(all="ignore"):
            features = self._processed(utt)
        if not np.isfinite(features).all():
            files = [str(place) for place in (self.pipeline.lda, self.transform_dir) if place]
            raise KernelamError(
                f"utterance {utt} of {self.data}/feats.scp has features that are not finite after"
                f" {' and '.join(files) or 'CMVN and deltas'}"
            )
        return features

    def _processed(self, utt: str) -> np.ndarray:
        features, pipeline = self.raw[utt], self.pipeline
        if pipeline.norm_means:
            where = f"{self.data}/cmvn.scp, utterance {utt}"
            stats = self._stats_of(utt)
            features = cmvn.apply(features, stats, pipeline.norm_vars, where, pipeline.skip_dims)
        if pipeline.deltas:
            features = add_deltas(features, pipeline.deltas, pipeline.delta_window)
        if self.lda is not None:
            features = apply_linear(splice(features, *pipeline.context), self.lda)
        return apply_linear(features, self._transform_of(utt)) if pipeline.fmllr else features

    def _lda(self) -> np.ndarray:
        matrix = read_matrix(self.pipeline.lda or "")
        left, right = self.pipeline.context
        spliced = self.raw.dim * (left + 1 + right)
        if matrix.shape[1] not in (spliced, spliced + 1):
            raise KernelamError(
                f"{self.data}/feats.scp has {self.raw.dim} features a frame, {spliced} with {left} + {right} frames of"
                f" context, but {self.pipeline.lda} is for {matrix.shape[1]}"
            )
        return matrix

    def _transforms(self) -> dict[str, np.ndarray]:
        if not self.pipeline.fmllr:
            if self.transform_dir:
                raise KernelamError(f"the model's features take no transforms, but {self.transform_dir} is given")
            return {}
        if self.transform_dir is None:
            raise KernelamError(
                f"the model takes fMLLR features: --transform-dir names the directory with trans.* of the speakers of"
                f" {self.data}"
            )
        transforms = read_transforms(self.transform_dir)
        for speaker, matrix in transforms.items():
            if matrix.shape[0] != self.dim or matrix.shape[1] not in (self.dim, self.dim + 1):
                raise KernelamError(
                    f"{self.transform_dir}/trans.*: the transform of {speaker} is {matrix.shape[0]} ×"
                    f" {matrix.shape[1]}, but there are {self.dim} features a frame in {self.data}"
                )
        return transforms

    def _speaker(self, utt: str) -> str:
        if utt not in self.utt2spk:
            raise KernelamError(f"utterance {utt} of {self.data}/feats.scp has no speaker in {self.data}/utt2spk")
        return self.utt2spk[utt]

    def _stats_of(self, utt: str) -> np.ndarray:
        speaker = self._speaker(utt)
        if speaker not in self.stats:
            raise KernelamError(
                f"speaker {speaker} of utterance {utt} has no CMVN statistics in {self.data}/cmvn.scp;"
                f" steps/compute_cmvn_stats.sh {self.data} makes them"
            )
        return self.stats[speaker]

    def _transform_of(self, utt: str) -> np.ndarray:
        speaker = self._speaker(utt)
        if speaker not in self.transforms:
            raise KernelamError(
                f"speaker {speaker} of utterance {utt} of {self.data} has no transform in {self.transform_dir}/trans.*"
            )
        return self.transforms[speaker]

    def __contains__(self, utt: object) -> bool:
        return utt in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)
