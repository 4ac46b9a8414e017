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
averaged over a grid. The lengthscales are those of a fit, in half of the grid, and equal to each other in the other
half: growing noise makes those of a fit too short. With the eigenvectors of W^-1/2 K W^-1/2 all rho come at once.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import logsumexp, ndtri

from crashbo.numerics.kernels import MATERN52

Array = NDArray[np.float64]

_LATEST, _LATEST_NOISE = 200, 120  # judgement: trials that are looked at for a drift, and for noise: what time allows
_FEWEST = 8  # judgement: with fewer values there is no telling
# judgement: grids that are wide and fine enough for an average
_STRETCHES = (0.125, 0.25, 0.5, 1.0, 2.0)  # of all lengthscales
_USUAL = 0.5  # judgement: times the square root of the dimension, a lengthscale where none is known
_NOISES = 10.0 ** -np.array([6.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5])  # rho
_DRIFTS = (0.03, 0.1, 0.3, 1.0)  # square roots of kappa
_GROWTHS = (3.0, 10.0, 30.0, 100.0)  # of the noise, from the first trial to the last
_TURNS = (0.25, 0.5, 0.75)  # of the trials, where something changed at once
_LEAST = 1e-300  # derived: of a sum of squares, so that its logarithm is finite


class Trend(NamedTuple):
    """How much more probable a trend makes the values."""

    log_factor: float  # Bayes factor against none, in nats
    size: float  # the most probable: a drift from first to last in units of y, or a factor of the noise
    turn: int | None = None  # the value at which it changed at once, where that explains more than a steady change
    in_ranks: float = 0.0  # of growing noise, the same as log_factor by the ranks of the values


NONE = Trend(0.0, 0.0)  # derived: nothing is known


