"""Whether a measured function drifts over the trials, or its noise grows: Bayes factors against one that does neither.

May import numerics only.

A Bayes factor is of densities of the same values given where they were measured, so it does not matter that a search
chose the places. Its expectation is one where nothing drifts: it exceeds 200 in one study of 200 at the most.

Notation, for values y at X in the order of the trials:
    y ~ N(m, v (K + rho W + kappa d d'))
    K, rho     prior covariance, of unit variance; the noise's share of v
    W          how the noise is spread over the trials, diagonal, of geometric mean one
    d, kappa   the course of a drift, and its variance as a share of v

m and v are integrated (flat in m and in log v); rho, a common factor of all lengthscales, kappa and the course are
averaged over a grid. The ratios of the lengthscales are those of a fit.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp, ndtri

from crashbo.numerics.kernels import MATERN52

Array = NDArray[np.float64]

_LATEST = 200  # judgement: trials that are looked at, what time allows
_FEWEST = 8  # judgement: with fewer values there is no telling
# judgement: grids that are wide and fine enough for an average
_STRETCHES = (0.125, 0.25, 0.5, 1.0, 2.0)  # of all lengthscales
_NOISES = tuple(10.0**-k for k in (6.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5))  # rho
_DRIFTS = (0.03, 0.1, 0.3, 1.0)  # square roots of kappa
_GROWTHS = (3.0, 10.0, 30.0)  # of the noise, from the first trial to the last
_TURNS = (0.25, 0.5, 0.75)  # of the trials, where something changed at once
_LEAST = 1e-300  # derived: of a sum of squares, so that its logarithm is finite


class Trend(NamedTuple):
    """How much more probable a trend makes the values."""

    log_factor: float  # Bayes factor against none, in nats
    size: float  # the most probable: a drift from first to last in units of y, or a factor of the noise
    turn: int | None = None  # the value at which it changed at once, where that explains more than a steady change


NONE = Trend(0.0, 0.0)  # derived: nothing is known


def drift(X: Array, y: Array, lengthscales: Array) -> Trend:
    """Whether values measured one after the other drift, steadily or at once."""
    X, y, skipped = X[-_LATEST:], y[-_LATEST:], max(len(y) - _LATEST, 0)
    if not _is_enough(y):
        return NONE
    courses = list(_courses(len(y)))
    plain, moved, sizes = [], [], []
    for C in _covariances(X, lengthscales, np.ones(len(y))):
        null = _LogDensity(C, y)
        plain.append(null.value)
        found = [null.moved(d, share) for _, d in courses for share in _DRIFTS]
        moved.append([value for value, _ in found])
        sizes.append([size for _, size in found])
    log_factor = float(logsumexp(moved) - logsumexp(plain) - math.log(len(moved[0])))
    best = int(np.argmax(moved))
    size = float(np.ravel(sizes)[best])
    turn = courses[best % len(moved[0]) // len(_DRIFTS)][0]
    return Trend(log_factor, size, None if turn is None else skipped + turn)


def normal_scores(y: Array) -> Array:
    """The values as quantiles of a normal distribution, by their ranks: what is far off comes near."""
    ordered = np.sort(y)
    below, through = (np.searchsorted(ordered, y, side) for side in ("left", "right"))
    return np.asarray(ndtri(0.5 * (below + through) / len(y)))


def growth(X: Array, y: Array, lengthscales: Array) -> Trend:
    """Whether the noise of values measured one after the other grows, steadily or at once."""
    X, y, skipped = X[-_LATEST:], y[-_LATEST:], max(len(y) - _LATEST, 0)
    if not _is_enough(y):
        return NONE
    plain = [_LogDensity(C, y).value for C in _covariances(X, lengthscales, np.ones(len(y)))]
    cases, logs = [], []
    for turn, d in _courses(len(y)):
        for factor in _GROWTHS:
            w = np.exp(2.0 * math.log(factor) * (d - d.mean()))
            cases.append((turn, factor))
            logs.append([_LogDensity(C, y).value for C in _covariances(X, lengthscales, w)])
    log_factor = float(logsumexp(logs) - logsumexp(plain) - math.log(len(cases)))
    turn, factor = cases[int(np.argmax(logsumexp(logs, axis=1)))]
    return Trend(log_factor, factor, None if turn is None else skipped + turn)


def _is_enough(y: Array) -> bool:
    return len(y) >= _FEWEST and float(np.ptp(y)) > 0.0


def _courses(n: int) -> Iterator[tuple[int | None, Array]]:
    """Steady from zero to one; or from zero to one at a turn."""
    yield None, np.linspace(0.0, 1.0, n)
    for share in _TURNS:
        turn = round(share * n)
        yield turn, (np.arange(n) >= turn).astype(float)


def _covariances(X: Array, lengthscales: Array, w: Array) -> Iterator[Array]:
    """K + rho W over the grid."""
    for stretch in _STRETCHES:
        K = MATERN52.gram(X, stretch * lengthscales)[0]
        for rho in _NOISES:
            yield K + np.diag(rho * w)


class _LogDensity:
    """log p(y), up to a constant, where m and v are integrated."""

    def __init__(self, C: Array, y: Array) -> None:
        n = len(y)
        self._L, self._n, self._y = cholesky(C, lower=True, check_finite=False), n, (y - y.mean()) / np.ptp(y)
        self._scale = float(np.ptp(y))
        self._halves = float(np.log(np.diag(self._L)).sum())  # of log det C
        both = solve_triangular(self._L, np.stack([np.ones(n), self._y], axis=1), lower=True, check_finite=False)
        self._one, self._z = both[:, 0], both[:, 1]
        self._oo, self._oz = float(self._one @ self._one), float(self._one @ self._z)
        self._zz = float(self._z @ self._z)
        self.value = self._of(self._halves, self._oo, self._zz - self._oz**2 / self._oo)

    def _of(self, halves: float, oo: float, rest: float) -> float:
        return -halves - 0.5 * math.log(oo) - 0.5 * (self._n - 1) * math.log(max(rest, _LEAST))

    def moved(self, d: Array, share: float) -> tuple[float, float]:
        """The same where d d' share^2 is added to C, and the most probable drift along d, in units of y."""
        u = solve_triangular(self._L, d, lower=True, check_finite=False)
        uu, uo, uz = float(u @ u), float(u @ self._one), float(u @ self._z)
        weight = share**2 / (1.0 + share**2 * uu)  # of the update of C^-1 (Sherman and Morrison)
        oo, oz, zz = self._oo - weight * uo**2, self._oz - weight * uo * uz, self._zz - weight * uz**2
        halves = self._halves + 0.5 * math.log1p(share**2 * uu)
        mean = oz / oo
        size = weight * (uz - mean * uo)
        return self._of(halves, oo, zz - oz**2 / oo), size * self._scale
