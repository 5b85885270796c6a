"""Inner loops of random Fourier features: sparse projections, cosines and sines, on few threads of a CPU compiled.

PyTorch's cosine, with the phase and the scale each in a pass of its own, takes five times as long: a tenth of a step
of training. The compiled one is a polynomial on [−π, π], right to 1e-6, as projections in single precision are.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

FEW_THREADS = 4  # with more, PyTorch's operators, which share out the work, are faster

compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
inlined: Callable[..., Any] = numba.njit(cache=True, fastmath={"contract", "nsz"}, inline="always")


def _polynomial(function: Callable[[np.ndarray], np.ndarray], degree: int) -> tuple[np.float32, ...]:
    """Coefficients in u = r² of f(√u) on 0 ≤ r ≤ π, near to the best in the largest error."""
    nodes = 0.5 * np.pi**2 * (1.0 + np.cos(np.pi * (np.arange(400) + 0.5) / 400))
    fitted = np.polynomial.Chebyshev.fit(nodes, function(np.sqrt(nodes)), degree, domain=[0.0, np.pi**2])
    return tuple(np.float32(c) for c in fitted.convert(kind=np.polynomial.Polynomial).coef)


C0, C1, C2, C3, C4, C5, C6 = _polynomial(np.cos, 6)
S0, S1, S2, S3, S4, S5, S6 = _polynomial(lambda r: np.sin(r) / r, 6)
TURNS = np.float32(0.5 / math.pi)
ROUND = np.float32(1.5 * 2**23)  # adding it and taking it away rounds to an integer
TURN_HIGH = np.float32(6.28125)  # few bits: its product with a number of turns below 2¹⁶ is exact
TURN_LOW = np.float32(2.0 * math.pi - 6.28125)
PI = np.float32(math.pi)


@inlined
def _reduced(angle: Any) -> Any:
    """The angle in [−π, π]; one beyond 2²², which has no digits left to tell, is still in there."""
    turns = (angle * TURNS + ROUND) - ROUND
    rest = (angle - turns * TURN_HIGH) - turns * TURN_LOW
    return min(max(rest, -PI), PI)


@inlined
def _cos(u: Any) -> Any:
    return C0 + u * (C1 + u * (C2 + u * (C3 + u * (C4 + u * (C5 + u * C6)))))


@inlined
def _sin(r: Any, u: Any) -> Any:
    return r * (S0 + u * (S1 + u * (S2 + u * (S3 + u * (S4 + u * (S5 + u * S6))))))


@compiled
def _cosine(z: np.ndarray, phase: np.ndarray, scale: np.float32) -> None:
    for i in range(len(z)):
        row, shift = z[i], phase[i]
        for j in range(len(row)):
            r = _reduced(row[j] + shift)
            row[j] = scale * _cos(r * r)


@compiled
def _cosine_and_sine(p: np.ndarray, q: np.ndarray, scale: np.float32) -> None:
    for j in range(len(p)):
        r = _reduced(p[j])
        u = r * r
        p[j] = scale * _cos(u)
        q[j] = scale * _sin(r, u)


@compiled
def _sparse_projection(table: np.ndarray, index: np.ndarray, value: np.ndarray, out: np.ndarray) -> None:
    for i in range(index.shape[1]):
        row, source, weight = out[i], table[index[0, i]], value[0, i]
        for j in range(len(row)):
            row[j] = weight * source[j]
        for k in range(1, len(index)):
            source, weight = table[index[k, i]], value[k, i]
            for j in range(len(row)):
                row[j] += weight * source[j]


def runs_compiled(out: Tensor) -> bool:
    """Whether the loops run here, and in place, for results in `out`; otherwise PyTorch's operators do."""
    return out.device.type == "cpu" and out.dtype == torch.float32 and torch.get_num_threads() <= FEW_THREADS


def cosine(p: Tensor, phase: Tensor, scale: float, out: Tensor) -> None:
    """out_ij = scale · cos(p_ij + phase_i); compiled, p is `out`."""
    if runs_compiled(out):
        _cosine(out.numpy(), phase.numpy(), np.float32(scale))
    else:
        torch.add(p, phase.unsqueeze(1), out=out).cos_().mul_(scale)


def cosine_and_sine(p: Tensor, scale: float, out: Tensor) -> None:
    """The upper half of the rows of `out` is scale · cos p, the lower half scale · sin p; compiled, p is the upper."""
    upper, lower = out.chunk(2)
    if runs_compiled(out):
        _cosine_and_sine(upper.view(-1).numpy(), lower.view(-1).numpy(), np.float32(scale))
    else:
        torch.sin(p, out=lower)
        torch.cos(p, out=upper)
        out.mul_(scale)


def sparse_projection(x: Tensor, index: Tensor, value: Tensor, out: Tensor) -> Tensor:
    """p_ji = Σ_k value_kj x_i,index_kj; compiled, p is `out`."""
    table = x.T.clone(memory_format=torch.contiguous_format)
    if runs_compiled(out):
        _sparse_projection(table.numpy(), index.numpy(), value.numpy(), out.numpy())
        return out
    return embedding_bag(index.T, table, mode="sum", per_sample_weights=value.T.to(x.dtype))
