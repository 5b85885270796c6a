"""Diagonal-covariance Gaussian mixtures, one a pdf, in Kaldi's format."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.files import replacing
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.binary import KaldiReader, KaldiWriter
from kernelam.models.base import AcousticModel

Floats = NDArray[np.float32]
_SMALLEST, _LARGEST = 1e-15, 1e15  # of inverse variances: beyond these, float32 likelihoods are infinite


class DiagGmms:
    """The mixtures of all pdfs laid end to end: pdf j has the Gaussians first[j] … first[j+1] − 1.

    log p(x | j) = logsumexp over its Gaussians g of  gconst_g + x·(μ_g/σ²_g) − ½ x²·(1/σ²_g).
    """

    def __init__(self, first: NDArray[np.int64], weights: NDArray, means: NDArray, variances: NDArray) -> None:
        self.first = first
        self.weights, self.means, self.variances = weights, means, variances
        inverse = 1.0 / variances
        self.gconsts = _gconsts(weights, means, variances)
        self.factors = np.concatenate([(means * inverse).T, (-0.5 * inverse).T]).astype(np.float32)

    @classmethod
    def of_file(
        cls, first: NDArray[np.int64], gconsts: Floats, weights: Floats, means_invvars: Floats, inverse: Floats
    ) -> "DiagGmms":
        """From the numbers of a file, which are kept to the bit: written again, they are the same.

        Like Kaldi, we do not trust constants that do not belong to the other numbers.
        """
        wide = inverse.astype(np.float64)
        made = cls(first, weights.astype(np.float64), means_invvars / wide, 1.0 / wide)
        made.factors = np.concatenate([means_invvars.T, np.float32(-0.5) * inverse.T])
        made.gconsts = np.where(np.isclose(gconsts, made.gconsts, rtol=1e-4, atol=1e-2), gconsts, made.gconsts)
        return made

    @property
    def num_pdfs(self) -> int:
        return len(self.first) - 1

    @property
    def dim(self) -> int:
        return self.means.shape[1]

    @property
    def num_parameters(self) -> int:
        """Weights, means and variances."""
        return self.weights.size + self.means.size + self.variances.size

    def components(self, x: Floats, gaussians: slice | NDArray = slice(None)) -> Floats:
        """log of weight × density of each Gaussian: frames × Gaussians."""
        scores = np.concatenate([x, np.square(x)], axis=1) @ self.factors[:, gaussians]
        scores += self.gconsts[gaussians]
        return scores

    def log_likelihoods(self, x: Floats, pdfs: NDArray | None = None) -> Floats:
        """Of all pdfs, or of `pdfs`: frames × pdfs."""
        counts = np.diff(self.first)
        gaussians: slice | NDArray = slice(None)
        if pdfs is not None:
            counts = counts[pdfs]
            gaussians = np.concatenate([np.arange(self.first[pdf], self.first[pdf + 1]) for pdf in pdfs])
        scores = self.components(x, gaussians)
        starts = np.cumsum(counts) - counts
        top = np.maximum.reduceat(scores, starts, axis=1)
        scores -= np.repeat(top, counts, axis=1)
        np.exp(scores, out=scores)
        return top + np.log(np.add.reduceat(scores, starts, axis=1))

    @classmethod
    def read(cls, reader: KaldiReader) -> "DiagGmms":
        """What stands behind the transition model in a `final.mdl`."""
        if reader.at_end():
            reader.fail("a transition model without an acoustic model")
        if (found := reader.peek()) != "<DIMENSION>":
            reader.fail(f"an acoustic model that is no diagonal GMM: it begins with {found[:40]!r}")
        reader.expect("<DIMENSION>")
        dim = reader.integer()
        reader.expect("<NUMPDFS>")
        parts = [_read_mixture(reader, dim) for _ in range(reader.integer())]
        if not parts:
            reader.fail("a model of no pdfs")
        first = np.cumsum([0, *(len(part[0]) for part in parts)])
        return cls.of_file(first, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def write(self, writer: KaldiWriter) -> None:
        """Write byte for byte as Kaldi does."""
        writer.token("<DIMENSION>")
        writer.integer(self.dim)
        writer.token("<NUMPDFS>")
        writer.integer(self.num_pdfs)
        for pdf in range(self.num_pdfs):
            part = slice(self.first[pdf], self.first[pdf + 1])
            writer.token("<DiagGMM>")
            writer.line()
            writer.token("<GCONSTS>")
            writer.vector(self.gconsts[part])
            writer.token("<WEIGHTS>")
            writer.vector(self.weights[part].astype(np.float32))
            writer.token("<MEANS_INVVARS>")
            writer.matrix(self.factors[: self.dim, part].T)
            writer.token("<INV_VARS>")
            writer.matrix(np.float32(-2.0) * self.factors[self.dim :, part].T)
            writer.token("</DiagGMM>")
            writer.line()


def _gconsts(weights: NDArray, means: NDArray, variances: NDArray) -> Floats:
    with np.errstate(divide="ignore"):  # a weight may be 0
        log_weights = np.log(weights)
    density = -0.5 * (np.log(2.0 * np.pi * variances) + means**2 / variances).sum(axis=1)
    return (log_weights + density).astype(np.float32)


def _read_mixture(reader: KaldiReader, dim: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Constants, weights, means over variances, and inverse variances; without constants, zeros."""
    reader.expect("<DiagGMM>", "<DiagGMMBegin>")
    gconsts = None
    if reader.expect("<GCONSTS>", "<WEIGHTS>") == "<GCONSTS>":
        gconsts = reader.vector()
        reader.expect("<WEIGHTS>")
    weights = reader.vector()
    reader.expect("<MEANS_INVVARS>")
    means_invvars = reader.matrix()
    reader.expect("<INV_VARS>")
    inverse = reader.matrix()
    reader.expect("</DiagGMM>", "<DiagGMMEnd>")
    gconsts = np.zeros_like(weights) if gconsts is None else gconsts
    if not means_invvars.shape == inverse.shape == (len(weights), dim) or len(gconsts) != len(weights) or not dim:
        reader.fail("a mixture whose weights, means and variances do not fit together")
    if not (np.all(weights >= 0) and 0.9 < weights.sum(dtype=np.float64) < 1.1):
        reader.fail("a mixture whose weights are not positive with the sum 1")
    if not (np.all((inverse > _SMALLEST) & (inverse < _LARGEST)) and np.all(np.abs(means_invvars) < _LARGEST)):
        reader.fail("a mixture with a variance that is not positive, or a mean that is not finite")
    return tuple(array.astype(np.float32) for array in (gconsts, weights, means_invvars, inverse))  # type: ignore[return-value]