def drift(X: Array, y: Array, lengthscales: Array) -> Trend:
    """Whether values measured one after the other drift, steadily or at once."""
    X, y, skipped = X[-_LATEST:], y[-_LATEST:], max(len(y) - _LATEST, 0)
    if not _is_enough(y):
        return NONE
    courses, scale = list(_courses(len(y))), float(np.ptp(y))
    values = ((y - y.mean()) / scale)[:, None]
    plain, moved, sizes = [], [], []
    for K in _covariances(X, lengthscales):
        spectrum = Spectrum.of(K, np.ones(len(y)))
        plain.append(spectrum.log_density(values)[:, 0])
        found = [spectrum.moved(values[:, 0], d, share) for _, d in courses for share in _DRIFTS]
        moved.append([value for value, _ in found])
        sizes.append([size for _, size in found])
    by_case = np.moveaxis(np.array(moved), 1, 2).reshape(-1, len(moved[0]))  # (grid, cases)
    log_factor = float(logsumexp(by_case) - logsumexp(plain) - math.log(by_case.shape[1]))
    best = int(np.argmax(by_case))
    size = scale * float(np.moveaxis(np.array(sizes), 1, 2).ravel()[best])
    turn = courses[best % by_case.shape[1] // len(_DRIFTS)][0]
    return Trend(log_factor, size, None if turn is None else skipped + turn)


def normal_scores(y: Array) -> Array:
    """The values as quantiles of a normal distribution, by their ranks: what is far off comes near."""
    ordered = np.sort(y)
    below, through = (np.searchsorted(ordered, y, side) for side in ("left", "right"))
    return np.asarray(ndtri(0.5 * (below + through) / len(y)))


def growth(X: Array, y: Array, lengthscales: Array) -> Trend:
    """Whether the noise of values measured one after the other grows, steadily or at once."""
    X, y, skipped = X[-_LATEST_NOISE:], y[-_LATEST_NOISE:], max(len(y) - _LATEST_NOISE, 0)
    if not _is_enough(y):
        return NONE
    both = np.stack([(y - y.mean()) / np.ptp(y), normal_scores(y)], axis=1)
    cases: list[tuple[int | None, float, Array]] = [(None, 1.0, np.ones(len(y)))]
    for turn, d in _courses(len(y)):
        cases += [(turn, factor, np.exp(2.0 * math.log(factor) * (d - d.mean()))) for factor in _GROWTHS]
    grams = list(_covariances(X, lengthscales))
    logs = np.array([[Spectrum.of(K, w).log_density(both) for K in grams] for _, _, w in cases])
    each = logsumexp(logs, axis=(1, 2))  # (cases, 2)
    log_factor, in_ranks = logsumexp(each[1:], axis=0) - each[0] - math.log(len(cases) - 1)
    turn, factor, _ = cases[1 + int(np.argmax(each[1:, 0]))]
    return Trend(float(log_factor), factor, None if turn is None else skipped + turn, float(in_ranks))


def _is_enough(y: Array) -> bool:
    return len(y) >= _FEWEST and float(np.ptp(y)) > 0.0


def _courses(n: int) -> Iterator[tuple[int | None, Array]]:
    """Steady from zero to one; or from zero to one at a turn."""
    yield None, np.linspace(0.0, 1.0, n)
    for share in _TURNS:
        turn = round(share * n)
        yield turn, (np.arange(n) >= turn).astype(float)


def _covariances(X: Array, lengthscales: Array) -> Iterator[Array]:
    """K over the grid."""
    equal = np.full(X.shape[1], _USUAL * math.sqrt(X.shape[1]))
    for scales in (lengthscales, equal):
        for stretch in _STRETCHES:
            yield MATERN52.gram(X, stretch * scales)[0]


class Spectrum(NamedTuple):
    """K + rho W for all rho, where W has a determinant of one: eigenvalues and vectors of W^-1/2 K W^-1/2."""

    weights: Array  # (rhos, n), one over the eigenvalues of W^-1/2 K W^-1/2 + rho
    halves: Array  # (rhos,), of log det (K + rho W)
    whiten: Array  # (n, n), to the eigenvectors
    one: Array  # (n,), ones, whitened

    @staticmethod
    def of(K: Array, w: Array) -> "Spectrum":
        """From K and the diagonal of W."""
        root = 1.0 / np.sqrt(w)
        values, vectors = eigh(root[:, None] * K * root, check_finite=False, driver="evd")
        weights = 1.0 / (np.maximum(values, 0.0) + _NOISES[:, None])
        whiten = vectors.T * root
        return Spectrum(weights, -0.5 * np.log(weights).sum(axis=1), whiten, whiten.sum(axis=1))

    def log_density(self, Y: Array) -> Array:
        """log p of each column of Y, (n, m), up to a constant, for each rho, (rhos, m)."""
        z = self.whiten @ Y
        oo, oz, zz = self.weights @ self.one**2, self.weights @ (self.one[:, None] * z), self.weights @ z**2
        return _integrated(len(Y), self.halves[:, None], oo[:, None], oz, zz)

    def moved(self, y: Array, d: Array, share: float) -> tuple[Array, Array]:
        """The same of one y where d d' share^2 is added, and the most probable drift along d, both (rhos,)."""
        z, u = self.whiten @ y, self.whiten @ d
        oo, oz, zz, uu, uo, uz = (
            self.weights @ (a * b)
            for a, b in ((self.one, self.one), (self.one, z), (z, z), (u, u), (u, self.one), (u, z))
        )
        weight = share**2 / (1.0 + share**2 * uu)  # of the update of C^-1 (Sherman and Morrison)
        oo, oz, zz = oo - weight * uo**2, oz - weight * uo * uz, zz - weight * uz**2
        halves = self.halves + 0.5 * np.log1p(share**2 * uu)
        return _integrated(len(y), halves, oo, oz, zz), weight * (uz - oz / oo * uo)


def _integrated(n: int, halves: Array, oo: Array, oz: Array, zz: Array) -> Array:
    """log p where m and v are integrated, from half of log det C, 1'C^-1 1, 1'C^-1 y and y'C^-1 y."""
    rest = np.maximum(zz - oz**2 / oo, _LEAST)
    return np.asarray(-halves - 0.5 * np.log(oo) - 0.5 * (n - 1) * np.log(rest))
