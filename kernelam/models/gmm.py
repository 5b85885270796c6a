"""Diagonal-covariance Gaussian mixtures, one a pdf, in Kaldi's format."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.transitions import TransitionModel
from kernelam.kaldi.binary import KaldiReader, KaldiWriter
from kernelam.models.base import AcousticModel

Floats = NDArray[np.float32]


class DiagGmms:
    """The mixtures of all pdfs laid end to end: pdf j has the Gaussians first[j] … first[j+1] − 1.

    log p(x | j) = logsumexp over its Gaussians g of  gconst_g + x·(μ_g/σ²_g) − ½ x²·(1/σ²_g).
    """

    def __init__(self, first: NDArray[np.int64], weights: NDArray, means: NDArray, variances: NDArray) -> None:
        self.first = first
        self.weights, self.means, self.variances = weights, means, variances
        inverse = 1.0 / variances
        constant = -0.5 * (np.log(2.0 * np.pi * variances) + means**2 * inverse).sum(axis=1)
        self.gconsts = (np.log(weights) + constant).astype(np.float32)
        self.factors = np.concatenate([(means * inverse).T, (-0.5 * inverse).T]).astype(np.float32)

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
        reader.expect("<DIMENSION>")
        dim = reader.integer()
        reader.expect("<NUMPDFS>")
        parts = [_read_mixture(reader, dim) for _ in range(reader.integer())]
        if not parts:
            reader.fail("a model of no pdfs")
        first = np.cumsum([0, *(len(weights) for weights, _, _ in parts)])
        weights, means, variances = (np.concatenate(arrays).astype(np.float64) for arrays in zip(*parts, strict=True))
        return cls(first, weights, means, variances)

    def write(self, writer: KaldiWriter) -> None:
        writer.token("<DIMENSION>")
        writer.integer(self.dim)
        writer.token("<NUMPDFS>")
        writer.integer(self.num_pdfs)
        for pdf in range(self.num_pdfs):
            part = slice(self.first[pdf], self.first[pdf + 1])
            inverse = (1.0 / self.variances[part]).astype(np.float32)
            writer.token("<DiagGMM>")
            writer.line()
            writer.token("<GCONSTS>")
            writer.vector(self.gconsts[part])
            writer.token("<WEIGHTS>")
            writer.vector(self.weights[part].astype(np.float32))
            writer.token("<MEANS_INVVARS>")
            writer.matrix((self.means[part] / self.variances[part]).astype(np.float32))
            writer.token("<INV_VARS>")
            writer.matrix(inverse)
            writer.token("</DiagGMM>")
            writer.line()


def _read_mixture(reader: KaldiReader, dim: int) -> tuple[NDArray, NDArray, NDArray]:
    reader.expect("<DiagGMM>", "<DiagGMMBegin>")
    if reader.expect("<GCONSTS>", "<WEIGHTS>") == "<GCONSTS>":
        reader.vector()
        reader.expect("<WEIGHTS>")
    weights = reader.vector()
    reader.expect("<MEANS_INVVARS>")
    means_invvars = reader.matrix()
    reader.expect("<INV_VARS>")
    inverse = reader.matrix()
    reader.expect("</DiagGMM>", "<DiagGMMEnd>")
    if not means_invvars.shape == inverse.shape == (len(weights), dim):
        reader.fail("a mixture whose weights, means and variances do not fit together")
    if not (np.all(weights > 0) and np.all(inverse > 0) and np.isfinite(means_invvars).all()):
        reader.fail("a mixture with a weight or variance that is not positive, or a mean that is not finite")
    return weights, means_invvars / inverse, 1.0 / inverse


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
        """The model in `path`; the options of its features stand beside it in cmvn_opts and delta_opts."""
        reader = KaldiReader.open(path)
        transitions = TransitionModel.read(reader)
        gmms = DiagGmms.read(reader)
        if gmms.num_pdfs != transitions.num_pdfs:
            reader.fail(f"{gmms.num_pdfs} mixtures for {transitions.num_pdfs} pdfs")
        return cls(read_feature_options(Path(path).parent), transitions, gmms)

    def write(self, path: str | Path) -> None:
        with replacing(path) as stream:
            writer = KaldiWriter(stream)
            self.transitions.write(writer)
            self.gmms.write(writer)


def read_feature_options(folder: Path) -> Pipeline:
    """Kaldi's GMM features: CMVN means unless cmvn_opts says otherwise, then deltas of the order in delta_opts."""
    if (folder / "final.mat").exists():
        raise KernelamError(f"{folder}/final.mat: GMMs on LDA features are not read")
    cmvn, delta = (_text(folder / name) for name in ("cmvn_opts", "delta_opts"))
    order = re.fullmatch(r"(?:--delta-order=(\d+))?", delta)
    if order is None:
        raise KernelamError(f"{folder}/delta_opts has other options than --delta-order: {delta}")
    return Pipeline.parse(cmvn or "--norm-means=true", int(order[1] or 2))


def write_feature_options(folder: Path, pipeline: Pipeline) -> None:
    flags = {"norm-means": pipeline.norm_means, "norm-vars": pipeline.norm_vars}
    with replacing(folder / "cmvn_opts", "w") as stream:
        stream.write(" ".join(f"--{name}={str(value).lower()}" for name, value in flags.items()) + "\n")
    with replacing(folder / "delta_opts", "w") as stream:
        stream.write(f"--delta-order={pipeline.deltas}\n")


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""
