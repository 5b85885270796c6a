"""Principal components in the feature space of a kernel: exact up to LANDMARKS examples, by Nyström's method beyond."""

import torch
from torch import Tensor

from kernelam.errors import KernelamError
from kernelam.kernels import Kernel
from kernelam.memory import available, check_memory
from kernelam.models.kernel_pca import ELEMENTS, KernelPca
from kernelam.randomness import stream

LANDMARKS = 6000
LEAST = {torch.float32: 1e-6, torch.float64: 1e-12}
"""The share of the variance of the first component that another has, or it is rounding errors of kernels."""

BLOCK = 64
PRECISE = 1e-7


def check_components(components: int, examples: int) -> None:
    if components < 1:
        raise KernelamError(f"kernel PCA finds 1 component or more, not {components}")
    if components > examples:
        raise KernelamError(f"{components} components are more than the {examples} examples of kernel PCA")


def check_pca_memory(examples: int, device: torch.device) -> None:
    size = min(examples, LANDMARKS)
    what = f"kernel PCA of {examples} examples"
    check_memory(5 * 8 * size**2, available(device), what, "fewer --pca-examples take less")


@torch.no_grad()
def fit_kernel_pca(kernel: Kernel, x: Tensor, components: int, seed: int = 1) -> KernelPca:
    """As many components as are asked for, or as have any variance; the first have most of it."""
    check_components(components, len(x))
    check_pca_memory(len(x), x.device)
    if len(x) <= LANDMARKS:
        return _exact(kernel, x, components)
    order = torch.from_numpy(stream(seed, "landmarks").permutation(len(x))[:LANDMARKS]).to(x.device)
    return _nystrom(kernel, x, x[order], components)


def _gram(kernel: Kernel, x: Tensor) -> Tensor:
    """In double precision; the diagonal exact, where an angle of 0 is the root of a rounding error."""
    found = torch.empty(len(x), len(x), dtype=torch.float64, device=x.device)
    for part in torch.arange(len(x)).split(max(1, ELEMENTS // len(x))):
        rows = slice(int(part[0]), int(part[-1]) + 1)
        found[rows] = kernel.matrix(x[rows], x).double()
    found.diagonal().copy_(kernel.diagonal(x.double()))
    return found


def _leading(matrix: Tensor, components: int, least: float) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues and their vectors, each with its largest entry above zero."""
    found = _by_krylov(matrix, components) if 8 * max(components, BLOCK) <= len(matrix) else None
    values, vectors = found or _by_factors(matrix, components)
    kept = values > least * values[0].clamp_min(torch.finfo(torch.float64).tiny)
    if not kept.any():
        raise KernelamError("kernel PCA finds no components: its examples are all equal")
    values, vectors = values[kept], vectors[:, kept]
    largest = vectors.gather(0, vectors.abs().argmax(dim=0, keepdim=True))
    return values, vectors * largest.sign()


def _by_factors(matrix: Tensor, components: int) -> tuple[Tensor, Tensor]:
    values, vectors = torch.linalg.eigh(matrix)
    return values.flip(0)[:components], vectors.flip(1)[:, :components]


def _by_krylov(matrix: Tensor, components: int) -> tuple[Tensor, Tensor] | None:
    """The same of a few components, several times as fast: those of A on the span of V, AV, A²V, …, where V is random,
    made wider until |Au − λu| is PRECISE of the first λ for each; or nothing where half of all would not do."""
    new = torch.from_numpy(stream(0, "krylov").standard_normal((len(matrix), BLOCK))).to(matrix)
    basis, images = new[:, :0], new[:, :0]
    while basis.shape[1] + BLOCK <= len(matrix) // 2:
        for _ in range(2):  # the second takes off what rounding left
            new = torch.linalg.qr(new - basis @ (basis.T @ new))[0]
        basis, new = torch.cat([basis, new], dim=1), matrix @ new
        images = torch.cat([images, new], dim=1)
        width = basis.shape[1]
        if width >= 3 * components and width // BLOCK % 6 == 0:
            values, small = _by_factors(basis.T @ images, components)
            vectors = basis @ small
            if float((images @ small - vectors * values).norm(dim=0).max()) <= PRECISE * float(values[0]):
                return values, vectors
    return None


def _exact(kernel: Kernel, x: Tensor, components: int) -> KernelPca:
    """K̃ = UΛUᵀ for the centred matrix K̃; y(x) = Λ^−½ Uᵀ k̃(x). As U is orthogonal to 1, the mean of k(x) and that of
    all of K drop out of k̃(x), and what is left to take off is the mean of each row."""
    gram = _gram(kernel, x)
    mean = gram.mean(dim=1)
    gram -= mean[:, None]
    gram -= gram.mean(dim=0)[None]
    values, vectors = _leading(gram, components, LEAST[x.dtype])
    matrix = (vectors - vectors.mean(dim=0)) * values.rsqrt()
    return KernelPca(kernel, x, matrix.to(x.dtype), (-mean @ matrix).to(x.dtype))


def _nystrom(kernel: Kernel, x: Tensor, landmarks: Tensor, components: int) -> KernelPca:
    """Principal components of z(x) = K^−½ k(x), K the kernel matrix of the landmarks, over all of x: z(x)·z(y) is the
    kernel of what the landmarks span."""
    values, vectors = _leading(_gram(kernel, landmarks), len(landmarks), LEAST[x.dtype])
    root = vectors * values.rsqrt()
    total = torch.zeros(root.shape[1], dtype=torch.float64, device=x.device)
    squares = torch.zeros(root.shape[1], root.shape[1], dtype=torch.float64, device=x.device)
    for part in torch.split(x, max(1, ELEMENTS // len(landmarks))):
        z = kernel.matrix(part, landmarks).double() @ root
        total += z.sum(dim=0)
        squares += z.T @ z
    mean = total / len(x)
    spread = squares / len(x) - mean[:, None] * mean[None]
    _, directions = _leading(spread, components, LEAST[x.dtype])
    offset = -mean @ directions
    return KernelPca(kernel, landmarks, (root @ directions).to(x.dtype), offset.to(x.dtype))
