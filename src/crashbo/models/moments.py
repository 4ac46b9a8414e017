"""Moments of one latent function at any points, under one posterior or several at once (eq. 8).

May import numerics only.

The acquisition optimiser asks for them many times at a few points each, where a NumPy call costs as much as its
arithmetic. So what does not depend on the points is prepared once, and gradients are taken by the chain rule from the
value backwards: whoever knows the slopes of a value in mean and variance gets its gradient in the points by one sum
over the trials.

Notation, for K posteriors given n trials, at m points Z; arrays over both are (m, K n), in blocks of n columns:
    k, k'     covariances of the points with the trials, unit variance, and their slopes in the squared distance
    b, W      of numerics.linalg
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crashbo.numerics.kernels import Distances, Kernel
from crashbo.numerics.linalg import SitePosterior, product, times, within

Array = NDArray[np.float64]
PullbackOfThree = Callable[[Array, Array, Array], Array]

# judgement: for speed alone; _SMALL covers every ensemble of a search, see search.fitting._UNSURE
_AT_ONCE, _LEAST = 2**14, 128  # covariances that need no new pages of memory; fewest points at once
_SMALL = 200  # trials up to which all posteriors are stacked, with NumPy: its BLAS does such products in one thread


class Pullback(Protocol):
    """The chain rule: from the slopes of m values in what they were computed from to their gradients in the points."""

    def __call__(self, in_mean: Array, in_var: Array, in_sum: Array | None = None, /) -> Array:
        """Gradients, (m, D), given the slopes in every mean and variance, and in a weighted sum of k, if there is one.

        One value depends on the moments of its own point, under all posteriors.
        """


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
        for some in self.parts(len(Z)):
            mean[:, some], var[:, some] = self.given(self.covariances(Z[some])[0])
        return mean, var

    def with_pullback(self, Z: Array) -> tuple[Array, Array, Pullback]:
        """Mean and variance at Z, both (K, m), and what turns slopes in them, both (K, m), into gradients in Z."""
        return self.given_slopes(Z, *self.covariances(Z))

    def parts(self, m: int) -> Iterator[slice]:
        """So many of m points at a time as are computed at once."""
        width = max(_AT_ONCE // (len(self.posteriors) * len(self.X)), _LEAST)
        return (slice(start, start + width) for start in range(0, m, width))

    def covariances(self, Z: Array) -> tuple[Array, Array]:
        """k and k' of Z."""
        return self.kernel.profile(self._distances.to(Z))

    def given(self, k: Array) -> tuple[Array, Array]:
        """Mean and variance where the covariances are k."""
        mean, var = np.empty((2, len(self.posteriors), len(k)))
        for i, block, post in self._blocks:
            mean[i], var[i] = times(k[:, block], post.b), post.variance(k[:, block].T)
        return self._in_units(mean, var)

    def given_slopes(
        self, Z: Array, k: Array, slope: Array, weights: Array | None = None
    ) -> tuple[Array, Array, Pullback]:
        """`with_pullback` at Z, of which k and k' are known; `weights`, (n,), are those of a sum of k."""
        shape = len(Z), *self.b.shape
        blocks, slopes = (a.reshape(shape).swapaxes(0, 1) for a in (k, slope))
        mean, var, Wk = (self._sums if self._stack is None else self._stacked_sums)(blocks)
        capped = var >= 1.0  # at the prior's

        def pullback(in_mean: Array, in_var: Array, in_sum: Array | None = None, /) -> Array:
            terms = Wk * np.where(capped, 0.0, in_var * self._rate_of_var)[:, :, None]
            terms += (in_mean * self._scale)[:, :, None] * self.b[:, None, :]
            if in_sum is not None and weights is not None:
                terms += in_sum[:, :, None] * weights
            terms *= slopes
            sums = self._times_X(terms)
            gradient = (Z - self._distances.center) * sums[:, :, -1:]
            gradient -= sums[:, :, :-1]
            gradient *= self._rates
            return np.asarray(gradient[0] if len(gradient) == 1 else gradient.sum(axis=0))

        return *self._in_units(mean, var), pullback

    def covariance_with(self, i: int) -> "Covariance":
        """Covariance of the values with that at trial i, under one posterior."""
        k, _ = self.covariances(self.X[i : i + 1])
        weights = -self.posteriors[0].variance_and_W_times(k.T)[1][:, 0]
        weights[i] += 1.0
        return Covariance(self, weights)

    def root_of_reduction(self, Z: Array) -> Array:
        """A, (n, m): by A'A the first posterior's covariance at Z lies below the prior's, both of unit variance.

        Only without sites of negative precision, such as of a regression.
        """
        first = self.posteriors[0]
        assert first.R is None
        return first.F_times(self.kernel.matrix(self.X, Z, self.lengthscales[0]))

    def _sums(self, k: Array) -> tuple[Array, Array, Array]:
        """Mean and variance, (K, m), and W k, (K, m, n), in units of the prior; from k, (K, m, n)."""
        mean, var, Wk = np.empty(k.shape[:2]), np.empty(k.shape[:2]), np.empty(k.shape)
        for i, post in enumerate(self.posteriors):
            mean[i] = times(k[i], post.b)
            var[i], turned = post.variance_and_W_times(k[i].T)
            Wk[i] = turned.T
        return mean, var, Wk

    def _stacked_sums(self, k: Array) -> tuple[Array, Array, Array]:
        """The same for all posteriors at once."""
        assert self._stack is not None
        Fk = np.matmul(k, self._stack.swapaxes(1, 2))
        Wk = np.matmul(Fk, self._stack)
        Fk *= Fk
        return np.matmul(k, self.b[:, :, None])[:, :, 0], within(1.0 - Fk.sum(axis=2), 1.0), Wk

    def _times_X(self, terms: Array) -> Array:
        """Sums of terms, (K, m, n), over the trials: times their x, and alone, (K, m, D + 1)."""
        if self._stack is not None:
            return np.asarray(np.matmul(terms, self._beside_ones))
        return np.stack([product(one, self._beside_ones) for one in terms])

    def _in_units(self, mean: Array, var: Array) -> tuple[Array, Array]:
        mean *= self._scale
        mean += self.mean[:, None]
        var *= self.outputscale[:, None]
        return mean, var

    @cached_property
    def _blocks(self) -> tuple[tuple[int, slice, SitePosterior], ...]:
        n = len(self.X)
        return tuple((i, slice(i * n, (i + 1) * n), post) for i, post in enumerate(self.posteriors))

    @cached_property
    def _distances(self) -> Distances:
        return Distances.of(self.X, self.lengthscales)

    @cached_property
    def b(self) -> Array:
        """Of each posterior, (K, n)."""
        return np.stack([post.b for post in self.posteriors])

    @cached_property
    def _stack(self) -> Array | None:
        """F of each posterior, (K, n, n); None where those are large or have negative sites."""
        if len(self.X) > _SMALL or any(post.R is not None for post in self.posteriors):
            return None
        return np.stack([post.L_inv * post.root for post in self.posteriors])

    @cached_property
    def _scale(self) -> Array:
        return np.sqrt(self.outputscale)[:, None]

    @cached_property
    def _rate_of_var(self) -> Array:
        return -2.0 * self.outputscale[:, None]

    @cached_property
    def _rates(self) -> Array:
        """Factors of a coordinate's difference in the slope of a squared distance, (K, 1, D)."""
        return np.asarray(2.0 / self.lengthscales**2)[:, None, :]

    @cached_property
    def _beside_ones(self) -> Array:
        """The trials' x, centred as distances are, and a one, (n, D + 1)."""
        return np.column_stack([self.X - self._distances.center, np.ones(len(self.X))])


