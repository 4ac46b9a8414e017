"""Fisher's information of the hyperparameters, for the first metric of a fit.

May import numerics only.

Notation, with F, W, S of numerics.linalg and dK_i the derivative of K in hyperparameter i:
    1/2 tr(W dK_i W dK_j)   for those of covariance and noise
    e_i' W e_j              for those that shift the observations by e, mean and threshold

EP's sites count as Gaussian observations. The trace is that of (F dK_i F')(F dK_j F'), estimated with random signs z
(Hutchinson): the mean of (F dK_i F'z)'(F dK_j F'z). A few probes suffice, since a metric need not be exact; and as
dK_d is k' times a squared difference, all lengthscales take one product of an (n, n) matrix with the probes.
"""

import numpy as np
from numpy.typing import NDArray

from crashbo.models.latent import Posterior, relative_noise_std
from crashbo.numerics.linalg import cholesky, plus_identity, product, triangular_inverse

Array = NDArray[np.float64]

_PROBES = 8  # judgement: a metric need not be exact
_SCRAMBLE = 1e4  # judgement: a phase that moves by many turns between neighbours


def information(posterior: Posterior, j: int) -> Array:
    """Information of latent function j, in the order of Gradient's fields with D lengthscales first.

    Coordinates are the logarithms of lengthscales, outputscale and noise, and mean and threshold in units of
    sqrt(outputscale). Entries of the crash noise are zero.
    """
    h, n, D = posterior.hypers[j], *posterior.data.X.shape
    order = posterior.data.order  # a Cholesky factor depends on the order of the trials: always use the same
    X, tau = posterior.data.X[order], posterior.ep.sites.tau[j, order]
    K, slope = (matrix.T.take(order, axis=0).take(order, axis=1).T for matrix in posterior.grams[j])
    precision = np.where(posterior.data.measured[j], relative_noise_std(h) ** -2.0, 0.0)[order]
    total = precision + tau
    moved = np.divide(tau, total, out=np.zeros(n), where=total > 0.0)  # a negative site is left out, as in F
    scatter = np.divide(2.0 * precision, total**2, out=np.zeros(n), where=total > 0.0)
    F = _factor(K, total)
    v = product(F.T, _signs(X))
    pieces = [*_lengthscales_times(slope, X / h.lengthscales, v), product(K, v)]
    spreads = _rows(F, [*pieces, scatter[:, None] * v]) / np.sqrt(2.0 * _PROBES)
    shifts = _rows(F, [np.ones((n, 1)), moved[:, None]])
    result = np.zeros((D + 5, D + 5))
    of_spread, of_shift = [*range(D + 1), D + 2], [D + 1, D + 3]
    result[np.ix_(of_spread, of_spread)] = product(spreads, spreads.T)
    result[np.ix_(of_shift, of_shift)] = product(shifts, shifts.T)
    return result


def _factor(K: Array, S: Array) -> Array:
    """F of numerics.linalg, of the sites with positive precision."""
    root = np.sqrt(np.maximum(S, 0.0))
    F: Array = triangular_inverse(cholesky(plus_identity(K, root)))
    F *= root
    return F


def _signs(X: Array) -> Array:
    """Pseudo-random signs, (n, probes), that depend on x alone: the order of trials must not matter."""
    k = np.arange(1.0, _PROBES + 1.0)
    phases = product(X, _SCRAMBLE * np.sqrt(np.outer(np.arange(2.0, X.shape[1] + 2.0), k))) + k
    return np.where(np.cos(phases) < 0.0, -1.0, 1.0)


def _lengthscales_times(slope: Array, U: Array, v: Array) -> Array:
    """dK_d v for the logarithm of every lengthscale, (D, n, m): dK_d is -2 k' (u_d - u_d')^2."""
    (n, D), m = U.shape, v.shape[1]
    U = (U - U.mean(axis=0)).T[:, :, None]
    Uv = U * v
    stacked = np.concatenate([v[None], Uv, U * Uv])
    flat = product(slope, stacked.transpose(1, 0, 2).reshape(n, -1))
    times = flat.reshape(n, 2 * D + 1, m).transpose(1, 0, 2)
    result: Array = -2.0 * (U * (U * times[:1] - 2.0 * times[1 : D + 1]) + times[D + 1 :])
    return result


def _rows(F: Array, pieces: list[Array]) -> Array:
    """F times each of the pieces, (n, m), as one row each."""
    k, (n, m) = len(pieces), pieces[0].shape
    products = product(F, np.concatenate(pieces, axis=1)).reshape(n, k, m)
    return np.ascontiguousarray(products.transpose(1, 0, 2)).reshape(k, -1)
