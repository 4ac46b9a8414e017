"""Moments of one latent function at any points, under one posterior or several at once (eq. 8).

May import numerics only.

The acquisition optimiser asks for them many times at a few points each, where a NumPy call costs as much as its
arithmetic. So what does not depend on the points is prepared once, and the variance and its gradient share products.

Notation, for K posteriors given n trials, at m points Z; arrays over both are (n, K m), in blocks of m columns:
    k, k'     covariances of the trials with the points, unit variance, and their slopes in the squared distance
    b, W      of numerics.linalg
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.numerics.kernels import Distances, Kernel
from crashbo.numerics.linalg import SitePosterior, product, times, within

Array = NDArray[np.float64]

# judgement: for speed alone; _SMALL covers every ensemble of a search, see search.fitting._UNSURE
_AT_ONCE, _LEAST = 2**15, 128  # covariances that fit a cache beside their products; fewest points at once
_SMALL = 200  # trials up to which all posteriors are stacked, with NumPy: its BLAS does such products in one thread


@dataclass(frozen=True)
class Moments:
    """K posteriors of one latent function, given the same trials."""

    X: Array  # (n, D)
    kernel: Kernel
    posteriors: tuple[SitePosterior, ...]
    lengthscales: Array  # (K, D)
    outputscale: Array  # (K,)
    mean: Array  # (K,), of the prior

    def at(self, Z: Array) -> tuple[Array, Array]:
        """Mean and variance at Z under each posterior, both (K, m)."""
        mean, var = np.empty((2, len(self.posteriors), len(Z)))
        width = max(_AT_ONCE // (len(self.posteriors) * len(self.X)), _LEAST)
        for start in range(0, len(Z), width):
            some = Z[start : start + width]
            k, _ = self.kernel.profile(self._distances.to(some))
            for i, block, post in self._blocks(len(some)):
                mean[i, start : start + width] = times(k[:, block].T, post.b)
                var[i, start : start + width] = post.variance(k[:, block])
        return self._in_units(mean, var)

    def with_gradient(self, Z: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and variance at Z, both (K, m), and their gradients in Z, both (K, m, D)."""
        k, slope = self.kernel.profile(self._distances.to(Z))
        mean, var, sums = (self._sums if self._stack is None else self._stacked_sums)(k, slope, len(Z))
        sums[1, var >= 1.0] = 0.0  # the variance is capped at the prior's
        gradients = (Z - self._distances.center) * sums[..., -1:] - sums[..., :-1]
        gradients *= self._rates
        return *self._in_units(mean, var), gradients[0], gradients[1]

    def covariance_with(self, i: int) -> "Covariance":
        """Covariance of the first posterior's values with that at trial i."""
        distances = Distances.of(self.X, self.lengthscales[:1])
        k, _ = self.kernel.profile(distances.to(self.X[i : i + 1]))
        weights = -self.posteriors[0].variance_and_W_times(k)[1][:, 0]
        weights[i] += 1.0
        return Covariance(distances, self.kernel, self.lengthscales[0], float(self.outputscale[0]), weights)

    def root_of_reduction(self, Z: Array) -> Array:
        """A, (n, m): by A'A the first posterior's covariance at Z lies below the prior's, both of unit variance.

        Only without sites of negative precision, such as of a regression.
        """
        first = self.posteriors[0]
        assert first.R is None
        return first.F_times(self.kernel.matrix(self.X, Z, self.lengthscales[0]))

    def _sums(self, k: Array, slope: Array, m: int) -> tuple[Array, Array, Array]:
        """Mean, variance, and sums of b k' and of k' W k over the trials, times their x and alone, (2, K, m, D + 1)."""
        K, D = self.lengthscales.shape
        mean, var, sums = np.empty((K, m)), np.empty((K, m)), np.empty((2, K, m, D + 1))
        for i, block, post in self._blocks(m):
            mean[i] = times(k[:, block].T, post.b)
            var[i], Wk = post.variance_and_W_times(k[:, block])
            Wk *= slope[:, block]
            sums[0, i] = product(slope[:, block].T, self._weighted[i])
            sums[1, i] = product(Wk.T, self._beside_ones)
        return mean, var, sums

    def _stacked_sums(self, k: Array, slope: Array, m: int) -> tuple[Array, Array, Array]:
        """The same for all posteriors at once."""
        assert self._stack is not None
        F, b, weighted = self._stack
        k, slope = (a.T.reshape(len(b), m, len(self.X)) for a in (k, slope))
        Fk = np.matmul(k, F.swapaxes(1, 2))
        Wk = np.matmul(Fk, F)
        Wk *= slope
        sums = np.stack([np.matmul(slope, weighted), np.matmul(Wk, self._beside_ones)])
        var = within(1.0 - np.einsum("kmn,kmn->km", Fk, Fk), 1.0)
        return np.matmul(k, b)[:, :, 0], var, sums

    def _in_units(self, mean: Array, var: Array) -> tuple[Array, Array]:
        mean *= self._scale
        mean += self.mean[:, None]
        var *= self.outputscale[:, None]
        return mean, var

    def _blocks(self, m: int) -> Iterator[tuple[int, slice, SitePosterior]]:
        for i, post in enumerate(self.posteriors):
            yield i, slice(i * m, (i + 1) * m), post

    @cached_property
    def _distances(self) -> Distances:
        return Distances.of(self.X, self.lengthscales)

    @cached_property
    def _stack(self) -> tuple[Array, Array, Array] | None:
        """F, b and b times the trials' x, one row per posterior; None where those are large or have negative sites."""
        if len(self.X) > _SMALL or any(post.R is not None for post in self.posteriors):
            return None
        F = np.stack([np.tril(post.L_inv) * post.root for post in self.posteriors])
        return F, np.stack([post.b for post in self.posteriors])[:, :, None], np.stack(self._weighted)

    @cached_property
    def _scale(self) -> Array:
        return np.sqrt(self.outputscale)[:, None]

    @cached_property
    def _rates(self) -> Array:
        """Factors that turn sums over the trials into gradients of mean and variance, (2, K, 1, D)."""
        factors = np.stack([2.0 * np.sqrt(self.outputscale), -2.0 * 2.0 * self.outputscale])
        return np.asarray((factors[:, :, None] / self.lengthscales**2)[:, :, None, :])

    @cached_property
    def _beside_ones(self) -> Array:
        """The trials' x, centred as distances are, and a one, (n, D + 1)."""
        return np.asfortranarray(np.column_stack([self.X - self._distances.center, np.ones(len(self.X))]))

    @cached_property
    def _weighted(self) -> list[Array]:
        """The same times each posterior's b."""
        return [np.asfortranarray(post.b[:, None] * self._beside_ones) for post in self.posteriors]


@dataclass(frozen=True)
class Covariance:
    """Covariance of a latent function's values with that at one of its trials: a weighted sum of k."""

    distances: Distances  # of the trials, (n, D), under one set of lengthscales
    kernel: Kernel
    lengthscales: Array  # (D,)
    outputscale: float
    weights: Array  # (n,)

    def at(self, Z: Array) -> Array:
        """At Z, (m,)."""
        k, _ = self.kernel.profile(self.distances.to(Z))
        return self.outputscale * times(k.T, self.weights)

    def with_gradient(self, Z: Array) -> tuple[Array, Array]:
        """At Z, (m,), and the gradient in Z, (m, D)."""
        k, slope = self.kernel.profile(self.distances.to(Z))
        sums = product(slope.T, self._weighted)
        gradient = (Z - self.distances.center) * sums[:, -1:] - sums[:, :-1]
        gradient *= 2.0 * self.outputscale / self.lengthscales**2
        return self.outputscale * times(k.T, self.weights), gradient

    @cached_property
    def _weighted(self) -> Array:
        U = self.distances.U
        return np.asfortranarray(self.weights[:, None] * np.column_stack([U, np.ones(len(U))]))
