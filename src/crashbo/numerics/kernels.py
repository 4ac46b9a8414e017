"""Stationary kernels with one lengthscale per dimension, and their exact gradients.

May import numpy and scipy only.

Notation:
    X, Z   inputs, (n, D) and (m, D), in the unit cube
    r2     squared distance after division by the lengthscales, (n, m)
    k, k'  a kernel's profile and its derivative, both as functions of r2; k(0) = 1

Nothing of shape n x n x D is ever built: the gradient of a trace in all D lengthscales is one product
of an (n, n) matrix with X.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.numerics.linalg import product, symmetric_product

Array = NDArray[np.float64]

# Below this share of the largest squared norm a distance is recomputed, coordinate by coordinate:
# |a|^2 + |b|^2 - 2ab loses all digits of near repeats, which are ordinary data.
_NEAR = 1e-6
_BLOCK = 128  # rows of a large matrix that are computed at once
_AT_ONCE = 2**14  # numbers of a kernel that are computed at once: what fits a cache, and needs no new pages of memory
_NUDGE = 1e-6  # of a distance or an eigenvalue, in a check of somebody's own kernel


@dataclass(frozen=True)
class Kernel:
    """A unit-variance stationary kernel, given by its profile r2 -> (k, dk/dr2)."""

    name: str
    profile: Callable[[Array], tuple[Array, Array]]

    def fault(self) -> str | None:
        """What its profile must be and is not; None if nothing is found."""
        r2 = np.linspace(0.0, 9.0, 181)[:, None]
        try:
            (k, slope), (at_zero, _) = self.profile(r2.copy()), self.profile(np.zeros((1, 1)))
            above, below = (self.profile(r2[1:] + e)[0] for e in (_NUDGE, -_NUDGE))
            U = np.random.default_rng(0).random((60, 2))
            lowest = float(np.linalg.eigvalsh(self.profile(squared_distances(4.0 * U, 4.0 * U))[0])[0])
        except Exception as error:
            return f"map an array of squared distances to two, k and dk/dr2 ({type(error).__name__}: {error})"
        if np.shape(k) != r2.shape or np.shape(slope) != r2.shape or not np.isfinite([k, slope]).all():
            return "map squared distances to two finite arrays of their shape, k and dk/dr2"
        if abs(float(at_zero[0, 0]) - 1.0) > _NUDGE:
            return "be one at distance zero"
        if not np.allclose((above - below) / (2.0 * _NUDGE), slope[1:], rtol=1e-3, atol=1e-4):
            return "give dk/dr2 as its second array"
        return None if lowest > -_NUDGE else "be positive definite"

    def matrix(self, X: Array, Z: Array, lengthscales: Array) -> Array:
        """k(X, Z), shape (n, m)."""
        return self.profile(squared_distances(X / lengthscales, Z / lengthscales))[0]

    def gram(self, X: Array, lengthscales: Array) -> tuple[Array, Array]:
        """k(X, X) and the slope dk/dr2 that gradients need."""
        U = X / lengthscales
        if len(U) <= 2 * _BLOCK:
            return self.profile(squared_distances(U, U))
        both = np.empty((2, len(U), len(U)))
        for start in range(0, len(U), _BLOCK):  # of a large matrix only the lower triangle
            stop = start + _BLOCK
            lower = self.profile(squared_distances(U[start:stop], U[:stop]))
            for whole, part in zip(both, lower, strict=True):
                whole[start:stop, :stop] = part
                whole[:stop, start:stop] = part.T
        return both[0], both[1]


def trace_gradient(P: Array, X: Array, lengthscales: Array) -> Array:
    """Gradient of 1/2 tr(M K) in the log lengthscales, where P = M * k' elementwise and M is symmetric.

    Only the lower triangle of P is read.
    """
    U = np.ones((len(X), X.shape[1] + 1), order="F")
    np.divide(X - X.mean(axis=0), lengthscales, out=U[:, :-1])
    PU = symmetric_product(P, U)
    spread: Array = np.einsum("ij,ij,i->j", U, U, PU[:, -1]) - np.einsum("ij,ij->j", U, PU)
    return -2.0 * spread[:-1]


def squared_distances(U: Array, V: Array) -> Array:
    """Squared distances between the rows of U and V, exact for rows that (nearly) repeat."""
    same = U is V
    center = U.mean(axis=0) if len(U) else 0.0
    U = U - center
    V = U if same else V - center
    uu = _row_squares(U)
    vv = uu if same else _row_squares(V)
    r2 = product(U, V.T)
    r2 *= -2.0
    r2 += uu[:, None]
    r2 += vv
    near = r2 <= _NEAR * max(uu.max(initial=0.0), vv.max(initial=0.0))
    if same:
        np.einsum("ii->i", r2)[:] = 0.0
        np.einsum("ii->i", near)[:] = False
    if near.any():
        i, j = np.nonzero(near)
        r2[i, j] = _row_squares(U[i] - V[j])
    return r2


def _row_squares(U: Array) -> Array:
    squares: Array = np.einsum("ij,ij->i", U, U)
    return squares


@dataclass(frozen=True)
class Distances:
    """Squared distances of n points X from others, under each of K sets of lengthscales; prepared for many calls.

    With U and V the points less the center of X, and a the inverse squared lengthscales of a set, they are
    U^2 a - 2 V (U a) + V^2 a: one product of (V, V^2, 1) with what X and the sets alone give.
    """

    center: Array  # (D,)
    U: Array  # X less the center
    known: Array  # (K n, 2 D + 1), the factor that X and the sets give, in blocks of n rows
    inverse: Array  # (K, D), of the squared lengthscales
    largest: float  # of the squares of U
    near: float  # what is to be recomputed lies below this, times the largest square of U and V

    @staticmethod
    def of(X: Array, lengthscales: Array) -> "Distances":
        """From X, (n, D), under lengthscales (K, D)."""
        center, inverse = X.mean(axis=0), lengthscales**-2.0
        U = X - center
        (K, D), n, squares = inverse.shape, len(U), U * U
        known = np.empty((K, n, 2 * D + 1))
        np.multiply(inverse[:, None, :], -2.0 * U, out=known[:, :, :D])
        known[:, :, D : 2 * D] = inverse[:, None, :]
        known[:, :, -1] = product(inverse, squares.T)
        near = _NEAR * float(inverse.sum(axis=1).max())
        return Distances(center, U, known.reshape(K * n, 2 * D + 1), inverse, float(squares.max(initial=0.0)), near)

    def to(self, Z: Array) -> Array:
        """To Z, (m, D): an array (m, K n), one block of n columns per set."""
        m, D = Z.shape
        asked = np.ones((m, 2 * D + 1))
        V, squares = asked[:, :D], asked[:, D : 2 * D]
        np.subtract(Z, self.center, out=V)
        np.multiply(V, V, out=squares)
        r2 = product(self.known, asked.T).T
        near = self.near * max(self.largest, squares.max(initial=0.0))
        if r2.min(initial=np.inf) <= near:
            self._recompute(r2, V, near)
        return r2

    def _recompute(self, r2: Array, V: Array, near: float) -> None:
        """Distances up to `near`, coordinate by coordinate."""
        row, column = np.nonzero(r2 <= near)
        i, trial = np.divmod(column, len(self.U))
        r2[row, column] = np.einsum("ij,ij->i", self.inverse[i], (self.U[trial] - V[row]) ** 2)


def _matern52(r2: Array) -> tuple[Array, Array]:
    k, slope = np.empty_like(r2), np.empty_like(r2)
    if r2.size <= _AT_ONCE:
        _fill_matern52(r2, k, slope)
        return k, slope
    parts = [a.ravel(order="K") for a in (r2, k, slope)]  # views, of the last two in any case
    for start in range(0, r2.size, _AT_ONCE):
        _fill_matern52(*(part[start : start + _AT_ONCE] for part in parts))
    return k, slope


def _fill_matern52(r2: Array, k: Array, slope: Array) -> None:
    np.multiply(r2, 5.0, out=k)
    a = np.sqrt(k, out=slope)
    decay = np.exp(-a)
    a += 1.0
    a *= decay
    k *= decay
    k *= 1.0 / 3.0
    k += a
    slope *= -5.0 / 6.0


def _squared_exponential(r2: Array) -> tuple[Array, Array]:
    k = np.exp(-0.5 * r2)
    return k, -0.5 * k


MATERN52 = Kernel("matern52", _matern52)
SQUARED_EXPONENTIAL = Kernel("squared_exponential", _squared_exponential)
KERNELS = {kernel.name: kernel for kernel in (MATERN52, SQUARED_EXPONENTIAL)}
