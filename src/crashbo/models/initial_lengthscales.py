"""Initial lengthscales of a cold fit: which dimensions seem to matter, by a ridge regression.

May import numerics only.

A line and a parabola per dimension are fitted to the measurements, with a value above the threshold in place of those
a crash left out. Along a dimension of lengthscale l a unit-variance function varies by about 0.14 / l^2 over the unit
cube, so a dimension that explains the share r of the variance gets a lengthscale in proportion to r^-1/2. Where
nothing is explained all shares are equal, and all lengthscales the prior's.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crashbo.models.hybrid import HybridData
from crashbo.models.parametrisation import Parametrisation

Array = NDArray[np.float64]

_RIDGE = 2.0  # judgement: per dimension; as if this many more trials had shown no dependence on it
_LONGEST = 5.0  # judgement: times the prior's lengthscale, the longest start
_LEAST_SHARE = _LONGEST**-2.0  # derived: of an equal share, since lengthscales go with its -1/2
_FLAT = 1e-9  # judgement: standard deviation of a feature that does not vary


def with_initial_lengthscales(p: Parametrisation, data: HybridData, j: int) -> Parametrisation:
    """The parametrisation of latent function j, with initial lengthscales from its data."""
    u = _stand_in(p, data, j)
    seen = ~np.isnan(u)
    if not seen.any():
        return p
    shares, tied = _shares(data.X[seen], u[seen]), list(p.prior.tied)
    shares = np.asarray(np.bincount(tied, shares), dtype=float) if tied else shares
    factors = np.maximum(shares * len(shares), _LEAST_SHARE) ** -0.5
    factors = factors[tied] if tied else factors
    return replace(p, start=replace(p.start, lengthscales=p.start.lengthscales * factors))


def _stand_in(p: Parametrisation, data: HybridData, j: int) -> Array:
    """Measurements in units of the fit; without one, one above the threshold for a crash, one below otherwise."""
    u = (data.Y[j] - p.shift) / p.scale
    sign = np.where(data.bounded | (data.sign[j] == 0.0), np.nan, data.sign[j])
    return np.where(np.isnan(u), p.start.threshold - sign, u)


def _shares(X: Array, u: Array) -> Array:
    """What each dimension seems to explain of the variance of u, (D,): they add up to one."""
    n, D = X.shape
    equal = np.full(D, 1.0 / D)
    v = u - u.mean()
    total = float(v @ v) / n
    if not total > 0.0:
        return equal
    A = _features(X)
    G = A.T @ A
    inverse = np.linalg.inv(G + _RIDGE * D * np.eye(2 * D))
    hat = inverse @ G
    coefficients = inverse @ (A.T @ v)
    left = v - A @ coefficients
    scatter = float(left @ left) / max(n - float(np.trace(hat)), 1.0)
    # The share that chance alone would give is subtracted: otherwise all of many dimensions would seem to matter.
    explained = np.maximum(coefficients**2 - scatter * np.einsum("ij,ji->i", hat, inverse), 0.0) / total
    explained = explained[:D] + explained[D:]
    sure = float(explained.sum())
    confidence = min(sure, 1.0) ** 0.5
    return equal if sure == 0.0 else confidence * explained / sure + (1.0 - confidence) * equal


def _features(X: Array) -> Array:
    """Lines and parabolas, (n, 2 D), centred and of unit variance; zeros where x does not vary."""
    x = X - X.mean(axis=0)
    A = np.concatenate([x, x**2 - np.mean(x**2, axis=0)], axis=1)
    spread = np.sqrt(np.mean(A**2, axis=0))
    return np.asarray(np.divide(A, spread, out=np.zeros_like(A), where=spread > _FLAT))