@dataclass(frozen=True)
class Covariance:
    """Covariance of a latent function's values with that at one of its trials: a weighted sum of k.

    Who asks for it mostly asks for mean and variance, too, which take the same k.
    """

    moments: Moments  # of one posterior
    weights: Array  # (n,)

    def at(self, Z: Array) -> Array:
        """At Z, (m,)."""
        return self.with_moments(Z)[2]

    def with_moments(self, Z: Array) -> tuple[Array, Array, Array]:
        """Mean and variance at Z, and the covariance, all (m,)."""
        found = np.empty((3, len(Z)))
        for some in self.moments.parts(len(Z)):
            k, _ = self.moments.covariances(Z[some])
            (found[0, some],), (found[1, some],) = self.moments.given(k)
            found[2, some] = self._outputscale * times(k, self.weights)
        return found[0], found[1], found[2]

    def with_pullback(self, Z: Array) -> tuple[Array, Array, Array, PullbackOfThree]:
        """The same, and what turns slopes in mean, variance and covariance, all (m,), into gradients in Z, (m, D)."""
        k, slope = self.moments.covariances(Z)
        mean, var, pullback = self.moments.given_slopes(Z, k, slope, self.weights)

        def pull(in_mean: Array, in_var: Array, in_cov: Array) -> Array:
            return pullback(in_mean[None], in_var[None], self._outputscale * in_cov[None])

        return mean[0], var[0], self._outputscale * times(k, self.weights), pull

    @cached_property
    def _outputscale(self) -> float:
        return float(self.moments.outputscale[0])