class GmmModel(AcousticModel):
    """A Kaldi `final.mdl`: likelihoods, so that no prior is ever subtracted."""

    kind = "gmm"

    def __init__(self, pipeline: Pipeline, transitions: TransitionModel, gmms: DiagGmms) -> None:
        self.pipeline, self.transitions, self.gmms = pipeline, transitions, gmms
        self.num_classes, self.feature_dim = gmms.num_pdfs, gmms.dim

    def log_likelihoods(self, features: np.ndarray, classes: np.ndarray | None = None) -> np.ndarray:
        return self.gmms.log_likelihoods(features, classes)

    @classmethod
    def read(cls, path: str | Path) -> "GmmModel":
        """The model in `path`; the options of its features stand beside it (cmvn_opts, …, final.mat).

        An .alimdl is for features without the speakers' transforms that the model beside it takes.
        """
        reader = KaldiReader.open(path)
        transitions = TransitionModel.read(reader)
        gmms = DiagGmms.read(reader)
        if gmms.num_pdfs != transitions.num_pdfs:
            reader.fail(f"{gmms.num_pdfs} mixtures for {transitions.num_pdfs} pdfs")
        pipeline = Pipeline.of_directory(Path(path).parent)
        return cls(replace(pipeline, fmllr=False) if Path(path).suffix == ".alimdl" else pipeline, transitions, gmms)

    def write(self, path: str | Path, binary: bool = True) -> None:
        with replacing(path) as stream:
            writer = KaldiWriter(stream, binary)
            self.transitions.write(writer)
            self.gmms.write(writer)


def write_feature_options(folder: Path, pipeline: Pipeline) -> None:
    """cmvn_opts and delta_opts, as Kaldi keeps them beside a model."""
    flags = {"norm-means": pipeline.norm_means, "norm-vars": pipeline.norm_vars}
    words = [f"--{name}={str(value).lower()}" for name, value in flags.items()]
    if pipeline.skip_dims:
        words.append(f"--skip-dims={':'.join(map(str, pipeline.skip_dims))}")
    with replacing(folder / "cmvn_opts", "w") as stream:
        stream.write(" ".join(words) + "\n")
    with replacing(folder / "delta_opts", "w") as stream:
        stream.write(f"--delta-order={pipeline.deltas} --delta-window={pipeline.delta_window}\n")
