"""Gaussian tails, truncated moments and expected improvement, to full precision in both tails.

May import numpy and scipy only.

Notation, for t > 0 and the standard normal density phi and distribution Phi:
    h(z)   phi(z) / Phi(z), the hazard of a Gaussian cut at z
    delta  h(-t) - t, how far the mean of the tail beyond t lies past t
    r(z)   1 - h(z) (h(z) + z), the variance of a unit Gaussian cut at z

Written out, delta and r cancel catastrophically for large t. Laplace's continued fraction of the Mills
ratio gives both without any cancellation: with e = 2/(t + 3/(t + 4/(t + ...))),
    delta = 1/(t + e)    and    r(-t) = delta (e - delta).
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr, ndtr

Array = NDArray[np.float64]

LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_SQRT_2_OVER_PI = np.sqrt(2.0 / np.pi)
_SQRT_HALF = np.sqrt(0.5)

_THIN = (
    1e-4  # of a band, times the rate of its height's logarithm: the middle stands for it, to a relative error of 1e-9
)
_BEYOND = 1e100  # a level this many standard deviations down is none
_NO_CUT = 1e3  # a cut beyond this, infinity too, changes nothing

# Past this t the continued fraction is used; with this many terms it is exact to rounding there.
_FAR = 6.0
_TERMS = 22


class Tail(NamedTuple):
    """A unit Gaussian truncated to values below z; arrays of one shape."""

    log_mass: Array  # log Phi(z)
    hazard: Array  # h(z)
    shift: Array  # h(z) + z: equals delta in the far tail
    ratio: Array  # r(z), in (0, 1]


class TruncatedMoments(NamedTuple):
    """Logarithm of the mass kept, mean and variance of a truncated Gaussian."""

    log_mass: Array
    mean: Array
    var: Array


def tail(z: ArrayLike) -> Tail:
    """Mass, hazard and variance of a unit Gaussian cut at z, with full precision in both tails."""
    z = np.asarray(z, dtype=float)
    h, shift, far = _hazard(z)
    if far is None:
        r = 1.0 - h * np.minimum(shift, _NO_CUT)
    else:
        e, delta = _laplace(-z[far])
        r = _put(1.0 - np.where(far, 0.0, h) * np.minimum(shift, _NO_CUT), far, delta * (e - delta))
    return Tail(log_ndtr(z), h, shift, r)


def _hazard(z: Array) -> tuple[Array, Array, NDArray[np.bool_] | None]:
    """h(z), h(z) + z, and where z is far in the tail, if it is anywhere."""
    h = _SQRT_2_OVER_PI / erfcx(-_SQRT_HALF * np.maximum(z, -_NO_CUT))  # erfcx is inf for z > 37, where h is 0
    shift, far = h + z, z < -_FAR
    if not far.any():
        return h, shift, None
    delta = _laplace(-z[far])[1]
    return _put(h, far, delta - z[far]), _put(shift, far, delta), far


def truncated_moments(
    mean: ArrayLike, var: ArrayLike, bound: ArrayLike, side: Literal["above", "below"]
) -> TruncatedMoments:
    """Moments of N(mean, var) with only its mass on one side of `bound` kept.

    Args:
        mean: mean before truncation.
        var: variance before truncation, positive.
        bound: where the Gaussian is cut.
        side: "above" keeps the values above the bound, "below" those below it.
    """
    if side not in ("above", "below"):
        raise ValueError(f"side must be 'above' or 'below'; got {side!r}. Name the side that is kept.")
    sign = 1.0 if side == "below" else -1.0
    mean, var, bound = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (mean, var, bound)))
    std = np.sqrt(var)
    cut = tail(sign * (bound - mean) / std)
    # From the end that loses no digits: the bound in the far tail, the mean otherwise.
    beyond = sign * (bound - mean) < 0.0
    from_bound = bound - sign * std * np.where(beyond, cut.shift, 0.0)
    from_mean = mean - sign * std * cut.hazard
    return TruncatedMoments(cut.log_mass, np.where(beyond, from_bound, from_mean), var * cut.ratio)


def log_expected_improvement(mean: ArrayLike, var: ArrayLike, best: ArrayLike) -> Array:
    """log E[max(best - f, 0)] of f ~ N(mean, var), stable for z = (best - mean)/std down to -1e6."""
    std = np.sqrt(np.asarray(var, dtype=float))
    z = (np.asarray(best, dtype=float) - np.asarray(mean, dtype=float)) / std
    return np.asarray(np.log(std) + log_unit_improvement(z)[0])


def log_unit_improvement(z: ArrayLike) -> tuple[Array, Array]:
    """log(phi(z) + z Phi(z)) and its derivative in z: log EI of a unit Gaussian."""
    z = np.asarray(z, dtype=float)
    below = z < 0.0
    hazard, shift, _ = _hazard(np.minimum(z, 0.0))
    with np.errstate(over="ignore", divide="ignore"):  # infinite only where the value or its slope is
        log_phi = -0.5 * z**2 - LOG_SQRT_2PI
        value, slope = log_phi + np.log(shift) - np.log(hazard), 1.0 / shift
        if below.all():
            return value, slope
        mass = ndtr(z)
        near = np.where(below, 1.0, np.exp(log_phi) + np.maximum(z, 0.0) * mass)
        return np.where(below, value, np.log(near)), np.where(below, slope, mass / near)


class Band(NamedTuple):
    """What a Gaussian is expected to leave of the band between two levels, in logarithms: E[high - max(low, Y)]+."""

    log_height: Array  # in standard deviations
    by_mean: Array  # minus the derivative in the mean, per standard deviation
    by_std: Array  # the derivative of the logarithm in units of the level in the standard deviation, likewise


class _Edge(NamedTuple):
    """A level z: log h, the same without its density (of the lower tail), and Phi and phi as shares of h."""

    z: Array
    log_h: Array
    core: Array
    Phi: Array
    phi: Array


def log_bands(levels: Array, low: NDArray[np.intp], high: NDArray[np.intp]) -> Band:
    """Bands of a unit Gaussian between pairs of levels, (m, E), given by their columns `low` and `high`, both (K,).

    With h(z) = phi(z) + z Phi(z) it is log(h(high) - h(low)): from the logs of both, so that a band far in the tail
    keeps its digits, and from the middle of one that is so thin that the difference would lose them.
    """
    edge = _edge(levels)
    lower, upper = (_Edge(*(value[:, at] for value in edge)) for at in (low, high))
    with np.errstate(invalid="ignore", over="ignore"):  # of levels at -infinity, which have no h
        width = upper.z - lower.z
        from_density = 0.5 * width * (lower.z + upper.z)
        in_tail = (upper.z < 0.0) & np.isfinite(lower.z)
        fall = np.where(in_tail, lower.core - upper.core + from_density, lower.log_h - upper.log_h)
    thin = width * np.maximum(1.0, -upper.z) < _THIN
    share = np.exp(np.where(thin, -1.0, fall))
    log_height = upper.log_h + np.log1p(-share)
    by_mean = (upper.Phi - share * lower.Phi) / (1.0 - share)
    by_std = (upper.phi - share * lower.phi) / (1.0 - share)
    if thin.any():
        middle = 0.5 * (lower.z + upper.z)[thin]
        cut = tail(middle)
        log_height[thin] = np.log(width[thin]) + cut.log_mass
        by_mean[thin], by_std[thin] = cut.hazard, -middle * cut.hazard
    return Band(log_height, by_mean, by_std)


def _edge(z: Array) -> _Edge:
    """Of every level; at -infinity, or so far down that its square is, nothing is left below."""
    nothing = z < -_BEYOND
    at = np.where(nothing, 0.0, z)
    cut, (log_h, Phi) = tail(np.minimum(at, 0.0)), log_unit_improvement(at)
    with np.errstate(over="ignore"):
        phi = np.where(at < 0.0, cut.hazard / cut.shift, np.exp(-0.5 * at**2 - LOG_SQRT_2PI - log_h))
    log_h, core = (np.where(nothing, -np.inf, value) for value in (log_h, np.log(cut.shift / cut.hazard)))
    return _Edge(np.where(nothing, -np.inf, z), log_h, core, Phi, phi)


def _laplace(t: Array) -> tuple[Array, Array]:
    """The pair (e, delta) of the notation block, by the continued fraction."""
    a = np.array(t)
    for k in range(_TERMS, 2, -1):
        np.divide(k, a, out=a)
        a += t
    e = 2.0 / a
    return e, 1.0 / (t + e)


def _put(into: Array, where: NDArray[np.bool_], values: Array) -> Array:
    out = np.array(into)
    out[where] = values
    return out
